"""Features of x in a sparse model, and their jitter; independent of q."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import RegressionData
from gpflow.kernels import MultioutputKernel
from gpflow.posteriors import (
    IndependentPosteriorMultiOutput,
    IndependentPosteriorSingleOutput,
    get_posterior_class,
)

from ..data.checks import duplicate_rows
from ..engine.contracts import check_floats, check_num_data, networks_in
from ..engine.prior import Prior, compiled_prior_factor, plain_points, safe_prior_factor
from ..engine.remembered import remembered
from ..engine.structure import named_parameters
from ..likelihoods.hooks import check_labels
from ..likelihoods.labels import as_column, class_numbers


class SparseFeatures(gpflow.models.GPModel):
    """
    Features Lz^-1 k(Z, x) of a model, with its kernel, inducing variable and mean function. The
    engine requires only q in addition.
    """

    inducing_variable: Any
    _jitter: float | None
    #: Names of the attributes of q.
    _names_of_q: ClassVar[tuple[str, ...]] = ("q_mu", "q_sqrt")

    def _check_features(self) -> None:
        """
        :raise ValueError: if kernel and inducing variable mix or correlate latent functions under
            q; if the likelihood needs a different number; for an invalid `num_data`.
        """
        self._jitter = None
        posterior = get_posterior_class(self.kernel, self.inducing_variable)
        if posterior not in (IndependentPosteriorSingleOutput, IndependentPosteriorMultiOutput):
            raise ValueError(
                f"{type(self).__name__} needs independent latent functions, not a "
                f"{posterior.__name__}: use one kernel with num_latent_gps, or SharedIndependent / "
                "SeparateIndependent with their own inducing variables"
            )
        self._warn_of_duplicates()
        check_num_data(getattr(self, "num_data", None))
        needed = self.likelihood.latent_dim or self.num_latent_gps
        if needed != self.num_latent_gps:
            raise ValueError(
                f"{type(self.likelihood).__name__} needs num_latent_gps={needed}, "
                f"got {self.num_latent_gps}"
            )

    def _warn_of_duplicates(self) -> None:
        for pairs in filter(None, map(duplicate_rows, plain_points(self.inducing_variable))):
            warnings.warn(
                f"{len(pairs)} inducing points are duplicates (row {pairs[0][1]} equals row "
                f"{pairs[0][0]}) and have no effect; use np.unique(Z, axis=0)",
                stacklevel=4,
            )

    @check_shapes("return: [G, M, M]")
    def prior_factor(self) -> tf.Tensor:
        """
        Cholesky factor Lz of Kuu + jitter I, [G, M, M]; G = 1 if the latent functions share it.

        The jitter is GPflow's `default_jitter()`. If the factorization fails (outside of a graph),
        the jitter is raised by factors of 10 up to 1e-2, with a warning, and kept for this model.

        :raise ValueError: if even 1e-2 fails; the message names the likely cause.
        """
        if tf.executing_eagerly():
            compute = functools.partial(safe_prior_factor, self.prior, self._jitter)
            Lz, self._jitter = remembered(self, "prior factor", (self.prior,), compute)
            return Lz
        jitter = tf.constant(self.jitter, gpflow.config.default_float())
        return compiled_prior_factor.bind(self.prior)(jitter)

    @property
    def jitter(self) -> float:
        """:return: the jitter last added to the diagonal of Kuu by `prior_factor`."""
        return self._jitter or gpflow.config.default_jitter()

    @property
    def q_shape(self) -> tuple[int, int]:
        """:return: number of latent functions L and of inducing points M."""
        return self.num_latent_gps, int(self.inducing_variable.num_inducing)

    @property
    def num_feature_groups(self) -> int:
        """:return: 1 if all latent functions share kernel and inducing variable, else L."""
        return self.q_shape[0] if isinstance(self.kernel, MultioutputKernel) else 1

    @property
    def prior(self) -> Prior:
        """:return: kernel, inducing variable and mean function."""
        return Prior(self.kernel, self.inducing_variable, self.mean_function)

    def hyperparameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """:return: trainable parameters other than q, by GPflow's names."""
        networks = networks_in((self.kernel, self.mean_function))
        known = {id(getattr(self, name, None)) for name in self._names_of_q}
        known |= {id(v) for network in networks for v in network.all_weights()}
        named = named_parameters(self).items()
        once = {id(p): (name, p) for name, p in named if p.trainable and id(p) not in known}
        weights = [v for network in networks for v in network.learned_weights()]
        return dict(once.values()) | {f".weights[{n}]": v for n, v in enumerate(weights)}

    def _labelled(self, data: RegressionData) -> RegressionData:
        """
        :return: X, and Y in the likelihood's format.
        :raise ValueError: outside of graphs, for invalid labels or a float type other than GPflow's
            default.
        """
        X = data[0]
        Y = as_column(self.likelihood, data[1])
        if tf.executing_eagerly():
            check_floats(named_parameters(self))
            check_labels(self.likelihood, Y, minibatch=True)
        return X, class_numbers(self.likelihood, Y)

    @check_shapes("return: [N]")
    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """As in `gpflow.models.GPModel`."""
        return super().predict_log_density(self._labelled(data), full_cov, full_output_cov)

    @contextlib.contextmanager
    def _own_jitter(self) -> Iterator[None]:
        config = dataclasses.replace(gpflow.config.config(), jitter=self.jitter)
        with gpflow.config.as_context(config):
            yield
