"""Columns of X: how a kernel uses them before a fit, and the fitted model's attributes for them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter
from gpflow.base import AnyNDArray
from gpflow.kernels import ChangePoints, Combination, Constant, Kernel, Linear, Periodic, Sum
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..engine.projection import check_codes, parts_of, values_of
from ..engine.structure import copied
from ..models.linear import WeightKernel
from ..notices import warn
from .labels import with_numpy_type

#: Kernels whose f is linear or constant, alone or in a sum.
_STRAIGHT = (Linear, Constant, WeightKernel, Sum)
#: Number of rows used to detect columns of codes.
_ROWS = 20


def columns_of(part: Kernel, num_columns: int) -> AnyNDArray:
    """:return: indices of the columns that a part of a kernel uses."""
    return np.arange(num_columns)[part.active_dims]


def unscaled_columns(kernel: Any, X: Any, fill: AnyNDArray | None = None) -> list[int]:
    """
    Find the columns that a user's kernel needs unscaled: codes, and columns of `ChangePoints`,
    whose locations are in units of X. A column holds codes if a term of the kernel depends on it
    but has no slope along it, as in `Coregion`, `Categorical` and kernels that test x = x'.

    :param X: [N, D], unscaled.
    :param fill: see `inputs.medians`.
    :raise ValueError: if the kernel rejects these rows.
    """
    if not isinstance(kernel, Kernel):
        return []
    all_rows = X
    X = np.asarray(X[:: max(1, len(X) // _ROWS)])
    try:
        values_of(kernel, X)
    except ValueError as error:
        with contextlib.suppress(tf.errors.InvalidArgumentError):  # a column may be missing
            check_codes(kernel, all_rows)
        raise ValueError(f"{error}{_added(fill)}") from error
    changing = [part for part in parts_of(kernel) if isinstance(part, ChangePoints)]
    kept = {int(c) for part in changing for c in columns_of(part, X.shape[1])}
    # Smooth terms of the same columns must not hide a term that uses them as codes.
    terms = [part for part in parts_of(kernel) if not isinstance(part, Combination)]
    return sorted(kept | {column for term in terms for column in _codes(term, X)})


def _codes(kernel: Kernel, X: AnyNDArray) -> list[int]:
    """:return: the columns that a kernel uses as codes."""
    # Smooth kernels have no slope at equal rows, equality tests none at nearby rows: test both.
    flat = _flat(kernel, X, X) & _flat(kernel, X, X * (1 + 1e-9) + 1e-9)
    return [column for column in np.flatnonzero(flat).tolist() if _depends(kernel, X, column)]


def _flat(kernel: Kernel, X: AnyNDArray, X2: AnyNDArray) -> AnyNDArray:
    """:return: [D], True for columns of X2 along which K(X, X2) has no slope."""
    weight = np.random.default_rng(0).normal(size=(len(X), len(X)))  # so that no sum is 0 by chance
    at = tf.constant(X2)
    with tf.GradientTape() as tape:
        tape.watch(at)
        total = tf.reduce_sum(weight.astype(X.dtype) * kernel(X, at))
    slopes = tape.gradient(total, at, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return np.asarray((slopes.numpy() == 0).all(axis=0))


def _depends(kernel: Kernel, X: AnyNDArray, column: int) -> bool:
    """:return: True if the kernel changes with the column, or the column is constant."""
    values, place = np.unique(X[:, column], return_inverse=True)
    other = X.copy()
    other[:, column] = np.roll(values, 1)[place.reshape(-1)]
    return len(values) < 2 or not np.array_equal(kernel(X, X.copy()), kernel(X, other))


def _added(fill: AnyNDArray | None) -> str:
    """:return: a note on the columns added by `impute`."""
    if fill is None or not fill[1].any():
        return ""
    where = np.flatnonzero(fill[1]).tolist()
    number = fill.shape[1]
    return (
        f" (impute=True has appended indicators of missing values in columns {where}, from column "
        f"{number} on: give the kernel active_dims=range({number}), or lengthscales for the new "
        "columns)"
    )


def on_scaled_columns(kernel: Kernel, scaler: StandardScaler | None) -> Kernel:
    """:return: a copy of a user's kernel, with periods in units of scaled columns."""
    kernel = copied(kernel)
    if scaler is None:
        return kernel
    # A kernel may occur twice; a kernel's parts compare by identity.
    for part in {part for part in parts_of(kernel) if isinstance(part, Periodic)}:
        old = part.period
        scale = scaler.scale_[columns_of(part, len(scaler.scale_))]
        unit = tf.constant(1 / scale, old.dtype)
        part.period = Parameter(unit * old, transform=old.transform, trainable=old.trainable)
        if old.prior is not None:
            scaled = tfp.bijectors.Scale(unit)
            part.period.prior = tfp.distributions.TransformedDistribution(old.prior, scaled)
    return kernel


def shift_and_scale(
    scaler: StandardScaler | None, num_columns: int
) -> tuple[AnyNDArray, AnyNDArray]:
    """:return: shift and scale, [D] each, of the model's input (X - shift) / scale."""
    shift = np.zeros(num_columns)
    factor = np.ones(num_columns)
    if scaler is not None:
        shift = scaler.mean_ if scaler.with_mean else shift  # sparse columns are scaled only
        factor = scaler.scale_
    return shift, factor


class Scored:
    """A mixin before scikit-learn's, whose `score` needs labels in memory."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """
        :param X: [N, D], or rows that are read piece by piece.
        :param y: [N], the labels, also of rows that are read piece by piece.
        :return: the share of right classes; for a regressor, R2.
        :raise ValueError: without labels.
        """
        if y is None:
            raise ValueError(
                "score needs y, the labels of X, also if X are files: give score(X, y), or use "
                "gpflow_bsvm.prediction.predict_log_density(estimator, rows), which reads labels"
            )
        return float(super().score(X, with_numpy_type(y), sample_weight))  # type: ignore[misc]


class Attributes:
    """A mixin for the estimators. Attributes that the model lacks raise AttributeError."""

    kernel: Any
    model_: Any
    scaler_: Any
    n_features_in_: int

    @property
    def num_inducing_(self) -> int:
        """:return: M, the number of inducing points after the fit."""
        check_is_fitted(self)
        if isinstance(self.model_.kernel, WeightKernel):
            raise AttributeError("a linear model has weights (coef_) and no inducing points")
        return int(self.model_.q_shape[1])

    @property
    def lengthscales_(self) -> AnyNDArray:
        """
        :return: [D], the lengthscale of each column, in standard deviations of the column (in its
            own units without `standardize`). If several parts of the kernel use the column, it is
            the shortest lengthscale; if none does, it is infinity.
        """
        check_is_fitted(self)
        found = np.full(self._num_columns, np.inf)
        for part, scales in self._with_lengthscales():
            columns = columns_of(part, self._num_columns)
            found[columns] = np.minimum(found[columns], scales.numpy())
        return found[: self.n_features_in_]

    @property
    def feature_importances_(self) -> AnyNDArray:
        """
        :return: [D], 1 / l_d / sum_d' 1 / l_d' for the `lengthscales_` l: the expected slope of f
            along a column, per standard deviation of the column. It is not the column's
            contribution to predictions. The kernel needs a lengthscale for each column, or parts
            that use different columns. A warning says if all are equal because the kernel was not
            learned.
        """
        check_is_fitted(self)
        found = self._with_lengthscales()
        D = self._num_columns
        if all(scales.shape == () and len(columns_of(part, D)) == D for part, scales in found):
            raise AttributeError("the kernel has one lengthscale for all columns")
        slopes = 1 / self.lengthscales_
        if D > 1 and self.kernel is None and np.allclose(slopes, slopes[0], rtol=1e-9):
            warn(
                "all lengthscales are equal, because held-out rows preferred a kernel that is not "
                f"learned; to learn it, use kernel=gpflow_bsvm.priors.default_kernel({D})"
            )
        return np.asarray(slopes / slopes.sum())

    @property
    def coef_(self) -> AnyNDArray:
        """
        :return: [1, D], or [C, D] for several classes: coefficients of the mean of f (of y in a
            regressor) on the unscaled columns of X. For two classes, a positive coefficient favors
            `classes_[1]`. The kernel must be "linear", `Linear` or `Linear` + `Constant`.
        """
        return self._line[0]

    @property
    def intercept_(self) -> AnyNDArray:
        """
        :return: [1] or [C]: X @ coef_.T + intercept_ is the mean of f (of y). For a hinge with two
            classes, f is scaled and shifted by the calibrated link: the class changes at 0.
        """
        return self._line[1]

    @property
    def _line(self) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: `coef_` and `intercept_`."""
        check_is_fitted(self)
        kernel = self.model_.kernel
        if not all(isinstance(part, _STRAIGHT) for part in parts_of(kernel)):
            raise AttributeError(f"f is not linear: its kernel is {type(kernel).__name__}")
        shift, scale = shift_and_scale(self.scaler_, self._num_columns)
        at = tf.constant(-(shift / scale)[None])  # X = 0
        link = self.model_.likelihood
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(at)
            mean, variance = self.model_.predict_f(at)
            if hasattr(link, "decisions"):
                mean, _ = link.decisions(mean, variance)
            f = mean[0]
            values = tf.unstack(f)
        # Computing a Jacobian would trace a graph at every call.
        slopes = np.concatenate([tape.gradient(value, at) for value in values]) / scale
        factor, offset = self._units_of_f
        return factor * slopes[:, : self.n_features_in_], factor * f.numpy() + offset

    @property
    def _units_of_f(self) -> tuple[float, float]:
        """:return: factor and offset that convert f to the units of `predict`."""
        return 1.0, 0.0

    @property
    def _num_columns(self) -> int:
        """:return: the number of columns of the model's X, including those added by `impute`."""
        fill = getattr(self, "fill_", None)
        return self.n_features_in_ + (0 if fill is None else int(fill[1].sum()))

    def _with_lengthscales(self) -> list[tuple[Kernel, Any]]:
        parts = parts_of(self.model_.kernel)
        found = [(part, part.lengthscales) for part in parts if hasattr(part, "lengthscales")]
        if not found:
            raise AttributeError(f"{type(self.model_.kernel).__name__} has no lengthscales")
        return found
