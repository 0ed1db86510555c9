"""The variational bound on the evidence of a fitted Bayesian support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from ...inference import fit
from ...likelihoods import Hinge
from ...likelihoods.penalized import check_penalty
from ...models import BatchBSVM
from .criterion import Criterion

#: Maps a penalty to a likelihood, such as `Hinge`.
MakeLikelihood = Callable[[float], Likelihood]
_NORMALIZED = partial(Hinge, normalizer=True)


@dataclass(frozen=True)
class VariationalBound(Criterion):
    """
    The evidence lower bound per row of a `BatchBSVM`, fitted by `gpflow_bsvm.fit` at the given
    kernel; greater is better. Like the paper's evidence, it includes the normalizer kappa by
    default: without kappa a small penalty is always best.

    :ivar likelihood: a function from a penalty to a likelihood.
    """

    greater_is_better = True
    likelihood: MakeLikelihood = _NORMALIZED

    @property
    def slack(self) -> str:
        """:return: "linear" for `Hinge`, else the likelihood's name (it has no machine)."""
        likelihood = self.likelihood(1.0)
        return "linear" if type(likelihood) is Hinge else type(likelihood).__name__

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """As in `Criterion`."""
        model = BatchBSVM(data, kernel, self.likelihood(check_penalty(penalty)))
        fit(model)
        return float(model.elbo()) / len(data[0])
