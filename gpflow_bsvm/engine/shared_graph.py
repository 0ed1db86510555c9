"""One trace per structure, however many models.

`tf.function` keeps a graph for every Python object that it has seen, so a process that fits a
thousand models keeps a thousand graphs. Here a function of GPflow modules (kernels, likelihoods)
is traced once per *structure* - classes, shapes, active dimensions, transforms - and the values
of the parameters come in as tensors. Two models that differ only in their numbers share a graph.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

#: Attributes in which TensorFlow keeps its own books: they differ between equal modules.
_BOOKKEEPING = frozenset({"_name", "_name_scope", "_scope_name", "_obj_reference_counts_dict"})

#: Told apart by what they are, not by their attributes.
_FUNCTIONS = (
    type,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
)

#: Graphs kept per function; the least recently used one goes first.
_CACHE_SIZE = 64


class _Unshareable(Exception):
    """The module holds state that cannot be passed in as a parameter (raw variables, layers)."""


class _Structure:
    """
    Walk a module: its hashable structure, and its parameters in the order of the walk. Other state
    (raw variables, Keras layers) raises `_Unshareable`, or with `by_identity` stands for itself.
    """

    def __init__(self, by_identity: bool = False) -> None:
        self._by_identity = by_identity
        self.parameters: list[gpflow.Parameter] = []
        self._seen: dict[int, int] = {}

    def of(self, value: Any) -> Hashable:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, enum.Enum)):
            return (type(value), value)
        if isinstance(value, (np.dtype, tf.DType, tf.TensorShape)):
            return (type(value).__name__, str(value))
        if isinstance(value, slice):
            return ("slice", value.start, value.stop, value.step)
        if isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
            value = value.numpy()  # a constant, such as the nodes of a quadrature rule
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            return ("array", value.shape, value.dtype.str, value.tobytes())
        if id(value) in self._seen:  # a parameter or module used twice is part of the structure
            return ("again", self._seen[id(value)])
        return self._of_object(value)

    def _of_object(self, value: Any) -> Hashable:
        if isinstance(value, (list, tuple)):
            return ("sequence", *(self.of(item) for item in value))
        if isinstance(value, Mapping):
            return ("mapping", *((str(key), self.of(value[key])) for key in sorted(value, key=str)))
        self._seen[id(value)] = len(self._seen)
        if isinstance(value, gpflow.Parameter):
            self.parameters.append(value)
            if self._by_identity:
                return self._opaque(value)
            shape = tuple(_open(value.unconstrained_variable.shape))
            return ("parameter", shape, value.dtype.name, self.of(value.transform))
        if isinstance(value, (tfp.bijectors.Bijector, tfp.distributions.Distribution)):
            return (type(value), self.of(value.parameters))
        if isinstance(value, (tf.Variable, tf.Tensor)):
            return self._opaque(value)
        if isinstance(value, _FUNCTIONS):
            return ("function", value)
        keras = any("keras" in base.__module__ for base in type(value).__mro__)
        if keras or not hasattr(value, "__dict__"):
            return self._opaque(value)
        return (type(value), self._of_attributes(value))

    def _opaque(self, value: Any) -> Hashable:
        if not self._by_identity:
            raise _Unshareable
        return ("identity", id(value))

    def _of_attributes(self, value: Any) -> Hashable:
        names = sorted(
            name
            for name in vars(value)
            if name not in _BOOKKEEPING and not name.startswith("_self_")
        )
        return tuple((name, self.of(vars(value)[name])) for name in names)


def _key(modules: tuple[Any, ...]) -> tuple[Hashable, list[gpflow.Parameter]]:
    """
    :return: the structure of `modules` and their parameters; modules with other state (a Keras
        layer, a raw variable) share with no others, and their variables are captured as they are.
    """
    for by_identity in (False, True):
        walk = _Structure(by_identity)
        with contextlib.suppress(_Unshareable, TypeError, RecursionError):
            key = walk.of(modules)
            hash(key)
            return (("identity", *modules, key), []) if by_identity else (key, walk.parameters)
    return ("identity", *modules), []


def parameters_of(*modules: Any) -> list[gpflow.Parameter]:
    """
    :return: the parameters of `modules` in the order in which a `Compiled` function passes them;
        none for modules with other state, which no function can move.
    """
    return _key(modules)[1]


def _distributions(value: Any) -> list[Any]:
    """:return: the distributions in a plan: a tuple of tuples, all the way down."""
    if isinstance(value, tfp.distributions.Distribution):
        return [value]
    return (
        [found for item in value for found in _distributions(item)]
        if isinstance(value, tuple)
        else []
    )


def _raw(parameter: gpflow.Parameter) -> tf.Tensor:
    return tf.convert_to_tensor(parameter.unconstrained_variable)


def _open(shape: tf.TensorShape) -> list[int | None]:
    """The first dimension of matrices stays open: another number of inducing points, same graph."""
    return [None, *shape[1:]] if len(shape) == 2 else list(shape)


def _spec(tensor: tf.Tensor) -> tf.TensorSpec:
    """The last dimension (inputs, latents, inducing points) stays fixed, all others are open."""
    rank = len(tensor.shape)
    shape = [None] * (rank - 1) + [tensor.shape[-1]] if rank else []
    return tf.TensorSpec(shape, tensor.dtype)


class Compiled:
    """A function `function(*modules, *tensors)`, traced once per structure of its modules.

    Use as a decorator at module level; `bind` gives the callable for some modules. The parameters
    are read at every call, so that a bound function follows their values::

        project = Compiled(_project).bind(kernel, inducing_variable)
        A = project(X)
    """

    def __init__(self, function: Callable[..., Any], *, rebuilds: bool = False) -> None:
        """
        :param function: to be compiled.
        :param rebuilds: call it as `function(rebuild, values, *tensors)`: `rebuild(values)` are the
            modules with the unconstrained `values`, in the order of `parameters_of`, so that the
            function may move them, as a loop that learns does.
        """
        self._function, self._rebuilds = function, rebuilds
        self._graphs: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.RLock()  # scikit-learn's users fit in threads
        #: How often the function was traced, for tests and for the curious.
        self.num_traces = 0
        self.__doc__ = function.__doc__

    def bind(self, *modules: Any) -> Callable[..., Any]:
        """
        :param modules: GPflow modules (or any object) that come first in the function's arguments.
        :return: a callable of the remaining arguments, all tensors.
        """
        structure, parameters = _key(modules)
        structure = (structure, gpflow.config.default_float())

        def call(*tensors: Any) -> Any:
            tensors = tuple(tf.convert_to_tensor(tensor) for tensor in tensors)
            key = (structure, *((len(t.shape), t.shape[-1:], t.dtype) for t in tensors))
            graph = self._graph(key, modules, parameters, tensors)
            return graph([_raw(parameter) for parameter in parameters], *tensors)

        return call

    def __call__(self, *tensors: Any) -> Any:
        """Call a function that takes no modules."""
        return self.bind()(*tensors)

    def _graph(
        self,
        key: Hashable,
        modules: tuple[Any, ...],
        parameters: list[gpflow.Parameter],
        tensors: tuple[tf.Tensor, ...],
    ) -> Any:
        with self._lock:
            if key not in self._graphs:
                self._graphs[key] = self._trace(modules, parameters, tensors)
            self._graphs.move_to_end(key)
            while len(self._graphs) > _CACHE_SIZE:
                self._graphs.popitem(last=False)
            return self._graphs[key]

    def _trace(
        self,
        modules: tuple[Any, ...],
        parameters: list[gpflow.Parameter],
        tensors: tuple[tf.Tensor, ...],
    ) -> Any:
        def rebuild(values: list[tf.Tensor]) -> tuple[Any, ...]:
            constrained = {
                id(parameter): value
                if parameter.transform is None
                else parameter.transform.forward(value)
                for parameter, value in zip(parameters, values)
            }
            # deepcopy takes what the memo has: here tensors in the place of the parameters, and
            # distributions as they are (TFP's `TransformedDistribution` cannot be copied).
            memo = {**constrained, **{id(prior): prior for prior in _distributions(modules)}}
            return copy.deepcopy(modules, memo) if parameters else modules

        def traced(values: list[tf.Tensor], *tensors: tf.Tensor) -> Any:
            self.num_traces += 1
            if self._rebuilds:
                return self._function(rebuild, values, *tensors)
            return self._function(*rebuild(values), *tensors)

        raw = [parameter.unconstrained_variable for parameter in parameters]
        raw_specs = [tf.TensorSpec(_open(variable.shape), variable.dtype) for variable in raw]
        specs = [_spec(tensor) for tensor in tensors]
        return tf.function(traced).get_concrete_function(raw_specs, *specs)
