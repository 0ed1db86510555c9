"""Warnings that name the line of the user's call and suit its function; TensorFlow's log."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
#: Recognizes lines of TensorFlow's log.
_LOG = re.compile(
    rb"[IWE]\d{4} [\d:.]+ +\d+ \S+\]|[\d-]+ [\d:.]+: [IWE] |WARNING: All log messages before absl|"
    rb"To enable the following instructions"
)
_WORDS: ContextVar[Callable[[str], str]] = ContextVar("words", default=str)
#: Arguments of `warn`.
Held = list[tuple[str, type[Warning]]]
_HELD: ContextVar[Held | None] = ContextVar("held", default=None)


@contextlib.contextmanager
def told_by(words: Callable[[str], str]) -> Iterator[None]:
    """:param words: a function that rewords the core's messages inside this context."""
    before = _WORDS.set(words)
    try:
        yield
    finally:
        _WORDS.reset(before)


@contextlib.contextmanager
def held() -> Iterator[Held]:
    """Hold warnings back, in a list. (`warnings.catch_warnings` would affect all threads.)"""
    found = Held()
    before = _HELD.set(found)
    try:
        yield found
    finally:
        _HELD.reset(before)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that calls the package, through any number of functions and decorators."""
    if (others := _HELD.get()) is not None:
        others.append((text, category))
        return
    frame: FrameType | None = sys._getframe(1)
    level = outermost = 1
    while frame is not None:
        level += 1
        if str(frame.f_globals.get("__name__")).split(".")[0] == __package__:
            outermost = level
        frame = frame.f_back
    warnings.warn(_WORDS.get()(text), category, stacklevel=outermost + 1)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """
    Drop the lines that TensorFlow logs inside this context, unless the user wants them or an error
    occurs; pass all other lines on.
    """
    if os.environ.setdefault(LEVEL, "2") in ("0", "1"):
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            kept = stack.enter_context(tempfile.TemporaryFile())
            stderr = os.dup(2)
        except OSError:  # no room on the disk, or no such stream
            yield
            return
        os.dup2(kept.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            kept.seek(0)
            os.write(2, b"".join(line for line in kept if failed or not _LOG.match(line)))
