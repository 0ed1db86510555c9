"""The interface between algorithms and their checkpoints; algorithms do not depend on files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Directory = str | os.PathLike[str]
#: Texts that must agree to continue a fit, by a name for errors.
Identity = dict[str, str]
#: In the identity of rows whose order changes with each pass.
ANY_ORDER = ("first batch", "any")


class OtherFit(ValueError):
    """The checkpoint is valid, but belongs to another fit."""


class Checkpoints:
    """The checkpoints of a fit without any. Leaving `with` writes the latest state."""

    def latest(self, like: Any, use: Callable[[Any], Any] | None = None) -> Any:
        """
        :param like: the content of a new fit: the stored content must have its types, dtypes and
            shapes, where given.
        :param use: called with the content; if it fails the previous one is tried.
        :return: the latest valid content, None if there is none.
        :raise OtherFit: if it belongs to another fit.
        """
        return None

    def offer(self, number: int, content: Callable[[], Any]) -> None:
        """
        Write the state, if it is due.

        :param number: steps or draws until now.
        :param content: called when it is written: numbers, strings, arrays and tensors in any
            structure of tuples, lists, dictionaries and NamedTuples.
        """

    def flush(self) -> None:
        """Write the latest state offered."""

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()


def made(directory: Directory) -> Path:
    """
    :return: the directory, created if necessary.
    :raise ValueError: for a path that cannot be a directory.
    """
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint must be a directory, or a place for one; {directory} is not: {error}"
        ) from None
    return Path(directory)


def identity_of(kind: str, *fit: Any) -> Identity:
    """
    :param kind: "fit", for an algorithm, a model and its source; or "estimator", for an estimator,
        its options and its source.
    :return: everything that must agree to continue it.
    """
    room: Any = importlib.import_module(".saving.identity", __package__)
    return getattr(room, f"of_{kind}")(*fit)  # type: ignore[no-any-return]


def open_checkpoints(
    directory: Directory | None, every: int, identify: Callable[[], Identity]
) -> Checkpoints:
    """
    :param directory: created if absent; None: nothing is kept.
    :param every: write each `every`-th offered state.
    :param identify: returns the identity of this fit; called only if anything is kept.
    :raise ValueError: for an `every` below 1, or a path that cannot be a directory.
    """
    if directory is None:
        return Checkpoints()
    room: Any = importlib.import_module(".saving.checkpoint", __package__)  # knows the algorithms
    return room.InDirectory(directory, every, identify())  # type: ignore[no-any-return]
