"""Shared by the commands: options, one-line errors, a quiet TensorFlow."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import NoReturn

PROGRAM = "gpflow-bsvm"


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


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """
    Hide TensorFlow's start-up messages, which bypass Python, unless it fails, and let it log only
    errors from then on.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(stderr, kept.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


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
