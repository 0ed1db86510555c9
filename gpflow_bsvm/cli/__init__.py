"""The command line: `gpflow-bsvm compare`, `gpflow-bsvm train` and `gpflow-bsvm predict`.

TensorFlow is imported only after reading the arguments, so that help and errors appear at once.
"""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Sequence

from ..version import __version__
from . import compare, predict, train
from .shared import PROGRAM, Parser, fail, in_shell, open_streams, told_in_lines

#: If set, the traceback of an unexpected error is shown.
TRACEBACK = "GPFLOW_BSVM_TRACEBACK"


def _parser() -> Parser:
    parser = Parser(prog=PROGRAM, description="Bayesian support vector machines for GPflow.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (compare, train, predict):
        command.add_to(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """
    :param argv: arguments without the program name; None: `sys.argv`.
    :return: 0 for success, 1 if all models fail or the output cannot be written, 2 for bad input,
        130 after an interrupt.
    """
    open_streams()
    atexit.register(gc.freeze)  # at exit, collecting TensorFlow's graphs would take seconds
    args = _parser().parse_args(argv)
    args.typed = shlex.join([PROGRAM, *(sys.argv[1:] if argv is None else argv)])
    try:
        with told_in_lines():
            return int(args.run(args))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at exit
        return fail(1, "the program that reads the output has ended")
    except (ValueError, ImportError, OSError) as error:
        return fail(2, in_shell(" ".join(str(error).split("\n"))))
    except KeyboardInterrupt:
        kept = args.output.with_name(f"{args.output.name}.partial")
        again = "; the same command continues from there" if kept.is_dir() else ""
        print(f"{PROGRAM}: interrupted{again}", file=sys.stderr)
        return 130
    except Exception as error:  # report any error in one line
        if TRACEBACK in os.environ:
            raise
        about = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return fail(2, f"{about} (unexpected error: set {TRACEBACK}=1 for the traceback)")
