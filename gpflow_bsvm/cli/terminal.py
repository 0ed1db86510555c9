"""Shared by the commands: options, one-line errors, a quiet TensorFlow."""

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

PROGRAM = "gpflow-bsvm"
#: Where a warning begins to advise of parameters in Python.
_ADVICE = r"[:;] (?:unless that is meant )?(?:use|try|give|leave|scale)\b"


class Parser(argparse.ArgumentParser):
    """A parser that shows errors in one line."""

    def error(self, message: str) -> NoReturn:
        """End the process."""
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def integer(least: int) -> Callable[[str], int]:
    """:return: a function that reads an integer of at least `least`."""

    def parse(text: str) -> int:
        if not text.removeprefix("-").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected an integer from {least}, got {text!r}")
        return int(text)

    return parse


def import_quietly() -> None:
    """Import TensorFlow without its messages, and let it log only errors from then on."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from .. import quiet  # noqa: F401

    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def told_in_lines() -> Iterator[None]:
    """Show warnings as errors are: in a line, each once, without advice for Python."""
    told = set[str]()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = re.split(_ADVICE, " ".join(str(message).split()))[0]
        if text not in told:
            print(f"{PROGRAM}: warning: {text}", file=sys.stderr)
        told.add(text)

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def fail(code: int, message: object) -> int:
    """:return: the exit code, after one line on what was wrong."""
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    return code


def show(text: str) -> None:
    """Print a text, with other signs on a terminal that does not have its own."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = (
            text.replace("±", "+-").replace("µ", "u").encode(encoding, "replace").decode(encoding)
        )
    print(text, flush=True)
