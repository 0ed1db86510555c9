"""Base class of models that parametrize q differently from a `BSVM`, but predict like it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import InputData, MeanAndVariance
from gpflow.conditionals import conditional
from gpflow.posteriors import BasePosterior, PrecomputeCacheType

from ..data.batch import Batch
from ..data.checks import check_dtype
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

    @inherit_check_shapes
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """See `gpflow.models.SGPR`; computes q first."""
        check_dtype(Xnew)
        mean, root = to_mean_and_root(self.natural())
        with self._own_jitter():
            f_mean, f_var = conditional(
                Xnew,
                self.inducing_variable,
                with_active_dims(self.kernel),
                tf.transpose(mean),
                q_sqrt=root,
                full_cov=full_cov,
                full_output_cov=full_output_cov,
                white=True,
            )
        return f_mean + self.mean_function(Xnew), f_var

    def posterior(self, precompute_cache: Any = PrecomputeCacheType.TENSOR) -> BasePosterior:
        """See `gpflow.models.SVGP`; speeds up repeated predictions with the current q."""
        return self.to_bsvm().posterior(precompute_cache)

    def _batch(self) -> Batch:
        X, Y = self.data
        return Batch(X, Y, tf.ones_like(X[:, :1]))
