"""The identity of a fit, which prevents resuming from another fit's checkpoint."""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import itertools
import re
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray

from ..data.batch import Batch, SparseRows, digest
from ..data.sources import Source, closed_at_end
from ..engine.contracts import Model, networks_in
from ..engine.structure import BOOKKEEPING, named_parameters
from ..version import __version__
from .directory import ANY_ORDER, Identity
from .values import full_name

#: Number of first rows that identify data, if these can only be read in order.
_FEW_ROWS = 100
#: Errors show arrays with up to this many values; of larger arrays they show shape and digest.
_SHOWN = 4
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_CONTAINERS = (list, tuple, set, frozenset, Mapping)
_BY_TEXT = (np.dtype, tf.DType, tf.TensorShape, slice, range)
#: Attributes where wrappers, descriptors and other callables keep their function.
_INNER = ("__wrapped__", "python_function", "__func__", "func", "fget")
#: Code in these directories changes only with the version: identify it by name.
_PACKAGES = {"site-packages", "dist-packages"}


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
        "whiten": str(getattr(model, "whiten", True)),
        "num_data": str(None if model.num_data is None else float(model.num_data)),
    }
    learned = _learned(model) if algorithm.learns else set()
    for name, module in [("likelihood", model.likelihood), *model.prior._asdict().items()]:
        values = _named_values(module)
        told = learned | _ids(values)
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
        named = _named_values(value)
        identity |= _values(f"option {name}", named, set())
        learned = {part: one for part, one in named.items() if one.trainable}
        identity |= _values(f"learning of option {name}", learned, _ids(learned))
    return identity | _of_data(source)


def _of_options(kind: str, owner: Any, options: Mapping[str, Any]) -> Identity:
    about = {
        "version of gpflow_bsvm": __version__,
        "default float": str(tf.as_dtype(gpflow.config.default_float()).name),
        kind: _class(type(owner)),
    }
    return about | {f"option {n}": _text(v, _ids(_named_values(v))) for n, v in options.items()}


def _ids(named: Mapping[str, Any]) -> set[int]:
    return {id(value) for value in named.values()}


def _class(cls: type) -> str:
    """:return: the name, and a digest of a user's class."""
    return cls.__qualname__ + ("" if is_library(cls.__module__) else f" ({digest(described(cls))})")


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
    told = described([prior, getattr(parameter, "prior_on", None)])
    how = "" if prior is None else f", prior {prior.name} ({digest(told)})"
    return f"learned, shape {tuple(parameter.shape)}{how}"


def _of_data(source: Source) -> Identity:
    """Identify data by all rows if cheaper than a pass of the fit, else by marks and first rows."""
    known = {**source.marks, **{f"data {n}": text for n, text in source.digests().items()}}
    if source.indexed:
        return {**known, "rows": str(source.num_rows)}
    maker = type(source) if source.maker is None else source.maker
    if not (isinstance(maker, type) and is_library(maker.__module__)):
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


def described(value: Any, told: Collection[int] = (), objects: bool = True) -> str:
    """
    :param told: ids of parameters and variables with values recorded elsewhere.
    :param objects: whether to include attributes of objects, or only their classes.
    :return: the text. It includes library code by name, and other code completely, with all
        globals, class attributes and closure variables that this code reads.
    """
    return _Walk(told, objects).of(value)


def of_array(value: AnyNDArray) -> str:
    """:return: shape, type and a digest of the numbers."""
    if value.dtype.hasobject:
        return f"{list(value.shape)} object ({digest(described(value.tolist()))})"
    return f"{list(value.shape)} {value.dtype.name} ({digest(value)})"


class _Walk:
    def __init__(self, told: Collection[int], objects: bool) -> None:
        self._told = told
        self._objects = objects
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps objects alive, so that no id is reused
        self._number = itertools.count()

    def of(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            return f"{full_name(type(value))}.{value.name}"
        if isinstance(value, (*_PLAIN, types.ModuleType)):
            return value.__name__ if isinstance(value, types.ModuleType) else repr(value)
        if isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
            value = value.numpy()
        if isinstance(value, np.ndarray | np.generic):
            return of_array(np.asarray(value))
        if isinstance(value, _BY_TEXT):
            return f"{type(value).__name__} {value}"
        if id(value) in self._seen:  # a part used twice differs from two equal parts
            return f"again {self._seen[id(value)][0]}"
        self._seen[id(value)] = next(self._number), value
        text = f"{type(value).__name__}({self._inside(value)})"
        if isinstance(value, _CONTAINERS):  # Python decides which constants share an object
            del self._seen[id(value)]
        return text

    def _all(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.of, values))

    def _named(self, parts: Mapping[Any, Any]) -> str:
        return ", ".join(f"{key}: {self.of(parts[key])}" for key in sorted(parts, key=str))

    def _inside(self, value: Any) -> str:
        if isinstance(value, list | tuple):
            return self._all(value)
        if isinstance(value, set | frozenset):  # in the same order in every process
            return self._all(sorted(value, key=_name))
        if isinstance(value, Mapping):
            return self._named(value)
        if isinstance(value, gpflow.Parameter | tf.Variable):
            known = id(value) in self._told
            transform = getattr(value, "transform", None)
            return f"{value.dtype.name}, {self._all([transform, None if known else value.numpy()])}"
        if isinstance(value, tfp.bijectors.Bijector | tfp.distributions.Distribution):
            return self._named(value.parameters)
        if isinstance(value, type):
            return self._class(value)
        if scipy.sparse.issparse(value):
            return self._all([value.shape, *SparseRows(value).parts])
        if hasattr(value, "to_numpy"):  # pandas: a long `repr` lacks some rows
            return self._all([[*getattr(value, "columns", ())], value.to_numpy()])
        return self._callable(value) or self._object(value)

    def _callable(self, value: Any) -> str:
        """:return: a text; empty if the object is not based on a function."""
        if isinstance(value, functools.partial):
            return self._all([value.func, value.args, value.keywords])
        if isinstance(value, types.MethodType):
            return self._all([value.__self__, value.__func__])
        if isinstance(value, types.FunctionType):
            home = value.__globals__.get("__name__", "")  # `wraps` changes `__module__`
            if not is_library(home):
                return self._function(value)
        inner = [getattr(value, name, None) for name in _INNER]
        if found := [one for one in inner if isinstance(one, types.FunctionType)]:
            return self.of(found[0])
        return full_name(value) if inspect.isroutine(value) else ""

    def _function(self, function: Any) -> str:
        code = function.__code__
        beside = function.__defaults__, function.__kwdefaults__, getattr(function, "__wrapped__", 0)
        told = f"{full_name(function)}, {self._all(beside)}, {self._code(code, function.__doc__)}"
        written = set[str]()  # values that it writes are no inputs
        values = dict([*_globals(code, function.__globals__), *_cells(function)])
        for one in _codes(code):
            written |= {i.argval for i in dis.get_instructions(one) if i.opname in _STORES}
        return f"{told}, {self._named({n: v for n, v in values.items() if n not in written})}"

    def _code(self, code: types.CodeType, doc: str | None = None) -> str:
        consts = [one for one in code.co_consts if doc is None or one != doc]
        parts = [self._code(c) if isinstance(c, types.CodeType) else self.of(c) for c in consts]
        return f"{code.co_code.hex()} {code.co_names} {', '.join(parts)}"

    def _class(self, cls: type) -> str:
        if is_library(cls.__module__):
            return full_name(cls)
        own = {k: v for k, v in vars(cls).items() if not k.startswith("_abc_")}
        own = {k: v for k, v in own.items() if not k.startswith("__") or inspect.isroutine(v)}
        return f"{full_name(cls)}, {self._all(cls.__bases__)}, {self._named(own)}"

    def _object(self, value: Any) -> str:
        cls = value.__class__
        if hasattr(value, "get_config"):  # Keras numbers layer names per process
            return f"{self.of(cls)}, {re.sub(r'_[0-9]+', '', str(_config(value)))}"
        ours = full_name(cls).partition(".")[0] in ("gpflow", "gpflow_bsvm")
        if is_library(cls.__module__) and not (ours or isinstance(value, tf.Module)):
            return full_name(cls) if " at 0x" in repr(value) else repr(value)
        state = vars(value) if self._objects and hasattr(value, "__dict__") else {}
        own = {k: v for k, v in state.items() if k not in BOOKKEEPING and k[:6] != "_self_"}
        return f"{self.of(cls)}, {self._named(own)}"


def _name(value: Any) -> str:
    return full_name(value) if hasattr(value, "__qualname__") else repr(value)


_STORES = ("STORE_GLOBAL", "STORE_DEREF")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """:return: the code, and the code of functions defined in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def _globals(code: types.CodeType, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """:return: globals read by name; for a user's module, the attributes read."""
    for one in _codes(code):
        steps = [step for step in dis.get_instructions(one) if step.opname != "EXTENDED_ARG"]
        for step, after in zip(steps, [*steps[1:], None]):
            if step.opname not in ("LOAD_GLOBAL", "LOAD_NAME") or step.argval not in known:
                continue
            value = known[step.argval]
            own = isinstance(value, types.ModuleType) and not is_library(value.__name__)
            if own and after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                yield f"{step.argval}.{after.argval}", getattr(value, after.argval, None)
            else:
                yield step.argval, value


def _cells(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # empty: not yet assigned
            continue


def _config(value: Any) -> Any:
    try:
        return sorted(value.get_config().items(), key=str)
    except Exception:  # a user's layer without a configuration
        return [tuple(weight.shape) for weight in getattr(value, "weights", ())]


def is_library(module: str) -> bool:
    """:return: True if the module's code changes only with a version."""
    home = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None) or ""  # interactive code has no file
    known = home in sys.stdlib_module_names or home == __name__.partition(".")[0]
    return known or bool(_PACKAGES & {*Path(file).parts})
