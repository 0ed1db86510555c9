"""The Gaussian processes that are compared, GPflow's SVGP and BSVM, and the factories of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .. import inference, likelihoods, models
from ..prediction.marginals import predict_probabilities
from .baselines import Baseline, Estimator, Task, classifier, svc
from .training import NaturalGradientSteps, Trainer, make_kernel

#: For GPflow's Softmax. Its ELBO is a mean of 100 draws, so that a single one says nothing about
#: convergence; steps of size 1 overshoot to NaN within ten.
MONTE_CARLO = NaturalGradientSteps(sizes=(0.5, 0.1), window=5)
#: For GPflow's RobustMax. It is far from log-concave: from the prior, steps of a hundredth already
#: leave the positive definite matrices.
RAMP = NaturalGradientSteps(sizes=(0.5, 0.1, 0.02, 0.004), ramp=True)


class SVGPBaseline(Baseline):
    """
    `gpflow.models.SVGP` with GPflow's compiled `NaturalGradient` on all the data; Adam learns a
    kernel, in alternating steps.
    """

    def __init__(self, likelihood: Likelihood, steps: NaturalGradientSteps | None = None) -> None:
        self._likelihood, self._steps = likelihood, steps or NaturalGradientSteps()
        self._kind: Any = None  #: for which the trainer was made

    def _fit(self, task: Task) -> str:
        """Fit; a step size that fails is followed by a smaller one, and noted."""
        X, y, Z, kernel, _ = task
        kind, notes = (Z.shape, kernel.learn, bool(kernel.offset)), list[str]()
        if kind != self._kind:
            self._kind, self._trainer = kind, Trainer(self._likelihood, Z, kernel, self._steps)
            self.model = self._trainer.model
        sizes = self._steps.learning if kernel.learn else self._steps.sizes
        for gamma, smaller in zip(sizes, (*sizes[1:], None)):
            self._trainer.reset(Z, kernel)
            try:
                converged = self._trainer.train(X, y, gamma)
                return "; ".join(notes if converged else [*notes, "not converged"])
            except (tf.errors.InvalidArgumentError, FloatingPointError):
                if smaller is None:
                    raise
                notes = [f"step size {gamma} failed, {smaller} used"]
        raise AssertionError("the last size returns or raises")

    def _predict(self, X: AnyNDArray) -> Any:
        return self._trainer.predict(X)


class BSVMBaseline(Baseline):
    """`gpflow_bsvm.models.BSVM` fitted by `gpflow_bsvm.fit`; `VEM` learns a kernel."""

    def __init__(self, likelihood: Likelihood) -> None:
        self._likelihood = likelihood

    def _fit(self, task: Task) -> str:
        X, y, Z, kernel, _ = task
        about = (make_kernel(kernel, X.shape[1]), self._likelihood, Z)
        self.model = models.BSVM(*about, num_latent_gps=self._likelihood.latent_dim or 1)
        gpflow.set_trainable(self.model.inducing_variable, False)
        run = inference.VEM().run if kernel.learn else inference.fit
        history = run(self.model, (X, y[:, None] * 1.0), progress=False)
        return "" if history.converged else "not converged"

    def _predict(self, X: AnyNDArray) -> Any:
        return predict_probabilities(self.model, X)


def _hinge(num_classes: int, bound: str) -> BSVMBaseline:
    """:return: the hinge with this bound; for several classes Crammer and Singer's, if exact."""
    if num_classes == 2:
        return BSVMBaseline(likelihoods.Hinge(bound=bound))
    several = likelihoods.CrammerSinger if bound == "exact" else likelihoods.OneVsRest
    return BSVMBaseline(several(num_classes, bound=bound))


def _svgp(num_classes: int) -> SVGPBaseline:
    """:return: GPflow's Bernoulli, for more than two classes Softmax."""
    if num_classes == 2:
        return SVGPBaseline(gpflow.likelihoods.Bernoulli())
    return SVGPBaseline(gpflow.likelihoods.Softmax(num_classes), MONTE_CARLO)


#: Factories of the models in `registry.BASELINES` for C classes.
FACTORIES: dict[str, Callable[[int], Baseline]] = {
    "BSVMClassifier": lambda C: Estimator(classifier),
    "bsvm": lambda C: _hinge(C, "exact"),
    "bsvm-augmented": lambda C: _hinge(C, "augmented"),
    "one-vs-rest": lambda C: BSVMBaseline(likelihoods.OneVsRest(C)),
    "probit-engine": lambda C: BSVMBaseline(likelihoods.Probit()),
    "svgp": _svgp,
    "svgp-probit": lambda C: SVGPBaseline(likelihoods.Probit()),
    "svgp-robustmax": lambda C: SVGPBaseline(gpflow.likelihoods.MultiClass(C), RAMP),
    "svc": lambda C: Estimator(svc),
}
