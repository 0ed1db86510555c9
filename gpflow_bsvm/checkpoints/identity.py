"""The identity of a fit, which prevents resuming from another fit's checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..data.batch import Batch
from ..data.digests import digest
from ..data.prefetch import closed_at_end
from ..data.sources import Source
from ..engine.contracts import Model, networks_in
from ..engine.structure import named_parameters
from ..version import __version__
from .described import described, is_library, of_array
from .directory import ANY_ORDER, Identity

#: Rows of the first minibatch, if rows can only be read in order.
_FEW_ROWS = 100
#: Number of values shown in an error; an error only mentions longer values.
_SHOWN = 4


def of_fit(algorithm: Any, model: Model, source: Source) -> Identity:
    """
    :return: everything that must agree to continue a fit: options (except the fit's length), the
        model's structure, values that are not learned, data, and versions.
    """
    options = {k: v for k, v in vars(algorithm).items() if k != algorithm.grows}
    identity = _of_options("algorithm", algorithm, options)
    if algorithm.takes_q:
        identity["q at the start"] = _text(tuple(part.numpy() for part in model.natural()))
    identity |= {
        "model": f"{type(model).__module__}.{_class(type(model))}",
        "latent functions and features": str(tuple(map(int, model.q_shape))),
        "jitter": repr(float(model.jitter)),
        "num_data": str(None if model.num_data is None else float(model.num_data)),
    }
    learned = _learned(model) if algorithm.learns else set()
    for name, module in [("likelihood", model.likelihood), *model.prior._asdict().items()]:
        values = _named_values(module)
        told = learned | {id(value) for value in values.values()}
        identity[name] = f"{type(module).__name__} ({digest(described(module, told))})"
        identity |= _values(f".{name}", values, learned)
    return identity | _of_data(source)


def of_estimator(estimator: Any, options: Mapping[str, Any], source: Source) -> Identity:
    """
    :param options: the options that affect a fit.
    :return: the identity of a fit of an estimator, which builds its own model.
    """
    identity = _of_options("estimator", estimator, options)
    for name, value in options.items():
        identity |= _values(f"option {name}", _named_values(value), set())
    return identity | _of_data(source)


def _of_options(kind: str, owner: Any, options: Mapping[str, Any]) -> Identity:
    about = {
        "version of gpflow_bsvm": __version__,
        "default float": str(tf.as_dtype(gpflow.config.default_float()).name),
        kind: _class(type(owner)),
    }
    named = {name: map(id, _named_values(value).values()) for name, value in options.items()}
    return about | {f"option {n}": _text(v, {*named[n]}) for n, v in options.items()}


def _class(cls: type) -> str:
    """:return: the name, and a digest of a user's class."""
    return cls.__qualname__ + ("" if is_library(cls) else f" ({digest(described(cls))})")


def _learned(model: Model) -> set[int]:
    """:return: ids of all learned parameters, including all variables of networks."""
    weights = (weight for network in networks_in(model.prior) for weight in network.all_weights())
    return {id(value) for value in (*model.hyperparameters().values(), *weights)}


def _named_values(module: Any) -> dict[str, Any]:
    """:return: parameters and bare variables by name."""
    named = named_parameters(module) if isinstance(module, tf.Module) else {}
    inside = {id(getattr(value, "unconstrained_variable", value)) for value in named.values()}
    bare = [v for v in getattr(module, "variables", ()) if id(v) not in inside]
    return named | {f" variable {number}": variable for number, variable in enumerate(bare)}


def _values(name: str, named: Mapping[str, Any], learned: set[int]) -> Identity:
    """:return: values of parameters and variables; shape and prior of learned ones."""
    return {
        name + part: _of_learned(value) if id(value) in learned else _text(value.numpy())
        for part, value in named.items()
    }


def _of_learned(parameter: Any) -> str:
    prior = getattr(parameter, "prior", None)
    how = "" if prior is None else f", prior {prior.name} ({digest(described(prior))})"
    return f"learned, shape {tuple(parameter.shape)}{how}"


def _of_data(source: Source) -> Identity:
    """Identify data by all rows if this costs less than a pass of the fit; else by other facts."""
    known = {**source.marks, **{f"data {n}": text for n, text in source.digests().items()}}
    if source.indexed:
        return {**known, "rows": str(source.num_rows)}
    maker = type(source) if source.maker is None else source.maker
    if not (isinstance(maker, type) and is_library(maker)):
        known["source"] = f"{type(maker).__name__} ({digest(described(maker, objects=False))})"
    passes = [_first(source.stream(0, _FEW_ROWS)) for _ in range(2)]
    few = min(len(batch.X) for batch in passes)  # less if there are fewer rows
    begun, again = ([np.asarray(column)[:few] for column in batch] for batch in passes)
    widths = [column.shape[1:] for column in begun]
    same = all(np.array_equal(one, two) for one, two in zip(begun, again))  # else shuffled again
    batch = {"first batch": _text(tuple(begun))} if same else dict([ANY_ORDER])
    return {**known, "columns": str(widths), **batch}


def _first(batches: Iterator[Batch]) -> Batch:
    with closed_at_end(batches):
        return next(batches)


def _text(value: Any, told: Collection[int] = ()) -> str:
    """
    :param told: see `described`.
    :return: a text for errors that is equal in every process.
    """
    if isinstance(value, np.ndarray | np.generic):
        return str(value.tolist()) if value.size <= _SHOWN else of_array(np.asarray(value))
    shown = repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return shown
    shown = type(value).__name__ if len(shown) > 60 or " at 0x" in shown else shown
    return f"{shown} ({digest(described(value, told))})"
