"""Where a fit leaves what it needs to go on in another process: algorithms know no files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

Directory = str | os.PathLike[str]
#: What must be equal where a fit goes on, as text, by a name that an error can show.
Identity = dict[str, str]
#: In the identity of rows that come in another order each time.
ANY_ORDER = ("first batch", "any")


class OtherFit(ValueError):
    """The checkpoint is whole, but not of this fit."""


class Checkpoints:
    """Those of a fit that keeps none. On leaving the `with` block the latest state is written."""

    def latest(self, like: Any, use: Callable[[Any], Any] | None = None) -> Any:
        """
        :param like: the content of a fit that begins: types, dtypes and shapes that the stored one
            must have, where it says any.
        :param use: given the content; where it fails the one before is tried.
        :return: the content that was written last and is whole, None if there is nothing.
        :raise OtherFit: if that is of another fit.
        """
        return None

    def offer(self, number: int, content: Callable[[], Any]) -> None:
        """
        Write the state, if it is its turn.

        :param number: of steps or draws until now.
        :param content: called when it is written: numbers, strings, arrays and tensors in any
            structure of tuples, lists, dictionaries and NamedTuples.
        """

    def flush(self) -> None:
        """Write the latest state that was offered."""

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()


def identity_of(kind: str, *fit: Any) -> Identity:
    """
    :param kind: "fit", of an algorithm, a model and its source; or "estimator", of one, its options
        and its source.
    :return: all that must be equal where it goes on.
    """
    room: Any = importlib.import_module(".saving.identity", __package__)
    return getattr(room, f"of_{kind}")(*fit)  # type: ignore[no-any-return]


def open_checkpoints(
    directory: Directory | None, every: int, identify: Callable[[], Identity]
) -> Checkpoints:
    """
    :param directory: made if it is not there; None: nothing is kept.
    :param every: of so many states that are offered one is written.
    :param identify: asked which fit this is, if anything is kept.
    :raise ValueError: for an `every` below 1, or a path that cannot be a directory.
    """
    if directory is None:
        return Checkpoints()
    room: Any = importlib.import_module(".saving.checkpoint", __package__)  # knows the algorithms
    return room.InDirectory(directory, every, identify())  # type: ignore[no-any-return]
