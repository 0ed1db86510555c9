"""Checkpoints: what a fit needs to go on in another process, in files that are whole or not there.

A file is an `.npz` of arrays without pickles; one of them is a header in JSON, which says what the
others are and of which fit they are.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gpflow.base import AnyNDArray

from ..archive import read_archive, write_archive
from ..atomic import UNFINISHED
from ..checks import check_whole
from .encoding import check_like, decode, encode, types_of
from .identity import ANY_ORDER, Identity, differences

#: By what a file is known, and what a reader must know of its content.
_FORMAT, _LAYOUT = "gpflow_bsvm checkpoint", {"layout of checkpoints": "1"}
#: So many whole files stay.
_KEPT = 2

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

    def latest(
        self, like: Any, others: Iterable[Any] = (), use: Callable[[Any], Any] | None = None
    ) -> Any:
        """
        :param like: the content of a fit that begins: types, dtypes and shapes that the stored one
            must have, where it says any.
        :param others: NamedTuples that it may have, too.
        :param use: given the content; where it fails the one before is tried.
        :return: what was written last and is whole, None if there is nothing.
        :raise OtherFit: if that is of another fit.
        """
        types = types_of(like, others)
        for path in self._files():
            try:
                header, arrays = _read(path)
                self._check(header["identity"])
                content = decode(header["content"], arrays, types)
                check_like(content, like)
                if use is not None:
                    use(content)
            except OtherFit:
                raise
            except Exception as error:  # whatever a strange content leads to
                _warn_of_bad(path, error)
                continue
            _warn_of_order(self._identity)
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
            write_archive(path, header, arrays)
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
            raise OtherFit(
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


class OtherFit(ValueError):
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


def _read(path: Path, header_only: bool = False) -> tuple[Any, list[AnyNDArray]]:
    header, arrays = read_archive(path, header_only)
    if header["format"] != _FORMAT:
        raise ValueError(f"its format is {header['format']!r}, not {_FORMAT!r}")
    return header, arrays


def _is_ours(path: Path) -> bool:
    """:return: whether it is a checkpoint, by its header alone."""
    try:
        return bool(_read(path, header_only=True))
    except Exception:  # see `latest`
        return False


def _warn_of_order(identity: Identity) -> None:
    if ANY_ORDER in identity.items():
        warnings.warn(
            "the fit goes on with rows that come in another order each time they are read: unless "
            "every shuffle of the tf.data.Dataset has a seed, it ends elsewhere than it would have",
            stacklevel=2,
        )


def _warn_of_bad(path: Path, error: BaseException) -> None:
    warnings.warn(
        f"{path} is no whole checkpoint of this package ({type(error).__name__}: {error}): the one "
        "before it is used, or none if it is the only one",
        stacklevel=2,
    )
