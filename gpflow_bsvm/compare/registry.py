"""The models that are compared, by name. TensorFlow is imported where one is made, not here.

To add one, write a class with the methods of `gpflow_bsvm.compare.baselines.Baseline` and enter it
in `BASELINES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .baselines import Baseline

TWO, MORE = "two classes", "more than two classes"


class Skipped(Exception):
    """A model that does not take part on these data; the message says why."""


@dataclass(frozen=True)
class KernelSettings:
    """
    :ivar lengthscale: of the squared exponential kernel, on standardised features.
    :ivar variance: of the kernel.
    :ivar learn: whether they are where learning starts (Gaussian processes then have a lengthscale
        for every feature), or fixed.
    """

    lengthscale: float
    variance: float = 4.0
    learn: bool = False


@dataclass(frozen=True)
class Entry:
    """
    :ivar description: one line, for the help.
    :ivar factory: of a model for so many classes.
    :ivar only: `TWO` or `MORE`, the number of classes that it takes; None: any.
    :ivar learnt: whether it takes part without being named where kernels are learnt.
    :ivar fixed: the same where the kernel is fixed.
    """

    description: str
    factory: Callable[[int], Baseline]
    only: str | None = None
    learnt: bool = False
    fixed: bool = True

    def suits(self, num_classes: int) -> bool:
        """:return: whether it takes so many classes."""
        return self.only in (None, TWO if num_classes == 2 else MORE)


def _from(module: str, make: Callable[[Any, int], Baseline]) -> Callable[[int], Baseline]:
    """:return: a factory that imports the module when it is called."""
    return lambda num_classes: make(importlib.import_module(f".{module}", __package__), num_classes)


#: Name on the command line and in tables -> what it is and how to make it. C: number of classes.
BASELINES = {
    "classifier": Entry(
        "BSVMClassifier as it is: learns kernel and penalty, calibrates",
        _from("baselines", lambda here, C: here.Estimator(here.classifier)),
        learnt=True,
        fixed=False,
    ),
    "bsvm": Entry(
        "Bayesian SVM, exact bound; Crammer and Singer's loss for C > 2",
        _from("gp_baselines", lambda here, C: here.hinge(C, "exact")),
    ),
    "bsvm-augmented": Entry(
        "the same with the binary papers' bound and coordinate ascent",
        _from("gp_baselines", lambda here, C: here.hinge(C, "augmented")),
    ),
    "bsvm-published": Entry(
        "the multi-class paper's objective, which is no bound (C > 2)",
        _from("gp_baselines", lambda here, C: here.hinge(C, "published")),
        MORE,
    ),
    "one-vs-rest": Entry(
        "a binary Bayesian SVM per class, normalised (C > 2)",
        _from("gp_baselines", lambda here, C: here.BSVMBaseline(here.likelihoods.OneVsRest(C))),
        MORE,
    ),
    "probit-engine": Entry(
        "probit likelihood in the same engine as bsvm (C = 2)",
        _from("gp_baselines", lambda here, C: here.BSVMBaseline(here.likelihoods.Probit())),
        TWO,
    ),
    "svgp": Entry(
        "GPflow's SVGP, natural gradients; Bernoulli, Softmax for C > 2",
        _from("gp_baselines", lambda here, C: here.svgp(C)),
        learnt=True,
    ),
    "svgp-probit": Entry(
        "the same without Bernoulli's floor on p (C = 2)",
        _from("gp_baselines", lambda here, C: here.SVGPBaseline(here.likelihoods.Probit())),
        TWO,
    ),
    "svgp-robustmax": Entry(
        "the same with RobustMax, GPflow's MultiClass (C > 2)",
        _from("gp_baselines", lambda here, C: here.robustmax(C)),
        MORE,
    ),
    "svc": Entry(
        "scikit-learn's SVC by grid search, Platt-scaled",
        _from("baselines", lambda here, C: here.Estimator(here.svc)),
        learnt=True,
    ),
    "gpc": Entry(
        "scikit-learn's GaussianProcessClassifier, at most 2000 rows; never by default",
        _from("baselines", lambda here, C: here.Estimator(here.gpc)),
        fixed=False,
    ),
}


def make_baseline(name: str, num_classes: int) -> Baseline:
    """
    :param name: in `BASELINES`.
    :return: a new model.
    :raise Skipped: unless it takes so many classes.
    """
    entry = BASELINES[name]
    if not entry.suits(num_classes):
        raise Skipped(f"for {entry.only} only")
    return entry.factory(num_classes)


def default_baselines(num_classes: int, fixed_kernel: bool = False) -> list[str]:
    """:return: names of those that take part in a comparison unless some are named."""
    return [
        name
        for name, entry in BASELINES.items()
        if (entry.fixed if fixed_kernel else entry.learnt) and entry.suits(num_classes)
    ]
