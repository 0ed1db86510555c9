"""What tells one fit from another, so that none resumes from another fit's checkpoint."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.utilities import parameter_dict

from ..checkpoints import ANY_ORDER, Identity
from ..data.batch import Batch
from ..data.prefetch import closed_at_end
from ..data.sources import Source
from ..engine.contracts import Model, networks_in
from ..engine.structure import look_into
from ..version import __version__

#: Rows of the first minibatch, where rows can only be read in their order.
_FEW_ROWS = 100
#: Number of values that an error shows; for more it only says that they differ.
_SHOWN = 4


def of_fit(algorithm: Any, model: Model, source: Source) -> Identity:
    """
    :return: all that must agree where a fit goes on: options (but those that make it longer), the
        model's structure, values that the algorithm does not learn, data, and versions.
    """
    options = {k: v for k, v in vars(algorithm).items() if k != algorithm.grows}
    identity = _of_options("algorithm", algorithm, options)
    if algorithm.takes_q:
        identity["q at the start"] = _text(tuple(part.numpy() for part in model.natural()))
    identity |= {
        "model": f"{type(model).__module__}.{type(model).__qualname__}",
        "latent functions and features": str(tuple(map(int, model.num_features))),
        "jitter": repr(float(model.jitter)),
        "num_data": str(None if model.num_data is None else float(model.num_data)),
    }
    learned = _learned(model) if algorithm.learns else set()
    for name, module in [("likelihood", model.likelihood), *model.prior._asdict().items()]:
        identity[name] = f"{type(module).__name__} ({_digest(_described(module))})"
        identity |= _values(f".{name}", module, learned)
    return identity | _of_data(source)


def of_estimator(estimator: Any, options: Mapping[str, Any], source: Source) -> Identity:
    """
    :param options: the options that affect a fit.
    :return: the identity of an estimator, which builds its own model.
    """
    identity = _of_options("estimator", estimator, options)
    for name, value in options.items():
        identity |= _values(f"option {name}", value, set())
    return identity | _of_data(source)


def _of_options(kind: str, owner: Any, options: Mapping[str, Any]) -> Identity:
    about = {
        "version of gpflow_bsvm": __version__,
        "default float": str(tf.as_dtype(gpflow.config.default_float()).name),
        kind: type(owner).__name__,
    }
    return about | {f"option {name}": _text(value) for name, value in options.items()}


def _learned(model: Model) -> set[int]:
    """:return: ids of all that is learned, including all variables of networks."""
    weights = (weight for network in networks_in(*model.prior) for weight in network.all_weights())
    return {id(value) for value in (*model.hyperparameters().values(), *weights)}


def _values(name: str, module: Any, learned: set[int]) -> Identity:
    """:return: values of parameters and bare variables; of learned ones, shape and prior."""
    named: dict[str, Any] = parameter_dict(module) if isinstance(module, tf.Module) else {}
    inside = {id(getattr(value, "unconstrained_variable", value)) for value in named.values()}
    bare = [v for v in getattr(module, "variables", ()) if id(v) not in inside]
    named |= {f" variable {number}": variable for number, variable in enumerate(bare)}
    return {
        name + part: _of_learned(value) if id(value) in learned else _text(value.numpy())
        for part, value in named.items()
    }


def _of_learned(parameter: Any) -> str:
    prior = getattr(parameter, "prior", None)
    how = "" if prior is None else f", prior {prior.name} ({_digest(_described(prior))})"
    return f"learned, shape {tuple(parameter.shape)}{how}"


def _of_data(source: Source) -> Identity:
    """Read without a pass: the number of rows if it is known, and the first of them."""
    if source.indexed:
        first = _first(source.chunks())
        columns = {name: column.numpy() for name, column in first._asdict().items()}
        columns |= source.labels  # which may have been edited in some rows only
        found = {f"data {name}": _text(column) for name, column in columns.items()}
        return {**source.marks, "rows": str(source.num_rows), **found}
    passes = [_first(source.stream(0, _FEW_ROWS)) for _ in range(2)]
    few = min(len(batch.X) for batch in passes)  # less where the first has found fewer rows
    begun, again = ([np.asarray(column)[:few] for column in batch] for batch in passes)
    widths = [column.shape[1:] for column in begun]
    same = all(np.array_equal(one, two) for one, two in zip(begun, again))  # else shuffled anew
    batch = {"first batch": _text(tuple(begun))} if same else dict([ANY_ORDER])
    return {**source.marks, "columns": str(widths), **batch}


def _first(batches: Iterator[Batch]) -> Batch:
    with closed_at_end(batches):
        return next(batches)


def _text(value: Any) -> str:
    """:return: a text that is the same in every process, and that an error can show."""
    if isinstance(value, np.ndarray | np.generic):
        return str(value.tolist()) if value.size <= _SHOWN else _of_array(np.asarray(value))
    shown = repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return shown
    shown = type(value).__name__ if len(shown) > 60 or " at 0x" in shown else shown
    return f"{shown} ({_digest(_described(value))})"


def _of_array(value: AnyNDArray) -> str:
    content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return f"{list(value.shape)} {value.dtype.name} ({_digest(content)})"


def _digest(text: str | AnyNDArray) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:12]


def _described(value: Any) -> str:
    """:return: a module's structure, or an object's, as text."""
    if hasattr(value, "get_config"):  # an optimizer of Keras
        return str(sorted(value.get_config().items(), key=str))
    return _of_key(look_into((value,)).key)


def _of_key(key: Any) -> str:
    """:return: a key of `look_into`, without the parts that differ between processes."""
    if isinstance(key, tuple):
        own = key[:1] == ("identity",)  # numbers in it are those of objects in memory
        parts = [part for part in key if not (own and isinstance(part, int))]
        return f"({', '.join(map(_of_key, parts))})"
    if key is None or isinstance(key, bool | int | float | complex | str | bytes | enum.Enum):
        return repr(key)
    found = key if hasattr(key, "__qualname__") else type(key)  # a function by its name
    return f"{found.__module__}.{found.__qualname__}"
