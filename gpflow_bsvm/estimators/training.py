"""From rows to a fitted model: what `BSVMClassifier` does between its checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from sklearn.metrics import pairwise_distances

from ..inducing_points import initial as inducing_points
from ..inference import VEM, History, fit
from ..model_selection import held_out as selection
from ..models import BSVM, LinearBSVM
from ..models.linear import WeightKernel, Weights
from ..prediction.calibration import calibrate
from ..priors import VARIANCE, ard_kernel, log_normal

#: The default kernel where none is learned: prior variance in squared margins, and lengthscale in
#: median distances between inducing points. The best of a coarse grid on twelve binary data sets.
DEFAULT_VARIANCE = 4.0
DEFAULT_LENGTHSCALE = 0.75

#: Of the logarithm of the variance of linear weights: hardly a prior, but it excludes infinity.
WEIGHT_DEVIATION = 2.0

#: The kernel is learned from this many rows at most, of fewer where there are many classes or
#: inducing points: rows times L M^2 stay below `LEARN_WORK`, down to the fewest.
LEARN_ROWS, FEWEST_LEARN_ROWS, LEARN_WORK = 10_000, 1_000, 5e8
#: Of classes with few rows this many are in every part of the data.
RARE_ROWS = 20
#: A penalty is chosen on this many rows at most, and not on fewer than so many.
CHOICE_ROWS, FEWEST_CHOICE_ROWS = 2_000, 100
#: ... with this many inducing points at most: it is looked for in steps of 4.
CHOICE_INDUCING = 50


@dataclass(frozen=True)
class Recipe:
    """
    :ivar make_likelihood: of a penalty.
    :ivar num_latents: L.
    :ivar penalty: or None: to be chosen, see `gpflow_bsvm.model_selection`.
    :ivar kernel: copied; None: a default one; "linear": a `LinearBSVM`.
    :ivar learn_kernel: learn what is trainable in the kernel.
    :ivar calibrate: fit the link to leave-one-out marginals.
    :ivar num_inducing: most inducing points.
    :ivar inference: has `run`; None: `gpflow_bsvm.fit`.
    """

    make_likelihood: Callable[[float], Likelihood]
    num_latents: int
    penalty: float | None
    kernel: gpflow.kernels.Kernel | str | None
    learn_kernel: bool
    calibrate: bool
    num_inducing: int
    inference: Any = None
    seed: int = 0
    progress: bool | None = False

    def fit(self, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray) -> tuple[BSVM, History]:
        """
        :param X: [N, D], standardised.
        :param Y: [N, 1], labels that the likelihood takes.
        :param weight: [N], positive.
        :return: the model, and the history of the learning of its kernel if that was asked for,
            else of the fit of q.
        """
        if self.penalty is None:
            return self._choose(X, Y, weight).fit(X, Y, weight)
        model = self._make_model(X)
        learned = self._learn(model, X, Y, weight) if self.learn_kernel else None
        run = fit if self.inference is None else self.inference.run
        history = run(model, (X, Y), sample_weight=weight, progress=self.progress)
        if self.calibrate:
            calibrate(model, (X, Y), sample_weight=weight)
        return model, learned or history

    def _make_model(self, X: AnyNDArray) -> BSVM:
        assert self.penalty is not None
        likelihood = self.make_likelihood(self.penalty)
        about: dict[str, Any] = {"num_latent_gps": self.num_latents, "num_data": len(X)}
        if self.kernel == "linear":
            return self._make_linear(X.shape[1], likelihood, **about)
        Z = self._inducing_variable(X)
        return BSVM(self._make_kernel(Z), likelihood, Z, **about)

    def _make_linear(self, num_features: int, likelihood: Likelihood, **about: Any) -> LinearBSVM:
        """:return: the variance of f is at first that of the default kernel."""
        assert self.penalty is not None
        variance = VARIANCE / (num_features + 1)
        model = LinearBSVM(num_features, likelihood, variance, **about)
        model.kernel.variance.prior = log_normal(variance, WEIGHT_DEVIATION / self.penalty**0.5)
        return model

    def _learn(self, model: BSVM, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray) -> History:
        """Learn the kernel, at fixed inducing points, from as many rows as tell it all."""
        gpflow.set_trainable(model.inducing_variable, False)
        num_latents, num_inducing = model.num_features
        affordable = int(LEARN_WORK / (num_latents * num_inducing**2))
        number = int(np.clip(affordable, FEWEST_LEARN_ROWS, LEARN_ROWS))
        X, Y, weight = self._at_most(number, X, Y, weight)
        num_data, model.num_data = model.num_data, None
        history = VEM().run(model, (X, Y), sample_weight=weight, progress=self.progress)
        model.num_data = num_data
        return history

    def _choose(self, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray) -> Recipe:
        """
        :return: this, with the penalty of the greatest density of held-out rows. All penalties and
            folds see one kernel, that which the first penalty learns from all these rows: to learn
            it anew in every fold chose no better. The final learning does not start from it: fewer
            inducing points can lead to another optimum.
        """
        X, Y, weight = self._at_most(CHOICE_ROWS, X, Y, weight)
        num_folds = min(selection.NUM_FOLDS, selection.most_folds((X, Y)))
        first = replace(self, penalty=selection.FIRST_PENALTY)
        if num_folds < 2 or len(X) < FEWEST_CHOICE_ROWS:  # folds would say nothing
            return first
        few = min(self.num_inducing, CHOICE_INDUCING)
        kernel = self.kernel
        if self.learn_kernel:
            plain = replace(first, num_inducing=few, calibrate=False, progress=False)
            kernel = plain.fit(X, Y, weight)[0].kernel
        quiet = replace(self, kernel=kernel, learn_kernel=False, num_inducing=few, progress=False)

        def score(penalty: float) -> float:
            return selection.held_out_density(
                lambda *rows: replace(quiet, penalty=penalty).fit(*rows)[0],
                (X, Y),
                sample_weight=weight,
                num_folds=num_folds,
                seed=self.seed,
            )

        chosen = selection.climb(score, selection.PENALTIES, selection.FIRST_PENALTY)
        return replace(self, penalty=chosen)

    def _at_most(
        self, number: int, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray
    ) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        """:return: so many rows, at random but for those of rare classes, if there are more."""
        if len(X) <= number:
            return X, Y, weight
        order = np.random.default_rng(self.seed).permutation(len(X))
        labels, place = Y[order, 0], np.empty(len(X), dtype=int)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            place[members] = np.arange(len(members))
        first = np.argsort(place >= RARE_ROWS, kind="stable")  # some of each class, then the others
        rows = np.sort(order[first[:number]])
        return X[rows], Y[rows], weight[rows]

    def _inducing_variable(self, X: AnyNDArray) -> Any:
        if isinstance(self.kernel, WeightKernel):  # what `_choose` has learned of "linear"
            return Weights(self.kernel)
        if len(X) <= inducing_points.SUBSAMPLE:
            X = np.unique(X, axis=0)  # neither order nor repetition of rows may matter
        return inducing_points.kmeans(X, min(self.num_inducing, len(X)), seed=self.seed)

    def _make_kernel(self, Z: AnyNDArray) -> gpflow.kernels.Kernel:
        if isinstance(self.kernel, gpflow.kernels.Kernel):
            return copy.deepcopy(self.kernel)
        if self.learn_kernel:
            assert self.penalty is not None
            return ard_kernel(Z.shape[1], penalty=self.penalty)
        distances = pairwise_distances(Z)[np.triu_indices(len(Z), 1)]
        scale = np.median(distances) if len(distances) else 1.0
        return gpflow.kernels.SquaredExponential(
            DEFAULT_VARIANCE, lengthscales=DEFAULT_LENGTHSCALE * scale
        )
