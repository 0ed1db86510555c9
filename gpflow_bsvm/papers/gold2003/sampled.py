r"""A support vector machine's evidence by sampling: exact gradients, and their integrals (Gold &
Sollich 2003, sections 3.3 and 4.2).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from scipy.special import roots_legendre

from ...checks import check_choice, check_whole
from ...likelihoods.penalized import check_penalty
from ...sampling import HMC
from ...sampling.samples import Sampler
from .criterion import Criterion, Gradient
from .gram import pull_back
from .posterior import Posterior, draw_posterior
from .slack import SLACKS, log_kappa

#: The path to C is C t^4, with more rungs near 0, where the mean loss changes fastest.
_POWER = 4
_SAMPLER = HMC(num_draws=500, burn_in=300, num_chains=16)
#: Warn of an R-hat above this.
_DISAGREE = 1.5


class Estimate(NamedTuple):
    """A number estimated by sampling."""

    value: float
    error: float  #: standard error of the sampling


@dataclass(frozen=True)
class SampledEvidence(Criterion):
    r"""
    The exact log evidence per row (eq. 14), including kappa; greater is better:

        E = 1/N log Q(Y | X),    Q(Y | X) = kappa^N E_f exp(-C sum_n l(y_n f_n)),    f ~ N(0, K).

    Sampling gives its gradients, as averages over the posterior:

        dE / dC = d log kappa / dC - <1/N sum_n l(y_n f_n)>                              (eq. 18)
        dE / d lambda = -C / (2N) <l'(Y f)^T Y dK/dlambda K^-1 f>                        (eq. 20)

    but not its value, which requires `rungs`: the value is the integral of eq. 18 from C = 0, where
    E = -log 2, by the Gauss-Legendre rule in C t^4, with one run of the sampler per rung.

    The sampler has the same seed for every kernel and penalty, so that the gradient is nearly
    smooth in them. K includes a jitter, see `Posterior`.

    :ivar slack: "linear" or "quadratic".
    :ivar sampler: `HMC`, or for linear slack `Gibbs`; more chains cost little.
    :ivar rungs: number of nodes of the value's integral, or 0.
    """

    greater_is_better = True
    has_gradient = True

    slack: str = "linear"
    sampler: Sampler = _SAMPLER
    rungs: int = 0

    def __post_init__(self) -> None:
        check_choice(SLACKS, slack=self.slack)
        check_whole(0, rungs=self.rungs)
        if not isinstance(self.sampler, Sampler):
            raise ValueError(f"sampler must be HMC or Gibbs, got {self.sampler!r}")

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """As in `Criterion`. :raise ValueError: also without `rungs`."""
        return self.estimate(kernel, data, penalty).value

    def estimate(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Estimate:
        """
        :return: the value and its standard error due to sampling.
        :raise ValueError: as for the criterion.
        """
        C = check_penalty(penalty)
        if self.rungs == 0:
            raise ValueError(
                "SampledEvidence has gradients only: SampledEvidence(rungs=12) integrates them to "
                "a value"
            )
        points, weights = roots_legendre(self.rungs)
        places, weights = (points + 1) / 2, weights / 2
        steps = C * _POWER * places ** (_POWER - 1) * weights
        found = [self._mean_loss(kernel, data, C * t**_POWER) for t in places]
        losses, errors = np.array([mean for mean, _ in found]).T
        faults = [fault for _, fault in found if fault]
        if faults:
            warnings.warn(f"at {len(faults)} of {self.rungs} rungs {faults[-1]}", stacklevel=3)
        value = float(log_kappa(self.slack, tf.constant(C, tf.float64))) - steps @ losses
        return Estimate(float(value), float(np.sqrt(np.square(steps * errors).sum())))

    def posterior(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Posterior:
        """
        :return: draws for this kernel and penalty.
        :raise ValueError: as the criterion.
        """
        return draw_posterior(kernel, data, penalty, self.slack, self.sampler)

    def gradient(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Gradient:
        """
        :return: the gradient, with standard errors from the scatter of chains and their parts. If
            no draw has slack (section 5.3.1), the mean is unreliable: standard errors are infinite,
            with a warning. With `rungs` the value is included.
        :raise ValueError: as for the criterion, but `rungs` may be 0.
        """
        value = self(kernel, data, penalty) if self.rungs else math.nan
        draws = self.posterior(kernel, data, penalty)
        return self.gradient_of(draws, kernel, data)._replace(value=value)

    def gradient_of(self, draws: Posterior, kernel: Kernel, data: tuple[Any, Any]) -> Gradient:
        """
        :param draws: draws for this kernel.
        :return: the same as `gradient`.
        """
        by_kernel = _by_kernel(kernel, data[0], draws.by_gram())
        C = tf.Variable(draws.problem.penalty, dtype=tf.float64)
        with tf.GradientTape() as tape:
            kappa = log_kappa(self.slack, C)
        by_penalty = float(tape.gradient(kappa, C)) - draws.parts(draws.mean_losses).mean(axis=1)
        trusted = _has_slack(draws)
        if fault := _fault(draws):
            warnings.warn(fault, stacklevel=3)
        means = {name: np.asarray(parts.mean(axis=0)) for name, parts in by_kernel.items()}
        errors = {name: error_of_mean(parts, trusted) for name, parts in by_kernel.items()}
        error = Gradient(math.nan, errors, float(error_of_mean(by_penalty, trusted)))
        return Gradient(math.nan, means, float(by_penalty.mean()), error)

    def _mean_loss(
        self, kernel: Kernel, data: tuple[Any, Any], penalty: float
    ) -> tuple[Estimate, str]:
        """:return: the mean loss, and the draws' fault, see `_fault`."""
        draws = self.posterior(kernel, data, penalty)
        parts = draws.parts(draws.mean_losses).mean(axis=1)
        return Estimate(float(parts.mean()), float(error_of_mean(parts, True))), _fault(draws)


def _by_kernel(kernel: Kernel, X: Any, by_gram: AnyNDArray) -> dict[str, AnyNDArray]:
    """
    :param by_gram: derivatives in the Gram matrix, [parts, N, N].
    :return: derivatives in the trainable values, [parts, ...].
    """
    rows = [pull_back(kernel, X, part) for part in by_gram]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def error_of_mean(parts: AnyNDArray, trusted: bool) -> AnyNDArray:
    """:return: standard error of the mean over parts, NaN for a single part."""
    if not trusted:
        return np.full(parts.shape[1:], np.inf)
    if len(parts) < 2:
        return np.full(parts.shape[1:], np.nan)
    return np.asarray(parts.std(axis=0, ddof=1) / math.sqrt(len(parts)))


def _has_slack(draws: Posterior) -> bool:
    """:return: True if the draws' scatter measures their error; else warns."""
    seen = bool(draws.pulls.any())
    if not seen:
        warnings.warn(
            "no draw has slack: the estimated gradient of the evidence in the kernel is 0; use "
            "more draws, or a smaller penalty",
            stacklevel=4,
        )
    return seen


def _fault(draws: Posterior) -> str:
    """:return: a text if chains disagree or do not move, else ""."""
    if draws.samples.s.shape[1] < 4:
        return ""
    rhat = float(draws.samples.rhat().max())
    if rhat <= _DISAGREE:
        return ""
    return (
        f"the chains do not agree yet (R-hat is {rhat:.3g}): averages over them are rough; use a "
        "longer burn_in and more draws"
    )
