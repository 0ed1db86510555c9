"""Files of models: arrays and a description, in NumPy's `.npz` format; never a pickle."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..atomic import whole_file
from ..version import __version__
from .read import UNFIT, Reader
from .write import Writer

#: Of files; `load` reads no other.
FORMAT = 1
_DESCRIPTION = "description"

#: What NumPy and zip say of a file that is none of ours, or a part of one.
_UNREADABLE = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """
    Save a model of `gpflow_bsvm.models`, a `BSVMClassifier`, fitted or not, or a part of either,
    such as a kernel: values and structure, from which `load` makes it again. A file is written as a
    whole or not at all.

    :param model: with kernels, mean functions, likelihoods, inducing variables, transforms and
        priors of GPflow, TensorFlow Probability and this package; see `register` for your own.
    :param path: of the file, which is replaced if there is one.
    :raise TypeError: if a part cannot be made again from a file; it says which, and what would do.
    :raise FileNotFoundError: if its directory does not exist.
    """
    path = Path(path)
    name = "classifier" if hasattr(model, "get_params") else "model"
    writer = Writer()
    content = writer.write(model, name)
    header = {
        "format": FORMAT,
        "gpflow_bsvm": __version__,
        "gpflow": gpflow.__version__,
        "tensorflow": tf.__version__,
        "numpy": np.__version__,
        "float": np.dtype(gpflow.config.default_float()).name,
        "jitter": float(gpflow.config.default_jitter()),
        "content": content,
    }
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {path}: there is no directory {path.parent}")
    _write(path, {_DESCRIPTION: _text(header), **_numbered(writer.arrays)})


def load(path: str | os.PathLike[str]) -> Any:
    """
    What `save` has saved: it predicts the same to the last bit (on another machine or under another
    TensorFlow, to rounding), and can be trained on. Nothing in the file is executed, whoever made
    it.

    :raise FileNotFoundError: if there is none.
    :raise ValueError: for a file of another kind, format or float type, one that is damaged, or
        one that holds a class that was not registered; it names the file.
    """
    header, arrays = _open(Path(path))
    _check_settings(header, path)
    with warnings.catch_warnings():  # of duplicate inducing points, and so on: it was told before
        warnings.simplefilter("ignore")
        try:
            return Reader(arrays).read(header["content"])
        except UNFIT as error:
            raise ValueError(f"{path} cannot be loaded: {error}") from error


def _open(path: Path) -> tuple[dict[str, Any], list[AnyNDArray]]:
    """:raise ValueError: if this is no file of `save`, or one of another format."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            header = json.loads(archive[_DESCRIPTION].tobytes())
            _check_format(header, path)
            arrays = [archive[name] for name in _numbered([None] * (len(archive.files) - 1))]
    except _Other:
        raise
    except (*_UNREADABLE, AttributeError, TypeError) as error:
        raise ValueError(
            f"{path} is no file of gpflow_bsvm.save, or not the whole of one ({error}); a pickle "
            "is read by joblib.load, which runs the code in it: only if you trust who wrote it"
        ) from error
    return header, arrays


class _Other(ValueError):
    """A file of another format."""


def _check_format(header: Mapping[str, Any], path: Path) -> None:
    if header["format"] != FORMAT:
        raise _Other(
            f"{path} has format {header['format']}, written by gpflow_bsvm {header['gpflow_bsvm']};"
            f" gpflow_bsvm {__version__} reads format {FORMAT}: load it with that version"
        )


def _check_settings(header: Mapping[str, Any], path: Any) -> None:
    """:raise ValueError: if GPflow's float type is another than when the file was written."""
    config = gpflow.config
    now, jitter = np.dtype(config.default_float()).name, float(config.default_jitter())
    if header["float"] != now:
        raise ValueError(
            f"{path} was saved in {header['float']}, and GPflow's default is {now} here: call "
            f"gpflow.config.set_default_float(np.{header['float']}) before load"
        )
    if header["jitter"] != jitter:
        warnings.warn(
            f"{path} was saved at a default jitter of {header['jitter']}, here it is {jitter}, so "
            "that predictions may differ: see gpflow.config.set_default_jitter",
            stacklevel=3,
        )


def _text(header: Mapping[str, Any]) -> AnyNDArray:
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def _numbered(arrays: list[Any]) -> dict[str, Any]:
    return {f"array_{n}": array for n, array in enumerate(arrays)}


def _write(path: Path, arrays: Mapping[str, AnyNDArray]) -> None:
    with whole_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
