r"""Draws of a support vector machine's posterior, and averages that the evidence needs.

Q(f | D) ~ N(f; 0, K) exp(-C sum_n l(y_n f_n)),    theta = K^-1 f    (Gold & Sollich 2003, 4.2)
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from scipy.linalg import cho_solve, solve_triangular

from ...engine.natural import Natural
from ...models import LinearBSVM
from ...sampling.samples import Sampler, Samples
from .gram import check_positive
from .mode import Mode, svm_mode
from .slack import likelihood_of, losses, slopes
from .static_hmc import StaticHMC

#: Precision of the q that stands for a mode, in units of the prior's.
_POINT = 1e16
#: Averages are taken over at least so many parts, whose scatter is the Monte Carlo error.
_PARTS = 20


@dataclasses.dataclass(frozen=True)
class Posterior:
    """
    Draws of f, and of theta = K^-1 f, at one kernel and penalty.

    :ivar samples: by whatever sampler, of s = L^-1 f; `samples.rhat()` and `.effective_draws()`,
        and `acceptance`, tell how well the chains went.
    :ivar mode: where those of a `StaticHMC` started.
    :ivar root: L, [N, N], of K = L L^T, a jitter included.
    """

    samples: Samples
    mode: Mode
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
        return self.f * self.mode.y

    @property
    def mean_losses(self) -> AnyNDArray:
        """:return: 1/N sum_n l(y_n f_n), [chains, draws]."""
        return np.asarray(losses(self.mode.slack, self.margins).mean(axis=-1))

    @property
    def pulls(self) -> AnyNDArray:
        """:return: -C y l'(y f), [chains, draws, N], the slope of the log likelihood by f."""
        slope = slopes(self.mode.slack, self.margins)
        return np.asarray(-self.mode.penalty * self.mode.y * slope)

    @property
    def acceptance(self) -> AnyNDArray:
        """:return: share of each chain's draws that differ from the one before; NaN for one."""
        s = self.samples.s
        moved = (s[:, 1:] != s[:, :-1]).any(axis=(2, 3))
        return np.mean(moved, axis=1) if moved.size else np.full(len(s), np.nan)

    def stuck(self) -> AnyNDArray:
        """:return: numbers of chains that never moved."""
        return np.flatnonzero(self.acceptance == 0)

    def parts(self, values: AnyNDArray) -> AnyNDArray:
        """
        :param values: [chains, draws, ...].
        :return: [parts, draws of each, ...], as many parts of every chain; the first draws of a
            chain are left out where their number cannot be divided.
        """
        chains, draws = values.shape[:2]
        each = min(draws, max(1, math.ceil(_PARTS / chains)))
        kept = values[:, draws % each :]
        return np.asarray(kept.reshape(chains * each, draws // each, *values.shape[2:]))

    def by_gram(self, form: str) -> AnyNDArray:
        """
        :param form: "likelihood" or "prior".
        :return: the derivative of the log evidence per row by the Gram matrix, of every part:
            1/(2N) <pulls theta^T> (eq. 20), or -1/(2N) (K^-1 - <theta theta^T>) (eq. 19),
            [parts, N, N].
        """
        theta = self.parts(self.theta)
        left = self.parts(self.pulls) if form == "likelihood" else theta
        products = np.swapaxes(left, 1, 2) @ theta / theta.shape[1]
        if form == "prior":
            products = products - cho_solve((self.root, True), np.eye(len(self.root)))
        return np.asarray(products / (2 * len(self.root)))


def draw_posterior(
    kernel: Kernel, data: tuple[Any, Any], penalty: float, slack: str, sampler: Sampler
) -> Posterior:
    """
    Sample s = L^-1 f, the weights of a linear model of the rows of L: so sampling needs only the
    Gram matrix of a kernel (including a `White` part), and nothing else of the kernel.

    :return: draws of the posterior; a `StaticHMC` starts at the mode, with steps of its
        `step_size` / max(1, C sqrt(K_nn)): the steeper the loss for a step, the shorter.
    :raise ValueError: as `svm_mode`; for a likelihood that the sampler does not take.
    """
    mode = svm_mode(kernel, data, penalty, slack=slack)
    root, Y = root_of(mode.gram), (mode.y[:, None] + 1) / 2
    likelihood = likelihood_of(slack, mode.penalty)
    dtype = gpflow.config.default_float()
    model = LinearBSVM(len(root), likelihood, bias=False)
    s, eye = root.T @ (mode.alpha * mode.y), np.eye(len(root))
    h, P = (tf.constant(_POINT * part[None], dtype) for part in (s, eye))
    model.assign_natural(Natural(h, P))
    if isinstance(sampler, StaticHMC):
        steepness = mode.penalty * math.sqrt(mode.gram.diagonal().mean())
        size = sampler.step_size / max(1.0, steepness)
        sampler = dataclasses.replace(sampler, step_size=size)
    samples = sampler.run(model, (root.astype(dtype), Y.astype(dtype)), progress=False)
    return Posterior(samples, mode, root)


def root_of(gram: AnyNDArray) -> AnyNDArray:
    """
    :return: the Cholesky factor of the Gram matrix, GPflow's `default_jitter()` times its mean
        diagonal added, [N, N]: so any kernel's has one.
    :raise ValueError: for a matrix that is not positive semidefinite.
    """
    jitter = gpflow.config.default_jitter() * gram.diagonal().mean() + np.finfo(float).tiny
    try:
        return np.linalg.cholesky(gram + jitter * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        check_positive(gram)
        raise
