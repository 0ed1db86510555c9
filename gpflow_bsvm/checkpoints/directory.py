"""Checkpoints in a directory; each file is complete or absent."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from gpflow.base import AnyNDArray

from ..atomic import read_archive, write_archive
from ..checks import check_whole
from ..data.batch import digest
from ..notices import warn
from .values import ValueDecoder, ValueEncoder

Directory = str | os.PathLike[str]
#: Strings that must agree to continue a fit, by their names in errors.
Identity = dict[str, str]
Identify = Callable[[], Identity]
#: Part of the identity of rows whose order changes with each pass.
ANY_ORDER = ("first batch", "any")
_NAME = r"checkpoint-\d{9,}\.npz"
#: Number of complete files to keep.
_KEPT = 2


class OtherFit(ValueError):
    """The checkpoint is valid, but belongs to another fit."""


def made(directory: Directory) -> Path:
    """
    :return: the directory, created if necessary.
    :raise ValueError: for a path that cannot be a directory.
    """
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError) as error:
        raise ValueError(
            f"checkpoint must be an existing or new directory, got {directory}: {error}"
        ) from None
    return Path(directory)


class Checkpoints(AbstractContextManager["Checkpoints"]):
    """The checkpoints of one fit in its own directory. Leaving `with` writes the latest state."""

    def __init__(self, directory: Directory, every: int, identify: Identify) -> None:
        """
        :param directory: the directory, created if absent.
        :param every: write each `every`-th offered state.
        :param identify: a function that returns this fit's identity.
        :raise ValueError: for an `every` below 1, or a path that cannot be a directory.
        """
        self._identity = identify()
        check_whole(1, every=every)
        self._directory = made(directory)
        self._pending: tuple[int, Callable[[], Any]] | None = None
        self._every = every
        self._since = 0
        self._failed = False
        self._whole: list[Path] = []  # files to keep, the latest last

    def __exit__(self, *error: object) -> None:
        self.flush()

    def latest(self) -> Any:
        """
        :return: the latest valid content, or None.
        :raise OtherFit: if the content belongs to another fit.
        """
        paths = sorted(p for p in self._directory.iterdir() if re.fullmatch(_NAME, p.name))
        for number, path in reversed(list(enumerate(paths))):
            try:
                content = self._read(path)
            except OtherFit:
                raise
            except Exception as error:  # damaged contents raise any error
                warn(
                    f"{path} is not a complete checkpoint ({type(error).__name__}: "
                    f"{error}): the previous checkpoint is used, if any"
                )
                continue
            if ANY_ORDER in self._identity.items():
                warn(
                    "the order of rows changes with each pass: unless every shuffle of the "
                    "tf.data.Dataset has a seed, the result of the resumed fit differs from that "
                    "of an uninterrupted fit"
                )
            self._whole = paths[: number + 1]
            return content
        return None

    def _read(self, path: Path) -> Any:
        header, arrays = read_archive(path)
        self._check(header["identity"])
        if header["digest"] != _digest(header["content"], arrays):
            raise ValueError("its content was changed")
        return ValueDecoder(arrays).decode(header["content"])

    def _check(self, stored: Identity) -> None:
        """:raise OtherFit: if identities differ; lists all differences."""
        present = self._identity
        pairs = [(n, stored.get(n, "nothing"), present.get(n, "nothing")) for n in present | stored]
        if different := [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]:
            raise OtherFit(
                f"the checkpoints in {self._directory} belong to another fit: "
                f"{'; '.join(different)}. Give another directory, or delete this one to start "
                "again"
            )

    def offer(self, number: int, content: Callable[[], Any]) -> None:
        """
        Write the state if it is due.

        :param number: number of steps or draws so far; the file name contains it.
        :param content: a function, called when writing. It returns what `ValueEncoder` accepts.
        """
        self._pending = (number, content)
        self._since = self._since + 1
        if self._since >= self._every:
            self.flush()

    def flush(self) -> None:
        """Write the latest state offered; warn once if writing fails."""
        if self._pending is None:
            return
        number, content = self._pending
        encoder = ValueEncoder()
        tree = encoder.encode(content(), "the state of a fit")
        told = _digest(tree, encoder.arrays)
        header = {"identity": self._identity, "content": tree, "digest": told}
        path = self._directory / f"checkpoint-{number:09d}.npz"
        try:
            write_archive(path, header, encoder.arrays)
            self._keep(path)
        except OSError as error:
            if not self._failed:
                warn(
                    f"{path} could not be written ({error.strerror or error}): the fit continues, "
                    "and tries again at its next checkpoint; the last complete checkpoint remains"
                )
            self._failed = True
        self._pending = None
        self._since = 0

    def _keep(self, path: Path) -> None:
        """Remove all complete files but the latest `_KEPT`."""
        self._whole = [*(other for other in self._whole if other != path), path]
        while len(self._whole) > _KEPT:
            self._whole.pop(0).unlink(missing_ok=True)


def _digest(content: Any, arrays: Sequence[AnyNDArray]) -> str:
    return digest(json.dumps([content, *map(digest, arrays)]))
