"""The models that are compared. A peer fits and predicts; it knows nothing of the protocol.

To add one, write a class with the methods of `Peer` and enter it in `PEERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from .. import inference, likelihoods, models
from .training import KernelSettings, Stopwatch, Trainer, Watch, ascend, learn_kernel

#: Sizes of the natural-gradient step, the next where one fails.
FIXED_KERNEL_STEPS = (1.0, 0.1)
LEARNT_KERNEL_STEPS = (0.5, 0.1)

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
        :param y: [N] in {0, 1}.
        :param Z: [M, D] inducing points, for those that use them.
        :param watch: called between steps, while `predict_proba` uses the state of that moment.
        """

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """:return: p(y = 1) of each row, [N]."""


class _GaussianProcess:
    """Sparse models: trainer, start, and kernel learning, common to SVGP and BSVM."""

    has_trace = True
    note = ""

    def __init__(self, model_class: type[gpflow.models.SVGP], likelihood: Callable[[], Any]):
        self._model_class, self._likelihood = model_class, likelihood
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
        clock, data, self.note = Stopwatch(), (X, y[:, None].astype(X.dtype)), ""
        sizes = LEARNT_KERNEL_STEPS if kernel.learn else FIXED_KERNEL_STEPS
        for gamma in sizes:
            trainer = self._start(Z, kernel)
            try:
                if kernel.learn:
                    learn_kernel(trainer, data, gamma, clock, watch)
                self._fit_posterior(trainer, data, gamma, clock, watch)
                return
            except (tf.errors.InvalidArgumentError, FloatingPointError):
                if gamma == sizes[-1]:
                    raise
                self.note = f"step size {gamma} failed, {sizes[-1]} used"

    def _start(self, Z: AnyNDArray, kernel: KernelSettings) -> Trainer:
        if self._trainer is None or self._trainer.model.inducing_variable.Z.shape != Z.shape:
            self._trainer = Trainer(self._model_class, self._likelihood(), Z)
        self._trainer.reset(Z, kernel)
        return self._trainer

    def _fit_posterior(
        self, trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
    ) -> None:
        raise NotImplementedError

    def predict_proba(self, X: AnyNDArray) -> AnyNDArray:
        """See `Peer`."""
        assert self._trainer is not None
        return np.asarray(self._trainer.predict(X))[:, 0]


class SVGPPeer(_GaussianProcess):
    """`gpflow.models.SVGP` with GPflow's compiled `NaturalGradient` on all the data."""

    def __init__(self, likelihood: Callable[[], Any]) -> None:
        super().__init__(gpflow.models.SVGP, likelihood)

    def _fit_posterior(
        self, trainer: Trainer, data: Any, gamma: float, clock: Stopwatch, watch: Watch | None
    ) -> None:
        if not ascend(trainer, data, gamma, clock, watch):
            self.note = "; ".join(filter(None, [self.note, "not converged"]))


class BSVMPeer(_GaussianProcess):
    """`gpflow_bsvm.models.BSVM` with `gpflow_bsvm.fit`: the package's engine."""

    def __init__(self, likelihood: Callable[[], Any]) -> None:
        super().__init__(models.BSVM, likelihood)

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


class SVCPeer:
    """
    scikit-learn's `SVC` with the same kernel (its variance is in the penalty C), C by 3-fold grid
    search, probabilities by Platt scaling on 5 folds.
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
        return np.asarray(self._model.predict_proba(X))[:, 1]


class GPCPeer:
    """scikit-learn's `GaussianProcessClassifier`: Laplace's method on all rows, in O(N^3)."""

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
        return np.asarray(self._model.predict_proba(X))[:, 1]


#: Name on the command line and in tables -> a new peer.
PEERS: dict[str, Callable[[], Peer]] = {
    "bsvm": lambda: BSVMPeer(lambda: likelihoods.Hinge(bound="exact")),
    "bsvm-augmented": lambda: BSVMPeer(lambda: likelihoods.Hinge(bound="augmented")),
    "probit-engine": lambda: BSVMPeer(likelihoods.Probit),
    "svgp": lambda: SVGPPeer(gpflow.likelihoods.Bernoulli),
    "svgp-probit": lambda: SVGPPeer(likelihoods.Probit),
    "svc": SVCPeer,
    "gpc": GPCPeer,
}
DEFAULT_PEERS = tuple(name for name in PEERS if name != "gpc")
