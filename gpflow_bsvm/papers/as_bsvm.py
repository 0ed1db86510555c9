"""Base class of models that parametrize q differently from a `BSVM`, but predict like it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.posteriors import BasePosterior, PrecomputeCacheType, create_posterior

from ..data.batch import Batch
from ..engine.natural import Natural, to_mean_and_root
from ..engine.projection import with_active_dims
from ..models.sparse import BSVM, SparseFeatures


class AsBSVM(SparseFeatures, gpflow.models.InternalDataTrainingLossMixin):
    """A model that stores its data. `natural` returns its q, and `to_bsvm` a `BSVM` with this q."""

    data: tuple[tf.Tensor, tf.Tensor]

    @abstractmethod
    def elbo(self) -> tf.Tensor:
        """:return: the evidence lower bound, [], without the priors of the hyperparameters."""

    @abstractmethod
    def natural(self) -> Natural:
        """:return: q in natural parameters, in the whitened space of the features."""

    @abstractmethod
    def to_bsvm(self) -> BSVM:
        """:return: a `BSVM` with the same options and q."""

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        """:return: `elbo`."""
        return self.elbo()

    def predictor(self, finish: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """See `BSVM`."""
        return self.to_bsvm().predictor(finish)

    def whitened_q(self, Lz: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and root of q(Lz^-1 u)."""
        return to_mean_and_root(self.natural())

    def posterior(self, precompute_cache: Any = PrecomputeCacheType.TENSOR) -> BasePosterior:
        """See `gpflow.models.SVGP`; speeds up repeated predictions with the current q."""
        mean, root = to_mean_and_root(self.natural())
        prior = with_active_dims(self.kernel), self.inducing_variable
        q = tf.transpose(mean), root, True  # whitened
        with self._own_jitter():
            return create_posterior(*prior, *q, self.mean_function, precompute_cache)

    def _batch(self) -> Batch:
        X, Y = self.data
        return Batch(X, Y, tf.ones_like(X[:, :1]))
