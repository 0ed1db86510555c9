"""Files of models: arrays and a description, in NumPy's `.npz` format; never a pickle."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..version import __version__
from .archive import read_archive, write_archive
from .read import Reader
from .write import Writer

#: Of files; `load` reads no other.
FORMAT = 2


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
    write_archive(path, header, writer.arrays)


def load(path: str | os.PathLike[str], network: Any = None) -> Any:
    """
    What `save` has saved: it predicts the same to the last bit (on another machine or under another
    TensorFlow, to rounding), and can be trained on. Whoever made the file, nothing is called but
    constructors of known classes, and of those that this process has registered.

    :param network: the Keras network of a `DeepKernel`, which is given the weights in the file:
        where its layers are your own, or the file's are not to be trusted. A list of several.
    :raise FileNotFoundError: if there is none.
    :raise ValueError: for a file of another kind, format or float type, one that is damaged, or
        one that holds a class that was not registered; it names the file.
    """
    path = Path(path)
    header, arrays = _open(path)
    _check_settings(header, path)
    own = network if isinstance(network, Sequence) else [network]
    reader = Reader(arrays, own)
    with warnings.catch_warnings():  # of duplicate inducing points, and so on: it was told before
        warnings.simplefilter("ignore")
        try:
            return reader.whole(header["content"])
        except Exception as error:  # whatever TensorFlow, Keras and constructors say
            raise ValueError(f"{path} cannot be loaded: {reader.place}: {error}") from error


def _open(path: Path) -> tuple[dict[str, Any], Any]:
    """:raise ValueError: if this is no file of `save`, or one of another format."""
    try:
        header, arrays = read_archive(path)
        if not isinstance(header, dict) or _NEEDED - set(header):
            raise ValueError("it has no header of this package")
    except ValueError as error:
        raise ValueError(
            f"{path} is no file of gpflow_bsvm.save, or not the whole of one ({error}); a pickle "
            "is read by joblib.load, which runs the code in it: only if you trust who wrote it"
        ) from error
    _check_format(header, path)
    return header, arrays


_NEEDED = {"format", "gpflow_bsvm", "float", "jitter", "content"}


def _check_format(header: Mapping[str, Any], path: Path) -> None:
    if header["format"] != FORMAT:
        raise ValueError(
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
    if not isinstance(header["jitter"], float):
        raise ValueError(f"{path} cannot be loaded: its jitter is {header['jitter']!r}, no number")
    if header["jitter"] != jitter:
        warnings.warn(
            f"{path} was saved at a default jitter of {header['jitter']}, here it is {jitter}, so "
            "that predictions may differ: see gpflow.config.set_default_jitter",
            stacklevel=3,
        )
