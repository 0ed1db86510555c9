"""Files that are complete or absent, whenever a process or a machine dies."""

from __future__ import annotations

import contextlib
import os
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
