"""
Arrays and a JSON header in NumPy's `.npz`: written as a whole, and read without trusting the file.

Nothing in a file is unpickled or unpacked.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..atomic import whole_file


def write_archive(path: Path, header: Any, arrays: Sequence[AnyNDArray]) -> None:
    """
    :param header: anything that JSON can hold.
    :raise OSError: if it cannot be written; an older file stays as it was.
    """
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    entries = {"header": text} | {str(n): array for n, array in enumerate(arrays)}
    # Not `np.savez`, which after an error leaves an open archive that complains of a closed file.
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in entries.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def read_archive(path: Path) -> tuple[Any, list[AnyNDArray]]:
    """
    :return: header and arrays.
    :raise OSError: if the file cannot be read.
    :raise ValueError: for a file that `write_archive` could not have written; its cause is the
        error of Python or NumPy.
    """
    try:
        with zipfile.ZipFile(path) as stored:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in stored.infolist()):
                raise ValueError("it is compressed, as no file of this package is")
            if bad := stored.testzip():
                raise ValueError(f"{bad} is damaged")
        with np.load(path, allow_pickle=False) as found:
            header = json.loads(found["header"].tobytes())
            return header, [found[str(number)] for number in range(len(found.files) - 1)]
    except OSError:
        raise
    except Exception as error:  # whatever a bad file provokes: recursion, memory, tokens, ...
        raise ValueError(f"{type(error).__name__}: {error}") from error
