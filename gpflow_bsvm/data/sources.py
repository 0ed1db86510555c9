"""Where minibatches come from: arrays in memory, or a `tf.data.Dataset`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_data, check_weights, check_width, data_of
from ..engine.projected_data import EngineModel

#: An ELBO is estimated from so many rows at least.
_ELBO_ROWS = 500

#: A block of consecutive minibatches: rows that hold them, and index [T, B] into these rows.
Block = tuple[Any, AnyNDArray]


class Rowwise(Protocol):
    """Data that can be had by row numbers, as a `View`."""

    def __len__(self) -> int:
        """:return: the number of rows."""

    def take(self, index: AnyNDArray) -> tuple[Any, AnyNDArray]:
        """:return: rows that hold those of `index`, and where in them each stands."""


#: X [N, D], Y [N, P] and weight [N, 1] -> these rows as an algorithm wants them.
Viewer = Callable[[AnyNDArray, AnyNDArray, AnyNDArray], Rowwise]


def source_of(
    model: EngineModel, data: Any, sample_weight: Any, batch_size: int, seed: int, viewer: Viewer
) -> tuple[Source, float]:
    """
    :param data: X and Y, or a batched `tf.data.Dataset`.
    :return: where minibatches come from, and how many data there are in all.
    :raise ValueError: for bad data, or a dataset without `num_data`.
    """
    data = data_of(model, data)
    if isinstance(data, tf.data.Dataset):
        if model.num_data is None:
            raise ValueError("for a tf.data.Dataset the model needs num_data, the rows in all")
        if sample_weight is not None:
            raise ValueError("with a tf.data.Dataset, weights are its third component")
        return DatasetSource(model, data, viewer), float(model.num_data)
    X, Y = check_data(model.likelihood, *data)
    check_width(model, X, Y)
    weight = check_weights(sample_weight, len(X))
    num_data = len(X) if model.num_data is None else float(model.num_data)
    return ArraySource(viewer(X, Y, weight), batch_size, seed), num_data


class Source(Protocol):
    """Yields minibatches without end."""

    def blocks(self, num_batches: int) -> Iterator[Block]:
        """:return: blocks of at most `num_batches` batches of equal size."""


class ArraySource:
    """Minibatches from arrays: each epoch is a fresh permutation of the rows."""

    def __init__(self, view: Rowwise, batch_size: int, seed: int) -> None:
        self._view, self._batch_size = view, min(batch_size, len(view))
        self._random = np.random.default_rng(seed)
        self._waiting = np.empty(0, dtype=np.int64)

    def blocks(self, num_batches: int) -> Iterator[Block]:
        """Yield blocks without end."""
        while True:
            needed = num_batches * self._batch_size
            parts = [self._waiting]
            while sum(map(len, parts)) < needed:
                parts.append(self._random.permutation(len(self._view)))
            order = np.concatenate(parts)
            self._waiting = order[needed:]
            yield self._view.take(order[:needed].reshape(num_batches, self._batch_size))


class DatasetSource:
    """
    Minibatches (X, Y) or (X, Y, sample_weight) as a batched `tf.data.Dataset` gives them, started
    anew when it ends. Consecutive batches of equal size make a block, which is projected at once.
    """

    def __init__(self, model: EngineModel, dataset: tf.data.Dataset, viewer: Viewer) -> None:
        self._model, self._dataset, self._viewer = model, dataset, viewer

    def blocks(self, num_batches: int) -> Iterator[Block]:
        """Yield blocks without end; raise ValueError for a dataset without batches."""
        group: list[tuple[AnyNDArray, ...]] = []
        for batch in self._batches():
            if group and len(batch[0]) != len(group[0][0]):
                yield self._block(group)
                group = []
            group.append(batch)
            if len(group) == num_batches:
                yield self._block(group)
                group = []

    def _batches(self) -> Iterator[tuple[AnyNDArray, ...]]:
        while True:
            count = 0
            for element in self._dataset.as_numpy_iterator():
                count += 1
                yield self._checked(element)
            if count == 0:
                raise ValueError("the dataset is empty: it must yield batches (X, Y)")

    def _checked(self, element: Any) -> tuple[AnyNDArray, ...]:
        if not isinstance(element, tuple) or len(element) not in (2, 3):
            raise ValueError("a dataset must yield (X, Y) or (X, Y, sample_weight), in batches")
        X, Y = check_data(self._model.likelihood, *element[:2], minibatch=True)
        check_width(self._model, X, Y)
        weight = element[2] if len(element) == 3 else None
        return X, Y, check_weights(weight, len(X), minibatch=True)

    def _block(self, group: list[tuple[AnyNDArray, ...]]) -> Block:
        X, Y, weight = (np.concatenate(column) for column in zip(*group))
        index = np.arange(len(X)).reshape(len(group), -1)
        return self._viewer(X, Y, weight).take(index)


def latest(index: AnyNDArray) -> AnyNDArray:
    """
    :param index: [T, B], row numbers of minibatches.
    :return: those of the last batches, of some 500 rows: what an ELBO is estimated from.
    """
    number = -(-_ELBO_ROWS // index.shape[1])
    return np.asarray(index[-number:].reshape(-1))
