"""
Arrays and a JSON header in NumPy's `.npz`: written atomically, read safely from untrusted files.

Nothing is unpickled or decompressed, and nothing here needs TensorFlow.
"""

from __future__ import annotations

import errno
import itertools
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .atomic import whole_file

#: Errors from seeking outside a file, which damaged files cause.
_SEEKS = {errno.EINVAL, errno.EOVERFLOW}


def write_archive(path: Path, header: Any, arrays: Sequence[NDArray[Any]]) -> None:
    """
    :param header: a JSON value.
    :raise OSError: if the file cannot be written; an old file remains.
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
    :return: header and arrays.
    :raise OSError: if the file cannot be read.
    :raise ValueError: for a file not written by `write_archive`; the original error is its cause.
    """
    try:
        with zipfile.ZipFile(path) as stored:
            _check_entries(stored.infolist(), path.stat().st_size)
            if bad := stored.testzip():
                raise ValueError(f"{bad} is damaged")
        with np.load(path, allow_pickle=False) as found:
            header = json.loads(found["header"].tobytes())
            return header, [found[str(number)] for number in range(len(found.files) - 1)]
    except Exception as error:  # bad files raise many kinds: recursion, memory, ...
        if isinstance(error, OSError) and error.errno not in _SEEKS:
            raise
        raise ValueError(f"it is damaged; {type(error).__name__}: {error}") from error


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    """
    Check entries after reading only the archive's directory.

    :param size: file size.
    :raise ValueError: for compressed or overlapping entries, equal names, or entries beyond the
        end.
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
