"""Where an attack may go: a ball around x, in a box; and its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_choice, check_number

#: The box of an attack: limits of every column, or of all; None: there are none.
Clip = tuple[Any, Any] | None


@dataclass(frozen=True)
class Ball:
    """
    All x' with |x' - x| <= epsilon in the norm, and low <= x' <= high.

    :ivar epsilon: radius, not negative.
    :ivar norm: np.inf or 2, over all but the first axis.
    :ivar clip: (low, high), numbers or arrays that fit a row; None: no limits.
    """

    epsilon: float
    norm: float = np.inf
    clip: Clip = (0.0, 1.0)

    def check(self, X: AnyNDArray) -> None:
        """:raise ValueError: for a radius below 0, another norm, or an X outside of the box."""
        check_number(0, epsilon=self.epsilon)
        check_choice((np.inf, 2), norm=self.norm)
        if not np.isfinite(self.epsilon):
            raise ValueError(f"epsilon must be finite, got {self.epsilon}")
        if self.clip is None:
            return
        low, high = (np.asarray(limit, X.dtype) for limit in self.clip)
        inside = (low <= X) & (high >= X)
        if not inside.all():
            where = tuple(np.argwhere(~inside)[0])
            raise ValueError(
                f"X must lie in clip = {_shown(low)} to {_shown(high)}, got {X[where]} in row "
                f"{where[0]}: give the limits of your columns, clip=(low, high), or clip=None"
            )

    def ascend(self, X: tf.Tensor, gradient: tf.Tensor, size: float) -> tf.Tensor:
        """:return: the step of that length from X that a linear function grows most by."""
        if self.norm == np.inf:
            return X + size * tf.sign(gradient)
        return X + size * tf.math.divide_no_nan(gradient, _length(gradient))

    def project(self, moved: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """:return: the nearest to `moved` in the ball around X, then in the box."""
        if self.norm == np.inf:
            moved = tf.clip_by_value(moved, X - self.epsilon, X + self.epsilon)
        else:
            length = _length(moved - X)
            shrink = tf.math.divide_no_nan(tf.minimum(length, self.epsilon), length)
            moved = X + shrink * (moved - X)
        if self.clip is None:
            return moved
        low, high = (tf.convert_to_tensor(limit, X.dtype) for limit in self.clip)
        return tf.minimum(tf.maximum(moved, low), high)

    def draw(self, shape: tuple[int, ...], seed: int) -> AnyNDArray:
        """:return: random moves inside of the ball, uniform by volume."""
        random = np.random.default_rng(seed)
        if self.norm == np.inf:
            return random.uniform(-self.epsilon, self.epsilon, shape)
        moves = random.normal(size=(shape[0], int(np.prod(shape[1:]))))
        moves /= np.linalg.norm(moves, axis=1, keepdims=True)
        radius = random.uniform(size=(shape[0], 1)) ** (1 / moves.shape[1])
        return np.reshape(self.epsilon * radius * moves, shape)


def _length(rows: tf.Tensor) -> tf.Tensor:
    """:return: Euclidean norms of rows [N, ...], [N, 1, ...]."""
    axes = list(range(1, len(rows.shape)))
    # Scaled, so that the squares of tiny gradients do not underflow.
    largest = tf.reduce_max(tf.abs(rows), axis=axes, keepdims=True)
    scaled = tf.math.divide_no_nan(rows, largest)
    return largest * tf.sqrt(tf.reduce_sum(tf.square(scaled), axis=axes, keepdims=True))


def _shown(limit: AnyNDArray) -> str:
    return f"{limit}" if limit.ndim == 0 else f"[{limit.min()}, ...]"
