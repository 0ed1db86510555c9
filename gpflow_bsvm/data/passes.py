"""The only two loops over data: every fit, bound, gradient and prediction goes through them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from .prefetch import closed_at_end
from .sources import Source


def sum_over(source: Source, function: Callable[..., Any], *along: Any) -> Any:
    """
    :param function: of a chunk, and of its part of each of `along`; returns tensors in any
        structure of tuples.
    :param along: tensors with a row for every row of the source, in any structure.
    :return: the sum over all chunks, in the structure that `function` returns.
    """
    total = None
    with closed_at_end(_each(source, function, along)) as parts:
        for part in parts:
            total = part if total is None else tf.nest.map_structure(tf.add, total, part)
    return total


def map_over(source: Source, function: Callable[..., Any], *along: Any) -> Any:
    """
    As `sum_over`, for a `function` that returns rows.

    :return: the rows of all chunks, one after the other.
    """
    with closed_at_end(_each(source, function, along)) as found:
        parts = list(found)
    return tf.nest.map_structure(lambda *rows: tf.concat(rows, 0), *parts)


def _each(source: Source, function: Callable[..., Any], along: tuple[Any, ...]) -> Iterator[Any]:
    start = 0
    with closed_at_end(source.chunks()) as chunks:
        for chunk in chunks:
            part = slice(start, start + num_rows(chunk))
            yield function(chunk, *tf.nest.map_structure(operator.itemgetter(part), along))
            start = part.stop


def num_rows(chunk: Any) -> int:
    """:return: rows of a chunk: those of its first column."""
    return int(tf.nest.flatten(chunk)[0].shape[0])
