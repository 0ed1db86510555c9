"""Scaling of columns: a shift and a factor, and logarithms if a column is skewed."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
import tensorflow.experimental.numpy as tnp
from gpflow.base import AnyNDArray
from sklearn import config_context
from sklearn.preprocessing import StandardScaler

from ..data.batch import SparseRows, digest
from ..notices import warn
from ..tables.paths import listed

#: Quantiles of a column. A few values determine its scale if the outer two are less than LEAST_SPAN
#: standard deviations apart, and only a few values (unlike in pixels at an image's edge) are
#: FAR_SPANS such spans away.
MIDDLE = (0.05, 0.5, 0.95)
LEAST_SPAN = 0.1
FAR_SPANS = 10
FEW = 0.01
#: With fewer different floats between its smallest and its largest value, a column is rounded.
FEWEST_STEPS = 1000
#: A column is skewed if the skewness of these quantiles is above `MOST_SKEWNESS` or below
#: -`MOST_SKEWNESS` (an exponential distribution has 2). The number of quantiles is prime, so that
#: they are seldom at the borders between rows.
LEVELS = (np.arange(499) + 0.5) / 499
MOST_SKEWNESS = 3.0
#: Columns with fewer distinct values hold codes or counts, and are only scaled.
FEWEST_VALUES = 10


class ColumnScaler(StandardScaler):
    r"""
    scikit-learn's `StandardScaler`, which also takes logarithms of skewed columns. For a skewed
    column, `mean_` is the median, and `scale_` the mean distance from the median. A scaled value z
    of such a column becomes

        (sign(z) log(1 + |z|) - m) / s.

    Power transforms make many columns more symmetric, but a power below 0 is bounded: all values
    far out become nearly equal.

    :ivar logs_: [2, D], m and s of each column; s = 0 if a column is not skewed. None: no column is
        skewed.
    """

    logs_: AnyNDArray | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ColumnScaler:
        """:return: the scaler, fitted as in scikit-learn, without logarithms."""
        self.logs_ = None
        super().fit(X, y, sample_weight)
        return self

    def take_logs(self, X: AnyNDArray, weight: AnyNDArray) -> None:
        """Let `transform` take logarithms of the skewed columns of X [N, D], the fit's rows."""
        at, quantiles = _skewed((X - self.mean_) / self.scale_, weight)
        if not len(at):
            return
        median = np.median(quantiles, axis=1)
        distance = np.abs(quantiles.T - median).mean(axis=0)
        logs = _log((quantiles.T - median) / distance)
        self.mean_[at] += median * self.scale_[at]
        self.scale_[at] *= distance
        self.logs_ = np.zeros((2, X.shape[1]), gpflow.default_float())
        self.logs_[:, at] = logs.mean(axis=0), logs.std(axis=0)

    def with_logs(self, Z: Any) -> Any:
        """:return: [N, D], the model's input for scaled rows."""
        if self.logs_ is None:
            return Z
        at = self.logs_[1] > 0
        mean, deviation = self.logs_[:, at]
        Z = np.array(Z)
        Z[:, at] = (_log(Z[:, at]) - mean) / deviation
        return Z

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """:return: X as the model's input; arguments are as in scikit-learn."""
        return self.with_logs(super().transform(X, copy=copy))

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """:return: the model's input in units of the columns; arguments are as in scikit-learn."""
        if self.logs_ is not None:
            X = np.array(X)
            at = self.logs_[1] > 0
            mean, deviation = self.logs_[:, at]
            logs = X[:, at] * deviation + mean
            X[:, at] = np.sign(logs) * np.expm1(np.abs(logs))
        return super().inverse_transform(X, copy=copy)


def _skewed(Z: AnyNDArray, weight: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
    """:return: the places of skewed columns, [S], and their quantiles, [S, T]."""
    some = np.flatnonzero([len(np.unique(z)) >= FEWEST_VALUES for z in Z.T])
    found = [symmetric_quantiles(z, weight, LEVELS) for z in Z[:, some].T]
    quantiles = np.reshape(found, (len(some), len(LEVELS)))
    centred = quantiles - quantiles.mean(axis=1, keepdims=True)
    with np.errstate(all="ignore"):  # SciPy's `skew` warns of constant columns
        skewness = (centred**3).mean(axis=1) / (centred**2).mean(axis=1) ** 1.5
    skewed = np.abs(skewness) > MOST_SKEWNESS
    return some[skewed], quantiles[skewed]


def _log(z: Any, library: Any = np) -> Any:
    """:return: sign(z) log(1 + |z|) for z [N, D]."""
    size = library.log1p(library.where(z < 0, -z, z))  # TensorFlow's `abs` has the slope 0 at 0
    return library.where(z < 0, -size, size)


def shift_and_scale(scaler: ColumnScaler | None, D: int) -> tuple[AnyNDArray, AnyNDArray]:
    """:return: shift and scale, [D] each, of the model's input (X - shift) / scale."""
    zeros = np.zeros(D)
    if scaler is None:
        return zeros, zeros + 1
    return scaler.mean_ if scaler.with_mean else zeros, scaler.scale_  # sparse X is only scaled


def model_input(scaler: ColumnScaler | None, X: tf.Tensor) -> tf.Tensor:
    """:return: [N, D], X as the model's input, differentiable."""
    shift, scale = (tf.constant(part, X.dtype) for part in shift_and_scale(scaler, X.shape[1]))
    Z = (X - shift) / scale
    if scaler is None or scaler.logs_ is None:
        return Z
    mean, deviation = scaler.logs_
    skewed = deviation > 0
    return tnp.where(skewed, (_log(Z, tnp) - mean) / np.where(skewed, deviation, 1), Z)


def digest_of(scaler: ColumnScaler | None, D: int) -> str:
    """:return: a digest of the scaling, which tells fits apart."""
    found = getattr(scaler, "logs_", None)
    return digest(np.vstack([*shift_and_scale(scaler, D), *(() if found is None else found)]))


def weighted_quantiles(y: AnyNDArray, weight: AnyNDArray, levels: Any) -> AnyNDArray:
    """:return: [T], quantiles, each of which occurs in y."""
    order = np.argsort(y)
    total = np.cumsum(weight[order])
    wanted = np.multiply(levels, total[-1]) * (1 - 1e-12)  # rounding must not add a row
    return np.asarray(y[order][np.searchsorted(total, wanted)])


def symmetric_quantiles(y: AnyNDArray, weight: AnyNDArray, levels: Any) -> AnyNDArray:
    """:return: [T], quantiles; the mean of two values of y if the quantile is between them."""
    above = -weighted_quantiles(-y, weight, 1 - np.asarray(levels))
    return np.asarray((weighted_quantiles(y, weight, levels) + above) / 2)


def make_scaler(X: Any, weight: AnyNDArray) -> ColumnScaler:
    """:raise ValueError: if a column overflows, or varies so little that its variance is 0."""
    scaler = ColumnScaler(with_mean=not scipy.sparse.issparse(X))
    with np.errstate(all="ignore"):  # an overflow is an error below, not a warning
        scaler.fit(X, sample_weight=weight)
    refuse_overflow(scaler.var_[:, None], "column {} of X is so large that its variance")
    if not scipy.sparse.issparse(X):
        spread = np.ptp(X, axis=0)
        warn_of_offsets(X)
        tiny = (spread > 0) & (spread < np.sqrt(np.finfo(X.dtype).tiny))
        lost = np.flatnonzero(tiny & (scaler.var_ < np.finfo(scaler.var_.dtype).tiny))
        if len(lost):
            raise ValueError(
                f"column {lost[0]} of X is so small that its variance underflows: check the units"
            )
    return scaler


def scale_two_values(scaler: StandardScaler, X: Any) -> None:
    """
    Let `scaler` put the two values of a column (of a sparse column, 0 and another value) 2 apart,
    as if equally frequent. In standard deviations, a rare value would be far from all other rows.

    :param X: [N, D], an array or SciPy's CSR.
    """
    if scipy.sparse.issparse(X):
        low, high = (end.toarray().reshape(-1) for end in (X.min(axis=0), X.max(axis=0)))
        others = X.indices[(X.data != 0) & (X.data != (low + high)[X.indices])]
        two = np.bincount(others, minlength=X.shape[1]) == 0
    else:
        low, high = X.min(axis=0), X.max(axis=0)
        two = ((low == X) | (high == X)).all(axis=0)
    two &= low < high
    scaler.scale_[two] = (high[two] - low[two]) / 2


def warn_of_offsets(X: AnyNDArray, name: str = "X") -> None:
    """Warn of columns so far from 0 that their float type rounds most of their variation away."""
    spread = np.ptp(X, axis=0)
    largest = np.abs(X).max(axis=0)
    eps = np.finfo(X.dtype).eps
    few = (spread < FEWEST_STEPS * eps * largest) & ((spread > 0) | (largest > 1 / eps))
    if len(columns := np.flatnonzero(few)):
        where = f" in column {listed(columns)}" if name == "X" else ""
        warn(
            f"{name} is so far from 0{where} that {X.dtype.name} has fewer than {FEWEST_STEPS} "
            "values between its smallest and its largest: subtract a constant"
        )


def warn_of_extremes(X: Any, Z: Any, names: Any = None) -> None:
    """
    Warn if a few values determine a column's deviation, so that all others become nearly equal.

    :param X: [N, D], rows; Z: the same rows, scaled.
    """
    if scipy.sparse.issparse(X):
        return
    low, middle, high = np.quantile(Z, MIDDLE, axis=0)
    span = high - low
    narrow = np.flatnonzero((span > 0) & (span < LEAST_SPAN))
    far = np.abs(Z[:, narrow] - middle[narrow]) > FAR_SPANS * span[narrow]
    few = (far.mean(axis=0) < FEW) | (far.sum(axis=0) == 1)
    if not len(columns := narrow[few]):
        return
    names = range(X.shape[1]) if names is None else names
    told = listed(names[column] for column in columns)
    first = columns[0]
    extreme = X[np.argmax(np.abs(Z[:, first] - middle[first])), first]
    low, high = np.quantile(X[:, first], MIDDLE[::2])
    warn(
        f"a few values determine the scale of column {told} of X, such as {extreme:.4g}, "
        f"while 90 % of the column span {high - low:.2g}: correct them, or give logarithms or "
        "ranks (sklearn.preprocessing.QuantileTransformer)"
    )


def scale(scaler: ColumnScaler | None, X: Any) -> Any:
    """
    :return: X as the model's input.
    :raise ValueError: if a row overflows, or if X is sparse, but was dense in the fit.
    """
    if scipy.sparse.issparse(X):
        if scaler is not None and scaler.with_mean:
            raise ValueError("X is sparse, but was dense in the fit: give X.toarray()")
        with config_context(transform_output="default"):  # a data frame cannot be sparse
            return SparseRows(X if scaler is None else scaler.transform(X))
    shift, factor = shift_and_scale(scaler, X.shape[1])
    with np.errstate(all="ignore"):
        X = X - shift  # `scaler.transform` would check X again, which takes long
        X /= factor
        X = X if scaler is None else scaler.with_logs(X)
    refuse_overflow(X)
    return np.asarray(X, dtype=gpflow.config.default_float())


def refuse_overflow(values: AnyNDArray, what: str = "row {} of X is so large that f") -> None:
    """:raise ValueError: if a row is not finite."""
    overflown = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(overflown):
        raise ValueError(f"{what.format(overflown[0])} overflows: check the units")
