"""One trace per structure, however many models.

`tf.function` keeps a graph for every Python object it has seen, so a process that fits a thousand
models keeps a thousand graphs. Here a function of GPflow modules (kernels, likelihoods) is traced
once per *structure* - classes, active dimensions, transforms, and shapes without N, M and D - and
the values of the parameters are inputs. Two models that differ only in their numbers share a graph.

A graph freezes everything else that Python code reads: class attributes, globals, closures, the
state of objects. Library code reads none of these. If a module contains a user's class or function,
its graph is not shared, but traced again for every fit (`one_fit`); outside of fits, the code runs
without a graph.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import gpflow
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import ShapeCheckingState, get_enable_check_shapes, set_enable_check_shapes
from check_shapes.exceptions import ShapeMismatchError

from .structure import look_into

try:
    from tensorflow.python.eager.record import could_possibly_record
except ImportError:  # TensorFlow may move it, as it is not public; calls then take longer

    def could_possibly_record() -> bool:
        """:return: True: a tape may be recording."""
        return True


#: The number of graphs kept per function; the least recently used graph is dropped first.
_CACHE_SIZE = 16
#: Held during lookup and tracing of a graph: scikit-learn's users fit in threads, and tracing
#: switches on shape checks in all threads.
_TRACING = threading.RLock()
#: This package's directory: errors about shapes declared in the package name a file there.
_PACKAGE = str(Path(__file__).parent.parent)
#: Graphs of the fit in progress; other fits must not use them.
_OF_THIS_FIT: ContextVar[dict[Hashable, Any] | None] = ContextVar("of_this_fit", default=None)


@contextlib.contextmanager
def one_fit() -> Iterator[None]:
    """Inside this context, user code is traced once. Nested contexts join the outermost."""
    outer = _OF_THIS_FIT.get()
    before = _OF_THIS_FIT.set({} if outer is None else outer)
    try:
        yield
    finally:
        _OF_THIS_FIT.reset(before)


def first_in_fit(key: Hashable) -> bool:
    """:return: True unless this key was requested before in the current `one_fit`."""
    seen = _OF_THIS_FIT.get()
    is_first = seen is None or key not in seen
    if seen is not None:
        seen[key] = None
    return is_first


@contextlib.contextmanager
def _checked_shapes() -> Iterator[None]:
    """
    Check shapes in graphs too, during tracing, at no cost per step; GPflow checks only outside of
    graphs. If the user has switched checks off, they stay off.
    """
    before = get_enable_check_shapes()
    if before is ShapeCheckingState.EAGER_MODE_ONLY:
        set_enable_check_shapes(ShapeCheckingState.ENABLED)
    try:
        yield
    finally:
        set_enable_check_shapes(before)


def shapes_of(
    parts: Sequence[Any], names: Sequence[str | None], *, any_width: bool = False
) -> list[tuple[tuple[int | None, ...], tf.DType]]:
    """
    :param parts: tensors, or tensors in structures of tuples.
    :param names: names of the parts; the last parts may have none.
    :param any_width: whether the number of columns of X may vary.
    :return: shapes and types of the leaves.
    """
    shapes = []
    for part, name in zip_longest(parts, names[: len(parts)]):
        if isinstance(part, (list, tuple)):
            fields = getattr(part, "_fields", [None] * len(part))
            shapes += shapes_of(part, fields, any_width=any_width)
        else:
            shapes.append((_open_shape(part, name, any_width), part.dtype))
    return shapes


def _open_shape(tensor: Any, name: str | None, any_width: bool) -> tuple[int | None, ...]:
    """
    :return: the shape, where the number of rows and M may vary. These are fixed: the last axis of a
        vector or matrix; the first axis of arrays with three or more axes, and of h and c [L, M].
        With `any_width`, vectors and X may have any shape.
    """
    shape: list[int | None] = [None] * len(tensor.shape)
    if shape and not (any_width and (name == "X" or len(shape) == 1)):
        fixed = 0 if len(shape) > 2 or name in ("h", "c") else -1
        shape[fixed] = tensor.shape[fixed]
    return tuple(shape)


def concrete(function: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """
    Trace without AutoGraph if possible: rewriting the sources of GPflow and TFP took nine tenths of
    the first fit's time.

    :return: the graph of a function.
    """

    plain = tf.function(function, autograph=False)
    try:
        with _TRACING, _checked_shapes():
            return plain.get_concrete_function(*specs)
    except tf.errors.OperatorNotAllowedInGraphError:  # a kernel that branches on a tensor
        return tf.function(function, autograph=True).get_concrete_function(*specs)
    except ShapeMismatchError as error:
        if _PACKAGE in str(error):
            raise
        return plain.get_concrete_function(*specs)  # GPflow's checks may reject networks


def while_loop(goes_on: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
    """:return: the last state. Unlike `tf.while_loop`, it takes any objects outside of graphs."""
    if not tf.executing_eagerly():
        return tf.while_loop(goes_on, body, state)
    while goes_on(*state):
        state = body(*state)
    return state


class Compiled:
    """A function `function(*modules, *tensors)`, traced once per structure of its modules.

    Use this as a decorator at module level; `bind` returns the callable for given modules. A bound
    function reads the parameters at every call::

        project = Compiled(_project).bind(prior)
        features = project(X, Lz)

    Arguments and results are tensors in any structure of tuples, such as NamedTuples.
    """

    def __init__(self, function: Callable[..., Any], *, rebuilds: bool = False) -> None:
        """
        :param function: the function to compile.
        :param rebuilds: call it as `function(bound, values, *tensors)` with its `Bound`, so that
            the function can change the unconstrained `values`, as learning does.
        """
        self.function = function
        self.rebuilds = rebuilds
        #: Names of the arguments.
        self.names = tuple(inspect.signature(function).parameters)
        self._graphs: OrderedDict[Hashable, Any] = OrderedDict()
        #: Number of traces of the function, for tests.
        self.num_traces = 0
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    def bind(self, *modules: Any) -> Bound:
        """
        :param modules: GPflow modules (or any object): the function's first arguments.
        :return: a callable of the remaining arguments, all tensors in structures of tuples.
        """
        return Bound(self, modules)

    def __call__(self, *arguments: Any) -> Any:
        """Call a function that takes no modules."""
        return self.bind()(*arguments)

    def __reduce__(self) -> str:
        """Pickle by name: another process uses its own graphs."""
        found = vars(sys.modules[self.__module__]).items()
        name = next((name for name, value in found if value is self), None)
        if name is None:
            what = f"{self.__module__}.{self.function.__name__}"
            raise TypeError(f"{what} cannot be sent to another process: it has no name")
        return name


class Bound:
    """A `Compiled` function with its modules; can be sent to another process."""

    def __init__(self, compiled: Compiled, modules: tuple[Any, ...]) -> None:
        self._compiled = compiled
        self.modules = modules
        self._names = compiled.names[len(modules) - compiled.rebuilds :]
        self._structure = look_into(modules)
        self._key = (self._structure.key, gpflow.config.default_float())

    def at_present(self) -> Callable[..., Any]:
        """:return: the bound function at the parameters' present values, even if they change."""
        return partial(self, values=self._structure.values())

    def __call__(self, *arguments: Any, values: list[tf.Tensor] | None = None) -> Any:
        """:param arguments: tensors in structures of tuples."""
        values = self._structure.values() if values is None else values
        tensors = [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(arguments)]
        arguments = tf.nest.pack_sequence_as(arguments, tensors)
        found = self._graph(arguments)
        if found is not None:
            graph, result = found
            if not tf.executing_eagerly() or could_possibly_record():
                return tf.nest.pack_sequence_as(result, graph(values, *tensors))
            # Without a tape, this is the same call in two thirds of the time.
            flat = graph.inference_fn.call_flat(*values, *tensors, *graph.captured_inputs)
            return tf.nest.pack_sequence_as(result, flat)
        first = (self, values) if self._compiled.rebuilds else self.modules
        return self._compiled.function(*first, *arguments)

    def _graph(self, arguments: tuple[Any, ...]) -> Any:
        """
        :return: the graph for such arguments and the structure of its result, traced if new; None
            if models must not share the graph, and no fit is in progress.
        """
        is_shared = self._structure.is_proved
        graphs: Any = self._compiled._graphs if is_shared else _OF_THIS_FIT.get()
        if graphs is None:
            return None
        shapes = shapes_of(arguments, self._names, any_width=self._structure.any_width)
        key = (self._compiled, self._key, *shapes)
        with _TRACING:
            if key not in graphs:
                graphs[key] = self._trace(arguments, shapes)
            if is_shared:
                graphs.move_to_end(key)
                while len(graphs) > _CACHE_SIZE:
                    graphs.popitem(last=False)
            return graphs[key]

    def _trace(self, arguments: tuple[Any, ...], shapes: list[Any]) -> tuple[Any, Any]:
        """:return: a concrete function of flat lists, and the structure of its result."""
        compiled = self._compiled
        results = []

        def traced(values: list[tf.Tensor], *tensors: tf.Tensor) -> Any:
            compiled.num_traces += 1
            packed = tf.nest.pack_sequence_as(arguments, tensors)
            first = (self, values) if compiled.rebuilds else self.rebuild(values)
            result = compiled.function(*first, *packed)
            results.append(tf.nest.map_structure(lambda _: None, result))
            return tf.nest.flatten(result)

        raw_specs = [
            tf.TensorSpec(shape, p.unconstrained_variable.dtype)
            for p, shape in zip(self._structure.parameters, self._structure.shapes)
        ]
        specs = [tf.TensorSpec(shape, dtype) for shape, dtype in shapes]
        return concrete(traced, [raw_specs, *specs]), results[-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return Bound, (self._compiled, self.modules)

    def rebuild(self, values: list[tf.Tensor]) -> tuple[Any, ...]:
        """
        :param values: unconstrained, in the order of `Structure.parameters`.
        :return: copies of the modules with these values of their parameters.
        """
        # The memo replaces parameters by tensors, keeps distributions (TFP's
        # `TransformedDistribution` cannot be copied), and copies only the list of objects tracked
        # by TensorFlow, which may include a parameter that no attribute holds.
        parameters = self._structure.parameters
        if not parameters:
            return self.modules
        parts = tf.nest.flatten(self.modules)
        memo = {id(p): p for p in parts if isinstance(p, tfp.distributions.Distribution)}
        memo |= {id(book): copy.copy(book) for book in self._structure.books}
        for parameter, value in zip(parameters, values):
            transform = parameter.transform
            memo[id(parameter)] = value if transform is None else transform.forward(value)
        return copy.deepcopy(self.modules, memo)
