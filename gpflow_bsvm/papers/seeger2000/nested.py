"""The nested loop of Seeger (2000), with q in the inner loop and the kernel in the outer loop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from ...checks import check_number, check_whole
from ...data.batch import Batch
from ...data.checks import check_weights
from ...data.sources import ArraySource, Source
from ...engine.contracts import Model, jitter_of
from ...engine.hyperparameters import Hyperparameters, value_and_gradient
from ...engine.projection import Prior
from ...engine.quasi_newton import Loss, maximise
from ...engine.shared_graph import Compiled
from ...inference.algorithm import Algorithm, settled
from ...inference.run import Run, Step
from ...likelihoods import sites
from .factor import FactoredGaussian, FactorVGP, PriorRoot, factored_bound, moments, prior_root

#: Number of outer iterations in a step, and of correction pairs of the inner optimizer.
_ITERATIONS = 5
_PAIRS = 20


@dataclass(frozen=True)
class NestedLoop(Algorithm):
    """
    Learn q and hyperparameters of a `gpflow_bsvm.papers.seeger2000.FactorVGP` with the nested loop
    of Seeger (2000, section 2), minimizing the free energy F = -ELBO:

        inner: L-BFGS finds q at fixed hyperparameters, scaled as in `scale_of`;
        outer: a quasi-Newton method moves the hyperparameters by the gradient of F at fixed q,
               which equals the gradient of min_q F at the inner optimum.

    A step consists of outer iterations, with a few inner searches each. The free energy never
    increases, because the best point is kept. If no hyperparameter is trainable, only the inner
    loop runs. Priors of hyperparameters count, as in `model.training_loss()`.

    :ivar max_steps: largest number of steps.
    :ivar tol: stop when two successive steps together raise the ELBO by less than `tol` times its
        absolute value.
    :ivar inner_tol: tolerance of the inner loop, see `scipy.optimize.minimize`.
    :ivar inner_iterations: largest number of inner iterations.
    """

    learns: ClassVar[bool] = True
    takes_q: ClassVar[bool] = True

    max_steps: int = 50
    tol: float = 1e-4
    inner_tol: float = 1e-6
    inner_iterations: int = 500

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps, inner_iterations=self.inner_iterations)
        check_number(0, tol=self.tol, inner_tol=self.inner_tol)

    def _open(self, model: Model, data: Any, sample_weight: Any) -> Source:
        if not isinstance(model, FactorVGP):
            raise TypeError(
                "NestedLoop needs a FactorVGP (its q is factor-analyzed), got "
                f"{type(model).__name__}: use CAVI or VEM"
            )
        if data is not None:
            raise ValueError("a FactorVGP stores its data: leave data out, or make another model")
        X, Y = (part.numpy() for part in model.data)
        return ArraySource(X, Y, check_weights(sample_weight, len(X)), len(X))

    def _begin(self, model: Any, source: Source) -> Run[Any, Any]:
        return _Loops(self, model, source)


@check_shapes("q.a: [N, 1]", "q.B: [N, J]", "root.L: [N, N]", "return: [N, N]")
def scale_of(
    likelihood: Likelihood, q: FactoredGaussian, root: PriorRoot, batch: Batch
) -> tf.Tensor:
    """
    The curvature of -F in a is I + L^T W L: 1 in some directions, as large as K's largest
    eigenvalue in others. In R^T a and R^T B, it is about I.

    :return: Cholesky factor R of I + L^T W L, where W holds the precisions of the sites at q.
    """
    of = moments(q, root)
    w = sites(likelihood, batch.X, of.mean, of.variance(), batch.Y)[0] * batch.weight
    half = tf.sqrt(w) * root.L
    eye = tf.eye(tf.shape(half)[0], dtype=half.dtype)
    return tf.linalg.cholesky(eye + tf.matmul(half, half, transpose_a=True))


def scaled(q: FactoredGaussian, R: tf.Tensor) -> FactoredGaussian:
    """:return: R^T a and R^T B for a and B."""
    return q._replace(a=tf.matmul(R, q.a, transpose_a=True), B=tf.matmul(R, q.B, transpose_a=True))


def unscaled(q: FactoredGaussian, R: tf.Tensor) -> FactoredGaussian:
    """:return: a and B for R^T a and R^T B."""
    a, B = (tf.linalg.triangular_solve(R, part, adjoint=True) for part in (q.a, q.B))
    return q._replace(a=a, B=B)


@Compiled
def _slope_of_q(
    likelihood: Likelihood, q: FactoredGaussian, R: tf.Tensor, root: PriorRoot, batch: Batch
) -> tuple[tf.Tensor, FactoredGaussian]:
    """:return: value and gradient of -F in a scaled q, with a fixed root of the prior."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(q)
        value = factored_bound(likelihood, unscaled(q, R), root, batch)
    return value, tape.gradient(value, q)


@value_and_gradient
def _slope_of_prior(
    likelihood: Likelihood, prior: Prior, q: FactoredGaussian, batch: Batch, jitter: tf.Tensor
) -> tf.Tensor:
    """:return: -F at a fixed q(f) in the units of the prior."""
    return factored_bound(likelihood, q, prior_root(prior, batch.X, jitter), batch)


_compiled_root = Compiled(prior_root)
_compiled_scale = Compiled(scale_of)


class NestedState(NamedTuple):
    """The state of a `NestedLoop`."""

    values: tuple[AnyNDArray, ...]  #: unconstrained hyperparameters
    q: FactoredGaussian
    curvature: AnyNDArray | None = None  #: inverse of the Hessian of the outer loop
    elbos: tuple[float, ...] = ()  #: of all steps, including the prior's density


class _Loops(Run[NestedState, Step]):
    state: NestedState

    def __init__(self, options: NestedLoop, model: FactorVGP, source: Source) -> None:
        super().__init__(options, model)
        self._batch = next(iter(source.chunks()))
        self._hyper = Hyperparameters(model)
        self._hyper.check_start()
        model.prior_factor()  # finds the necessary jitter
        self._jitter = jitter_of(model)
        self._slope_of_q = _slope_of_q.bind(model.likelihood)
        self._slope_of_prior = self._hyper.bind(_slope_of_prior)
        self._root = _compiled_root.bind(model.prior)
        self._scale = _compiled_scale.bind(model.likelihood)
        self._q = [tf.Variable(part) for part in model.factored()]
        self._best = -math.inf
        self.state = NestedState(self._hyper.state(), model.factored())

    def advance(self) -> Step:
        variables = self._hyper.variables
        elbos = self.state.elbos
        curvature = self.state.curvature
        self._best = elbos[-1] if elbos else -math.inf
        if variables:
            curvature = maximise(self._value_and_gradient, variables, _ITERATIONS, curvature)
        else:
            self._value_and_gradient()
        elbos = (*elbos, self._best)
        self.state = self.state._replace(curvature=curvature, elbos=elbos)
        self._hyper.assign(self.state.values)
        self.converged = not variables or settled(elbos, self._options.tol)
        return Step(len(elbos), elbos[-1], 1.0, self._hyper.values())

    def _value_and_gradient(self) -> tuple[float, list[tf.Tensor]]:
        """Compute value and gradient at the inner optimum; keep the best state."""
        q = self._inner(self._root(self._batch.X, self._jitter))
        value, gradient = self._slope_of_prior(q, self._batch, self._jitter)
        value, gradient = self._hyper.with_prior(value, gradient)
        if float(value) > self._best:
            self._best = float(value)
            self.state = self.state._replace(values=self._hyper.state(), q=q)
        return float(value), gradient

    def _inner(self, root: PriorRoot) -> FactoredGaussian:
        """:return: the best q for this root of the prior, found from the best q so far."""
        R = self._scale(self.state.q, root, self._batch)
        for variable, value in zip(self._q, scaled(self.state.q, R)):
            variable.assign(value)

        def value_and_gradient() -> tuple[float, list[tf.Tensor]]:
            value, gradient = self._slope_of_q(self._scaled_q(), R, root, self._batch)
            return float(value), list(gradient)

        loss = Loss(value_and_gradient, self._q)
        options = {"maxiter": self._options.inner_iterations, "maxcor": _PAIRS}
        loss.minimize("L-BFGS-B", options, self._options.inner_tol)
        return unscaled(self._scaled_q(), R)

    def _scaled_q(self) -> FactoredGaussian:
        return FactoredGaussian._make(map(tf.convert_to_tensor, self._q))

    def restore(self) -> None:
        self._hyper.assign(self.state.values)
        self._model.assign_factored(self.state.q)
