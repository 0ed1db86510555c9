"""The command line, called in this process."""

from gpflow_bsvm import cli


def run(*argv):
    """:return: exit code, however the command ends."""
    try:
        return cli.main([str(arg) for arg in argv])
    except SystemExit as end:
        return end.code
