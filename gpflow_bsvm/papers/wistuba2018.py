"""Wistuba and Rawat (2018): Algorithm 1 as printed, class after class, and a baseline policy of
active learning. The algorithm's objective is `CrammerSinger(C, bound="wistuba2018")`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from scipy.special import softmax
from scipy.stats import entropy

from ..checks import check_elbo, check_number, check_whole
from ..data.passes import map_over, sum_over
from ..data.sources import Source
from ..engine.contracts import Model
from ..engine.natural import Gaussian, Natural, compiled_natural_step, compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.projection import Features, Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import marginals_of_f, sum_sites
from ..inference.algorithm import Algorithm
from ..inference.minibatches import Schedule, check_schedule, rates
from ..inference.run import Run, Step
from ..likelihoods.base import Sites
from ..likelihoods.labels import check_one_label
from ..prediction.estimators import takes_classifiers
from ..prediction.marginals import predict_marginals

__all__ = ["ClassByClass", "softmax_entropy"]


@dataclass(frozen=True)
class ClassByClass(Algorithm):
    """
    Algorithm 1 of Wistuba & Rawat (2018) in its printed order, for comparison with the paper. A
    sweep computes the local variables alpha_n and rivals t_n of all rows; with these fixed, it
    updates the classes one after another by natural-gradient steps of size rho,

        eta_j <- (1 - rho) eta_j + rho eta^_j(alpha, t, current mu of the other classes).

    In contrast, `model.natgrad_step` updates all classes at once, from the same means.

    While the rivals are fixed, no step of size 1 lowers the objective. New rivals in the next sweep
    may lower it (it is not a bound), and every step is accepted. To fit a model, use `CAVI` and
    another bound. A sweep passes over the data once for the local variables, and once per class.

    :ivar max_steps: largest number of sweeps.
    :ivar tol: stop when a sweep changes the objective by less than `tol` times its absolute value;
        0: never.
    :ivar learning_rate: rho, a number in (0, 1], or a function of the sweep's number (from 0).
    """

    takes_q = True

    max_steps: int = 200
    tol: float = 1e-5
    learning_rate: Schedule | float = 1.0

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps)
        check_number(0, tol=self.tol)
        check_schedule(self.learning_rate)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        if getattr(model.likelihood, "bound", None) != "wistuba2018":
            raise ValueError(
                f"{type(model.likelihood).__name__} has no sites for given local variables; use "
                'gpflow_bsvm.likelihoods.CrammerSinger(C, bound="wistuba2018"), or CAVI'
            )
        return _Sweeps(self, model, ProjectedData(model, source))


class ClassState(NamedTuple):
    """The state of `ClassByClass`."""

    natural: Natural
    value: float  #: values of the objective
    steps: int = 0


@Compiled
def _look(likelihood: Any, q: Gaussian, rows: Projected) -> tuple[Any, tf.Tensor]:
    """:return: the rows' local variables, and contributions to the objective, [N]."""
    X, Y, weight = rows.batch
    f = marginals_of_f(q, rows.features)
    expectation = likelihood.variational_expectations(X, f.mean, f.variance, Y)
    return likelihood.hold(f.mean, f.variance, Y), weight[:, 0] * expectation


@Compiled
def _sums_of(
    likelihood: Any, means: tf.Tensor, latent: tf.Tensor, rows: Projected, held: Any
) -> Natural:
    """
    :param means: [L, M], the current means of q(s).
    :param latent: [], the latent function whose sites are summed.
    """
    phi, residual, m = rows.features
    f = tf.transpose(tf.linalg.matvec(phi, tf.cast(means, phi.dtype))) + m
    w, r = likelihood.held_sites(held, f, rows.batch.Y)
    group = tf.minimum(latent, tf.shape(phi)[0] - 1)  # shared, or one per class
    own = m + tf.zeros_like(w)
    features = Features(phi[group][None], residual, own[:, latent, None])
    sites = Sites(w[:, latent, None], r[:, latent, None])
    return sum_sites(rows._replace(features=features), sites)


class _Sweeps(Run[ClassState, Step]):
    state: ClassState

    def __init__(self, options: ClassByClass, model: Model, data: ProjectedData) -> None:
        super().__init__(options, model)
        self._data = data
        self._look = _look.bind(model.likelihood)
        self._sums_of = _sums_of.bind(model.likelihood)
        natural = model.natural()
        self._held, value = self._see(natural)
        check_elbo(value, "at the start")
        self.state = ClassState(natural, value)

    def _see(self, natural: Natural) -> tuple[Any, float]:
        """:return: local variables of all rows at q, and the objective at q."""
        q = compiled_solve(natural)
        held, expectation = map_over(self._data, partial(self._look, q))
        return held, float(tf.reduce_sum(expectation) - q.kl)

    def advance(self) -> Step:
        natural, before, steps = self.state
        (rho,) = rates(self._options.learning_rate, steps, 1)
        natural = self._sweep(natural, tf.constant(rho, natural.h.dtype))
        self._held, value = self._see(natural)
        check_elbo(value, f"after sweep {steps + 1}")
        self.state = ClassState(natural, value, steps + 1)
        self.converged = bool(abs(value - before) < self._options.tol * abs(value))
        return Step(steps + 1, value, rho)

    def _sweep(self, natural: Natural, rho: tf.Tensor) -> Natural:
        means = list(compiled_solve(natural).mean())
        classes = [Natural(h[None], P[None]) for h, P in zip(natural.h, natural.P)]
        for number, old in enumerate(classes):
            look = partial(self._sums_of, tf.stack(means), tf.constant(number))
            sums = sum_over(self._data, look, self._held)
            classes[number], q = compiled_natural_step(old, sums, rho, tf.zeros_like(rho))
            means[number] = q.mean()[0]
        return Natural._make(tf.concat(parts, 0) for parts in zip(*classes))

    def resume(self, state: ClassState) -> None:
        super().resume(state)
        self._held, _ = self._see(state.natural)


@takes_classifiers
def softmax_entropy(model: Model, X: Any) -> AnyNDArray:
    """
    Compute the entropy of the softmax of f's means, ignoring variances: the point-estimate policy
    of Wistuba & Rawat (2018), section 4.3.1. With one latent function, the softmax is of (0, f).

    :return: [N], in nats.
    :raise ValueError: for ordered classes, which share latent functions, and as in
        `gpflow_bsvm.prediction.predictive_entropy`.
    """
    if hasattr(model.likelihood, "thresholds"):
        raise ValueError(
            "softmax_entropy needs a function for each class, and ordered classes share theirs: "
            "use gpflow_bsvm.prediction.predictive_entropy"
        )
    check_one_label(model.likelihood, model.q_shape[0])
    mean, variance = predict_marginals(model, X)
    if hasattr(model.likelihood, "decisions"):
        mean = np.asarray(model.likelihood.decisions(mean, variance)[0])
    if mean.shape[1] == 1:
        mean = np.hstack([np.zeros_like(mean), mean])
    return np.asarray(entropy(softmax(mean, axis=1), axis=1))
