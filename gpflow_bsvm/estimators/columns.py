"""Columns of X: how a kernel uses them before a fit, and the fitted model's attributes for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import Parameter
from gpflow.base import AnyNDArray
from gpflow.kernels import ChangePoints, Combination, Constant, Kernel, Linear, Periodic, Sum
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..data.checks import refuse_lazy
from ..engine.projection import check_codes, parts_of, values_of
from ..engine.structure import copied
from ..models.linear import WeightKernel
from ..notices import warn
from .labels import check_are_numbers, with_numpy_type
from .scaling import ColumnScaler, shift_and_scale

#: Kernels whose f is linear or constant, alone or in a sum.
_STRAIGHT = (Linear, Constant, WeightKernel, Sum)
#: Attributes of GPflow's kernels that hold constants in units of X.
_IN_UNITS = {"period", "locations", "_feature_dims"}
#: Number of rows used to detect columns of codes.
_ROWS = 20


def placed(kernel: Kernel, columns: AnyNDArray) -> Iterator[tuple[Kernel, AnyNDArray]]:
    """:return: the parts of a kernel, and the indices of the columns that they use."""
    columns = columns[kernel.active_dims]
    yield kernel, columns
    for part in kernel.kernels if isinstance(kernel, Combination) else ():
        yield from placed(part, columns)


def unscaled_columns(kernel: Any, X: Any, fill: AnyNDArray | None = None) -> list[int]:
    """
    Find the columns that a user's kernel needs unscaled: codes. A column holds codes if a term of
    the kernel depends on it but has no slope along it, as in `Coregion`, `Categorical` and kernels
    that test x = x'.

    :param X: [N, D], unscaled.
    :param fill: see `inputs.medians`.
    :raise ValueError: if the kernel rejects these rows.
    """
    if not isinstance(kernel, Kernel):
        return []
    some = np.asarray(X[:: max(1, len(X) // _ROWS)])
    try:
        values_of(kernel, some)
    except ValueError as error:
        with contextlib.suppress(tf.errors.InvalidArgumentError):  # a column may be missing
            check_codes(kernel, X)
        raise ValueError(f"{error}{_added(fill)}") from error
    # Smooth terms of the same columns must not hide a term that uses them as codes.
    terms = [part for part in parts_of(kernel) if not isinstance(part, Combination)]
    return sorted({column for term in terms for column in _codes(term, some)})


def _codes(kernel: Kernel, X: AnyNDArray) -> list[int]:
    """:return: the columns that a kernel uses as codes."""
    # At equal rows smooth kernels have no slope; at nearby rows, tests of equality have none.
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


def on_scaled_columns(kernel: Kernel, scaler: ColumnScaler | None) -> Kernel:
    """:return: a copy of a user's kernel, with constants in units of the scaled columns."""
    kernel = copied(kernel)
    if scaler is None:
        return kernel
    shift, scale = shift_and_scale(scaler, len(scaler.scale_))
    # A kernel may occur twice.
    for part, columns in dict(placed(kernel, np.arange(len(scale)))).items():
        if isinstance(part, Periodic):
            part.period = _moved(part.period, 0.0, 1 / scale[columns])
        elif isinstance(part, ChangePoints):
            part.locations = _moved(part.locations, shift[columns], 1 / scale[columns])
            part.steepness = _moved(part.steepness, 0.0, scale[columns])
        elif hasattr(part, "_feature_dims"):  # hierarchical, in GPflow from 2.11 on
            used = columns[part._feature_dims.numpy(), None]
            part._bounds = (part._bounds - shift[used]) / scale[used]
        elif not isinstance(part, Combination) and not hasattr(part, "learned_weights"):
            for inside in (p for p in part.submodules if _IN_UNITS & vars(p).keys()):
                names = f"{type(inside).__name__} inside of {type(part).__name__}"
                warn(f"{names} uses scaled columns, in other units than X: use standardize=False")
    return kernel


def _moved(old: Parameter, shift: Any, factor: Any) -> Parameter:
    """:return: a parameter of value factor * (old - shift), with the prior moved likewise."""
    shift, factor = (tf.constant(number, old.dtype) for number in (shift, factor))
    move = tfp.bijectors.Scale(factor)(tfp.bijectors.Shift(-shift))
    prior = old.prior and tfp.distributions.TransformedDistribution(old.prior, move)
    new = move(tf.convert_to_tensor(old))
    return Parameter(new, transform=old.transform, prior=prior, trainable=old.trainable)


class Scored:
    """A mixin, listed before scikit-learn's mixin; its `score` needs labels in memory."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """
        :param X: [N, D], or rows that are read piece by piece.
        :param y: [N], the labels, also of rows that are read piece by piece.
        :return: the share of right classes; for a regressor, R2.
        :raise ValueError: without labels.
        """
        if y is None:
            raise ValueError(
                "score needs y, the labels of X, even if X are files: give score(X, y), or use "
                "gpflow_bsvm.prediction.predict_log_density(estimator, rows), which reads labels"
            )
        refuse_lazy(y=y)
        y = with_numpy_type(y)
        y = y if is_classifier(self) else check_are_numbers(y)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


class Attributes:
    """A mixin for the estimators. Attributes that the model lacks raise AttributeError."""

    kernel: Any
    model_: Any
    scaler_: Any
    n_features_in_: int
    _units_of_f: Any = (1.0, 0.0)  #: factor and offset that convert f to the units of `predict`

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
        :return: [D], the lengthscale of each column, in units of the scaled column (see
            `standardize`); without standardization, in the column's own units. If several parts of
            the kernel use the column, the entry is the shortest of their lengthscales; if no part
            does, it is infinity.
        """
        check_is_fitted(self)
        found = np.full(self._num_columns, np.inf)
        for columns, scales in self._with_lengthscales():
            found[columns] = np.minimum(found[columns], scales.numpy())
        return found[: self.n_features_in_]

    @property
    def feature_importances_(self) -> AnyNDArray:
        """
        :return: [D], 1 / l_d / sum_d' 1 / l_d' for the `lengthscales_` l: the expected slope of f
            along a column, in units as in `lengthscales_`. This is not the column's contribution to
            predictions. The kernel needs a lengthscale for each column, or parts that use different
            columns. If all importances are equal because the kernel was not learned, a warning
            appears.
        """
        check_is_fitted(self)
        D = self._num_columns
        if all(scales.shape == () and len(at) == D for at, scales in self._with_lengthscales()):
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
        :return: [1, D], or [C, D] for several classes (unless ordinal): coefficients of the
            unscaled columns in the mean of f (in a regressor, of y). For two classes, a positive
            coefficient favors `classes_[1]`. The kernel must be "linear", `Linear` or `Linear` +
            `Constant`.
        """
        return self._line[0]

    @property
    def intercept_(self) -> AnyNDArray:
        """
        :return: [1] or [C]: X @ coef_.T + intercept_ is the mean of f (in a regressor, of y). For a
            hinge with two classes, the calibrated link scales and shifts f: the class changes at 0.
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
        slopes = [tape.gradient(value, at, unconnected_gradients="zero") for value in values]
        factor, offset = self._units_of_f
        coefficients = (np.concatenate(slopes) / scale)[:, : self.n_features_in_]
        return factor * coefficients, factor * f.numpy() + offset

    @property
    def _num_columns(self) -> int:
        """:return: the number of columns of the model's X, including columns from `impute`."""
        fill = getattr(self, "fill_", None)
        return self.n_features_in_ + (0 if fill is None else int(fill[1].sum()))

    def _with_lengthscales(self) -> list[tuple[AnyNDArray, Any]]:
        parts = placed(self.model_.kernel, np.arange(self._num_columns))
        found = [(at, part.lengthscales) for part, at in parts if hasattr(part, "lengthscales")]
        if not found:
            raise AttributeError(f"{type(self.model_.kernel).__name__} has no lengthscales")
        return found
