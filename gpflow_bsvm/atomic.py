"""
Files that are complete or absent, even if a process or machine dies. Archives in NumPy's `.npz`
format, which hold arrays and a JSON header; even untrusted archives can be read safely.

Nothing is unpickled or decompressed, and nothing here needs TensorFlow.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_FULL = {errno.ENOSPC, errno.EDQUOT}
#: Disk errors, which do not name the file.
_OF_DISKS = {*_FULL, errno.EFBIG, errno.EIO}
#: Errors that damaged files cause, because a seek ends outside the file.
_SEEKS = {errno.EINVAL, errno.EOVERFLOW}


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """
    Open a file that replaces the old file when the block ends. After an error, the old file
    remains. The unfinished file is in the same directory and is called `.<name>.part`. If `path` is
    a symbolic link, its target is replaced.

    :raise OSError: if the file cannot be written; the message names `path`.
    """
    place = Path(os.path.realpath(path))
    part = place.with_name(f".{place.name}.part")
    try:
        with errors_of(path, part), open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with errors_of(path, part):
            os.replace(part, place)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def errors_of(path: Path, *unfinished: Path) -> Iterator[None]:
    """
    :param unfinished: temporary files and folders that will become `path`.
    :raise OSError: for errors of `unfinished` or the disk; the message names `path` instead.
    """
    try:
        yield
    except OSError as error:
        of_disk = error.filename is None and error.errno in _OF_DISKS
        if not of_disk and not str(error.filename).startswith(tuple(map(str, unfinished))):
            raise
        raise _told(error.errno or errno.EIO, error.strerror, path) from error


def _told(number: int, why: str | None, path: Path) -> OSError:
    """:return: an error of the subclass of `OSError` for this number."""
    if number in _FULL:
        why = f"the disk is full ({why}): nothing was written, and an older file is unchanged"
    if number == errno.ENOENT:
        why = f"there is no directory {path.absolute().parent}: make it first"
    return OSError(number, why, str(path))


def check_room(path: Path) -> None:
    """:raise OSError: if 16 MB cannot be written next to a future file, which it names."""
    if path.is_dir():
        raise _told(errno.EISDIR, "expected a path for a file, got a directory", path)
    folder = Path(os.path.realpath(path)).parent
    with errors_of(path, folder), tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(2**24))


def write_archive(path: Path, header: Any, arrays: Sequence[NDArray[Any]]) -> None:
    """
    :param header: a JSON value.
    :raise OSError: if the file cannot be written; the old file then remains.
    """
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    entries = {"header": text} | {str(n): array for n, array in enumerate(arrays)}
    write: Any = np.lib.format.write_array  # is untyped
    # After an error, `np.savez` leaves an open archive, which fails later on the closed file.
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in entries.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                write(entry, array, allow_pickle=False)


def read_archive(path: Path) -> tuple[Any, list[NDArray[Any]]]:
    """
    :return: the header and the arrays.
    :raise OSError: if the file cannot be read.
    :raise ValueError: for a file not written by `write_archive`; the original error is its cause.
    """
    try:
        with zipfile.ZipFile(path) as stored:
            _check_entries(stored.infolist(), path.stat().st_size)
            if bad := stored.testzip():
                raise ValueError(f"the checksum of {bad} is wrong")
        with np.load(path, allow_pickle=False) as found:
            header = json.loads(found["header"].tobytes())
            return header, [found[str(number)] for number in range(len(found.files) - 1)]
    except Exception as error:  # bad files raise many kinds: recursion, memory, ...
        if isinstance(error, OSError) and error.errno not in _SEEKS:
            raise
        raise ValueError(f"it is damaged; {type(error).__name__}: {error}") from error


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    """
    :param size: of the file, of which only the archive's directory has been read.
    :raise ValueError: for compressed, equally named or overlapping entries, or beyond the end.
    """
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("it is compressed, unlike all files of this package")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("two entries have the same name")
    places = sorted(
        (entry.header_offset, entry.file_size, entry.compress_size) for entry in entries
    )
    for (start, *sizes), (after, *_) in itertools.pairwise([*places, (size, 0, 0)]):
        if start < 0 or start + max(sizes) > after:
            raise ValueError("entries overlap, or reach beyond the end")
