"""The sparse Bayesian SVM: a `gpflow.models.SVGP` with closed-form natural gradients."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.kernels import Kernel, MultioutputKernel
from gpflow.posteriors import (
    BasePosterior,
    IndependentPosteriorMultiOutput,
    IndependentPosteriorSingleOutput,
    PrecomputeCacheType,
    get_posterior_class,
)

from ..checks import (
    check_data,
    check_width,
    duplicate_rows,
    explain_cholesky_failure,
    inducing_points,
)
from ..compilation import Compiled
from ..inference.solve import Natural, to_mean_and_root, to_natural
from ..inference.statistics import compiled_prior_factor, compiled_project
from ..inference.step import natural_gradient_step

#: Escalated jitter stops here: beyond it the model would no longer be the one asked for.
MAX_JITTER = 1e-2


@Compiled
def _natural(q_mu: tf.Tensor, q_sqrt: tf.Tensor, *prior_factor: tf.Tensor) -> Natural:
    """:return: q(u) in natural parameters of the whitened Lz^-1 u, Lz given unless whitened."""
    mean, root = tf.transpose(q_mu), q_sqrt
    for Lz in prior_factor:
        Lz = tf.broadcast_to(Lz, tf.shape(root))
        mean = tf.linalg.triangular_solve(Lz, mean[..., None])[..., 0]
        root = tf.linalg.triangular_solve(Lz, root)
    return to_natural(mean, root)


class BSVM(gpflow.models.SVGP):
    r"""
    Sparse Bayesian support vector machine (S-BSVM, Wenzel et al. 2017, section 4.2):

        f ~ GP(m, k),   u = f(Z),   q(u) Gaussian,
        ELBO = sum_n E_q log L(y_n | f_n) - KL(q(u) || p(u)).

    Signature, parameters and predictions are those of `gpflow.models.SVGP`, and any likelihood of
    GPflow will do; the pseudo-likelihoods of `gpflow_bsvm.likelihoods` have closed-form sites. New
    is how q is found: `natgrad_step`, and `gpflow_bsvm.inference` for whole fits.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: gpflow.likelihoods.Likelihood,
        inducing_variable: Any,
        *,
        q_diag: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        Arguments as in `gpflow.models.SVGP`.

        :raise ValueError: for `q_diag=True`; for kernels and inducing variables whose latent
            functions are mixed or correlated under q (closed-form steps treat each by itself); for
            duplicate inducing points; if the likelihood needs another number of latent functions.
        """
        if q_diag:
            raise ValueError(
                "BSVM needs a full q_sqrt (q_diag=False): its closed-form step gives a full "
                "covariance; for a diagonal one use gpflow.models.SVGP with the same likelihood"
            )
        super().__init__(kernel, likelihood, inducing_variable, q_diag=False, **kwargs)
        self._jitter: float | None = None
        self._refuse_mixed_latents()
        self._refuse_duplicates()
        self._refuse_wrong_latents()

    def _refuse_mixed_latents(self) -> None:
        posterior = get_posterior_class(self.kernel, self.inducing_variable)
        allowed = (IndependentPosteriorSingleOutput, IndependentPosteriorMultiOutput)
        if posterior not in allowed:
            raise ValueError(
                f"BSVM needs independent latent functions; {type(self.kernel).__name__} with "
                f"{type(self.inducing_variable).__name__} gives a {posterior.__name__}. Use one "
                "kernel with num_latent_gps, or SharedIndependent / SeparateIndependent with "
                "SharedIndependentInducingVariables or SeparateIndependentInducingVariables"
            )

    def _refuse_duplicates(self) -> None:
        for pairs in map(duplicate_rows, inducing_points(self.inducing_variable)):
            if not pairs:
                continue
            first, again = pairs[0]
            raise ValueError(
                f"{len(pairs)} inducing points are duplicates (row {again} equals row {first}); "
                "use gpflow_bsvm.inducing_points, which never returns any, or np.unique(Z, axis=0)"
            )

    def _refuse_wrong_latents(self) -> None:
        needed = self.likelihood.latent_dim
        if needed is not None and needed != self.num_latent_gps:
            raise ValueError(
                f"{type(self.likelihood).__name__} needs num_latent_gps={needed}, "
                f"got {self.num_latent_gps}"
            )

    # --- what the engine asks of a model -------------------------------------------------------

    def prior_factor(self) -> tf.Tensor:
        """
        Cholesky factor Lz of Kuu + jitter I, [G, M, M], G = 1 where the latent functions share it.

        The jitter is GPflow's `default_jitter()`; where that fails (outside of a graph) it is
        raised by factors of 10 up to 1e-2 with a warning, and this model then uses it throughout.

        :raise ValueError: if 1e-2 fails too; names the likely cause.
        """
        factor = compiled_prior_factor.bind(self.kernel, self.inducing_variable)
        jitter = gpflow.config.default_jitter()
        dtype = gpflow.config.default_float()
        if not tf.executing_eagerly():
            return factor(tf.constant(self._jitter or jitter, dtype))
        before, self._jitter = self._jitter, None
        jitters = [jitter]  # the default is tried even where it is 0 or above the limit
        while jitters[-1] < 0.999 * MAX_JITTER:
            jitters.append(10 * jitters[-1] or 1e-16)
        for jitter in jitters:
            with contextlib.suppress(tf.errors.InvalidArgumentError):
                Lz = factor(tf.constant(jitter, dtype))
                if np.isfinite(Lz.numpy()).all():
                    if jitter > jitters[0]:
                        self._jitter = jitter
                        if jitter != before:
                            warnings.warn(f"Kuu needed a jitter of {jitter:.0e}", stacklevel=2)
                    return Lz
        reason = explain_cholesky_failure(self.kernel, self.inducing_variable, jitters[-1])
        raise ValueError(
            f"Kuu has no Cholesky factor, even with jitter {jitters[-1]:.0e}: {reason}"
        )

    @property
    def jitter(self) -> float:
        """:return: what `prior_factor` last added to the diagonal of Kuu."""
        return self._jitter or gpflow.config.default_jitter()

    @property
    def num_features(self) -> tuple[int, int]:
        """:return: number of latent functions L and of inducing points M."""
        num_inducing, num_latents = self.q_mu.shape
        return int(num_latents), int(num_inducing)

    @property
    def num_feature_groups(self) -> int:
        """:return: 1 where all latent functions share kernel and inducing variable, else L."""
        return self.num_features[0] if isinstance(self.kernel, MultioutputKernel) else 1

    def projector(self) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        """
        :return: a function of X [N, D] that returns whitened features [G, N, M], residual variance
            [N, L or 1] and prior mean [N, L or 1], at the present hyperparameters.
        """
        project = compiled_project.bind(self.kernel, self.inducing_variable, self.mean_function)
        Lz = self.prior_factor()
        return lambda X: project(X, Lz)

    def natural(self) -> Natural:
        """:return: q in natural parameters, in the whitened space of the features."""
        natural = _natural.bind(self.q_mu, self.q_sqrt)
        return Natural(*(natural() if self.whiten else natural(self.prior_factor())))

    def assign_natural(self, natural: Natural) -> None:
        """Set `q_mu` and `q_sqrt` from natural parameters in the whitened space."""
        mean, root = to_mean_and_root(natural)
        if not self.whiten:
            Lz = self.prior_factor()
            mean = tf.linalg.matvec(Lz, mean)
            root = tf.matmul(Lz, root)
        self.q_mu.assign(tf.transpose(mean))
        self.q_sqrt.assign(root)

    def natgrad_step(self, data: RegressionData, learning_rate: float | tf.Tensor = 1.0) -> None:
        """
        One natural-gradient step on q in closed form: the same as
        `gpflow.optimizers.NaturalGradient(learning_rate)` on this model's `training_loss(data)`,
        and positive definite for every learning rate in (0, 1]. May be called in a `tf.function`.

        :param data: X [B, D] and Y [B, P]; a minibatch if `num_data` says so.
        :param learning_rate: rho in (0, 1]; 1 on all the data is a step of coordinate ascent.
        :raise ValueError: for a learning rate outside (0, 1], or (outside of a graph) bad data.
        """
        if tf.executing_eagerly():
            data = check_data(self.likelihood, *data, minibatch=True)
            check_width(self, *data)
        self.assign_natural(natural_gradient_step(self, data, learning_rate))

    # --- GPflow's methods, under the jitter that this model needs ------------------------------

    @contextlib.contextmanager
    def _own_jitter(self) -> Iterator[None]:
        if self._jitter is None:
            yield
            return
        config = dataclasses.replace(gpflow.config.config(), jitter=self._jitter)
        with gpflow.config.as_context(config):
            yield

    @inherit_check_shapes
    def prior_kl(self) -> tf.Tensor:
        """As in `gpflow.models.SVGP`."""
        with self._own_jitter():
            return super().prior_kl()

    @inherit_check_shapes
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """As in `gpflow.models.SVGP`."""
        with self._own_jitter():
            return super().predict_f(Xnew, full_cov, full_output_cov)

    def posterior(
        self, precompute_cache: PrecomputeCacheType = PrecomputeCacheType.TENSOR
    ) -> BasePosterior:
        """As in `gpflow.models.SVGP`."""
        with self._own_jitter():
            return super().posterior(precompute_cache)
