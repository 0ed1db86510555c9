"""Code that the commands share: options, one-line errors, a quiet TensorFlow."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ..notices import LEVEL, quiet

PROGRAM = "gpflow-bsvm"
#: The start of a warning's advice on Python parameters.
_ADVICE = r"[:;] (?:use|try|give|leave|scale)\b"


class Parser(argparse.ArgumentParser):
    """A parser that shows errors in one line, and reads -99,NA as a value, not an option."""

    def __init__(self, *args: Any, **how: Any) -> None:
        """See `ArgumentParser`."""
        super().__init__(*args, **how)
        self._negative_number_matcher = re.compile(r"-\d")

    def error(self, message: str) -> NoReturn:
        """End the process after printing the message."""
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def integer(least: int) -> Callable[[str], int]:
    """:return: a function that parses integers from `least` on."""

    def parse(text: str) -> int:
        if not text.removeprefix("-").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected an integer from {least}, got {text!r}")
        return int(text)

    return parse


def import_quietly() -> None:
    """Import TensorFlow without its messages, and restrict its logging to errors."""
    os.environ.setdefault(LEVEL, "3")
    with quiet():
        import check_shapes  # imports TensorFlow
    # GPflow would take 2 s to write shapes into its docstrings.
    check_shapes.set_rewrite_docstrings(None)
    import gpflow_bsvm.quiet  # noqa: F401

    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def told_in_lines() -> Iterator[None]:
    """Show each warning once, in one line as for errors, without advice on Python parameters."""
    told = set[str]()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = re.split(_ADVICE, " ".join(str(message).split()))[0]
        if text not in told:
            print(f"{PROGRAM}: warning: {text}", file=sys.stderr)
        told.add(text)

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def open_streams() -> None:
    """Discard what is written to closed streams: a later file must not take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # TensorFlow writes to number 2 whatever is open there
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def fail(code: int, message: object) -> int:
    """:return: the exit code, after printing the error in a line."""
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    return code


def show(text: str) -> None:
    """Print a string, replacing characters that the terminal lacks."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = (
            text.replace("±", "+-").replace("µ", "u").encode(encoding, "replace").decode(encoding)
        )
    print(text, flush=True)
