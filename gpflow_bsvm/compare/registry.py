"""The compared models by name. TensorFlow is imported only when a model is made.

To add a model, write a `gpflow_bsvm.compare.baselines.Baseline`, and add its factory to
`BASELINES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TWO = "two classes"
MORE = "more than two classes"
NUMBERS = "numbers"
KINDS = (TWO, MORE, NUMBERS)
CLASSES = (TWO, MORE)
LEARNT = ("learnt",)
FIXED = ("fixed",)


@dataclass(frozen=True)
class Entry:
    """A model; its factory makes a `Baseline` for C classes (0: numbers)."""

    description: str  #: for the help, the output and the page
    factory: Callable[[int], Any] | None = None  #: None: `gp_baselines` has the factory
    only: tuple[str, ...] = CLASSES  #: the kinds of labels that the model accepts, from `KINDS`
    default: tuple[str, ...] = FIXED  #: kernels for which the model runs by default

    def suits(self, num_classes: int) -> bool:
        """:return: True if the model accepts this number of classes (0: numbers)."""
        return (NUMBERS if num_classes == 0 else TWO if num_classes == 2 else MORE) in self.only


#: Entries by their names on the command line and in tables. C is the number of classes.
BASELINES = {
    "bsvm": Entry(
        "Bayesian SVM: hinge (C > 2: Crammer and Singer's; numbers: epsilon-insensitive); "
        "learns by VEM until two successive rounds raise its bound by less than 0.01 %",
        only=KINDS,
        default=LEARNT + FIXED,
    ),
    "bsvm-augmented": Entry("bsvm with the binary papers' bound and coordinate ascent"),
    "one-vs-rest": Entry("a binary Bayesian SVM per class, normalized (C > 2)", only=(MORE,)),
    "probit-engine": Entry("probit likelihood in the same engine as bsvm (C = 2)", only=(TWO,)),
    "svgp": Entry(
        "GPflow's SVGP: Bernoulli (C > 2: Softmax; numbers: Gaussian); learns by natural "
        "gradients and Adam until the mean ELBO of 20 rounds (100 for Softmax, which is random) "
        "changes by less than 0.01 %, or by no more than its noise",
        only=KINDS,
        default=LEARNT + FIXED,
    ),
    "svgp-probit": Entry("svgp without Bernoulli's floor on p (C = 2)", only=(TWO,)),
    "svgp-robustmax": Entry("svgp with RobustMax, GPflow's MultiClass (C > 2)", only=(MORE,)),
    "BSVMClassifier": Entry("with its defaults: chooses loss, penalty and M", default=LEARNT),
    "BSVMRegressor": Entry("with its defaults: chooses M", only=(NUMBERS,), default=LEARNT),
    "svc": Entry("scikit-learn's SVC by grid search, Platt-scaled", default=LEARNT + FIXED),
    "svr": Entry("scikit-learn's SVR by grid search", only=(NUMBERS,), default=LEARNT),
    "boosting": Entry("scikit-learn's trees by grid search", only=(NUMBERS,), default=LEARNT),
}
#: Models without inducing points, or that choose their number.
WITHOUT_M = ("BSVMClassifier", "BSVMRegressor", "svc", "svr", "boosting")
#: Models of other packages.
PEERS = ("svgp", "svgp-robustmax", "svc", "svr", "boosting")


def default_baselines(num_classes: int, fixed_kernel: bool = False) -> list[str]:
    """:return: names of the models that run by default."""
    (table,) = FIXED if fixed_kernel else LEARNT
    named = BASELINES.items()
    return [name for name, one in named if table in one.default and one.suits(num_classes)]
