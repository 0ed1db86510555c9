"""Checkpoints: what a fit needs to go on in another process, in files that are whole or not there.

A file is an `.npz` of arrays without pickles; one of them is a header in JSON, which says what the
others are and of which fit they are.
"""

from __future__ import annotations

import io
import json
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..atomic import UNFINISHED, whole_file
from ..checks import check_whole
from .encoding import decode, encode, types_of
from .identity import Identity, differences

#: By what a file is known, and what a reader must know of its content.
_FORMAT, _LAYOUT = "gpflow_bsvm checkpoint", {"layout of checkpoints": "1"}
#: So many whole files stay.
_KEPT = 2
#: What reading a file that is no whole checkpoint may raise.
_BAD = (
    *(OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError),
    *(RecursionError, MemoryError, zipfile.BadZipFile, zlib.error),
)

Directory = str | os.PathLike[str]


class Checkpoints:
    """
    The checkpoints of one fit, in a directory of their own; with None for a directory there are
    none. On leaving the `with` block the latest state is written.
    """

    def __init__(
        self, directory: Directory | None, every: int, identify: Callable[[], Identity]
    ) -> None:
        """
        :param directory: made if it is not there.
        :param every: of so many states that are offered one is written.
        :raise ValueError: for an `every` below 1, or what can be no directory.
        """
        check_whole(1, every=every)
        self._every, self._since, self._warned = every, 0, False
        self._directory = None if directory is None else Path(directory)
        self._identity: Identity = {} if directory is None else _LAYOUT | identify()
        self._pending: tuple[int, Callable[[], Any]] | None = None
        self._whole: list[Path] = []  # the latest is the last
        if self._directory is not None:
            _make(self._directory)

    def latest(self, like: Any, others: Iterable[Any] = ()) -> Any:
        """
        :param like: the state of a fit that begins, whose NamedTuples the stored one may have.
        :param others: NamedTuples that it may have, too.
        :return: what was written last and is whole, None if there is nothing.
        :raise ValueError: if that is of another fit.
        """
        types = types_of(like, others)
        for path in self._files():
            try:
                header, arrays = _read(path)
                self._check(header["identity"])
                content = decode(header["content"], arrays, types)
            except _OtherFit:
                raise
            except _BAD as error:
                _warn_of_bad(path, error)
                continue
            older = [p for p in self._files() if p.name < path.name and _is_ours(p)]
            self._whole = [*reversed(older), path]
            return content
        return None

    def offer(self, number: int, content: Callable[[], Any]) -> None:
        """
        Write the state, if it is its turn.

        :param number: of steps or draws until now, in the file's name.
        :param content: called when it is written.
        """
        if self._directory is None:
            return
        self._pending, self._since = (number, content), self._since + 1
        if self._since >= self._every:
            self.flush()

    def flush(self) -> None:
        """Write the latest state that was offered; warns once where that cannot be done."""
        if self._pending is None or self._directory is None:
            return
        number, content = self._pending
        arrays: list[AnyNDArray] = []
        tree = encode(content(), arrays)
        header = {"format": _FORMAT, "identity": self._identity, "content": tree}
        path = self._directory / f"checkpoint-{number:09d}.npz"
        try:
            _write(path, header, arrays)
            self._keep(path)
        except OSError as error:
            self._warn_of_failure(path, error)
        self._pending, self._since = None, 0

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()

    def _files(self) -> list[Path]:
        """:return: all that have the name of a checkpoint, the latest first."""
        if self._directory is None:
            return []
        named = [p for p in self._directory.iterdir() if re.fullmatch(_NAME, p.name)]
        return sorted(named, key=lambda path: path.name, reverse=True)

    def _keep(self, path: Path) -> None:
        """Remove what was written before the latest but one."""
        self._whole = [*(other for other in self._whole if other != path), path]
        while len(self._whole) > _KEPT:
            self._whole.pop(0).unlink(missing_ok=True)

    def _check(self, stored: Identity) -> None:
        different = differences(stored, self._identity)
        if different:
            raise _OtherFit(
                f"the checkpoints in {self._directory} are of another fit: {'; '.join(different)}. "
                "Give another directory, or delete this one to start anew"
            )

    def _warn_of_failure(self, path: Path, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{path} could not be written ({error}): the fit goes on, and tries again with "
                "its next checkpoint; the last whole one stays",
                stacklevel=2,
            )


_NAME = r"checkpoint-\d{9,}\.npz"


class _OtherFit(ValueError):
    """The checkpoint is whole, but not of this fit."""


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for unfinished in directory.glob(f".checkpoint-*.npz{UNFINISHED}"):
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint must be a directory, or a place for one; {directory} is not: {error}"
        ) from None


def _read(path: Path) -> tuple[Any, list[AnyNDArray]]:
    """:return: header and arrays; any of `_BAD` where they are not all there and whole."""
    with zipfile.ZipFile(path) as stored:
        header = _header(stored)
        numbers = range(len(stored.namelist()) - 1)
        return header, [_array(stored, str(number)) for number in numbers]


def _header(stored: zipfile.ZipFile) -> Any:
    header = json.loads(_array(stored, "header").tobytes())
    if header["format"] != _FORMAT:
        raise ValueError(f"its format is {header['format']!r}, not {_FORMAT!r}")
    return header


def _array(stored: zipfile.ZipFile, name: str) -> AnyNDArray:
    """`numpy.load` of the whole file leaves it open where it is not whole."""
    content = io.BytesIO(stored.read(f"{name}.npy"))  # checks its sum
    return np.asarray(np.load(content, allow_pickle=False))


def _is_ours(path: Path) -> bool:
    """:return: whether it is a checkpoint, by its header alone."""
    try:
        with zipfile.ZipFile(path) as stored:
            return bool(_header(stored))
    except _BAD:
        return False


def _write(path: Path, header: Any, arrays: list[AnyNDArray]) -> None:
    with whole_file(path) as file:
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        np.savez(file, header=text, **{str(n): array for n, array in enumerate(arrays)})


def _warn_of_bad(path: Path, error: BaseException) -> None:
    warnings.warn(
        f"{path} is no whole checkpoint of this package ({type(error).__name__}: {error}): the one "
        "before it is used, or none if it is the only one",
        stacklevel=2,
    )
