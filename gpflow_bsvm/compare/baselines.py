"""The models that are compared. A peer fits and predicts; it knows nothing of the protocol.

To add one, write a class with the methods of `Peer` and enter it in `PEERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from .. import likelihoods
from .gp_baselines import BSVMPeer, SVGPPeer
from .training import Climb, KernelSettings, Watch

TWO, MORE = "two classes", "more than two classes"

#: For GPflow's Softmax. Its ELBO is a mean of 100 draws, so that single ones say nothing about
#: convergence; steps of 1 overshoot to NaN within ten.
MONTE_CARLO = Climb(sizes=(0.5, 0.1), window=5)
#: For GPflow's RobustMax. It is far from log-concave: from the prior, steps of a hundredth already
#: leave the positive definite matrices.
RAMP = Climb(sizes=(0.5, 0.1, 0.02), ramp=True)

SVC_PENALTIES = (0.1, 1.0, 10.0, 100.0)
#: Factors on 1 / (2 lengthscale^2), searched where the kernel is learnt.
SVC_GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0)
#: Exact Gaussian processes stop here: time grows with N^3.
GPC_MAX_ROWS = 2000


class Skipped(Exception):
    """A peer that does not take part on these data; the message says why."""


class Peer(Protocol):
    """
    :ivar has_trace: whether `fit` calls `watch`.
    :ivar note: what a reader should know about the latest fit, or nothing.
    """

    has_trace: bool
    note: str

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """
        :param X: [N, D], standardised.
        :param y: [N] in 0..C-1, with rows of every class.
        :param Z: [M, D] inducing points, for those that use them.
        :param watch: called between steps, while `predict_proba` uses the state of that moment.
        """

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """:return: p(y = c) of each row, [N, C]; rows sum to 1."""


class SVCPeer:
    """
    scikit-learn's `SVC` with the same kernel (its variance is in the penalty C), C by 3-fold grid
    search, probabilities by Platt scaling on 5 folds. For more than two classes one-vs-one, scaled
    class by class, then divided by the sum.
    """

    has_trace = False
    note = ""

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """See `Peer`."""
        gamma = 0.5 / kernel.lengthscale**2
        factors = SVC_GAMMAS if kernel.learn else (1.0,)
        grid = {"C": SVC_PENALTIES, "gamma": [gamma * factor for factor in factors]}
        folds = [StratifiedKFold(k, shuffle=True, random_state=seed) for k in (3, 5)]
        best = GridSearchCV(SVC(), grid, cv=folds[0], refit=False).fit(X, y).best_params_
        self._model = CalibratedClassifierCV(
            SVC(**best), method="sigmoid", cv=folds[1], ensemble=False
        ).fit(X, y)

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """See `Peer`."""
        return np.asarray(self._model.predict_proba(X))


class GPCPeer:
    """
    scikit-learn's `GaussianProcessClassifier`: Laplace's method on all rows, in O(N^3);
    one-vs-rest for more than two classes.
    """

    has_trace = False
    note = ""

    def fit(
        self,
        X: AnyNDArray,
        y: AnyNDArray,
        Z: AnyNDArray,
        kernel: KernelSettings,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """See `Peer`; raises `Skipped` for more than 2000 rows."""
        if len(X) > GPC_MAX_ROWS:
            raise Skipped(f"{len(X)} training rows, its O(N^3) is kept to {GPC_MAX_ROWS}")
        covariance = ConstantKernel(kernel.variance) * RBF(kernel.lengthscale)
        optimizer = "fmin_l_bfgs_b" if kernel.learn else None
        self._model = GaussianProcessClassifier(covariance, optimizer=optimizer).fit(X, y)

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """See `Peer`."""
        return np.asarray(self._model.predict_proba(X))


def _hinge(bound: str) -> Callable[[int], Peer]:
    def make(num_classes: int) -> Peer:
        if num_classes == 2:
            return BSVMPeer(likelihoods.Hinge(bound=bound))
        return BSVMPeer(likelihoods.CrammerSinger(num_classes, bound=bound))

    return make


def _svgp(num_classes: int) -> Peer:
    if num_classes == 2:
        return SVGPPeer(gpflow.likelihoods.Bernoulli())
    return SVGPPeer(gpflow.likelihoods.Softmax(num_classes), MONTE_CARLO)


@dataclass(frozen=True)
class Entry:
    """
    :ivar factory: of a peer for so many classes.
    :ivar only: `TWO` or `MORE`, the number of classes that it takes; None: any.
    :ivar default: whether it takes part without being named.
    """

    factory: Callable[[int], Peer]
    only: str | None = None
    default: bool = True

    def suits(self, num_classes: int) -> bool:
        """:return: whether it takes so many classes."""
        return self.only in (None, TWO if num_classes == 2 else MORE)

    def make(self, num_classes: int) -> Peer:
        """
        :return: a new peer.
        :raise Skipped: unless it takes so many classes.
        """
        if not self.suits(num_classes):
            raise Skipped(f"for {self.only} only")
        return self.factory(num_classes)


#: Name on the command line and in tables -> how to make that peer.
PEERS = {
    "bsvm": Entry(_hinge("exact")),
    "bsvm-augmented": Entry(_hinge("augmented")),
    "bsvm-published": Entry(_hinge("wistuba2018"), MORE),
    "one-vs-rest": Entry(lambda C: BSVMPeer(likelihoods.OneVsRest(C)), MORE),
    "probit-engine": Entry(lambda _: BSVMPeer(likelihoods.Probit()), TWO),
    "svgp": Entry(_svgp),
    "svgp-probit": Entry(lambda _: SVGPPeer(likelihoods.Probit()), TWO),
    "svgp-robustmax": Entry(lambda C: SVGPPeer(gpflow.likelihoods.MultiClass(C), RAMP), MORE),
    "svc": Entry(lambda _: SVCPeer()),
    "gpc": Entry(lambda _: GPCPeer(), default=False),
}


def default_peers(num_classes: int) -> list[str]:
    """:return: names of those that take part in a comparison unless some are named."""
    return [name for name, one in PEERS.items() if one.default and one.suits(num_classes)]
