"""The models that are compared, by name. TensorFlow is imported where one is made, not here.

To add one, write a `gpflow_bsvm.compare.baselines.Baseline` and enter it in `BASELINES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .baselines import Baseline

TWO, MORE = "two classes", "more than two classes"
LEARNT, FIXED = ("learnt",), ("fixed",)


class Skipped(Exception):
    """A model that does not take part on these data; the message says why."""


@dataclass(frozen=True)
class KernelSettings:
    """
    :ivar lengthscale: of the squared exponential kernel, on standardised features.
    :ivar variance: of the kernel.
    :ivar learn: whether they are where learning starts (Gaussian processes then have a lengthscale
        for every feature), or fixed.
    :ivar offset: variance of a constant that Gaussian processes have in their kernel, too; 0: none.
    """

    lengthscale: float
    variance: float = 4.0
    learn: bool = False
    offset: float = 0.0


@dataclass(frozen=True)
class Entry:
    """
    :ivar description: one line, for the help.
    :ivar factory: of a model for so many classes.
    :ivar only: `TWO` or `MORE`, the number of classes that it takes; None: any.
    :ivar default: where it takes part without being named: kernels are `LEARNT`, or one is `FIXED`.
    """

    description: str
    factory: Callable[[int], Baseline]
    only: str | None = None
    default: tuple[str, ...] = FIXED

    def suits(self, num_classes: int) -> bool:
        """:return: True if it takes so many classes."""
        return self.only in (None, TWO if num_classes == 2 else MORE)


def _from(module: str, make: Callable[[Any, int], Baseline]) -> Callable[[int], Baseline]:
    """:return: a factory that imports the module when it is called."""
    return lambda C: make(importlib.import_module(f".{module}", __package__), C)


_scikit = partial(_from, "baselines")
_gp = partial(_from, "gp_baselines")

#: Name on the command line and in tables -> what it is and how to make it. C: number of classes.
BASELINES = {
    "BSVMClassifier": Entry(
        "as it is: learns kernel and penalty, calibrates",
        _scikit(lambda module, C: module.Estimator(module.classifier)),
        default=LEARNT,
    ),
    "bsvm": Entry(
        "Bayesian SVM, exact bound; Crammer and Singer's loss for C > 2",
        _gp(lambda module, C: module.hinge(C, "exact")),
    ),
    "bsvm-augmented": Entry(
        "the same with the binary papers' bound and coordinate ascent",
        _gp(lambda module, C: module.hinge(C, "augmented")),
    ),
    "one-vs-rest": Entry(
        "a binary Bayesian SVM per class, normalised (C > 2)",
        _gp(lambda module, C: module.BSVMBaseline(module.likelihoods.OneVsRest(C))),
        MORE,
    ),
    "probit-engine": Entry(
        "probit likelihood in the same engine as bsvm (C = 2)",
        _gp(lambda module, C: module.BSVMBaseline(module.likelihoods.Probit())),
        TWO,
    ),
    "svgp": Entry(
        "GPflow's SVGP, natural gradients; Bernoulli, Softmax for C > 2",
        _gp(lambda module, C: module.svgp(C)),
        default=LEARNT + FIXED,
    ),
    "svgp-probit": Entry(
        "the same without Bernoulli's floor on p (C = 2)",
        _gp(lambda module, C: module.SVGPBaseline(module.likelihoods.Probit())),
        TWO,
    ),
    "svgp-robustmax": Entry(
        "the same with RobustMax, GPflow's MultiClass (C > 2)",
        _gp(lambda module, C: module.robustmax(C)),
        MORE,
    ),
    "svc": Entry(
        "scikit-learn's SVC by grid search, Platt-scaled",
        _scikit(lambda module, C: module.Estimator(module.svc, module.svc_grid)),
        default=LEARNT + FIXED,
    ),
    "gpc": Entry(
        "scikit-learn's GaussianProcessClassifier, at most 2000 rows; never by default",
        _scikit(lambda module, C: module.Estimator(module.gpc)),
        default=(),
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
    (table,) = FIXED if fixed_kernel else LEARNT
    named = BASELINES.items()
    return [name for name, one in named if table in one.default and one.suits(num_classes)]
