"""What tells one fit from another: so that none goes on from a checkpoint that is not its own."""

from __future__ import annotations

import functools
import hashlib
import json
import types
from collections.abc import Iterator, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.utilities import parameter_dict

from ..data.batch import Batch
from ..data.prefetch import closed_at_end
from ..data.sources import ArraySource, Source
from ..engine.contracts import Model
from ..engine.networks import networks_in
from ..engine.structure import structure_of
from ..version import __version__
from .encoding import name_of

#: Rows of an array that are looked at, from the first to the last.
_SOME_ROWS = 4096
#: The same of the first minibatch, where they can only be read in their order.
_FEW_ROWS = 100
#: Values that an error shows; of more it says that they differ.
_SHOWN = 4

#: What is compared, by a name that an error can show.
Identity = dict[str, str]
#: In the identity of rows that come in another order each time.
ANY_ORDER = ("first batch", "any")


def identify(algorithm: Any, model: Model, source: Source) -> Identity:
    """
    :return: what must be equal where a fit goes on: options (but those that make it longer), the
        model's structure, values that the algorithm does not learn, data, and versions.
    """
    options = {k: v for k, v in vars(algorithm).items() if k not in algorithm.grows}
    identity = _of_options("algorithm", type(algorithm).__name__, options)
    if algorithm.takes_q:
        identity["q at the start"] = _text_of(tuple(part.numpy() for part in model.natural()))
    rows, known = _rows_of(source)
    identity |= _of_model(model, algorithm.learns, rows, known)
    return identity | _of_data(source, rows, known)


def identify_estimator(estimator: Any, options: Mapping[str, Any], source: Source) -> Identity:
    """
    :param options: those that matter to a fit.
    :return: as `identify`, of what makes its model itself.
    """
    identity = _of_options("estimator", type(estimator).__name__, options)
    for name, value in options.items():
        identity |= _values(f"option {name}", value, set())
    return identity | {"default float": _float()} | _of_data(source, *_rows_of(source))


def _of_options(kind: str, name: str, options: Mapping[str, Any]) -> Identity:
    texts = {f"option {option}": _text_of(value) for option, value in options.items()}
    return {"version of gpflow_bsvm": __version__, kind: name} | texts


def differences(stored: Mapping[str, str], present: Identity) -> list[str]:
    """:return: sentences on all that differs."""
    names = sorted({*stored, *present}, key=list({**present, **stored}).index)
    pairs = [(name, stored.get(name, "nothing"), present.get(name, "nothing")) for name in names]
    return [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]


def _of_model(model: Model, learns: bool, rows: Batch, known: bool) -> Identity:
    """Of what is learned, as of all that networks remember, shapes only."""
    learned = {id(value) for value in model.hyperparameters().values()} if learns else set()
    for network in networks_in(*model.prior) if learns else []:
        learned |= {id(value) for value in network.all_weights()}
    num_data = None if model.num_data is None else float(model.num_data)
    about = {
        "model": name_of(type(model)),
        "latent functions and features": str(tuple(map(int, model.num_features))),
        "jitter": repr(float(model.jitter)),
        "num_data": str(num_data),
        "default float": _float(),
    }
    for name, module in [("likelihood", model.likelihood), *model.prior._asdict().items()]:
        about[name] = f"{type(module).__name__} ({_digest(_describe(structure_of((module,))[0]))})"
        about |= _values(f".{name}", module, learned)
    return about | (_of_likelihood(model, rows, learned) if known else {})


def _of_likelihood(model: Model, rows: Batch, learned: set[int]) -> Identity:
    """What it computes, which a user's code decides, too; unless it is learned, or draws."""
    if learned & {id(parameter) for parameter in parameter_dict(model.likelihood).values()}:
        return {}
    X, Y, _ = (column[:_SHOWN] for column in rows)
    f = np.linspace(-1.5, 1.5, len(X) * int(model.num_features[0]), dtype=_float())
    f = f.reshape(len(X), -1)
    expect = model.likelihood.variational_expectations
    one, two = (expect(X, f, np.full_like(f, 0.5), Y).numpy() for _ in range(2))
    shown = str([float(f"{value:.6g}") for value in one])  # rounding differs between machines
    return {"values of the likelihood": shown} if np.array_equal(one, two) else {}


def _float() -> str:
    return str(tf.as_dtype(gpflow.config.default_float()).name)


def _values(name: str, module: Any, learned: set[int]) -> Identity:
    """:return: values of a module's parameters and bare variables; of those learned the shape."""
    named: dict[str, Any] = parameter_dict(module) if isinstance(module, tf.Module) else {}
    inside = {id(getattr(value, "unconstrained_variable", value)) for value in named.values()}
    bare = [v for v in getattr(module, "variables", ()) if id(v) not in inside]
    named |= {f" variable {number}": variable for number, variable in enumerate(bare)}
    return {
        name + part: _learned(value) if id(value) in learned else _text_of(value.numpy())
        for part, value in named.items()
    }


def _learned(parameter: Any) -> str:
    prior = getattr(parameter, "prior", None)
    how = "" if prior is None else f", prior {prior.name} ({_digest(_text_of(prior))})"
    return f"learned, shape {tuple(parameter.shape)}{how}"


def _rows_of(source: Source) -> tuple[Batch, bool]:
    """:return: rows, without a pass over the data, and whether they are the same each time."""
    if source.indexed:
        return _some(source) if isinstance(source, ArraySource) else _first(source.chunks()), True
    first, again = (_first(source.stream(0, _FEW_ROWS)) for _ in range(2))
    return first, all(map(_equal, first, again))  # else they are shuffled anew each time


def _of_data(source: Source, rows: Batch, known: bool) -> Identity:
    columns = {name: column.numpy() for name, column in rows._asdict().items()}
    if source.indexed:
        columns |= source.labels  # which may have been edited in some rows only
        found = {f"data {name}": _text_of(column) for name, column in columns.items()}
        return {**source.marks, "rows": str(source.num_rows), **found}
    widths = [tuple(column.shape[1:]) for column in rows]
    batch = {"first batch": _text_of(rows)} if known else dict([ANY_ORDER])
    return {**source.marks, "columns": str(widths), **batch}


def _first(batches: Iterator[Batch]) -> Batch:
    with closed_at_end(batches):
        return next(batches)


def _some(source: ArraySource) -> Batch:
    """:return: rows from the first to the last, no more than a chunk has."""
    number = min(source.num_rows, source.chunk_rows, _SOME_ROWS)
    return source.take(np.linspace(0, source.num_rows - 1, number).astype(int))


def _equal(one: tf.Tensor, two: tf.Tensor) -> bool:
    return one.shape == two.shape and bool(np.array_equal(one, two))


def _text_of(value: Any) -> str:
    """:return: the same text in every process, of what an error can show."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.size <= _SHOWN:
        return str(value.tolist())
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return f"{list(value.shape)} {value.dtype.name} ({_digest(content)})"
    if hasattr(value, "get_config"):  # an optimiser of Keras
        return f"{type(value).__name__} ({_digest(_describe_config(value.get_config()))})"
    shown = repr(value)
    shown = type(value).__name__ if len(shown) > 60 or " at 0x" in shown else shown
    return f"{shown} ({_digest(_describe(structure_of((value,))[0]))})"


def _digest(text: str | bytes | AnyNDArray) -> str:
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:12]


def _describe(structure: Any) -> str:
    """:return: a structure of `structure_of` as text, without what differs between processes."""
    if isinstance(structure, tuple):
        own = structure[:1] == ("identity",)  # numbers in it are those of objects in memory
        parts = [part for part in structure if not (own and isinstance(part, int))]
        return f"({', '.join(map(_describe, parts))})"
    if isinstance(structure, bytes):
        return _digest(structure)
    if structure is None or isinstance(structure, (bool, int, float, complex, str)):
        return repr(structure)
    if isinstance(structure, functools.partial):
        given = (structure.args, tuple(sorted(structure.keywords.items())))
        return f"partial({_describe(structure.func)}, {_describe(given)})"
    function = getattr(structure, "__func__", structure)
    if isinstance(function, types.FunctionType):
        return _function(function)
    return name_of(structure if isinstance(structure, type) else type(structure))


def _describe_config(config: Any) -> str:
    return json.dumps(config, sort_keys=True, default=str)


def _function(function: types.FunctionType) -> str:
    """:return: its name, code, defaults and what it has closed over."""
    code = function.__code__
    closed = (cell.cell_contents for cell in function.__closure__ or ())
    values = [_text_of(value) for value in (*closed, *(function.__defaults__ or ()))]
    what = _describe((code.co_code, code.co_consts, code.co_names, *values))
    return f"{name_of(function)} {what}"
