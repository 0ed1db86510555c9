"""How the models of `registry.BASELINES` are made."""

from __future__ import annotations

from collections.abc import Callable

from .. import likelihoods
from .baselines import Baseline, Estimator, classifier, gpc, svc
from .gp_baselines import BSVMBaseline, SVGPBaseline, hinge, robustmax, svgp

#: Name -> what makes a model for C classes.
FACTORIES: dict[str, Callable[[int], Baseline]] = {
    "BSVMClassifier": lambda C: Estimator(classifier),
    "bsvm": lambda C: hinge(C, "exact"),
    "bsvm-augmented": lambda C: hinge(C, "augmented"),
    "one-vs-rest": lambda C: BSVMBaseline(likelihoods.OneVsRest(C)),
    "probit-engine": lambda C: BSVMBaseline(likelihoods.Probit()),
    "svgp": svgp,
    "svgp-probit": lambda C: SVGPBaseline(likelihoods.Probit()),
    "svgp-robustmax": robustmax,
    "svc": lambda C: Estimator(svc),
    "gpc": lambda C: Estimator(gpc),
}
