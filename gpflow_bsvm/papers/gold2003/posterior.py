r"""Draws from a support vector machine's posterior, and averages for the evidence.

Q(f | D) ~ N(f; 0, K) exp(-C sum_n l(y_n f_n)),    theta = K^-1 f    (Gold & Sollich 2003, 4.2)
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from scipy.linalg import solve_triangular

from ...models import LinearBSVM
from ...sampling.samples import Sampler, Samples
from .gram import check_positive
from .mode import Mode, unsolved
from .slack import likelihood_of, losses, slopes

#: Minimum number of parts for averages; their scatter gives the Monte Carlo error.
_PARTS = 20


@dataclasses.dataclass(frozen=True)
class Posterior:
    """
    Draws of f, and of theta = K^-1 f, at one kernel and penalty.

    :ivar samples: draws of s = L^-1 f, by any sampler; see `samples.rhat()` and
        `.effective_draws()` for the quality of the chains.
    :ivar problem: the problem with this posterior, as an unsolved machine.
    :ivar root: L, [N, N], of K = L L^T, including a jitter.
    """

    samples: Samples
    problem: Mode
    root: AnyNDArray

    @cached_property
    def f(self) -> AnyNDArray:
        """:return: [chains, draws, N]."""
        return np.asarray(self.samples.s[:, :, 0] @ self.root.T)

    @cached_property
    def theta(self) -> AnyNDArray:
        """:return: K^-1 f, [chains, draws, N], by a triangular solve."""
        s = self.samples.s[:, :, 0]
        flat = solve_triangular(self.root.T, s.reshape(-1, s.shape[-1]).T, lower=False)
        return flat.T.reshape(s.shape)

    @property
    def margins(self) -> AnyNDArray:
        """:return: y f, [chains, draws, N]."""
        return self.f * self.problem.y

    @property
    def mean_losses(self) -> AnyNDArray:
        """:return: 1/N sum_n l(y_n f_n), [chains, draws]."""
        return np.asarray(losses(self.problem.slack, self.margins).mean(axis=-1))

    @property
    def pulls(self) -> AnyNDArray:
        """:return: -C y l'(y f), [chains, draws, N], the log likelihood's derivative in f."""
        slope = slopes(self.problem.slack, self.margins)
        return np.asarray(-self.problem.penalty * self.problem.y * slope)

    def parts(self, values: AnyNDArray) -> AnyNDArray:
        """
        :param values: [chains, draws, ...].
        :return: [parts, draws per part, ...], with equally many parts per chain; if the number of
            draws is not divisible, a chain's first draws are dropped.
        """
        chains, draws = values.shape[:2]
        each = min(draws, max(1, math.ceil(_PARTS / chains)))
        kept = values[:, draws % each :]
        return np.asarray(kept.reshape(chains * each, draws // each, *values.shape[2:]))

    def by_gram(self) -> AnyNDArray:
        """
        :return: the derivative of the log evidence per row in the Gram matrix, 1/(2N) <pulls
            theta^T> (eq. 20), for every part, [parts, N, N].
        """
        theta = self.parts(self.theta)
        products = np.swapaxes(self.parts(self.pulls), 1, 2) @ theta / theta.shape[1]
        return np.asarray(products / (2 * len(self.root)))


def draw_posterior(
    kernel: Kernel, data: tuple[Any, Any], penalty: float, slack: str, sampler: Sampler
) -> Posterior:
    """
    Sample s = L^-1 f, the weights of a linear model with the rows of L as inputs. This needs only
    the Gram matrix of a kernel (including a `White` part).

    :return: draws of the posterior.
    :raise ValueError: as `svm_mode`; for a likelihood that the sampler does not support.
    """
    problem, dtype = unsolved(kernel, data, penalty, slack), gpflow.config.default_float()
    root, Y = root_of(problem.gram), (problem.y[:, None] + 1) / 2
    model = LinearBSVM(len(root), likelihood_of(slack, problem.penalty), bias=False)
    samples = sampler.run(model, (root.astype(dtype), Y.astype(dtype)), progress=False)
    return Posterior(samples, problem, root)


def root_of(gram: AnyNDArray) -> AnyNDArray:
    """
    :return: the Cholesky factor [N, N] of the Gram matrix plus GPflow's `default_jitter()` times
        its mean diagonal, so that it exists for any kernel.
    :raise ValueError: for a matrix that is not positive semidefinite.
    """
    jitter = gpflow.config.default_jitter() * gram.diagonal().mean() + np.finfo(float).tiny
    try:
        return np.linalg.cholesky(gram + jitter * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        check_positive(gram)
        raise
