"""Files that are whole or not there, whenever a process or a machine dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: What is not whole yet has a name of its own in the same directory: a dot, the name, and this.
UNFINISHED = ".part"


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """
    A file to be written, which gets its name when the block ends: before, and after an error, there
    is the old one or none.

    :raise OSError: if it cannot be written.
    """
    part = path.with_name(f".{path.name}{UNFINISHED}")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """That the new name, too, outlives a loss of power; where directories can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
