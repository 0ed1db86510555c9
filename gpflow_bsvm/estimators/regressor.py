"""The scikit-learn interface for regression, with error bars."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from scipy.stats import norm
from sklearn.base import RegressorMixin

from ..checkpoints.directory import Directory
from ..data.checks import warn_of_digits
from ..notices import warn
from ..prediction.calibration import leave_one_out
from ..prediction.marginals import compiled_cdf, predict_marginals
from ..tables.paths import shortened
from . import inputs, scaling
from .base import BSVMEstimator
from .choice import CHOICE_ROWS, is_nearly_constant
from .columns import Scored
from .labels import Encoding, check_are_numbers, standardised
from .large import Survey
from .specification import FIRST_INDUCING, Data, Specification, specify
from .stages import NOWHERE, Stages
from .training import at_most

#: Labels have outliers if their deviation exceeds the deviation of the inner 90 % by this factor.
FAR_OUT = 1.7

#: Predictions are constant if their spread is below this fraction of the noise's deviation.
LEAST_SPREAD = 0.02
_CONSTANT = (
    "predictions are nearly the same for all rows: either X does not determine y, or the fit "
    "has missed the relation; try another kernel, or give penalty (in units of 1 / y) and epsilon"
)


@dataclass(eq=False, repr=False, kw_only=True)
class BSVMRegressor(Scored, RegressorMixin, BSVMEstimator):
    r"""
    Bayesian support vector regression, with a predictive distribution.

    A sparse model (`gpflow_bsvm.models.BSVM`) on standardized features and labels, with the
    likelihood `gpflow_bsvm.likelihoods.EpsilonInsensitive`. The evidence determines kernel, penalty
    and epsilon, without cross-validation. The cost of errors beyond epsilon grows linearly, so even
    extreme outliers move the fit little.

    :param penalty: slope of the loss, in units of 1 / y; "auto": learned.
    :param epsilon: largest error without a cost, in units of y; "auto": learned.
    :param kernel: kernel of the prior of f, in units of standardized labels; all other parameters
        are as in `gpflow_bsvm.BSVMClassifier`.
    :ivar model_: the fitted `BSVM`. Its methods need `as_model_sees(X)`; functions of
        `gpflow_bsvm.prediction` take the regressor and X, and return results in units of y.
    :ivar penalty_: and epsilon_: as given or learned, in units of 1 / y and y.
    :ivar y_center_: and y_scale_: center and scale for standardizing y: the median, and the
        standard deviation of a Gaussian with y's 5 % and 95 % quantiles; outliers hardly affect
        these. If the standard deviation of y is much larger, and left-out rows are predicted better
        with it as the scale, it becomes y_scale_: extreme labels are then signal, not errors.
    :ivar scaler_: and history_, seconds_, num_inducing_: as in `gpflow_bsvm.BSVMClassifier`.
    """

    penalty: float | str = "auto"
    epsilon: float | str = "auto"
    learn_kernel: bool = True
    num_inducing: int | str = "auto"
    inference: Any = None

    epsilon_: float = field(init=False)
    y_center_: float = field(init=False)
    y_scale_: float = field(init=False)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        forget: float = 1.0,
        checkpoint: Directory | None = None,
    ) -> BSVMRegressor:
        """Update q with more rows, as in `gpflow_bsvm.BSVMClassifier.partial_fit`."""
        return self._partial_fit(X, y, sample_weight, forget, checkpoint)

    def predict(
        self, X: Any, return_std: bool = False
    ) -> AnyNDArray | tuple[AnyNDArray, AnyNDArray]:
        """
        Predict the center of the model's distribution of y. This distribution is symmetric, and f
        is both its mean and its median. If the true distribution of y given X is skewed, the
        prediction is near its median, not its mean, as in scikit-learn's SVR: for counts that are
        mostly 0, the prediction is nearly 0. If you need means, transform y, or multiply P(y > 0)
        of a `gpflow_bsvm.BSVMClassifier` by the prediction of a regressor for rows with y > 0.

        :param X: [N, D], or rows that are read piece by piece.
        :return: the center [N]; with `return_std` also the standard deviation of y, with noise.
        """
        mean, variance = self._ask(predict_marginals, X)
        center = mean[:, 0] * self.y_scale_ + self.y_center_
        if not return_std:
            return center
        noise = float(self.model_.likelihood.noise_variance)
        return center, np.sqrt(variance[:, 0] + noise) * self.y_scale_

    def predict_quantiles(self, X: Any, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> AnyNDArray:
        """
        :param levels: [T], numbers in (0, 1), in increasing order.
        :return: the quantiles of y at these levels, [N, T].
        :raise ValueError: for levels that are not increasing or not in (0, 1).
        """
        mean, variance = self._ask(predict_marginals, X)
        cdf = compiled_cdf.bind(self.model_.likelihood)
        quantiles = self.model_.likelihood.find_quantiles(cdf, mean, variance, levels).numpy()
        return np.asarray(quantiles * self.y_scale_ + self.y_center_)

    @property
    def units_of_y(self) -> tuple[float, float]:
        """:return: `y_scale_` and `y_center_`."""
        return self.y_scale_, self.y_center_

    _units_of_f = units_of_y

    def _fit_arrays(self, data: Data, stages: Stages) -> None:
        X, Y, weight = data
        unit = self._unit(data)
        self.y_scale_ *= unit
        stages.units = {"scale of y": repr(self.y_scale_)}  # the unit of 1 / penalty and epsilon
        with warnings.catch_warnings():  # `_found` gives a clearer warning
            warnings.filterwarnings("ignore", "the fit has learned next to nothing")
            super()._fit_arrays((X, Y / unit, weight), stages)

    def _learn_survey(self, rows: Any, found: Survey) -> Encoding:
        X, y, weight = found.sample
        Y, _ = self._learn_labels(y[:, 0], weight)(y)
        self.y_scale_ *= self._unit((X, Y, weight))
        return self._encoding(rows)

    def _unit(self, data: Data) -> float:
        """
        :return: 1, or the deviation of Y [N, 1] if a few extreme labels make it large and left-out
            rows are predicted better with it: these labels are then signal, not errors.
        """
        _, Y, weight = data
        mean = np.average(Y[:, 0], weights=weight)
        deviation = float(np.average((Y[:, 0] - mean) ** 2, weights=weight) ** 0.5)
        if deviation < FAR_OUT:
            return 1.0
        part = at_most(CHOICE_ROWS, data, seed=0, classes=False)
        return min((1.0, deviation), key=partial(self._error, part))

    def _error(self, data: Data, unit: float) -> float:
        """:return: the mean leave-one-out error of a fit to a sample, in units of Y."""
        X, Y, weight = data
        trial = copy.copy(self)
        trial.y_scale_ = self.y_scale_ * unit
        trial.random_state = 0
        trial.verbose = False
        trial.num_inducing = FIRST_INDUCING if self.num_inducing == "auto" else self.num_inducing
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            BSVMEstimator._fit_arrays(trial, (X, Y / unit, weight), NOWHERE)
        rows = scaling.scale(trial.scaler_, X), Y / unit
        mean, _ = leave_one_out(trial.model_, rows, sample_weight=weight)
        found = np.clip(unit * mean, Y.min(), Y.max())
        return float(np.average(np.abs(Y - found)[:, 0], weights=weight))

    def _specify(self, seed: int, data: Data) -> Specification:
        spec = specify(self, seed)._replace(loss="epsilon_insensitive", penalty=2.0)
        if self.penalty != "auto":
            spec = spec._replace(penalty=float(self.penalty) * self.y_scale_)
        if self.epsilon != "auto":
            spec = spec._replace(epsilon=float(self.epsilon) / self.y_scale_)
        auto = [name for name in ("penalty", "epsilon") if getattr(self, name) == "auto"]
        return spec._replace(learned=tuple(auto))

    def _found(self, spec: Specification, data: Data) -> None:
        self.penalty_ = float(self.model_.likelihood.penalty.numpy()) / self.y_scale_
        self.epsilon_ = float(self.model_.likelihood.epsilon.numpy()) * self.y_scale_
        same = not np.ptp(data[1])
        if same and spec.learned:
            warn(
                f"all rows have y = {self.y_center_:.6g}: predictions equal it, and their "
                "deviations are meaningless, because these rows show no noise"
            )
        elif not same and is_nearly_constant(self.model_, data, LEAST_SPREAD):
            warn(_CONSTANT)

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, AnyNDArray]:
        warn_of_digits(y, self._how["dtype"], "y")
        y = check_are_numbers(y)
        X, y = inputs.validated(self, X, y, reset=reset, y_numeric=True)
        return X, np.asarray(y, gpflow.config.default_float())

    def _learn_labels(self, y: AnyNDArray, weight: AnyNDArray) -> Encoding:
        """Center and scale by quantiles, which even extreme outliers do not move."""
        check_units(y)
        scaling.warn_of_offsets(y[:, None], "y")
        low, middle, high = scaling.symmetric_quantiles(y, weight, (0.05, 0.5, 0.95))
        spread = (high - low) / np.diff(norm.ppf([0.05, 0.95]))[0]
        if not spread:  # nearly all labels are equal
            spread = np.average((y - middle) ** 2, weights=weight) ** 0.5
        self.y_center_ = float(middle)
        self.y_scale_ = float(spread) or 1.0
        check_units(y, self.y_scale_)
        return self._encoding()

    def _encoding(self, rows: Any = None) -> Encoding:
        if (names := getattr(rows, "classes", None)) is not None:
            how = "leave out classes=..., or use BSVMClassifier"
            raise ValueError(f"y must be numbers, got the classes {shortened(names)}: {how}")
        return partial(standardised, center=self.y_center_, scale=self.y_scale_)


def check_units(y: AnyNDArray, scale: float = 1.0) -> None:
    """:raise ValueError: if squares of labels overflow, or if 1 / `scale`^2 does."""
    most = np.finfo(y.dtype).max ** 0.5
    if (largest := np.abs(y).max()) > most or scale < 1 / most:
        raise ValueError(
            f"y is up to {largest:.3g}, its spread is {scale:.3g}: its squares overflow or are 0; "
            "check the units"
        )
