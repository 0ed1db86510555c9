"""Files that are complete or absent, whenever a process or a machine dies."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_FULL = {errno.ENOSPC, errno.EDQUOT}
#: Errors of disks, which come without the name of a file.
_OF_DISKS = {*_FULL, errno.EFBIG, errno.EIO}


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """
    A file to be written, which gets its name when the block ends: before that, and after an error,
    there is the old file or none. The unfinished file is beside it: a dot, the name, and `.part`.
    A symbolic link stays, and what it leads to is written.

    :raise OSError: if it cannot be written, with the name of the file that was asked for.
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
    :param unfinished: files and folders that nobody asked for, on their way to be `path`.
    :raise OSError: one about these, or of a disk, as one about `path`.
    """
    try:
        yield
    except OSError as error:
        of_disk = error.filename is None and error.errno in _OF_DISKS
        if not of_disk and not str(error.filename).startswith(tuple(map(str, unfinished))):
            raise
        raise _told(error.errno or errno.EIO, error.strerror, path) from error


def _told(number: int, why: str | None, path: Path) -> OSError:
    """:return: an error of this number, whose kind Python chooses."""
    if number in _FULL:
        why = f"the disk is full ({why}): nothing was written, and an older one stays as it was"
    if number == errno.ENOENT:
        why = f"there is no directory {path.absolute().parent}: make it first"
    return OSError(number, why, str(path))


def check_room(path: Path, num_bytes: int = 2**24) -> None:
    """
    Write so many bytes beside a file to come, and remove them.

    :raise OSError: if the file could not be written, with its name.
    """
    if path.is_dir():
        raise _told(errno.EISDIR, "a directory is there, and a file is to be written", path)
    part = Path(os.path.realpath(path)).with_name(f".{path.name}.room")
    try:
        with errors_of(path, part), open(part, "wb") as file:
            for _ in range(num_bytes // 2**20):
                file.write(bytes(2**20))
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
