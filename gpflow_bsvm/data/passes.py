"""The two loops over data, used by all fits, bounds, gradients and predictions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from .batch import joined
from .sources import Source, closed_at_end


def add(one: Any, other: Any) -> Any:
    """:return: the sum of tensors in equal structures."""
    return tf.nest.map_structure(tf.add, one, other)


def sum_over(
    source: Source,
    function: Callable[..., Any],
    along: Any = (),
    *,
    add: Callable[[Any, Any], Any] = add,
) -> Any:
    """
    :param function: a function of a chunk, and of its part of `along` if given, that returns
        tensors in any structure of tuples. It should hold little data and no state, because a
        cluster receives a copy.
    :param along: tensors with a row for every row of the source, in any structure.
    :param add: adds two results that are not tensors, in any order.
    :return: the sum over all chunks, structured like the function's results.
    """
    if source.remote is not None:
        return source.remote.sum(function, along, add)
    with closed_at_end(_each(source, function, along)) as parts:
        return functools.reduce(add, parts)


def map_over(source: Source, function: Callable[..., Any], along: Any = ()) -> Any:
    """
    As in `sum_over`, for a `function` that returns rows.

    :return: the rows of all chunks, in order.
    """
    if source.remote is not None:
        return source.remote.map(function, along)
    with closed_at_end(_each(source, function, along)) as found:
        return joined(list(found))


def _each(source: Source, function: Callable[..., Any], along: Any) -> Iterator[Any]:
    start = 0
    rows = tf.nest.flatten(along)
    with closed_at_end(source.chunks()) as chunks:
        for chunk in chunks:
            stop = start + tf.nest.flatten(chunk)[0].shape[0]
            beside = along
            if rows and stop - start < len(rows[0]):
                beside = tf.nest.map_structure(operator.itemgetter(slice(start, stop)), along)
            yield function(chunk, beside) if rows else function(chunk)
            start = stop
