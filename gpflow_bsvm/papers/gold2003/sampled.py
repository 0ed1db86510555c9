r"""The evidence of a support vector machine by sampling: its exact gradients, and their integrals
(Gold & Sollich 2003, sections 3.3 and 4.2). The draws are from the posterior

    Q(f | D) ~ N(f; 0, K) exp(-C sum_n l(y_n f_n)),    theta = K^-1 f.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property, partial
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from scipy.linalg import solve_triangular
from scipy.special import roots_legendre
from scipy.stats import sem

from ...checks import check_whole
from ...likelihoods.base import check_penalty
from ...models import LinearBSVM
from ...notices import warn
from ...sampling import HMC
from ...sampling.samples import Sampler, Samples
from .criterion import Criterion, Gradient
from .mode import Mode, pull_back, root_of, svm_mode
from .squared_hinge import likelihood_of, log_kappa, losses, slopes

#: Fewest parts of the draws; the scatter of their averages measures the Monte Carlo error.
_PARTS = 20
#: The rungs are penalties C t^4, and denser near 0, where the mean loss changes fastest.
_POWER = 4
_SAMPLER = HMC(num_draws=500, burn_in=300, num_chains=16)
#: Warn of an R-hat above this.
_DISAGREE = 1.5


@dataclasses.dataclass(frozen=True)
class Posterior:
    """
    Draws of f, and of theta = K^-1 f, for one kernel and penalty, in parts of equal size.

    :ivar samples: draws of s = L^-1 f, from any sampler; `samples.rhat()` and `.effective_draws()`
        measure the quality of the chains.
    :ivar mode: the support vector machine, whose f is the mode of this posterior.
    :ivar root: L, [N, N], of K = L L^T, including a jitter.
    """

    samples: Samples
    mode: Mode
    root: AnyNDArray

    @cached_property
    def f(self) -> AnyNDArray:
        """:return: [parts, draws per part, N]."""
        return in_parts(self.samples.s[:, :, 0]) @ self.root.T

    @cached_property
    def theta(self) -> AnyNDArray:
        """:return: K^-1 f, [parts, draws per part, N], by a triangular solve."""
        s = in_parts(self.samples.s[:, :, 0])
        flat = solve_triangular(self.root.T, s.reshape(-1, s.shape[-1]).T, lower=False)
        return flat.T.reshape(s.shape)

    def mean_losses(self) -> AnyNDArray:
        """:return: 1/N sum_n l(y_n f_n), averaged over each part, [parts]."""
        return losses(self.mode.slack, self.mode.y * self.f).numpy().mean(axis=(1, 2))

    def by_gram(self) -> AnyNDArray:
        """
        :return: the derivative of the log evidence per row in the Gram matrix, -C / (2N) <y l'(y f)
            theta^T> (eq. 20), averaged over each part, [parts, N, N].
        """
        y = self.mode.y
        pulls = -self.mode.penalty * y * slopes(self.mode.slack, y * self.f)
        return np.swapaxes(pulls, 1, 2) @ self.theta / (2 * len(y) * pulls.shape[1])


def in_parts(values: AnyNDArray) -> AnyNDArray:
    """
    :param values: [chains, draws, ...].
    :return: [parts, draws per part, ...], equally many parts of each chain, without surplus first
        draws.
    """
    chains, draws = values.shape[:2]
    each = min(draws, max(1, math.ceil(_PARTS / chains)))
    kept = values[:, draws % each :]
    return kept.reshape((chains * each, draws // each) + values.shape[2:])


class Estimate(NamedTuple):
    """A number estimated by sampling."""

    value: float
    error: float  #: standard error of the sampling


@dataclasses.dataclass(frozen=True)
class SampledEvidence(Criterion):
    r"""
    The exact log evidence per row (eq. 14), including kappa; greater is better:

        E = 1/N log Q(Y | X),    Q(Y | X) = kappa^N E_f exp(-C sum_n l(y_n f_n)),    f ~ N(0, K).

    Sampling gives its gradients, as averages over the posterior:

        dE / dC = d log kappa / dC - <1/N sum_n l(y_n f_n)>                              (eq. 18)
        dE / d lambda = -C / (2N) <l'(Y f)^T Y dK/dlambda K^-1 f>                        (eq. 20)

    The value requires `rungs`: it is the integral of eq. 18 from C = 0, where E = -log 2, by the
    Gauss-Legendre rule in C t^4, with one run of the sampler per rung.

    The sampler uses the same seed for every kernel and penalty, so the gradient is nearly a smooth
    function of them. K includes a jitter, see `Posterior`.

    :ivar sampler: `HMC` or, for linear slack, `Gibbs`; more chains cost little.
    :ivar rungs: number of nodes of the value's integral, or 0.
    """

    greater_is_better = True
    has_gradient = True

    slack: str = "linear"
    sampler: Sampler = _SAMPLER
    rungs: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(0, rungs=self.rungs)
        if not isinstance(self.sampler, Sampler):
            raise ValueError(f"sampler must be HMC or Gibbs, got {self.sampler!r}")
        check_whole(4, num_draws=self.sampler.num_draws)  # for R-hat

    def __call__(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> float:
        """See `Criterion`; raises ValueError if `rungs` is 0."""
        return self.estimate(kernel, data, penalty).value

    def estimate(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Estimate:
        """
        :return: the value, and its standard error due to sampling.
        :raise ValueError: as for the criterion.
        """
        C = check_penalty(penalty)
        if self.rungs == 0:
            raise ValueError(
                "SampledEvidence has gradients, but no value: SampledEvidence(rungs=12) integrates "
                "them to a value"
            )
        points, weights = roots_legendre(self.rungs)
        t = (points + 1) / 2
        steps = C * _POWER * t ** (_POWER - 1) * weights / 2
        parts = []
        rhats = []
        for rung in C * t**_POWER:
            draws = self.posterior(kernel, data, rung)
            parts.append(draws.mean_losses())
            rhats.append(draws.samples.rhat().max())
        _warn_of_chains(max(rhats))
        losses_of_rungs = np.mean(parts, axis=1)
        errors = sem(np.transpose(parts))
        value = float(log_kappa(self.slack, C) - steps @ losses_of_rungs)
        return Estimate(value, float(np.linalg.norm(steps * errors)))

    def posterior(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Posterior:
        """
        Sample s = L^-1 f, the weights of a linear model with the rows of L as inputs. Only the Gram
        matrix matters, so the kernel may include a `White`.

        :return: draws for this kernel and penalty.
        :raise ValueError: as for the criterion, or if the sampler does not support the likelihood.
        """
        mode = svm_mode(kernel, data, penalty, slack=self.slack)
        root = root_of(mode.gram)
        model = LinearBSVM(len(root), likelihood_of(self.slack, mode.penalty), bias=False)
        dtype = gpflow.config.default_float()
        rows = root.astype(dtype), (mode.y[:, None] > 0).astype(dtype)
        return Posterior(self.sampler.run(model, rows, progress=False), mode, root)

    def gradient(self, kernel: Kernel, data: tuple[Any, Any], penalty: float) -> Gradient:
        """
        :return: the gradient, with standard errors from the scatter of chains and their parts. If
            no draw has slack (section 5.3.1), the mean is unreliable: standard errors are infinite,
            and a warning is raised. With `rungs`, the value is included.
        :raise ValueError: as for the criterion, except that `rungs` may be 0.
        """
        value = self(kernel, data, penalty) if self.rungs else math.nan
        draws = self.posterior(kernel, data, penalty)
        by_gram = draws.by_gram()
        rows = [pull_back(kernel, data[0], part) for part in by_gram]
        by_kernel = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        C = tf.constant(draws.mode.penalty, tf.float64)
        _, slope = tfp.math.value_and_gradient(partial(log_kappa, self.slack), C)
        by_penalty = float(slope) - draws.mean_losses()
        _warn_of_chains(draws.samples.rhat().max())
        unseen = 0.0  # error that the scatter of the draws does not measure
        if not by_gram.any():
            unseen = math.inf
            warn(
                "no draw has slack: the estimated gradient of the evidence in the kernel is 0; use "
                "more draws, or a smaller penalty"
            )
        means = {name: np.asarray(parts.mean(axis=0)) for name, parts in by_kernel.items()}
        errors = {name: np.asarray(sem(parts) + unseen) for name, parts in by_kernel.items()}
        error = Gradient(math.nan, errors, float(sem(by_penalty) + unseen))
        return Gradient(value, means, float(by_penalty.mean()), error)


def _warn_of_chains(rhat: float) -> None:
    """Warn if chains disagree or do not move."""
    if rhat > _DISAGREE:
        warn(
            f"the chains do not agree yet (R-hat is {rhat:.3g}): averages over them are rough; "
            "use a longer burn_in and more draws"
        )
