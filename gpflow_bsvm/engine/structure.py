"""The structure of GPflow modules: everything that a graph depends on, except parameter values.

Also a cache of results computed from a model's parameters, valid until a parameter changes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import os
import sys
import threading
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

#: Types identified by value, not by attributes.
_FUNCTIONS = (
    type,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
)

#: Packages whose classes read only their own attributes; other classes may read anything.
_LIBRARIES = {"gpflow", __name__.partition(".")[0], "tensorflow", "tensorflow_probability"}
_LIBRARIES |= sys.stdlib_module_names


#: Attributes whose last axis is an axis of columns of X.
_OF_COLUMNS = ("Z", "lengthscales")
#: Library classes that read the number of columns of X while they are traced, in their quadrature.
_OF_ONE_WIDTH = (gpflow.likelihoods.MonteCarloLikelihood,)

#: Not empty in a fork of a process in which TensorFlow ran.
_FORKED: list[bool] = []

_EMPTY = gpflow.Module()
_EMPTY.part = gpflow.Module()  # a part adds attributes, too
#: Attributes of TensorFlow's bookkeeping: the attributes of an empty module.
BOOKKEEPING = frozenset(vars(_EMPTY)) - {"part"}


class _Unshareable(Exception):
    """The module holds state that cannot be passed in as a parameter (raw variables, layers)."""


def _note_fork() -> None:
    """In a fork, note whether TensorFlow ran before; loading a model starts it."""
    found = sys.modules.get("tensorflow.python.eager.context")  # not public: it may move
    if getattr(getattr(found, "context_safe", tuple)(), "_initialized", False):
        _FORKED.append(True)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_note_fork)


def check_process() -> None:
    """:raise RuntimeError: in a fork of a process that ran TensorFlow, which would hang."""
    if _FORKED:
        raise RuntimeError(
            "models were made, loaded or used before this process was forked, and TensorFlow would "
            "now wait forever: start processes by multiprocessing.get_context('spawn'), or by "
            "joblib; in a server, load models after it has forked its workers"
        )


class _Kind(enum.Enum):
    """How instances of a class enter a key. The first kind that fits counts."""

    VALUE = (types.NoneType, bool, int, float, complex, str, bytes, enum.Enum)
    NAMED = (np.dtype, tf.DType, tf.TensorShape, slice)
    TENSOR = (tf.Tensor,)
    ARRAY = (np.ndarray, np.generic)
    SEQUENCE = (list, tuple)
    MAPPING = (Mapping,)
    PARAMETER = (gpflow.Parameter,)
    TFP = (tfp.bijectors.Bijector, tfp.distributions.Distribution)
    FUNCTION = _FUNCTIONS
    MODULE = (gpflow.Module,)
    #: Other objects, such as layers, may have state that is not in their attributes.
    OTHER = (object,)


@functools.lru_cache
def _kind_of(cls: type) -> _Kind:
    """:return: the kind of a class; cached, because tests of abstract base classes take long."""
    kind = next(kind for kind in _Kind if issubclass(cls, kind.value))
    ours = cls.__module__.partition(".")[0] in ("gpflow", __name__.partition(".")[0])
    is_module = ours or dataclasses.is_dataclass(cls)
    return _Kind.MODULE if kind is _Kind.OTHER and is_module else kind


class Structure:
    """
    The properties of given modules that do not depend on parameter values.

    :ivar key: hashable, equal for modules that differ only in values.
    :ivar parameters: in the order of the key; empty if modules have other state (a Keras layer, a
        raw variable), which graphs capture.
    :ivar shapes: of their unconstrained values, with None for axes whose length the key omits.
    :ivar is_proved: whether the key determines all computations, which is true only for library
        code. A user's class may read class attributes, globals or mutable objects.
    :ivar any_width: whether the key omits the number D of columns of X; user code may depend on D.
    :ivar books: TensorFlow's bookkeeping of the modules; copies omit it.
    """

    def __init__(
        self, modules: tuple[Any, ...], *, any_width: bool = False, by_identity: bool = False
    ) -> None:
        """
        :param by_identity: whether state other than parameters (raw variables, Keras layers) counts
            by its id; else it raises `_Unshareable`.
        """
        self.any_width = any_width
        self.is_proved = not by_identity
        self.parameters: list[gpflow.Parameter] = []
        self.shapes: list[list[int | None]] = []
        self.books: list[Any] = []
        self._by_identity = by_identity
        self._seen: dict[int, int] = {}
        self.key = self._of(modules)
        if by_identity:
            self.key = ("identity", *modules, self.key)
        hash(self.key)

    def values(self) -> list[tf.Tensor]:
        """:return: the unconstrained values of `parameters`."""
        check_process()
        return [p.unconstrained_variable.value() for p in self.parameters]

    def _of(self, value: Any, name: str = "") -> Hashable:
        kind = _kind_of(value.__class__)
        if kind is _Kind.VALUE:
            return (type(value), value)
        if kind is _Kind.NAMED:
            return (type(value).__name__, str(value))
        if kind is _Kind.TENSOR and hasattr(value, "numpy"):
            value = value.numpy()  # a constant, such as the nodes of a quadrature rule
            kind = _Kind.ARRAY
        if kind is _Kind.ARRAY and not value.dtype.hasobject:
            return ("array", value.shape, value.dtype.str, value.tobytes())
        if id(value) in self._seen:  # repeated use is part of the structure
            return ("again", self._seen[id(value)])
        if kind is _Kind.SEQUENCE:
            return ("sequence", *(self._of(item) for item in value))
        if kind is _Kind.MAPPING:
            keys = sorted(value, key=str)
            return ("mapping", *((str(key), self._of(value[key])) for key in keys))
        return self._of_object(value, kind, name)

    def _of_object(self, value: Any, kind: _Kind, name: str) -> Hashable:
        self._seen[id(value)] = len(self._seen)
        self.is_proved &= _is_of_library(value)
        if self.any_width and (not self.is_proved or isinstance(value, _OF_ONE_WIDTH)):
            raise _Unshareable
        if kind is _Kind.PARAMETER and not self._by_identity:
            self.parameters.append(value)
            self.shapes.append(_open_shape(value, self.any_width and name in _OF_COLUMNS))
            shape = tuple(self.shapes[-1])
            return ("parameter", shape, value.dtype.name, self._of(value.transform))
        if kind is _Kind.TFP:
            return (type(value), self._of(value.parameters))
        if kind is _Kind.FUNCTION:
            return ("function", value)
        if kind is _Kind.MODULE:  # its attributes determine it
            books = {n for n in vars(value) if n in BOOKKEEPING or n.startswith("_self_")}
            self.books += [vars(value)[name] for name in books]
            names = sorted(vars(value).keys() - books)
            return (type(value), tuple((name, self._of(vars(value)[name], name)) for name in names))
        if not self._by_identity:
            raise _Unshareable
        return ("identity", id(value))


def _open_shape(parameter: gpflow.Parameter, any_width: bool) -> list[int | None]:
    """
    :param any_width: whether the last axis is an axis of columns, which becomes None.
    :return: the shape of the unconstrained value, with None for axes that depend on the number of
        inducing points M: the first axis of a matrix, and all but the first axis of [L, M, M]
        (stored as a vector).
    """
    shape = list(parameter.unconstrained_variable.shape)
    if any_width and 0 < len(shape) < 3:
        shape[-1] = None
    if len(parameter.shape) == 3:
        return [shape[0], *(None for _ in shape[1:])]
    return [None, *shape[1:]] if len(shape) == 2 else shape


def _is_of_library(value: Any) -> bool:
    """:return: True for library code; functions must be importable by name."""
    if isinstance(value, _FUNCTIONS) and not isinstance(value, type):
        module = getattr(value, "__module__", None) or ""
        named = getattr(sys.modules.get(module), getattr(value, "__name__", ""), None) is value
        return named and module.partition(".")[0] in _LIBRARIES
    return _has_library_bases(value if isinstance(value, type) else type(value))


@functools.lru_cache
def _has_library_bases(cls: type) -> bool:
    return all(base.__module__.partition(".")[0] in _LIBRARIES for base in cls.__mro__)


def look_into(modules: tuple[Any, ...]) -> Structure:
    """:return: the structure of `modules`."""
    check_process()
    for how in ({"any_width": True}, {}, {"by_identity": True}):
        with contextlib.suppress(_Unshareable, TypeError, RecursionError):
            return Structure(modules, **how)
    whole = Structure((), by_identity=True)  # parts that cannot be told apart
    whole.key = ("identity", *modules)
    return whole


def named_parameters(module: Any) -> dict[str, Any]:
    """
    :return: parameters by GPflow's names.
    :raise ValueError: for a module that contains itself: GPflow cannot name its parts.
    """
    try:
        return dict(gpflow.utilities.parameter_dict(module))
    except RecursionError:
        raise ValueError(
            f"a part of {type(module).__name__} (kernel, likelihood, mean function) contains "
            "itself, directly or in its parts, so that GPflow's walk over parameters does not "
            "end: do not store the back reference as an attribute"
        ) from None


T = TypeVar("T")


def copied(module: T) -> T:
    """:return: a deep copy, which shares the priors: TFP cannot copy some of them."""
    memo = {id(p.prior): p.prior for p in getattr(module, "parameters", ()) if p.prior is not None}
    copy: T = gpflow.utilities.deepcopy(module, memo)
    return copy


#: For each model and name of a result: the key, the referenced buffers, and the result.
_KNOWN: WeakKeyDictionary[Any, dict[str, tuple[Any, ...]]] = WeakKeyDictionary()
_LOCK = threading.RLock()


def remembered(model: object, name: str, parts: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """
    Cache a result. Assigning to a variable allocates a new buffer while the old one is referenced.
    Holding references to all parameters' buffers and comparing addresses therefore detects every
    change, without comparing numbers.

    :param model: the owner; the cache does not keep it alive.
    :param name: the name of the result.
    :param parts: all parameters and modules that the result depends on.
    :return: `compute()`, or its earlier result if `parts` have not changed since. Nothing is cached
        in a graph, or if `parts` contain user code.
    """
    structure = look_into(parts) if tf.executing_eagerly() else None
    if structure is None or not structure.is_proved:
        return compute()
    config = gpflow.config.config()
    variables = [p.unconstrained_variable for p in structure.parameters]
    # This reads in half the time of `value()`, which also informs gradient tapes.
    read = [tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=v.dtype) for v in variables]
    held = [np.asarray(memoryview(value)) for value in read]
    key = structure.key, config.float, config.jitter, *(memory.ctypes.data for memory in held)
    with _LOCK:
        known = _KNOWN.get(model, {}).get(name)
    if known is None or known[0] != key:
        known = key, held, compute()
        with _LOCK:
            _KNOWN.setdefault(model, {})[name] = known
    answer: T = known[-1]
    return answer
