"""Files of models: arrays and a description in NumPy's `.npz` format, never a pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray

from ..atomic import check_room, read_archive, write_archive
from ..notices import warn
from ..version import __version__
from .objects import Decoder, Encoder

#: The version of the file format that `load` reads; it changes with any class's attributes.
FORMAT = 5


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """
    Save the values and structure of a model of `gpflow_bsvm.models`, an estimator (fitted or not),
    or a part of either, such as a kernel; `load` restores them. A file is complete or not written.

    :param model: the object to save. Its kernels, mean functions, likelihoods, inducing variables,
        transforms and priors may be from GPflow, TensorFlow Probability and this package; see
        `register` for other classes. Of a `DeepKernel`'s Keras network only weights are saved.
    :param path: the file; an existing file is replaced.
    :raise TypeError: if a part could not be restored; the message names the part and a remedy.
    :raise OSError: if the file cannot be written (FileNotFoundError if its directory does not
        exist); the message names the file.
    """
    content, arrays = _described(model, "classifier" if hasattr(model, "get_params") else "model")
    header = {"format": FORMAT, "settings": _settings(), "content": content}
    write_archive(Path(path), header, arrays)


def check_can_save(path: str | os.PathLike[str], **values: Any) -> None:
    """
    Check, before a long fit, that its result can be saved.

    :param path: the future file.
    :param values: parts of the future file, such as ``classes=[...]`` and ``columns=[...]``.
    :raise TypeError: for a value that a file cannot store, such as a label of an unknown type.
    :raise OSError: as in `save`, or if the disk has no room for 16 MB.
    """
    for name, value in values.items():
        _described(value, name)
    check_room(Path(path))


def _described(value: Any, name: str) -> tuple[Any, list[AnyNDArray]]:
    """:raise TypeError: for values that the description cannot restore."""
    encoder = Encoder()
    try:
        content = encoder.encode(value, name)
    except RecursionError:
        raise TypeError(f"a part of {name} contains itself, which a file cannot hold") from None
    decoder = Decoder(encoder.arrays, encoder.networks, name)
    try:
        decoder.decode(content)
    except Exception as error:  # TensorFlow and Keras raise any error
        raise TypeError(f"load could not restore {decoder.place}: {error}") from error
    return content, encoder.arrays


def _settings() -> dict[str, Any]:
    """:return: the global settings that affect predictions."""
    return {
        "float": np.dtype(gpflow.config.default_float()).name,
        "jitter": float(gpflow.config.default_jitter()),
        "version of gpflow_bsvm": __version__,
        "version of GPflow": gpflow.__version__,
    }


def load(path: str | os.PathLike[str], network: Any = None) -> Any:
    """
    Load a file written by `save`. Predictions are the same to the last bit (up to rounding on
    another machine or TensorFlow version), and training can continue. Loading even an untrusted
    file runs no code except TensorFlow Probability's known transforms and priors.

    :param network: the Keras network of a `DeepKernel`, constructed as before, which receives the
        file's weights; a list of networks if there are several.
    :raise OSError: if it cannot be read (FileNotFoundError if there is no such file).
    :raise ValueError: for a file of another kind, format or float type, for a damaged file, or for
        an unregistered class; the message names the file.
    """
    path = Path(path)
    header, arrays = _open(path)
    _check_settings(header["settings"], path)
    decoder = Decoder(arrays, network if isinstance(network, Sequence) else [network])
    try:
        return decoder.decode(header["content"])
    except Exception as error:  # TensorFlow, Keras and constructors raise any error
        raise ValueError(f"{path} cannot be loaded: {decoder.place}: {error}") from error


def _open(path: Path) -> tuple[dict[str, Any], Any]:
    """:raise ValueError: for files that `save` has not written, or of another format."""
    try:
        header, arrays = read_archive(path)
        found = header["format"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not a complete file from gpflow_bsvm.save ({error}); if it is a pickle, "
            "use joblib.load, but only if you trust its author, because this runs code in the file"
        ) from error
    if found != FORMAT or not isinstance(header.get("settings"), dict):
        raise ValueError(
            f"{path} has format {found}, but gpflow_bsvm {__version__} reads format {FORMAT}: "
            "load it with the version that saved it"
        )
    return header, arrays


def _check_settings(told: dict[str, Any], path: Path) -> None:
    """:raise ValueError: if GPflow's float type differs from the file's."""
    here = _settings()
    changed = {key: told.get(key) for key, now in here.items() if told.get(key) != now}
    if "float" in changed:
        saved = changed["float"]
        raise ValueError(
            f"{path} was saved in {saved}, but GPflow's default here is {here['float']}: call "
            f"gpflow.config.set_default_float(np.{saved}) before load"
        )
    if differ := [f"{key} was {old}, is now {here[key]}" for key, old in changed.items()]:
        warn(
            f"{path} was saved under other settings, so predictions may differ: {'; '.join(differ)}"
        )
