"""What `BSVMClassifier` does between its checks: `choose` a penalty, then `train` a model."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from gpflow import set_trainable
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.likelihoods import Likelihood
from sklearn.metrics import pairwise_distances

from ..inducing_points import initial as inducing_points
from ..inference import VEM, History, fit
from ..likelihoods import CrammerSinger, Hinge, OneVsRest
from ..model_selection import held_out
from ..models import BSVM, LinearBSVM
from ..models.linear import WeightKernel
from ..prediction.calibration import calibrate
from ..priors import VARIANCE, ard_kernel, log_normal

#: What more than two classes are trained by; the names are those of scikit-learn's `LinearSVC`.
MULTI_CLASS = {"crammer_singer": CrammerSinger, "ovr": OneVsRest}

#: The default kernel where none is learned: prior variance in squared margins, and lengthscale in
#: median distances between inducing points. The best of a coarse grid on twelve binary data sets.
DEFAULT_VARIANCE, DEFAULT_LENGTHSCALE = 4.0, 0.75

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

#: X [N, D], standardised; Y [N, 1], labels 0..C-1; weights [N], positive.
Data = tuple[AnyNDArray, AnyNDArray, AnyNDArray]


class Specification(NamedTuple):
    """
    What is to be trained of C classes, but for the penalty; names as in `BSVMClassifier`.

    :ivar linear: f is linear, and exact: `num_inducing` plays no part.
    :ivar kernel: prior covariance of f, from which learning starts; copied; None: a default one.
    :ivar inference: has `run`; None: `gpflow_bsvm.fit`.
    :ivar seed: of inducing points, parts of the data, and folds.
    """

    num_classes: int
    multi_class: str = "crammer_singer"
    bound: str = "exact"
    linear: bool = False
    kernel: Kernel | None = None
    learn_kernel: bool = True
    calibrate: bool = True
    num_inducing: int = 200
    inference: Any = None
    seed: int = 0
    progress: bool = False


def choose(spec: Specification, data: Data) -> float:
    """
    :return: the penalty of the greatest density of held-out rows, see
        `gpflow_bsvm.model_selection`. All penalties and folds see one kernel, that which the first
        penalty learns from all these rows: to learn it anew in every fold chose no better. The
        final learning is not to start from it: fewer points can lead to another optimum.
    """
    data = X, Y, weight = at_most(CHOICE_ROWS, data, spec.seed)
    num_folds = min(held_out.NUM_FOLDS, held_out.most_folds((X, Y)))
    if num_folds < 2 or len(X) < FEWEST_CHOICE_ROWS:  # folds would say nothing
        return held_out.FIRST_PENALTY
    spec = spec._replace(num_inducing=min(spec.num_inducing, CHOICE_INDUCING), progress=False)
    if spec.learn_kernel:
        model = make_model(spec, X, held_out.FIRST_PENALTY)
        learn(spec, model, data)
        spec = spec._replace(kernel=model.kernel, learn_kernel=False)

    def score(penalty: float) -> float:
        return held_out.held_out_density(
            lambda *part: train(spec, part, penalty)[0],
            (X, Y),
            sample_weight=weight,
            num_folds=num_folds,
            seed=spec.seed,
        )

    return held_out.find_peak(score, held_out.PENALTIES, held_out.FIRST_PENALTY)


def train(spec: Specification, data: Data, penalty: float) -> tuple[BSVM, History]:
    """
    :return: the model, and the history of the learning of its kernel if that was asked for, else
        of the fit of q.
    """
    X, Y, weight = data
    model = make_model(spec, X, penalty)
    learned = learn(spec, model, data) if spec.learn_kernel else None
    run = fit if spec.inference is None else spec.inference.run
    history = run(model, (X, Y), sample_weight=weight, progress=spec.progress)
    if spec.calibrate:
        calibrate(model, (X, Y), sample_weight=weight)
    model.num_data = len(X)
    return model, learned or history


def learn(spec: Specification, model: BSVM, data: Data) -> History:
    """Learn the kernel, at fixed inducing points, from as many rows as tell it all."""
    set_trainable(model.inducing_variable, False)
    num_latents, num_inducing = model.num_features
    affordable = LEARN_WORK / (num_latents * num_inducing**2)
    X, Y, weight = at_most(int(np.clip(affordable, FEWEST_LEARN_ROWS, LEARN_ROWS)), data, spec.seed)
    return VEM().run(model, (X, Y), sample_weight=weight, progress=spec.progress)


def at_most(number: int, data: Data, seed: int) -> Data:
    """:return: so many rows, at random but for those of rare classes, if there are more."""
    X, Y, weight = data
    if len(X) <= number:
        return data
    order = np.random.default_rng(seed).permutation(len(X))
    labels, place = Y[order, 0], np.empty(len(X), dtype=int)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        place[members] = np.arange(len(members))
    first = np.argsort(place >= RARE_ROWS, kind="stable")  # some of each class, then the others
    chosen = np.sort(order[first[:number]])
    return X[chosen], Y[chosen], weight[chosen]


def make_likelihood(spec: Specification, penalty: float) -> Likelihood:
    """:return: the hinge of two classes, or that of more."""
    if spec.num_classes == 2:
        return Hinge(penalty, spec.bound)
    return MULTI_CLASS[spec.multi_class](spec.num_classes, penalty, spec.bound)


def make_model(spec: Specification, X: AnyNDArray, penalty: float) -> BSVM:
    """:return: a model at its prior, with a kernel of its own."""
    likelihood = make_likelihood(spec, penalty)
    Z, kernel = _inducing_points(spec, X), copy.deepcopy(spec.kernel)
    if kernel is None:
        kernel = _default_kernel(spec, X.shape[1], Z, penalty)
    if Z is None:
        model = LinearBSVM(X.shape[1], likelihood)
        model.kernel = kernel
        return model
    return BSVM(kernel, likelihood, Z, num_latent_gps=likelihood.latent_dim or 1)


def _inducing_points(spec: Specification, X: AnyNDArray) -> AnyNDArray | None:
    """:return: for a linear f the rows, which tell it, or None, if they outnumber its weights."""
    if spec.linear:
        return np.unique(X, axis=0) if len(X) <= X.shape[1] else None
    if len(X) <= inducing_points.SUBSAMPLE:
        X = np.unique(X, axis=0)  # neither order nor repetition of rows may matter
    return inducing_points.kmeans(X, min(spec.num_inducing, len(X)), seed=spec.seed)


def _default_kernel(spec: Specification, num_features: int, Z: Any, penalty: float) -> Kernel:
    if spec.linear:  # the variance of f is at first that of the other default
        variance = VARIANCE / (num_features + 1)
        kernel = WeightKernel(num_features, variance)
        kernel.variance.prior = log_normal(variance, WEIGHT_DEVIATION / penalty**0.5)
        return kernel
    if spec.learn_kernel:
        return ard_kernel(num_features, penalty=penalty)
    distances = pairwise_distances(Z)[np.triu_indices(len(Z), 1)]
    scale = np.median(distances) if len(distances) else 1.0
    return SquaredExponential(DEFAULT_VARIANCE, lengthscales=DEFAULT_LENGTHSCALE * scale)
