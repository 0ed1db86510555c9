"""The compared Bayesian SVMs, and factories of all models."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import gpflow
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood

from .. import inference, likelihoods, models
from ..likelihoods.base import has_hook
from ..prediction import calibrate, predict_probabilities
from . import regression
from .baselines import Baseline, Estimator, Skipped, Task, classifier, svc
from .registry import BASELINES, CLASSES
from .training import (
    CONJUGATE,
    MONTE_CARLO,
    RAMP,
    GaussianProcess,
    SVGPBaseline,
    make_kernel,
    relative_gain,
)


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
