r"""An attack by the gradient: a small move of x that makes its own label less probable.

    fast gradient sign    x' = clip(x + epsilon sign grad_x l(x, y))    (Goodfellow et al. 2015)

with l = -log p(y | x), the predictive log density of the whole model: through its latent functions,
its kernel, and a network in it. Other attacks are those of the Adversarial Robustness Toolbox, see
`toolbox`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_number, check_whole
from ..data.batch import Batch
from ..data.passes import map_over
from ..data.sources import ArraySource
from .ensembles import target_of
from .targets import Target

#: Limits of every column, or of all; None: there are none.
Clip = tuple[Any, Any] | None
#: Rows that are looked at together: a gradient keeps all that was computed on the way to the loss.
CHUNK_ROWS = 256
#: Probabilities that differ by less are those of a model that knows nothing.
_EVEN = 1e-9


def loss_gradient(target: Any, X: Any, y: Any, *, chunk_rows: int = CHUNK_ROWS) -> AnyNDArray:
    """
    The gradient of -log p(y | x) by x, row by row.

    :param target: a model, a classifier, a network or several, see `ensembles.target_of`.
    :param X: [N, D], floats; for a network [N, ...] in any shape that it takes.
    :param y: [N] or [N, 1], labels: 0..C-1, of a `BSVMClassifier` its own.
    :param chunk_rows: rows that are looked at together.
    :return: the gradient, as X.
    :raise ValueError: for bad X, labels that are unknown or of another length, and a gradient that
        is not finite.
    :raise TypeError: for a target that cannot be differentiated.
    """
    rows = _opened(target, X, y, chunk_rows)
    return np.asarray(map_over(rows.source, lambda part: _gradient(rows.target, part.X, part.Y)))


def fgsm(
    target: Any,
    X: Any,
    y: Any,
    epsilon: float,
    *,
    clip: Clip = (0.0, 1.0),
    chunk_rows: int = CHUNK_ROWS,
) -> AnyNDArray:
    """
    The fast gradient sign method: one step of length epsilon in every column.

    Arguments and errors as in `loss_gradient`, and

    :param epsilon: length of the step, in units of X.
    :param clip: limits of X, numbers or [D] each; None: there are none.
    :return: the moved X. A row without a gradient stays where it is, and a warning tells.
    :raise ValueError: for a negative epsilon, or X outside of `clip`.
    """
    check_number(0, epsilon=epsilon)
    if not np.isfinite(epsilon):
        raise ValueError(f"epsilon must be finite, got {epsilon}")
    X = target_of(target).check_inputs(X)
    _check_inside(X, clip)

    def move(part: Batch) -> tf.Tensor:
        moved = part.X + epsilon * tf.sign(_gradient(rows.target, part.X, part.Y))
        return moved if clip is None else tf.clip_by_value(moved, *_limits(clip, part.X.dtype))

    rows = _opened(target, X, y, chunk_rows)
    return np.asarray(map_over(rows.source, move))


def _limits(clip: Clip, dtype: Any) -> list[tf.Tensor]:
    return [tf.convert_to_tensor(limit, dtype) for limit in clip or ()]


def _check_inside(X: AnyNDArray, clip: Clip) -> None:
    """:raise ValueError: for an X outside of its limits."""
    if clip is None:
        return
    low, high = (np.asarray(limit, X.dtype) for limit in clip)
    outside = np.argwhere(~((low <= X) & (high >= X)))
    if len(outside):
        where = tuple(outside[0])
        raise ValueError(
            f"X must lie in clip = {_shown(low)} to {_shown(high)}, got {X[where]} in row "
            f"{where[0]}: give the limits of your columns, clip=(low, high), or clip=None"
        )


def _shown(limit: AnyNDArray) -> str:
    return f"{limit}" if limit.ndim == 0 else f"[{limit.min()}, ...]"


class _Rows(NamedTuple):
    """What is attacked, checked."""

    target: Target
    source: ArraySource  #: Y [N, 1] has the numbers of the labels


def class_probabilities(target: Any, X: Any, *, chunk_rows: int = CHUNK_ROWS) -> AnyNDArray:
    """
    Arguments and errors as in `loss_gradient`.

    :return: [N, C], of any target, so that models, networks and ensembles can be compared.
    """
    target = target_of(target)
    X = target.check_inputs(X)
    source = _source(X, np.zeros(len(X), int), chunk_rows)
    return np.asarray(map_over(source, lambda part: target.probabilities(part.X)))


def number_labels(target: Any, X: AnyNDArray, y: Any) -> AnyNDArray:
    """
    :return: [N], the place of each label among the columns of the target's probabilities.
    :raise ValueError: for labels that are unknown or of another length.
    """
    target, y = target_of(target), np.asarray(y)
    if y.shape not in ((len(X),), (len(X), 1)):
        raise ValueError(
            f"y must be {len(X)} labels, one for each row of X, got shape {y.shape}"
            + "; of one-hot rows give y.argmax(axis=1)" * (y.ndim == 2 and len(y) == len(X))
        )
    num_classes = int(target.probabilities(tf.convert_to_tensor(X[:1])).shape[1])
    return target.number(y.reshape(-1), num_classes)


def _opened(target: Any, X: Any, y: Any, chunk_rows: int) -> _Rows:
    target = target_of(target)
    X = target.check_inputs(X)
    return _Rows(target, _source(X, number_labels(target, X, y), chunk_rows))


def _source(X: AnyNDArray, label: AnyNDArray, chunk_rows: int) -> ArraySource:
    check_whole(1, chunk_rows=chunk_rows)
    return ArraySource(X, label[:, None], np.ones((len(X), 1)), chunk_rows)


def _gradient(target: Target, X: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    """:return: the gradient of -log p by X, finite."""
    gradient = differentiate(lambda X: -target.log_density(X, label[:, 0]), X)
    largest = np.abs(gradient.numpy()).reshape(len(X), -1).max(axis=1)
    if not np.isfinite(largest).all():
        raise ValueError(
            "the gradient of the log density is not finite at a row: the target overflows there; "
            "scale X"
        )
    if still := int((largest == 0).sum()):
        warnings.warn(
            f"{still} of {len(X)} rows have the gradient 0 and stay where they are: the target "
            + _why_still(target, X),
            stacklevel=2,
        )
    return gradient


def _why_still(target: Target, X: tf.Tensor) -> str:
    if np.ptp(target.probabilities(X).numpy(), axis=-1).max() < _EVEN:
        return "gives all classes the same probability there: was it fitted?"
    return (
        "is saturated there (its probability is 1 to rounding), not robust; of a network give the "
        "logits"
    )


def differentiate(function: Callable[[tf.Tensor], tf.Tensor], X: tf.Tensor) -> tf.Tensor:
    """
    :param function: of X, row by row.
    :return: its gradient by X, as X.
    :raise TypeError: if it has none.
    """
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(X)
        value = function(X)
    gradient = tape.gradient(value, X)
    if gradient is None:
        raise TypeError(
            "the target has no gradient by X: somewhere in it a tensor became a NumPy array or an "
            "integer; it must be made of operations of TensorFlow alone"
        )
    return gradient
