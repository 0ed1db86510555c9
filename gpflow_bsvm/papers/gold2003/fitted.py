"""Criteria of kernel and penalty from a fitted Bayesian support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from ...checks import check_whole
from ...data.checks import check_data
from ...inference import fit
from ...likelihoods import Hinge
from ...likelihoods.penalized import check_penalty
from ...model_selection.held_out import NUM_FOLDS, held_out_density
from ...models import BatchBSVM
from ...prediction import leave_one_out_density
from .criterion import Criterion

#: A likelihood of a penalty, such as `Hinge`.
MakeLikelihood = Callable[[float], Likelihood]
_NORMALIZED = partial(Hinge, normalizer=True)


class FittedCriterion(Criterion):
    """
    A criterion of a `BatchBSVM`, fitted by `gpflow_bsvm.fit` at the kernel as it is.

    :ivar likelihood: a function of a penalty that makes one.
    """

    greater_is_better = True
    likelihood: MakeLikelihood

    @property
    def slack(self) -> str:
        """:return: "linear" for `Hinge`; else the name of the likelihood, which has no machine."""
        likelihood = self.likelihood(1.0)
        return "linear" if type(likelihood) is Hinge else type(likelihood).__name__

    def fitted(self, kernel: Kernel, data: Any, penalty: float, weight: Any = None) -> BatchBSVM:
        """:return: the model."""
        model = BatchBSVM(data, kernel, self.likelihood(check_penalty(penalty)))
        fit(model, sample_weight=weight)
        return model


@dataclass(frozen=True)
class VariationalBound(FittedCriterion):
    """
    The evidence lower bound per row; greater is better. By default with the normalizer kappa, as
    the paper's evidence has it: without it a small penalty is always best.
    """

    likelihood: MakeLikelihood = _NORMALIZED

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """As in `Criterion`."""
        return float(self.fitted(kernel, data, penalty).elbo()) / len(data[0])


@dataclass(frozen=True)
class LeaveOneOutDensity(FittedCriterion):
    """`gpflow_bsvm.prediction.leave_one_out_density`; greater is better."""

    likelihood: MakeLikelihood = Hinge

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """As in `Criterion`."""
        return leave_one_out_density(self.fitted(kernel, data, penalty))


@dataclass(frozen=True)
class HeldOutDensity(FittedCriterion):
    """
    `held_out_density`, q fitted anew without each fold; greater is better.

    :ivar num_folds: and
    :ivar seed: of the folds.
    """

    likelihood: MakeLikelihood = Hinge
    num_folds: int = NUM_FOLDS
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(2, num_folds=self.num_folds)

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """As in `Criterion`."""
        data = check_data(self.likelihood(check_penalty(penalty)), *data)

        def refit(X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray) -> BatchBSVM:
            return self.fitted(kernel, (X, Y), penalty, weight)

        return held_out_density(refit, data, num_folds=self.num_folds, seed=self.seed)
