"""Where a fit keeps what it needs to go on in another process: algorithms know no files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Directory = str | os.PathLike[str]
#: All that must agree where a fit goes on, as text, by a name that an error can show.
Identity = dict[str, str]
#: In the identity of rows that come in another order each time.
ANY_ORDER = ("first batch", "any")


class OtherFit(ValueError):
    """The checkpoint is valid, but belongs to another fit."""


class Checkpoints:
    """The checkpoints of a fit that keeps none. Leaving `with` writes the latest state."""

    def latest(self, like: Any, use: Callable[[Any], Any] | None = None) -> Any:
        """
        :param like: the content of a fit that begins: types, dtypes and shapes that the stored one
            must have, as far as it says.
        :param use: called with the content; if it fails the one before is tried.
        :return: the latest valid content, None if there is nothing.
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
        """Write the latest state that was offered."""

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()


def made(directory: Directory) -> Path:
    """
    :return: a directory, which is there from now on.
    :raise ValueError: for a path that cannot be one.
    """
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint must be a directory, or a place for one; {directory} is not: {error}"
        ) from None
    return Path(directory)
