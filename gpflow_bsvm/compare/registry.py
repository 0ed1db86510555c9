"""The models that are compared, by name. TensorFlow is imported when a model is made, not here.

To add one, write a `gpflow_bsvm.compare.baselines.Baseline` and enter it in `BASELINES` with a
factory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .baselines import Baseline

TWO, MORE = "two classes", "more than two classes"
LEARNT, FIXED = ("learnt",), ("fixed",)


class Skipped(Exception):
    """A model that does not take part on these data; the message says why."""


@dataclass(frozen=True)
class KernelSettings:
    """
    :ivar lengthscale: of the squared exponential kernel, on standardized features.
    :ivar variance: of the kernel.
    :ivar learn: whether learning starts from these (Gaussian processes then have a lengthscale for
        every feature), or they are fixed.
    :ivar offset: variance of a constant in the kernel of Gaussian processes; 0: none.
    """

    lengthscale: float
    variance: float = 4.0
    learn: bool = False
    offset: float = 0.0


@dataclass(frozen=True)
class Entry:
    """
    :ivar description: one line, for the help.
    :ivar factory: makes a model for C classes; None: the one of this name in `gp_baselines`.
    :ivar only: `TWO` or `MORE`, the number of classes that the model takes; None: any.
    :ivar default: kernels, `LEARNT` or `FIXED`, with which it takes part without being named.
    """

    description: str
    factory: Callable[[int], Baseline] | None = None
    only: str | None = None
    default: tuple[str, ...] = FIXED

    def suits(self, num_classes: int) -> bool:
        """:return: True if the model takes so many classes."""
        return self.only in (None, TWO if num_classes == 2 else MORE)


#: Name on the command line and in tables -> entry. C: number of classes.
BASELINES = {
    "BSVMClassifier": Entry("as it is: learns kernel and penalty, calibrates", default=LEARNT),
    "bsvm": Entry("Bayesian SVM, exact bound; Crammer and Singer's loss for C > 2"),
    "bsvm-augmented": Entry("the same with the binary papers' bound and coordinate ascent"),
    "one-vs-rest": Entry("a binary Bayesian SVM per class, normalised (C > 2)", only=MORE),
    "probit-engine": Entry("probit likelihood in the same engine as bsvm (C = 2)", only=TWO),
    "svgp": Entry(
        "GPflow's SVGP, natural gradients; Bernoulli, Softmax for C > 2", default=LEARNT + FIXED
    ),
    "svgp-probit": Entry("the same without Bernoulli's floor on p (C = 2)", only=TWO),
    "svgp-robustmax": Entry("the same with RobustMax, GPflow's MultiClass (C > 2)", only=MORE),
    "svc": Entry("scikit-learn's SVC by grid search, Platt-scaled", default=LEARNT + FIXED),
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
    if entry.factory is not None:
        return entry.factory(num_classes)
    from .gp_baselines import FACTORIES

    return FACTORIES[name](num_classes)


def default_baselines(num_classes: int, fixed_kernel: bool = False) -> list[str]:
    """:return: names of the models that a comparison has if the user names none."""
    (table,) = FIXED if fixed_kernel else LEARNT
    named = BASELINES.items()
    return [name for name, one in named if table in one.default and one.suits(num_classes)]
