"""The command line: `gpflow-bsvm compare`, `gpflow-bsvm train` and `gpflow-bsvm predict`.

TensorFlow is imported only after the arguments are read, so that help and errors are instant.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from ..version import __version__
from . import compare, predict, train
from .terminal import PROGRAM, Parser, fail

__all__ = ["main"]

#: Messages of Python's parser, and their wording here.
_IN_SHELL = {
    "leave it out by features=[...]": "drop it (train has --features)",
    "by features, target and weight": "by --features, --target and --weight",
    "give names=[...], those": "give --names, those",
    "; is target the right column?": "; is --target the right column?",
    'give classes="auto", or classes=[...], the labels in the order of 0..C-1': "for classes leave "
    "out --task regression",
    "(Numbers are for BSVMRegressor)": "(Numbers are for --task regression)",
    "Give another directory, or delete this one to start anew": "Give another --output, or delete "
    "that directory to start anew",
}


def main(argv: Sequence[str] | None = None) -> int:
    """
    :param argv: arguments, without the name of the program; None: those of the process.
    :return: 0; 1 if every model failed; 2 for bad input; 130 after an interrupt.
    """
    parser = Parser(prog=PROGRAM, description="Bayesian support vector machines for GPflow.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (compare, train, predict):
        command.add_to(subparsers)
    args = parser.parse_args(argv)
    args.words = shlex.join([PROGRAM, *(sys.argv[1:] if argv is None else argv)])
    try:
        return int(args.run(args))
    except (ValueError, ImportError, OSError) as error:
        message = str(error)
        for python, shell in _IN_SHELL.items():
            message = message.replace(python, shell)
        return fail(2, message)
    except KeyboardInterrupt:
        kept = args.output.with_name(f"{args.output.name}.partial")
        again = "; the same command goes on from there" if kept.is_dir() else ""
        print(f"{PROGRAM}: interrupted{again}", file=sys.stderr)
        return 130
