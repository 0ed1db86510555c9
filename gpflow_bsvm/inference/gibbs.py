"""Draws from the pseudo-posterior by its augmentation: exact, where q is an approximation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, RegressionData
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood
from tqdm import tqdm

from ..checks import check_least, check_model
from ..engine.projected_data import EngineModel
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, sum_sites
from .samples import Draws, blocks_of, rows_of_all

#: Draws between two looks at the progress bar.
_BLOCK = 50


@dataclass(frozen=True)
class Gibbs:
    """
    Gibbs sampling of the pseudo-posterior p(s) prod_n L(y_n | f_n) (Polson & Scott 2011), several
    chains at once: in turn, for all n,

        1 / lambda_n ~ inverse Gaussian(a / |1 - y_n f_n|, a^2),     a = penalty / 2,
        s ~ N(P^-1 h, P^-1),   P = I + Phi^T diag(1 / lambda) Phi,   h = Phi^T y (a + 1 / lambda).

    The residual variance of a sparse model plays no part in what is drawn (f = Phi s + m); a batch
    or linear model has none. Rows are all in memory. The model's q stays as it is.

    :ivar num_draws: kept of each chain.
    :ivar burn_in: first draws of each chain that are not kept.
    :ivar num_chains: started from draws of the prior.
    :ivar thin: every so many draws one is kept.
    :ivar seed: of all draws.
    """

    num_draws: int = 1000
    burn_in: int = 500
    num_chains: int = 4
    thin: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(1, num_draws=self.num_draws, num_chains=self.num_chains, thin=self.thin)
        check_least(0, burn_in=self.burn_in)

    def run(
        self,
        model: EngineModel,
        data: RegressionData | None = None,
        *,
        sample_weight: Any = None,
        progress: bool | None = None,
    ) -> Draws:
        """
        :param data: X [N, D] and Y [N, P]; None: those that the model holds.
        :param sample_weight: None, or ones and zeros: a power of the pseudo-likelihood has another
            augmentation.
        :param progress: show a progress bar; None: on a terminal only.
        :return: the draws; after an interrupt those so far, with a warning.
        :raise ValueError: for bad data, other weights, or a likelihood without `draw_sites`.
        """
        check_model(model)
        if not hasattr(model.likelihood, "draw_sites"):
            raise ValueError(
                f"{type(model.likelihood).__name__} has no augmentation to draw from: use Hinge or "
                "OneVsRest, or HMC, which takes any likelihood"
            )
        rows = rows_of_all(model, data, sample_weight)
        if not np.isin(rows.weight, (0, 1)).all():
            raise ValueError(
                "Gibbs takes weights of 0 and 1 only (and models whose num_data is None or N): "
                "repeat rows, or use HMC"
            )
        return Draws(self._sample(model, rows, progress), model)

    def _sample(self, model: EngineModel, rows: Rows, progress: bool | None) -> AnyNDArray:
        num_latents, num_features = model.num_features
        random = tf.random.Generator.from_seed(self.seed)
        shape = [self.num_chains, num_latents, num_features]
        s = random.normal(shape, dtype=default_float())
        sweep = _sweep.bind(model.likelihood)
        parts: list[AnyNDArray] = []
        total = self.burn_in + self.num_draws * self.thin
        hide = None if progress is None else not progress
        with tqdm(total=total, desc="draws", disable=hide) as bar:
            for number in blocks_of(total, _BLOCK):
                try:
                    block = sweep(s, tf.constant(number), random.make_seeds(1)[:, 0], *rows)
                except KeyboardInterrupt:
                    if sum(len(part) for part in parts) <= self.burn_in:
                        raise
                    warnings.warn("interrupted: these are the draws so far", stacklevel=4)
                    break
                s = block[-1]
                parts.append(block.numpy())
                bar.update(number)
        draws = np.concatenate(parts)[self.burn_in :: self.thin]
        return np.moveaxis(draws, 0, 1)


@Compiled
def _sweep(
    likelihood: Likelihood, s: tf.Tensor, number: tf.Tensor, seed: tf.Tensor, *rows: tf.Tensor
) -> tf.Tensor:
    """
    :param s: [chains, L, M], and number: of draws that follow.
    :return: [number, chains, L, M].
    """
    seen, shape = Rows(*rows), tf.shape(s)
    chains, num_latents = shape[0], shape[1]
    flat = tf.reshape(s, [-1, shape[2]])  # a chain is some more latent functions
    wide = _for_chains(seen, chains, num_latents)
    eye = tf.eye(shape[2], dtype=s.dtype)

    def body(n: tf.Tensor, flat: tf.Tensor, seen_so_far: tf.TensorArray) -> Any:
        seeds = tf.random.experimental.stateless_split(
            tf.random.experimental.stateless_fold_in(seed, n), 2
        )
        f = tf.matmul(wide.features, flat[..., None])[..., 0]  # [chains * L, N]
        f = tf.reshape(f, [chains, num_latents, -1])
        F = tf.linalg.matrix_transpose(f) + seen.prior_mean  # [chains, N, L]
        w, r = likelihood.draw_sites(F, seen.Y, seeds[0])
        h, P = sum_sites(wide, _latents_last(w), _latents_last(r))
        L = tf.linalg.cholesky(P + eye)
        noise = tf.random.stateless_normal(tf.shape(h), seeds[1], dtype=h.dtype)
        half = tf.linalg.triangular_solve(L, h[..., None])[..., 0] + noise
        flat = tf.linalg.triangular_solve(L, half[..., None], adjoint=True)[..., 0]
        return n + 1, flat, seen_so_far.write(n, tf.reshape(flat, shape))

    kept = tf.TensorArray(s.dtype, size=number, element_shape=s.shape)
    *_, kept = tf.while_loop(lambda n, *_: n < number, body, [0, flat, kept])
    return kept.stack()


def _for_chains(rows: Rows, chains: tf.Tensor, num_latents: tf.Tensor) -> Rows:
    """:return: rows whose latent functions are those of all chains."""
    prior_mean = rows.prior_mean + tf.zeros([1, num_latents], rows.prior_mean.dtype)
    shared = tf.shape(rows.features)[0] == 1
    features = tf.tile(rows.features, [tf.where(shared, 1, chains), 1, 1])
    return rows._replace(features=features, prior_mean=tf.tile(prior_mean, [1, chains]))


def _latents_last(part: tf.Tensor) -> tf.Tensor:
    """:return: [chains, N, L] as [N, chains * L]."""
    return tf.reshape(tf.transpose(part, [1, 0, 2]), [tf.shape(part)[1], -1])
