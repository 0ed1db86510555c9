"""Files and folders that are complete or absent, whenever a process or a machine dies."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """
    A file to be written, which gets its name when the block ends: before that, and after an error,
    there is the old file or none. The unfinished file is beside it: a dot, the name, and `.part`.

    :raise OSError: if it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
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


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """
    As `whole_file`, for a folder.

    :param path: new, or of an empty folder.
    :return: a context whose value is the folder to be written, beside it.
    """
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # that of a process that died
    try:
        yield part
        if path.is_dir():
            path.rmdir()
        os.replace(part, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)
