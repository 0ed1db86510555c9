"""
Arrays and a header in JSON, in NumPy's `.npz`: written as a whole, and read as if by a stranger.

Nothing in a file is unpickled, unpacked or allocated beyond the size of the file.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..atomic import whole_file

#: More are in no file of this package.
MOST_ARRAYS = 10_000
_HEADER = "header"
#: Of dtypes: numbers, texts and dates; neither objects nor records.
_KINDS = "biufcSUmM"


def write_archive(path: Path, header: Any, arrays: Sequence[AnyNDArray]) -> None:
    """
    :param header: as JSON has it.
    :raise OSError: if it cannot be written; what was there stays.
    """
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with whole_file(path) as file:
        np.savez(file, **{_HEADER: text}, **{str(n): array for n, array in enumerate(arrays)})


def read_archive(path: Path) -> tuple[Any, list[AnyNDArray]]:
    """
    :return: header and arrays, which are not to be written to.
    :raise OSError: if the file cannot be read.
    :raise ValueError: for any other that `write_archive` would not have written; whatever Python
        and NumPy say of it is its cause.
    """
    try:
        with zipfile.ZipFile(path) as stored:
            _check_entries(stored.infolist(), path.stat().st_size)
            header = json.loads(_array(stored, _HEADER).tobytes())
            numbers = range(len(stored.namelist()) - 1)
            return header, [_array(stored, str(number)) for number in numbers]
    except OSError:
        raise
    except Exception as error:  # of whatever a file may hold: recursion, memory, tokens, ...
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _check_entries(entries: Sequence[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > MOST_ARRAYS:
        raise ValueError(f"it holds {len(entries)} arrays, and at most {MOST_ARRAYS} are expected")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("it is compressed, as no file of this package is")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its parts are larger than the whole")


def _array(stored: zipfile.ZipFile, name: str) -> AnyNDArray:
    """As `numpy.load`, but nothing is allocated that is not there."""
    content = stored.read(f"{name}.npy")  # checks its sum
    file = io.BytesIO(content)
    form: Any = np.lib.format
    first = form.read_magic(file) == (1, 0)
    read = form.read_array_header_1_0 if first else form.read_array_header_2_0
    shape, by_column, dtype = read(file)
    if dtype.kind not in _KINDS or min(shape, default=0) < 0:
        raise ValueError(f"an array of {dtype} and shape {shape} is expected nowhere")
    flat = np.frombuffer(content[file.tell() :], dtype)
    return flat.reshape(shape, order="F" if by_column else "C")
