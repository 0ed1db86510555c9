"""The sparse Bayesian SVM: a `gpflow.models.SVGP` with closed-form natural gradients."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, cast

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import InputData, MeanAndVariance, RegressionData
from gpflow.config import default_float
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, MultioutputKernel, SharedIndependent
from gpflow.likelihoods import Likelihood
from gpflow.posteriors import BasePosterior, PrecomputeCacheType
from scipy.sparse import issparse

from ..checks import check_rate
from ..data.batch import Batch
from ..data.checks import as_matrix, check_data, check_dtype, duplicate_rows
from ..engine.contracts import (
    check_floats,
    check_model,
    check_num_data,
    check_prior,
    check_q,
    check_width,
    features_of,
    jitter_of,
    networks_in,
)
from ..engine.natural import Natural, blend, compiled_natural, solve, to_mean_and_root, whiten
from ..engine.projection import (
    Prior,
    Projected,
    check_codes,
    check_independent,
    compiled_prior_factor,
    plain_points,
    project,
    safe_prior_factor,
    with_active_dims,
)
from ..engine.shared_graph import Compiled
from ..engine.statistics import Marginals, accumulate, compiled_predict, marginals, moments, total
from ..engine.structure import check_process, named_parameters, remembered
from ..likelihoods.labels import as_column, check_labels, label_numbers, num_latents
from ..notices import warn


class SparseFeatures(gpflow.models.GPModel):
    """
    A model's features Lz^-1 k(Z, x), from its kernel, inducing variable and mean function. A
    subclass adds q; the engine requires no more.
    """

    inducing_variable: Any
    _jitter: float | None
    #: Names of the attributes that are checked when they are replaced.
    _parts: ClassVar = frozenset({"kernel", "likelihood", "mean_function", "inducing_variable"})
    #: Names of the attributes of q.
    _names_of_q: ClassVar[tuple[str, ...]] = ("q_mu", "q_sqrt")
    #: Whether equal inducing points are useless.
    _warns_of_duplicates: ClassVar[bool] = True

    def __setattr__(self, name: str, value: Any) -> None:
        """:raise TypeError: or ValueError, later, for an unsuitable part, such as a kernel."""
        old = vars(self).get(name)
        super().__setattr__(name, value)
        if name in self._parts and old is not None:
            try:
                check_prior(self, self.num_latent_gps)
            except (TypeError, ValueError):
                super().__setattr__(name, old)
                raise

    def _check_features(self) -> None:
        """:raise ValueError: as in `check_prior`, and for an invalid `num_data`."""
        self._jitter = None
        check_num_data(getattr(self, "num_data", None))
        check_prior(self, self.num_latent_gps)
        points = plain_points(self.inducing_variable) if self._warns_of_duplicates else []
        for pairs in filter(None, map(duplicate_rows, points)):
            first, again = pairs[0]
            warn(
                f"{len(pairs)} inducing points are duplicates (row {again} equals row {first}) and "
                "have no effect; use np.unique(Z, axis=0)"
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
            compute = partial(safe_prior_factor, self.prior, self._jitter)
            Lz, self._jitter = remembered(self, "prior factor", (self.prior,), compute)
            return Lz
        return compiled_prior_factor.bind(self.prior)(jitter_of(self))

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
        points = gpflow.inducing_variables.SharedIndependentInducingVariables
        shares = isinstance(self.kernel, SharedIndependent)
        shares &= isinstance(self.inducing_variable, points)
        return self.q_shape[0] if isinstance(self.kernel, MultioutputKernel) and not shares else 1

    @property
    def prior(self) -> Prior:
        """:return: kernel, inducing variable and mean function."""
        return Prior(self.kernel, self.inducing_variable, self.mean_function)

    def hyperparameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """:return: trainable parameters other than q and codes, by GPflow's names."""
        networks = networks_in((self.kernel, self.mean_function))
        known = {id(getattr(self, name, None)) for name in self._names_of_q}
        known |= {id(v) for network in networks for v in network.all_weights()}
        named = [(name, p) for name, p in named_parameters(self).items() if p.dtype.is_floating]
        once = {id(p): (name, p) for name, p in named if p.trainable and id(p) not in known}
        weights = [v for network in networks for v in network.learned_weights()]
        return dict(once.values()) | {f".weights[{n}]": v for n, v in enumerate(weights)}

    def _labelled(self, data: RegressionData) -> RegressionData:
        """
        :return: X, and Y in the likelihood's format.
        :raise ValueError: outside of graphs, for bad labels or another float type than GPflow's.
        """
        Y = as_column(self.likelihood, data[1])
        if tf.executing_eagerly():
            check_floats(self)
            check_labels(self.likelihood, Y, minibatch=True)
        return data[0], label_numbers(self.likelihood, Y)

    @check_shapes("return: [batch..., N]")
    def predict_log_density(
        self, data: RegressionData, full_cov: bool = False, full_output_cov: bool = False
    ) -> tf.Tensor:
        """As in `gpflow.models.GPModel`."""
        return super().predict_log_density(self._labelled(data), full_cov, full_output_cov)

    @inherit_check_shapes
    def predict_f(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """
        As in `gpflow.models.SVGP`, but similar models share one graph. Rows with NaN give NaN;
        functions of `gpflow_bsvm.prediction` reject such rows.

        :raise TypeError: for sparse rows (use functions of `gpflow_bsvm.prediction`).
        :raise ValueError: for rows of the wrong width, or codes outside a `Coregion`'s range.
        """
        if issparse(Xnew):
            raise TypeError(
                "GPflow's methods of a model need a dense X: give X.toarray(), or use a function "
                "such as gpflow_bsvm.prediction.predict_marginals, which takes sparse rows"
            )
        check_dtype(Xnew)
        X = tf.convert_to_tensor(Xnew, default_float())
        if tf.executing_eagerly():
            check_floats(self)
            check_width(self, X)
            check_codes(self.kernel, X)
        if full_cov or full_output_cov or len(X.shape) != 2:
            posterior: BasePosterior = self.posterior(PrecomputeCacheType.NOCACHE)
            with self._own_jitter():
                return posterior.fused_predict_f(X, full_cov, full_output_cov)
        Lz = compiled_prior_factor.bind(self.prior)(jitter_of(self))  # not cached: it has gradients
        return cast(MeanAndVariance, self._predictor(Lz, (self.prior,))(X))

    def _predictor(self, Lz: tf.Tensor, modules: tuple[Any, ...]) -> Callable[..., Any]:
        mean, root = self.whitened_q(Lz)
        R = tf.linalg.matrix_transpose(root)  # once, not in each call
        graph = _finished if len(modules) > 1 else _moments
        return partial(graph.bind(*modules).at_present(), (tf.transpose(mean), R, Lz))

    def _own_jitter(self) -> contextlib.AbstractContextManager[Any]:
        config = gpflow.config.config()
        if config.jitter == self.jitter:  # threads share settings: change them only if needed
            return contextlib.nullcontext()
        return gpflow.config.as_context(dataclasses.replace(config, jitter=self.jitter))


def as_inducing(variable: Any) -> InducingVariables:
    """:return: the given inducing variable; `InducingPoints(Z)` for a finite Z [M, D]."""
    given = isinstance(variable, InducingVariables)
    return variable if given else InducingPoints(as_matrix(variable, "Z"))


if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack


class SparseOptions(TypedDict, total=False):
    """Keyword arguments of `BSVM`, as in `gpflow.models.SVGP`."""

    mean_function: gpflow.functions.MeanFunction | None
    num_latent_gps: int
    q_mu: Any
    q_sqrt: Any
    whiten: bool
    num_data: float | None


class BSVM(SparseFeatures, gpflow.models.SVGP):
    r"""
    Sparse Bayesian support vector machine (S-BSVM, Wenzel et al. 2017, section 4.2):

        f ~ GP(m, k),   u = f(Z),   q(u) Gaussian,
        ELBO = sum_n E_q log L(y_n | f_n) - KL(q(u) || p(u)).

    Signature, parameters and predictions are as in `gpflow.models.SVGP`. Any GPflow likelihood
    works; the pseudo-likelihoods of `gpflow_bsvm.likelihoods` have closed-form sites. This class
    adds natural-gradient steps on q (`natgrad_step`); `gpflow_bsvm.inference` runs whole fits.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: gpflow.likelihoods.Likelihood,
        inducing_variable: Any,
        *,
        q_diag: bool = False,
        **kwargs: Unpack[SparseOptions],
    ) -> None:
        """
        Arguments are as in `gpflow.models.SVGP`.

        :param kwargs: `num_latent_gps` (default: as many as the likelihood or the kernel
            needs), and other options of GPflow.
        :raise ValueError: for `q_diag=True`; if latent functions are mixed or correlated under q
            (closed-form steps treat each separately); if likelihood or kernel needs another number
            of latent functions, or of inducing variables.
        """
        check_process()
        if q_diag:
            raise ValueError(
                "BSVM needs a full q_sqrt (q_diag=False): its closed-form step gives a full "
                "covariance; gpflow.models.SVGP with this likelihood can have a diagonal covariance"
            )
        inducing_variable = as_inducing(inducing_variable)
        check_independent(type(self).__name__, kernel, inducing_variable)
        given = kwargs.get("num_latent_gps")
        given = getattr(kernel, "num_latent_gps", None) if given is None else given
        kwargs["num_latent_gps"] = num_latents(likelihood, given=given)
        super().__init__(kernel, likelihood, inducing_variable, q_diag=False, **kwargs)
        self._check_features()

    @property
    def q_shape(self) -> tuple[int, int]:
        num_inducing, num_latents = self.q_mu.shape
        return int(num_latents), int(num_inducing)

    @check_shapes("return.h: [L, M]", "return.P: [L, M, M]")
    def natural(self) -> Natural:
        """:return: q in natural parameters, in the whitened space of the features."""
        q = (self.q_mu, self.q_sqrt)
        factor = () if self.whiten else (self.prior_factor(),)
        whole = q if self.whiten else (*q, self.prior)
        compute = partial(compiled_natural.bind(*q), factor)
        return cast(Natural, remembered(self, "natural", whole, compute))

    @check_shapes("Lz: [G, M, M]", "return[0]: [L, M]", "return[1]: [L, M, M]")
    def whitened_q(self, Lz: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and root of q(Lz^-1 u), Lz from `prior_factor`."""
        mean = tf.transpose(self.q_mu)
        root = tf.convert_to_tensor(self.q_sqrt)
        return (mean, root) if self.whiten else whiten(Lz, mean, root)

    def predictor(self, finish: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """
        :param finish: a function of the likelihood, X, mean and variance of f, and possibly other
            tensors with a row for every row of X. It becomes part of the graph.
        :return: a function from X [N, D] (and the other tensors) to the result of `finish`; if
            None, to marginals of f(x) under q. Factors are cached.
        """
        modules = (self.prior,) if finish is None else (self.prior, self.likelihood, finish)
        parts = (self.q_mu, self.q_sqrt, self.whiten, *modules)
        name = "predictor" if finish is None else getattr(finish, "__name__", "finish")

        def compute() -> Callable[..., Any]:
            check_floats(self)
            return self._predictor(self.prior_factor(), modules)

        return remembered(self, name, parts, compute)

    @check_shapes("natural.h: [L, M]", "natural.P: [L, M, M]")
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
        Take a closed-form natural-gradient step on q (Wenzel et al. 2017, eq. 9-10, Algorithm 1),

            h <- (1 - rho) h + rho s sum_n (r_n - w_n m(x_n)) Phi_n,
            P <- (1 - rho) P + rho (I + s sum_n w_n Phi_n Phi_n^T),

        where s = num_data / B, m is the mean function, and q has natural parameters h and P. This
        equals `gpflow.optimizers.NaturalGradient(learning_rate)` on this model's
        `training_loss(data)`, and P stays positive definite for every learning rate in (0, 1]. The
        method may be called in a `tf.function`.

        :param data: X [B, D] and Y [B, P]; a minibatch if `num_data` exceeds B.
        :param learning_rate: rho in (0, 1]; with all data, 1 is a step of coordinate ascent.
        :raise ValueError: for a learning rate outside (0, 1], or (outside of a graph) bad data.
        """
        if tf.executing_eagerly():
            check_model(self)
            check_q(self)
            data = check_data(self.likelihood, data, minibatch=True)
            check_width(self, data[0], data[1])
            if hasattr(learning_rate, "numpy"):
                check_rate(float(learning_rate))
        X, Y = (tf.convert_to_tensor(array) for array in data)
        if not tf.is_tensor(learning_rate):
            # tf.cast would go through float32
            learning_rate = tf.constant(check_rate(learning_rate), X.dtype)
        weight = tf.ones_like(X[:, :1])
        if self.num_data is not None:
            weight *= tf.cast(self.num_data, X.dtype) / tf.cast(tf.shape(X)[0], X.dtype)
        old = self.natural()
        rows = Projected(Batch(X, Y, weight), features_of(self, X))
        f = marginals(rows.features.phi, solve(old))
        sums = accumulate(self.likelihood, rows, f).sums
        self.assign_natural(blend(old, sums, tf.cast(learning_rate, X.dtype)))

    @inherit_check_shapes
    def elbo(self, data: RegressionData) -> tf.Tensor:
        """As in `gpflow.models.SVGP`."""
        return super().elbo(self._labelled(data))

    @inherit_check_shapes
    def prior_kl(self) -> tf.Tensor:
        """As in `gpflow.models.SVGP`."""
        with self._own_jitter():
            return super().prior_kl()

    @inherit_check_shapes
    def predict_y(
        self, Xnew: InputData, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """As in `gpflow.models.SVGP`, with shared graphs as in `predict_f`."""
        if full_cov or full_output_cov:
            return super().predict_y(Xnew, full_cov, full_output_cov)
        f = self.predict_f(Xnew)
        X = tf.convert_to_tensor(Xnew, default_float())
        return cast(MeanAndVariance, compiled_predict.bind(self.likelihood)(X, *f))

    def posterior(
        self, precompute_cache: PrecomputeCacheType = PrecomputeCacheType.TENSOR
    ) -> BasePosterior:
        """As in `gpflow.models.SVGP`, but latent kernels respect their `active_dims`."""
        check_floats(self)
        with self._own_jitter():
            posterior = super().posterior(precompute_cache)
        posterior.kernel = with_active_dims(self.kernel)
        return posterior


@Compiled
@check_shapes("q[0]: [M, L]", "q[1]: [L, M, M]", "X: [N, D]", "return[all]: [N, L]")
def _moments(prior: Prior, q: tuple[tf.Tensor, tf.Tensor, tf.Tensor], X: tf.Tensor) -> Marginals:
    """:return: marginals of f(x); q: mean and R of the whitened u (covariance R^T R), and Lz."""
    mean, R, Lz = q
    features = project(prior, X, Lz)
    return total(features, moments(features.phi, tf.transpose(mean), R))


@Compiled
def _finished(
    prior: Prior, likelihood: Likelihood, finish: Any, q: Any, X: tf.Tensor, *others: tf.Tensor
) -> Any:
    """:return: `finish` of the marginals of f(x), see `_moments`."""
    return finish(likelihood, X, *_moments.function(prior, q, X), *others)
