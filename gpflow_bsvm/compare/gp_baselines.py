"""The compared Gaussian processes (SVGP by GPflow, BSVM), and factories of all models."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from scipy import stats

from .. import inference, likelihoods, models
from ..engine.shared_graph import Compiled
from ..likelihoods.base import has_hook
from ..prediction import calibrate, predict_probabilities
from . import regression
from .baselines import Baseline, Estimator, Task, classifier, svc
from .registry import BASELINES, CLASSES
from .task import Skipped
from .training import NaturalGradientSteps, Trainer, make_kernel, relative_gain

#: For GPflow's Softmax, whose ELBO is a mean of 100 draws, too noisy to judge convergence by single
#: values. Steps of size 1 overshoot to NaN within ten steps.
MONTE_CARLO = NaturalGradientSteps(sizes=(0.5, 0.1), window=5, rounds=100)
#: For GPflow's RobustMax, which is far from log-concave: at a start from the prior, even steps of
#: 0.01 make the covariance indefinite.
RAMP = NaturalGradientSteps(sizes=(0.5, 0.1, 0.02, 0.004), ramp=True)
#: For GPflow's Gaussian, for which a step of size 1 is exact.
CONJUGATE = NaturalGradientSteps(learning=(1.0, 0.5, 0.1))


@Compiled
def _columns(likelihood: Any, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> tf.Tensor:
    """:return: `regression.columns`, [N, 2 + T]; quantiles are Gaussian by default."""
    mean, variance = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    log_p = likelihood.predict_log_density(X, Fmu, Fvar, Y)[:, None]
    if hasattr(likelihood, "predict_quantiles"):
        quantiles = likelihood.predict_quantiles(Fmu, Fvar, regression.LEVELS)[:, 0]
    else:
        quantiles = mean + tf.sqrt(variance) * stats.norm.ppf(regression.LEVELS)
    return tf.concat([mean, log_p, quantiles], axis=1)


class GaussianProcess(Baseline):
    """:ivar model: the latest model."""

    model: Any

    def predict_numbers(self, X: AnyNDArray, y: AnyNDArray) -> AnyNDArray:
        """See `Baseline`."""
        columns = _columns.bind(self.model.likelihood)
        mean, variance = self.model.predict_f(X)
        return np.asarray(columns(X, mean, variance, y[:, None]))


class SVGPBaseline(GaussianProcess):
    """
    `gpflow.models.SVGP`, trained on all data: GPflow's compiled `NaturalGradient` alternates with
    Adam on kernel and likelihood until the ELBO converges (`Trainer`).
    """

    def __init__(
        self, likelihood: Callable[[], Likelihood], steps: NaturalGradientSteps | None = None
    ) -> None:
        """:param likelihood: a function that makes the likelihood; it is called once."""
        self._likelihood = likelihood()
        self._steps = steps or NaturalGradientSteps()
        self._kind: Any = None  #: arguments of the trainer

    def _fit(self, task: Task) -> str:
        """Fit the model; after a failure, try the next smaller step size, and note it."""
        X, y, Z, kernel, _ = task
        kind = (Z.shape, kernel.learn, bool(kernel.offset))
        notes = list[str]()
        if kind != self._kind:
            self._kind = kind
            self._trainer = Trainer(self._likelihood, Z, kernel, self._steps)
            self.model = self._trainer.model
        sizes = self._steps.learning if kernel.learn else self._steps.sizes
        for gamma, smaller in zip(sizes, (*sizes[1:], None)):
            self._trainer.reset(Z, kernel)
            try:
                converged = self._trainer.train(X, y, gamma)
                self.last_gain = self._trainer.last_gain
                return "; ".join(notes if converged else [*notes, "not converged"])
            except (tf.errors.InvalidArgumentError, FloatingPointError):
                if smaller is None:
                    raise
                notes = [f"step size {gamma} failed, {smaller} used"]
        raise AssertionError("the last size returns or raises")

    def _predict(self, X: AnyNDArray) -> Any:
        return self._trainer.predict(X)


class BSVMBaseline(GaussianProcess):
    """
    `gpflow_bsvm.models.BSVM`, fitted by `gpflow_bsvm.fit`. If the kernel is learned, `VEM` fits the
    model; then its link, if any, is calibrated.
    """

    def __init__(self, likelihood: Callable[[], Likelihood]) -> None:
        """:param likelihood: a factory that is called for each fit."""
        self._likelihood = likelihood

    def _fit(self, task: Task) -> str:
        X, y, Z, kernel, _ = task
        likelihood = self._likelihood()
        data = (X, y[:, None] * 1.0)
        num_latents = likelihood.latent_dim or 1
        own = make_kernel(kernel, X.shape[1])
        self.model = models.BSVM(own, likelihood, Z, num_latent_gps=num_latents)
        gpflow.set_trainable(self.model.inducing_variable, False)
        run = inference.VEM().run if kernel.learn else inference.fit
        history = run(self.model, data, progress=False)
        if kernel.learn and has_hook(likelihood, "link_parameters"):
            calibrate(self.model, data)
        elbo = history.elbo
        self.last_gain = relative_gain(elbo[-2], elbo[-1]) if len(elbo) > 1 else math.nan
        return "" if history.converged else "not converged"

    def _predict(self, X: AnyNDArray) -> Any:
        return predict_probabilities(self.model, X)


def _hinge(bound: str, C: int) -> BSVMBaseline:
    """:return: the hinge with this bound; if C > 2, Crammer-Singer (exact) or one-vs-rest."""
    if C == 0:
        return BSVMBaseline(likelihoods.EpsilonInsensitive)
    if C == 2:
        return BSVMBaseline(partial(likelihoods.Hinge, bound=bound))
    several = likelihoods.CrammerSinger if bound == "exact" else likelihoods.OneVsRest
    return BSVMBaseline(partial(several, C, bound=bound))


def _svgp(C: int) -> SVGPBaseline:
    """:return: Gaussian for numbers, Bernoulli for two classes, Softmax for more."""
    if C == 0:
        return SVGPBaseline(gpflow.likelihoods.Gaussian, CONJUGATE)
    if C == 2:
        return SVGPBaseline(gpflow.likelihoods.Bernoulli)
    return SVGPBaseline(partial(gpflow.likelihoods.Softmax, C), MONTE_CARLO)


def _factories(C: int) -> dict[str, Callable[[], Baseline]]:
    """:return: factories of the models in `registry.BASELINES` for C classes (0: numbers)."""
    return {
        "BSVMClassifier": partial(Estimator, classifier),
        "BSVMRegressor": regression.Regressor,
        "bsvm": partial(_hinge, "exact", C),
        "bsvm-augmented": partial(_hinge, "augmented", C),
        "one-vs-rest": partial(BSVMBaseline, partial(likelihoods.OneVsRest, C)),
        "probit-engine": partial(BSVMBaseline, likelihoods.Probit),
        "svgp": partial(_svgp, C),
        "svgp-probit": partial(SVGPBaseline, likelihoods.Probit),
        "svgp-robustmax": partial(SVGPBaseline, partial(gpflow.likelihoods.MultiClass, C), RAMP),
        "svc": partial(Estimator, svc),
        "svr": regression.svr,
        "boosting": regression.boosting,
    }


def make_baseline(name: str, num_classes: int) -> Baseline:
    """
    :param name: a key of `BASELINES`.
    :param num_classes: C; 0 for numbers.
    :return: a new model.
    :raise Skipped: for unsuitable labels.
    """
    entry = BASELINES[name]
    if not entry.suits(num_classes):
        raise Skipped(f"for {'classes' if entry.only == CLASSES else entry.only[0]} only")
    if entry.factory is None:
        return _factories(num_classes)[name]()
    made: Baseline = entry.factory(num_classes)
    return made
