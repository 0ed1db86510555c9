"""The nested loop of Seeger (2000): q inside, kernel outside."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf
from gpflow.base import AnyNDArray
from scipy.optimize import minimize

from ...checks import check_number, check_whole
from ...data.checks import check_weights
from ...data.sources import ArraySource, Source
from ...engine.contracts import Model, jitter_of
from ...engine.hyperparameters import Hyperparameters
from ...engine.quasi_newton import Loss, maximise
from ...inference.algorithm import Algorithm, settled
from ...inference.run import Run, Step
from .factor import FactorVGP
from .factored import (
    FactoredGaussian,
    PriorRoot,
    compiled_root,
    compiled_scale,
    scaled,
    slope_of_all,
    slope_of_q,
    unscaled,
)

#: Correction pairs of the inner optimizer.
_PAIRS = 20


@dataclass(frozen=True)
class NestedLoop(Algorithm):
    """
    Learn q and hyperparameters of a `gpflow_bsvm.papers.seeger2000.FactorVGP` by the nested loop of
    Seeger (2000, section 2), minimizing the free energy F = -ELBO:

        inner L-BFGS finds q at fixed hyperparameters, in coordinates with about equal curvature of
               -F in all directions (`scale_of`), outer a quasi-Newton method moves the
               hyperparameters by the gradient of F at fixed q, which equals the gradient of min_q F
               at the inner optimum.

    A step is some outer iterations, each with a few inner searches; each search starts from the end
    of the previous search. The free energy never increases, because the best point is kept. Outer
    variables are GPflow's unconstrained variables; if no hyperparameter is trainable, only the
    inner loop runs. Priors of hyperparameters count, as in `model.training_loss()`.

    :ivar max_steps: most steps.
    :ivar iterations: number of outer iterations in a step.
    :ivar tol: stop when two successive steps together raise the ELBO by less than `tol` times its
        absolute value.
    :ivar inner_tol: tolerance of the inner loop, see `scipy.optimize.minimize`.
    :ivar inner_iterations: most inner iterations.
    """

    learns: ClassVar[bool] = True
    takes_q: ClassVar[bool] = True

    max_steps: int = 50
    iterations: int = 5
    tol: float = 1e-4
    inner_tol: float = 1e-6
    inner_iterations: int = 500

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps, iterations=self.iterations)
        check_whole(1, inner_iterations=self.inner_iterations)
        check_number(0, tol=self.tol, inner_tol=self.inner_tol)

    def _open(self, model: Model, data: Any, sample_weight: Any) -> Source:
        if not isinstance(model, FactorVGP):
            raise TypeError(
                "NestedLoop needs a FactorVGP (its q is factor-analysed), got "
                f"{type(model).__name__}: use CAVI or VEM"
            )
        if data is not None:
            raise ValueError("a FactorVGP holds its data: leave data out, or make another model")
        X, Y = (part.numpy() for part in model.data)
        weight = check_weights(sample_weight, len(X))
        return ArraySource(X, Y, weight, len(X))

    def _begin(self, model: Any, source: Source) -> Run[Any, Any]:
        return _Loops(self, model, source)


class NestedState(NamedTuple):
    """The state of a `NestedLoop`."""

    values: tuple[AnyNDArray, ...]  #: unconstrained hyperparameters
    q: FactoredGaussian
    curvature: AnyNDArray | None = None  #: inverse of the Hessian of the outer loop
    elbos: tuple[float, ...] = ()  #: of all steps, including the prior's density


class _Loops(Run[NestedState, Step]):
    state: NestedState

    def __init__(self, options: NestedLoop, model: FactorVGP, source: Source) -> None:
        self._options, self._model = options, model
        self.max_steps = options.max_steps
        self._batch = next(iter(source.chunks()))
        self._hyper = Hyperparameters(model)
        self._hyper.check_start()
        model.prior_factor()  # finds the necessary jitter
        self._jitter = jitter_of(model)
        self._of_q = slope_of_q.bind(model.likelihood)
        self._of_all = self._hyper.bind(slope_of_all)
        self._root = compiled_root.bind(model.prior)
        self._scale = compiled_scale.bind(model.likelihood)
        self._q = [tf.Variable(part) for part in model.factored()]
        self._best = -math.inf
        self.state = NestedState(self._hyper.state(), model.factored())

    def advance(self) -> Step:
        """Run some iterations of the outer loop."""
        variables, curvature = self._hyper.variables, self.state.curvature
        self._best = self.state.elbos[-1] if self.state.elbos else -math.inf
        if variables:
            most = self._options.iterations
            curvature = maximise(self._value_and_gradient, variables, most, curvature)
        else:
            self._value_and_gradient()
        elbos = (*self.state.elbos, self._best)
        self.state = self.state._replace(curvature=curvature, elbos=elbos)
        self._hyper.assign(self.state.values)
        tol = self._options.tol
        self.converged = not variables or settled(elbos, tol)
        return Step(len(elbos), elbos[-1], 1.0, self._hyper.values())

    def _value_and_gradient(self) -> tuple[float, list[tf.Tensor]]:
        """Compute value and gradient at the inner optimum; keep the best state."""
        root = self._root(self._batch.X, self._jitter)
        q = self._inner(root)
        at_q = self._of_all(q, self._batch, self._jitter)
        value, gradient = self._hyper.with_prior(*at_q)
        if float(value) > self._best:
            self._best = float(value)
            self.state = self.state._replace(values=self._hyper.state(), q=q)
        return float(value), gradient

    def _inner(self, root: PriorRoot) -> FactoredGaussian:
        """:return: the best q for this root of the prior, starting from the best so far."""
        R = self._scale(self.state.q, root, self._batch)
        for variable, value in zip(self._q, scaled(self.state.q, R)):
            variable.assign(value)

        def value_and_gradient() -> tuple[float, list[tf.Tensor]]:
            q = FactoredGaussian(*map(tf.convert_to_tensor, self._q))
            value, gradient = self._of_q(q, R, root, self._batch)
            return float(value), gradient

        options = {"maxiter": self._options.inner_iterations, "maxcor": _PAIRS}
        how: Any = {"method": "L-BFGS-B", "tol": self._options.inner_tol, "options": options}
        loss = Loss(value_and_gradient, self._q)
        with warnings.catch_warnings():  # a failed line search ends the iterations
            warnings.simplefilter("ignore", RuntimeWarning)
            loss.settle(minimize(loss, loss.start, jac=True, **how))
        return unscaled(FactoredGaussian(*map(tf.convert_to_tensor, self._q)), R)

    def restore(self) -> None:
        """See `Run`."""
        self._hyper.assign(self.state.values)
        self._model.assign_factored(self.state.q)
