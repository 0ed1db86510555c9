"""Warnings at the line of the user's call, in terms of the called function."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType

_WORDS: ContextVar[Callable[[str], str]] = ContextVar("words", default=str)


@contextlib.contextmanager
def told_by(words: Callable[[str], str]) -> Iterator[None]:
    """:param words: converts the core's messages to warnings inside this context."""
    before = _WORDS.set(words)
    try:
        yield
    finally:
        _WORDS.reset(before)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that calls the package, through any number of functions and decorators."""
    frame: FrameType | None = sys._getframe(1)
    level = outermost = 1
    while frame is not None:
        level += 1
        if str(frame.f_globals.get("__name__")).split(".")[0] == __package__:
            outermost = level
        frame = frame.f_back
    warnings.warn(_WORDS.get()(text), category, stacklevel=outermost + 1)
