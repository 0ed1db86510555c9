"""Attributes of a fitted model for each column of X, under scikit-learn's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import Constant, Kernel, Linear, Sum
from sklearn.utils.validation import check_is_fitted

from ..models.linear import WeightKernel
from .inputs import shift_and_scale
from .kernels import columns_of, parts_of

#: Kernels whose f is linear or constant, alone or in a sum.
_STRAIGHT = (Linear, Constant, WeightKernel, Sum)


class Attributes:
    """A mixin of the estimators. An attribute that the model lacks raises AttributeError."""

    model_: Any
    scaler_: Any
    n_features_in_: int

    @property
    def num_inducing_(self) -> int:
        """:return: M, the number of inducing points after the fit."""
        check_is_fitted(self)
        if isinstance(self.model_.kernel, WeightKernel):
            raise AttributeError("a linear model has weights (coef_), and no inducing points")
        return int(self.model_.q_shape[1])

    @property
    def lengthscales_(self) -> AnyNDArray:
        """
        :return: [D], the lengthscale of each column, in standard deviations of the column (in its
            own units without `standardize`). The shortest counts if several parts of the kernel use
            the column; infinity if none does.
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
        :return: [D], 1 / l_d / sum_d' 1 / l_d' of `lengthscales_` l: the expected slope of f along
            a column, per standard deviation of the column. It is not the column's contribution to
            predictions. Needs a kernel with a lengthscale for each column, or with parts that use
            different columns.
        """
        check_is_fitted(self)
        found = self._with_lengthscales()
        if all(scales.shape == () and part.active_dims == slice(None) for part, scales in found):
            raise AttributeError("the kernel has one lengthscale for all columns")
        slopes = 1 / self.lengthscales_
        return np.asarray(slopes / slopes.sum())

    @property
    def coef_(self) -> AnyNDArray:
        """
        :return: [1, D], or [C, D] for several classes: coefficients of the mean of f (of y in a
            regressor) on the unscaled columns of X. For two classes a positive coefficient favours
            `classes_[1]`. Needs kernel="linear", GPflow's `Linear`, or its sums with `Constant`.
        """
        return self._line[0]

    @property
    def intercept_(self) -> AnyNDArray:
        """
        :return: [1] or [C]: X @ coef_.T + intercept_ is the mean of f (of y). With two classes and
            a hinge, the calibrated link scales and shifts f; the predicted class changes at 0.
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
        # A Jacobian would trace a graph at every call.
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
