"""Scaling of columns: by a shift and a factor and, if they are skewed, by a power transform."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
import tensorflow.experimental.numpy as tnp
from gpflow.base import AnyNDArray
from scipy.optimize import minimize_scalar
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
#: Columns with fewer distinct values hold codes or counts, and are not transformed.
FEWEST_VALUES = 10
#: Powers are at most this far from 1. Near that, they only separate most values from the rest.
FARTHEST_POWER = 50.0


class ColumnScaler(StandardScaler):
    r"""
    scikit-learn's `StandardScaler`, which also makes skewed columns nearly symmetric, by the
    transform of Yeo and Johnson (2000). A scaled value z becomes (psi(z) - m) / s with

        psi(z) = ((1 + z)^p - 1) / p for z >= 0,   -((1 - z)^(2 - p) - 1) / (2 - p) for z < 0.

    :ivar powers_: [3, D], p, m and s of each column; p = 1 for a column that is not transformed.
        None: no column is transformed.
    """

    powers_: AnyNDArray | None = None

    def learn_powers(self, X: AnyNDArray, weight: AnyNDArray) -> None:
        """Find the skewed columns of X [N, D], the rows of the fit, and their transforms."""
        Z = (X - self.mean_) / self.scale_
        power = _powers(Z, weight)
        with np.errstate(all="ignore"):
            psi = _yeo_johnson(Z, power)
            mean = np.average(psi, axis=0, weights=weight)
            deviation = np.sqrt(np.average((psi - mean) ** 2, axis=0, weights=weight))
            farthest = np.abs((psi - mean) / deviation).max(axis=0)
        # A power that shortens one tail may drive a lone value in the other tail far out.
        helps = (power != 1) & (farthest < np.abs(Z).max(axis=0))
        if helps.any():
            found = np.where(helps, [power, mean, deviation], [[1.0], [0.0], [1.0]])
            self.powers_ = found.astype(gpflow.default_float())

    def symmetric(self, Z: Any) -> Any:
        """:return: [N, D], the model's input for scaled rows."""
        if self.powers_ is None:
            return Z
        at = np.flatnonzero(self.powers_[0] != 1)
        power, mean, deviation = self.powers_[:, at]
        Z = np.array(Z)
        Z[:, at] = (_yeo_johnson(Z[:, at], power) - mean) / deviation
        return Z

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """:return: X as the model's input; arguments are as in scikit-learn."""
        return self.symmetric(super().transform(X, copy=copy))

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """:return: the model's input in units of the columns; arguments are as in scikit-learn."""
        if self.powers_ is not None:
            X = np.asarray(X)
            power, mean, deviation = self.powers_
            X = np.where(power != 1, _inverse(X * deviation + mean, power), X)
        return super().inverse_transform(X, copy=copy)


def _powers(Z: AnyNDArray, weight: AnyNDArray) -> AnyNDArray:
    """:return: [D], powers that make columns most nearly normal; 1 if a column is not skewed."""
    quantiles = np.stack([symmetric_quantiles(z, weight, LEVELS) for z in Z.T])
    some = np.array([len(np.unique(z)) >= FEWEST_VALUES for z in Z.T])
    centred = quantiles - quantiles.mean(axis=1, keepdims=True)
    with np.errstate(all="ignore"):  # SciPy's `skew` warns of constant columns
        skewness = (centred**3).mean(axis=1) / (centred**2).mean(axis=1) ** 1.5
    skewed = some & (np.abs(skewness) > MOST_SKEWNESS)
    powers = np.ones(len(skewed))
    powers[skewed] = [_power(q) for q in quantiles[skewed]]
    return powers


def _power(q: AnyNDArray) -> float:
    """:return: the power that makes quantiles [T] most normal (SciPy's search is much slower)."""
    slope = (np.sign(q) * np.log1p(np.abs(q))).sum()

    def loss(power: float) -> float:
        spread = np.var(_yeo_johnson(q, power))
        return float(np.nan_to_num(len(q) / 2 * np.log(spread) - (power - 1) * slope, nan=np.inf))

    ends = (1 - FARTHEST_POWER, 1 + FARTHEST_POWER)
    with np.errstate(all="ignore"):
        power = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-4}).x
    # Rounded, because the search's errors depend on the order of rows. Never exactly 0 or 2, where
    # the transform is defined only as a limit.
    return float(1 + np.copysign(np.round(abs(power - 1), 2) + 1e-3, power - 1))


def _yeo_johnson(z: Any, power: Any, library: Any = np) -> Any:
    """:return: Yeo and Johnson's transform of z, [N, D]."""
    power = library.where(z < 0, 2 - power, power)
    size = library.expm1(power * library.log1p(library.abs(z))) / power
    return library.where(z < 0, -size, size)


def _inverse(psi: AnyNDArray, power: AnyNDArray) -> AnyNDArray:
    """:return: z, [N, D]; NaN where no z has this transform."""
    power = np.where(psi < 0, 2 - power, power)
    with np.errstate(all="ignore"):
        size = np.expm1(np.log1p(power * np.abs(psi)) / power)
    return np.where(psi < 0, -size, size)


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
    if scaler is None or scaler.powers_ is None:
        return Z
    power, mean, deviation = scaler.powers_
    return tnp.where(power != 1, (_yeo_johnson(Z, power, tnp) - mean) / deviation, Z)


def digest_of(scaler: ColumnScaler | None, D: int) -> str:
    """:return: a digest of the scaling, which tells fits apart."""
    found = getattr(scaler, "powers_", None)
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
        X = X if scaler is None else scaler.symmetric(X)
    refuse_overflow(X)
    return np.asarray(X, dtype=gpflow.config.default_float())


def refuse_overflow(values: AnyNDArray, what: str = "row {} of X is so large that f") -> None:
    """:raise ValueError: if a row is not finite."""
    overflown = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(overflown):
        raise ValueError(f"{what.format(overflown[0])} overflows: check the units")
