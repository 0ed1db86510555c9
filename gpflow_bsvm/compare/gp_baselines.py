"""The Gaussian-process peers: GPflow's SVGP and BSVM, one `Trainer` for both."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .. import inference, models
from .training import Climb, KernelSettings, Stopwatch, Trainer, Watch, ascend, learn_kernel

#: Sizes of the natural-gradient step where the kernel is learnt, the next where one fails.
LEARNT_KERNEL_STEPS = (0.5, 0.1)


class _GaussianProcess:
    """Sparse models: trainer, start, and kernel learning, common to SVGP and BSVM."""

    has_trace = True
    note = ""

    def __init__(
        self,
        model_class: type[gpflow.models.SVGP],
        likelihood: Likelihood,
        climb: Climb,
        ard: bool = False,
    ) -> None:
        self._model_class, self._likelihood, self._climb = model_class, likelihood, climb
        self._ard = ard
        self._trainer: Trainer | None = None

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """See `Peer`. A step size that fails is followed by a smaller one, and noted."""
        clock, self.note = Stopwatch(), ""
        sizes = LEARNT_KERNEL_STEPS if kernel.learn else self._climb.sizes
        for gamma, smaller in zip(sizes, (*sizes[1:], None)):
            trainer = self._start(Z, kernel)
            data = trainer.data(X, y)
            try:
                if kernel.learn:
                    learn_kernel(trainer, data, gamma, clock, watch)
                self._fit_posterior(trainer, data, gamma, clock, watch)
                return
            except (tf.errors.InvalidArgumentError, FloatingPointError):
                if smaller is None:
                    raise
                self.note = f"step size {gamma} failed, {smaller} used"

    def _start(self, Z: AnyNDArray, kernel: KernelSettings) -> Trainer:
        if self._trainer is None or self._trainer.model.inducing_variable.Z.shape != Z.shape:
            self._trainer = Trainer(self._model_class, self._likelihood, Z, self._climb, self._ard)
        self._trainer.reset(Z, kernel)
        return self._trainer

    def _fit_posterior(
        self, trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
    ) -> None:
        raise NotImplementedError

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """See `Peer`."""
        assert self._trainer is not None
        p = np.asarray(self._trainer.predict(X))
        if p.shape[1] == 1:
            return np.concatenate([1 - p, p], axis=1)
        return p / p.sum(axis=1, keepdims=True)  # RobustMax's quadrature is off by some 1e-4


class SVGPPeer(_GaussianProcess):
    """`gpflow.models.SVGP` with GPflow's compiled `NaturalGradient` on all the data."""

    def __init__(
        self, likelihood: Likelihood, climb: Climb | None = None, *, ard: bool = False
    ) -> None:
        """
        :param ard: whether every input has its own lengthscale.
        """
        super().__init__(gpflow.models.SVGP, likelihood, climb or Climb(), ard)

    def _fit_posterior(
        self, trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
    ) -> None:
        if not ascend(trainer, data, gamma, clock, watch):
            self.note = "; ".join(filter(None, [self.note, "not converged"]))


class BSVMPeer(_GaussianProcess):
    """`gpflow_bsvm.models.BSVM` with `gpflow_bsvm.fit`: the package's engine."""

    def __init__(self, likelihood: Likelihood) -> None:
        super().__init__(models.BSVM, likelihood, Climb())

    def _fit_posterior(
        self, trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
    ) -> None:
        before = clock.seconds

        def callback(step: int, history: inference.History) -> None:
            assert watch is not None
            watch(before + history.seconds[-1], history.elbo[-1])

        history = inference.fit(
            trainer.model, data, progress=False, callback=callback if watch else None
        )
        if not history.converged:
            self.note = "; ".join(filter(None, [self.note, "not converged"]))
