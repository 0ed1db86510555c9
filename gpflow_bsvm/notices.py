"""Warnings: at the line of the user whose call it is, in words of what has been called."""

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
    """:param words: a function from texts for users of GPflow to those of warnings in here."""
    before = _WORDS.set(words)
    try:
        yield
    finally:
        _WORDS.reset(before)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn whoever called the package, through however many functions and decorators of others."""
    frame: FrameType | None = sys._getframe(1)
    level = outermost = 1
    while frame is not None:
        level += 1
        if str(frame.f_globals.get("__name__")).split(".")[0] == __package__:
            outermost = level
        frame = frame.f_back
    warnings.warn(_WORDS.get()(text), category, stacklevel=outermost + 1)
