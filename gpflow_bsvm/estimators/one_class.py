"""The scikit-learn interface for novelty detection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import SquaredExponential
from scipy.special import ndtr
from sklearn.base import OutlierMixin
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import OneClassSVM
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..prediction.marginals import predict_marginals, predict_probits
from . import inputs, scaling
from .base import BSVMEstimator
from .choice import CHOICE_ROWS
from .labels import Encoding, check_are_numbers, ones, standardised
from .large import Survey
from .specification import DEFAULT_VARIANCE, Data, Specification, make_model, specify
from .training import at_most

#: The default lengthscale is the median distance of a row to its neighbor of this rank: nearby rows
#: should be correlated, distant rows should not.
NEIGHBOUR = 3
#: Scores count as equal if they differ by less than this fraction of the largest.
ROUNDING = 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassBSVM(OutlierMixin, BSVMEstimator):
    r"""
    Bayesian one-class support vector machine. It scores how similar a row is to the training rows,
    with an uncertainty.

    A sparse `gpflow_bsvm.models.BSVM` on standardized features with the likelihood
    `gpflow_bsvm.likelihoods.OneClass`. Its penalty corresponds to scikit-learn's `OneClassSVM` with
    the same kernel and `nu`. The kernel is not learned: identical labels cannot determine it.

    :param kernel: any GPflow kernel, used as it is; None: a squared exponential of variance 4,
        whose lengthscale is the median distance of a row to its third neighbor.
    :param nu: in (0, 1), the fraction of training rows that are considered outliers.
    :param num_inducing: maximum number of inducing points; all other parameters are as in
        `gpflow_bsvm.BSVMClassifier`.
    :ivar offset_: the `nu` quantile of the training rows' scores (of a sample, see `fit`).
    :ivar penalty_: penalty of the hinge.
    :ivar model_: and scaler_, history_, seconds_: as in `gpflow_bsvm.BSVMClassifier`.
    """

    nu: float = 0.1
    num_inducing: int = 100

    offset_: float = field(init=False)
    _labelled: ClassVar[bool] = False

    def score_samples(self, X: Any, return_std: bool = False) -> Any:
        """
        :param X: [N, D], or rows that are read piece by piece.
        :return: mean of f [N], which is large near the training rows and 0 far from them; with
            `return_std` also its standard deviation.
        """
        mean, variance = self._ask(predict_marginals, X)
        return (mean[:, 0], np.sqrt(variance[:, 0])) if return_std else mean[:, 0]

    def decision_function(self, X: Any) -> AnyNDArray:
        """:return: `score_samples` minus `offset_`, [N], negative for outliers."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> AnyNDArray:
        """:return: 1 for rows similar to the training rows, else -1, [N]."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def check_calibrated(self) -> bool:
        """
        :return: True.
        :raise NotFittedError: if the link is not calibrated.
        """
        check_is_fitted(self)
        link = self.model_.likelihood
        if all(np.isclose(getattr(link, n), value) for n, value in link.neutral_link.items()):
            raise NotFittedError(
                "probabilities need labelled rows, y in {-1, 1}: "
                "gpflow_bsvm.prediction.calibrate(estimator, (X, y), held_out=True)"
            )
        return True

    @available_if(check_calibrated)
    def predict_proba(self, X: Any) -> AnyNDArray:
        """
        Compute calibrated probabilities. Requires an earlier call of
        `gpflow_bsvm.prediction.calibrate(estimator, (X, y), held_out=True)` with y in {-1, 1}.

        :return: [N, 2], probabilities of an outlier and of a row similar to the training rows.
        """
        z = self._ask(predict_probits, X)
        return np.asarray(ndtr(np.concatenate([-z, z], axis=1)))

    def _specify(self, seed: int, data: Data) -> Specification:
        spec = specify(self, seed)._replace(loss="one_class", learn_kernel=False)
        X, _, weight = at_most(CHOICE_ROWS, data, seed, classes=False)
        if self.kernel is None:
            spec = spec._replace(kernel=_default_kernel(X))
        kernel = make_model(spec, data[0]).kernel
        svm = OneClassSVM(kernel="precomputed", nu=self.nu)
        svm.random_state = seed  # None, its default, draws from NumPy's global generator
        svm.fit(kernel(X).numpy(), sample_weight=weight)
        rho = -float(svm.intercept_[0])
        if rho <= 0:
            raise ValueError(
                f"{type(kernel).__name__} does not separate these rows from 0: use a positive "
                "kernel, such as gpflow.kernels.SquaredExponential()"
            )
        # The sum in rho grows with the number of rows, of which `data` may be a sample.
        total = self.__dict__.pop("_total", 0.0) or data[2].sum()
        return spec._replace(kernel=kernel, penalty=weight.sum() / total / rho)

    def _found(self, spec: Specification, data: Data) -> None:
        scores, _ = predict_marginals(self.model_, data[0], chunk_rows=self.chunk_rows)
        offset = -scaling.weighted_quantiles(-scores[:, 0], data[2], (1 - self.nu,))[0]
        # A training row exactly at the offset must not fall below it by rounding.
        self.offset_ = float(offset - ROUNDING * np.abs(scores).max())
        self.penalty_ = spec.penalty

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, AnyNDArray]:
        X = inputs.validated(self, X, reset=reset)
        return X, np.ones(X.shape[0])

    def _learn_labels(self, y: AnyNDArray, weight: AnyNDArray) -> Encoding:
        return ones

    def _learn_survey(self, rows: Any, found: Survey) -> Encoding:
        self._total = 0.0 if found.is_complete else found.weights.sum()
        return ones

    def _encoding(self, rows: Any = None) -> Encoding:
        """:return: an encoding that keeps labels, because later rows may have both labels."""
        check_are_numbers(getattr(rows, "classes", None) or ())
        return standardised


def _default_kernel(X: AnyNDArray) -> SquaredExponential:
    """:return: the default kernel, see `NEIGHBOUR`; its lengthscale is 1 if all rows are equal."""
    rows = np.unique(X, axis=0)
    number = min(NEIGHBOUR, len(rows) - 1)
    if number == 0:
        return SquaredExponential(DEFAULT_VARIANCE)
    distances, _ = NearestNeighbors(n_neighbors=number).fit(rows).kneighbors()
    return SquaredExponential(DEFAULT_VARIANCE, lengthscales=np.median(distances[:, -1]))
