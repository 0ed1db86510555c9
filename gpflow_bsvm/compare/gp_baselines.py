"""The Gaussian processes that are compared: GPflow's SVGP and BSVM, and their likelihoods."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .. import inference, likelihoods, models
from .registry import KernelSettings
from .training import NaturalGradientSteps, Stopwatch, Trainer, Watch, ascend, learn_kernel

#: For GPflow's Softmax. Its ELBO is a mean of 100 draws, so that single ones say nothing about
#: convergence; steps of 1 overshoot to NaN within ten.
MONTE_CARLO = NaturalGradientSteps(sizes=(0.5, 0.1), window=5)
#: For GPflow's RobustMax. It is far from log-concave: from the prior, steps of a hundredth already
#: leave the positive definite matrices.
RAMP = NaturalGradientSteps(sizes=(0.5, 0.1, 0.02), ramp=True)


class _GaussianProcess:
    """Sparse models: trainer, start, and smaller steps, common to SVGP and BSVM."""

    has_trace = True
    model_class: type[gpflow.models.SVGP]

    def __init__(self, likelihood: Likelihood, steps: NaturalGradientSteps | None = None) -> None:
        self.note = ""
        self._likelihood, self._steps = likelihood, steps or NaturalGradientSteps()
        self._trainers: dict[tuple[Any, ...], Trainer] = {}

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """See `Baseline`. A step size that fails is followed by a smaller one, and noted."""
        clock, self.note = Stopwatch(), ""
        sizes = self._steps.learning if kernel.learn else self._steps.sizes
        for gamma, smaller in zip(sizes, (*sizes[1:], None)):
            self._trainer = self._start(Z, kernel)
            try:
                if not self._train(self._trainer.data(X, y), gamma, kernel.learn, clock, watch):
                    self.note = "; ".join(filter(None, [self.note, "not converged"]))
                return
            except (tf.errors.InvalidArgumentError, FloatingPointError):
                if smaller is None:
                    raise
                self.note = f"step size {gamma} failed, {smaller} used"

    def _start(self, Z: AnyNDArray, kernel: KernelSettings) -> Trainer:
        key = (Z.shape, kernel.learn)
        if key not in self._trainers:  # one at a time: a fold can have another number of points
            make = (self.model_class, self._likelihood, Z, self._steps, kernel.learn)
            self._trainers = {key: Trainer(*make)}
        self._trainers[key].reset(Z, kernel)
        return self._trainers[key]

    def _train(
        self, data: Any, gamma: float, learn: bool, clock: Stopwatch, watch: Watch | None
    ) -> bool:
        """:return: whether it has converged."""
        raise NotImplementedError

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """See `Baseline`."""
        p = np.asarray(self._trainer.predict(X))
        if p.shape[1] == 1:
            return np.concatenate([1 - p, p], axis=1)
        return p / p.sum(axis=1, keepdims=True)  # RobustMax's quadrature is off by some 1e-4


class SVGPBaseline(_GaussianProcess):
    """
    `gpflow.models.SVGP` with GPflow's compiled `NaturalGradient` on all the data; a kernel is
    learnt by Adam, a step of each in turn.
    """

    model_class = gpflow.models.SVGP

    def _train(
        self, data: Any, gamma: float, learn: bool, clock: Stopwatch, watch: Watch | None
    ) -> bool:
        if learn:
            learn_kernel(self._trainer, data, gamma, clock, watch)
        return ascend(self._trainer, data, gamma, clock, watch)


class BSVMBaseline(_GaussianProcess):
    """`gpflow_bsvm.models.BSVM` by `gpflow_bsvm.fit`; a kernel is learnt by `VEM`."""

    model_class = models.BSVM

    def __init__(self, likelihood: Likelihood) -> None:
        super().__init__(likelihood, NaturalGradientSteps((1.0,), (1.0,)))

    def _train(
        self, data: Any, gamma: float, learn: bool, clock: Stopwatch, watch: Watch | None
    ) -> bool:
        def callback(step: int, history: inference.History) -> None:
            assert watch is not None
            watch(history.seconds[-1], history.elbo[-1])

        run = inference.VEM().run if learn else inference.fit
        history = run(
            self._trainer.model, data, progress=False, callback=callback if watch else None
        )
        return bool(history.converged)


def hinge(num_classes: int, bound: str) -> BSVMBaseline:
    """:return: the hinge, for more than two classes Crammer and Singer's, with this bound."""
    if num_classes == 2:
        return BSVMBaseline(likelihoods.Hinge(bound=bound))
    return BSVMBaseline(likelihoods.CrammerSinger(num_classes, bound=bound))


def svgp(num_classes: int) -> SVGPBaseline:
    """:return: GPflow's Bernoulli, for more than two classes Softmax."""
    if num_classes == 2:
        return SVGPBaseline(gpflow.likelihoods.Bernoulli())
    return SVGPBaseline(gpflow.likelihoods.Softmax(num_classes), MONTE_CARLO)


def robustmax(num_classes: int) -> SVGPBaseline:
    """:return: GPflow's `MultiClass`."""
    return SVGPBaseline(gpflow.likelihoods.MultiClass(num_classes), RAMP)
