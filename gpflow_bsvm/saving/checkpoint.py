"""Checkpoints in a directory: files that are whole or not there, see `archive` and `encoding`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..atomic import UNFINISHED
from ..checkpoints import ANY_ORDER, Checkpoints, Directory, Identity, OtherFit
from ..checks import check_whole
from .archive import read_archive, write_archive
from .encoding import Decoder, Encoder, check_like

#: By what a file is known, and what a reader must know of its content.
_FORMAT, _LAYOUT = "gpflow_bsvm checkpoint", {"layout of checkpoints": "2"}
_NAME = r"checkpoint-\d{9,}\.npz"
#: Number of whole files that stay.
_KEPT = 2


class InDirectory(Checkpoints):
    """The checkpoints of one fit, in a directory of their own."""

    def __init__(self, directory: Directory, every: int, identity: Identity) -> None:
        """
        Arguments as in `open_checkpoints`.

        :raise ValueError: for an `every` below 1, or a path that cannot be a directory.
        """
        check_whole(1, every=every)
        self._directory, self._identity = Path(directory), _LAYOUT | identity
        self._every, self._since, self._warned = every, 0, False
        self._pending: tuple[int, Callable[[], Any]] | None = None
        self._whole: list[Path] = []  # those that may stay, the latest is the last
        _make(self._directory)

    def latest(self, like: Any, use: Callable[[Any], Any] | None = None) -> Any:
        """See `Checkpoints`."""
        for path in self._files():
            try:
                header, arrays = _read(path)
                self._check(header["identity"])
                content = Decoder(arrays).decode(header["content"])
                check_like(content, like)
                if use is not None:
                    use(content)
            except OtherFit:
                raise
            except Exception as error:  # whatever a strange content leads to
                _warn_of_bad(path, error)
                continue
            if ANY_ORDER in self._identity.items():
                _warn_of_order()
            self._whole = [p for p in reversed(self._files()) if p.name <= path.name]
            return content
        return None

    def offer(self, number: int, content: Callable[[], Any]) -> None:
        """See `Checkpoints`; the number is in the file's name."""
        self._pending, self._since = (number, content), self._since + 1
        if self._since >= self._every:
            self.flush()

    def flush(self) -> None:
        """Write the latest state that was offered; warns once where that cannot be done."""
        if self._pending is None:
            return
        number, content = self._pending
        encoder = Encoder()
        tree = encoder.encode(content(), "the state of a fit")
        header = {"format": _FORMAT, "identity": self._identity, "content": tree}
        path = self._directory / f"checkpoint-{number:09d}.npz"
        try:
            write_archive(path, header, encoder.arrays)
            self._keep(path)
        except OSError as error:
            self._warn_of_failure(path, error)
        self._pending, self._since = None, 0

    def _files(self) -> list[Path]:
        """:return: all that have the name of a checkpoint, the latest first."""
        named = [p for p in self._directory.iterdir() if re.fullmatch(_NAME, p.name)]
        return sorted(named, key=lambda path: path.name, reverse=True)

    def _keep(self, path: Path) -> None:
        """Remove what was written before the latest but one."""
        self._whole = [*(other for other in self._whole if other != path), path]
        while len(self._whole) > _KEPT:
            self._whole.pop(0).unlink(missing_ok=True)

    def _check(self, stored: Identity) -> None:
        """:raise OtherFit: says all that differs."""
        present = self._identity
        names = [*present, *(name for name in stored if name not in present)]
        pairs = [(n, stored.get(n, "nothing"), present.get(n, "nothing")) for n in names]
        different = [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]
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


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for unfinished in directory.glob(f".checkpoint-*.npz{UNFINISHED}"):
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(
            f"checkpoint must be a directory, or a place for one; {directory} is not: {error}"
        ) from None


def _read(path: Path) -> Any:
    """:return: header and arrays."""
    header, arrays = read_archive(path)
    if header["format"] != _FORMAT:
        raise ValueError(f"its format is {header['format']!r}, not {_FORMAT!r}")
    return header, arrays


def _warn_of_order() -> None:
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
