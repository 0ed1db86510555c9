"""Files that are complete or absent, even if a process or a machine dies."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_FULL = {errno.ENOSPC, errno.EDQUOT}
#: Disk errors, which do not name the file.
_OF_DISKS = {*_FULL, errno.EFBIG, errno.EIO}


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """
    Open a file that replaces the old file when the block ends. After an error, an old file remains.
    The unfinished file is in the same directory, under the name `.<name>.part`. If `path` is a
    symbolic link, its target is written.

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
    """:return: an `OSError` of Python's subclass for this number."""
    if number in _FULL:
        why = f"the disk is full ({why}): nothing was written, and an older file is unchanged"
    if number == errno.ENOENT:
        why = f"there is no directory {path.absolute().parent}: make it first"
    return OSError(number, why, str(path))


def check_room(path: Path, num_bytes: int = 2**24) -> None:
    """
    Write `num_bytes` bytes next to a future file, and remove them.

    :raise OSError: if the file could not be written; the message names it.
    """
    if path.is_dir():
        raise _told(errno.EISDIR, "expected a path for a file, got a directory", path)
    part = Path(os.path.realpath(path)).with_name(f".{path.name}.room")
    try:
        with errors_of(path, part), open(part, "wb") as file:
            for _ in range(num_bytes // 2**20):
                file.write(bytes(2**20))
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
