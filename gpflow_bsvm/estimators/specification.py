"""The specification of an estimator's model, and the untrained model."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel, SquaredExponential, Sum
from gpflow.likelihoods import Likelihood
from scipy.special import expit
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin

from .. import likelihoods
from ..engine.structure import copied
from ..inducing_points import points as inducing_points
from ..likelihoods import Levels, location_spread
from ..models import BSVM, LinearBSVM
from ..models.linear import WeightKernel
from ..priors import LENGTHSCALE_DEVIATION, VARIANCE, default_kernel, log_normal
from .columns import on_scaled_columns
from .stages import NOWHERE, Stages

#: Hinges for more than two classes, named as in scikit-learn's `LinearSVC`.
MULTI_CLASS = {"crammer_singer": likelihoods.CrammerSinger, "ovr": likelihoods.OneVsRest}
LOSSES = ("hinge", "levels")

#: The initial M if M grows.
FIRST_INDUCING = 100

#: The distance between codes, in deviations of columns; larger than any distance between rows.
CODES_APART = 1e3

#: The default kernel without learning: its prior variance, and its lengthscale in median distances
#: between inducing points. The best values of a coarse grid on twelve binary data sets.
DEFAULT_VARIANCE = 4.0
DEFAULT_LENGTHSCALE = 0.75

#: The least `penalty` of the kernel's priors in regression: wide, because the normalized evidence
#: determines the kernel better than a hinge's evidence. The value is better than 1 on most of 17
#: data sets. From .4 columns per row on, wide priors overfit: the penalty is (D / N)^2, up to 1.
PRIOR_OF_NUMBERS = 0.16
#: The median of these lengthscales, in units of sqrt(D): many functions are nearly linear. Learning
#: starts at sqrt(D), because from longer lengthscales it may end in a local optimum.
LENGTHSCALE_OF_NUMBERS = 3.0

#: Neighboring levels t are LEVEL_SPACING apart in logit t. At the outermost level, the rarer label
#: is expected in ROWS_AT_LAST rows, because rows cannot locate more extreme levels. This level's
#: logit is rounded, so that fits share graphs, and stays within the limits below. Predictions keep
#: as far from 0 and 1.
LEVEL_SPACING = 0.5
ROWS_AT_LAST = 8.0
LEAST_OUTERMOST = 4
MOST_OUTERMOST = 6
#: Penalties of levels are given for this number of levels. With more levels, penalties grow in
#: proportion, so that each level has the same weight.
NUM_LEVELS = 17

#: A class with a smaller part of the rows is rare. Few levels are below its probability, so with
#: many rows the integral over levels may become much too small.
RARE = 0.12

#: Deviation of the prior of linear weights' log variance: nearly flat, but it excludes infinity.
WEIGHT_DEVIATION = 2.0

#: X [N, D], standardized; Y [N, 1], labels 0..C-1; weights [N], positive.
Data = tuple[AnyNDArray, AnyNDArray, AnyNDArray]


class Specification(NamedTuple):
    """
    Options of training for C classes or for numbers, named as in the estimators.

    :ivar levels: the levels of the loss "levels".
    :ivar link: their link.
    :ivar learned: names of the likelihood's learned parameters.
    :ivar linear: whether f is exactly linear; `num_inducing` is then ignored.
    :ivar kernel: the initial kernel, which is copied; None: a default kernel.
    :ivar Z: inducing points [M, D]; None: choose them.
    :ivar codes: columns of codes, where inducing points take only values that occur in the rows.
    :ivar grow: whether `num_inducing` is only the initial M.
    :ivar steeper: whether a steeper hinge is tried at the end, see `training.steeper`.
    :ivar num_rows: the total number of rows if the data are a sample.
    :ivar inference: an algorithm with a method `run`; None: `gpflow_bsvm.fit`.
    :ivar seed: seed for choosing rows to learn the kernel.
    :ivar stages: the object that shows and stores the stages of the fit.
    """

    num_classes: int = 1
    loss: str = "hinge"
    penalty: float = 1.0
    epsilon: float = 0.1
    levels: Levels = location_spread()
    link: str = "integral"
    learned: tuple[str, ...] = ()
    multi_class: str = "crammer_singer"
    bound: str = "exact"
    linear: bool = False
    kernel: Kernel | None = None
    learn_kernel: bool = True
    calibrate: bool | str = "auto"
    num_inducing: int = 200
    Z: AnyNDArray | None = None
    codes: tuple[int, ...] = ()
    grow: bool = False
    steeper: bool = False
    num_rows: int | None = None
    inference: Any = None
    seed: int = 0
    stages: Stages = NOWHERE

    @property
    def is_classifier(self) -> bool:
        """:return: True if labels are classes."""
        return self.num_classes > 1

    def rows_of(self, data: Data) -> int:
        """:return: the total number of rows, of which `data` may be a sample."""
        return max(len(data[0]), self.num_rows or 0)

    @property
    def prior_penalty(self) -> float:
        """:return: the penalty that the priors assume; for levels, the equivalent for 17 levels."""
        part = NUM_LEVELS / self.levels.t.size if self.loss == "levels" else 1.0
        return part * self.penalty

    @property
    def calibrates(self) -> bool:
        """:return: True if the link is fitted to left-out rows; by default, only for a hinge."""
        return self.loss == "hinge" if self.calibrate == "auto" else bool(self.calibrate)


def specify(estimator: Any, seed: int) -> Specification:
    """:return: the specification by the estimator's parameters, without loss and penalty."""
    shared = ("bound", "multi_class", "learn_kernel", "calibrate", "inference")
    given = {name: getattr(estimator, name) for name in shared if hasattr(estimator, name)}
    grow = estimator.num_inducing == "auto"
    kernel = estimator.kernel
    own = isinstance(kernel, Kernel)
    return Specification(
        **given,
        num_inducing=FIRST_INDUCING if grow else int(estimator.num_inducing),
        grow=grow,
        linear=isinstance(kernel, str),
        kernel=on_scaled_columns(kernel, estimator.scaler_) if own else None,
        seed=seed,
    )


def levels_for(num_rows: float) -> Levels:
    """:return: the levels; the outermost are as far out as this many rows can locate."""
    farthest = np.log(max(num_rows, 1.0) / ROWS_AT_LAST)
    outermost = float(np.clip(np.round(farthest), LEAST_OUTERMOST, MOST_OUTERMOST))
    number = 2 * round(outermost / LEVEL_SPACING) + 1
    return location_spread(expit(np.linspace(-outermost, outermost, number)).tolist())


def link_for(data: Data, num_classes: int) -> str:
    """
    :return: the link of levels for these rows, see `LevelHinge`: "integral" unless a class is rare.
        A class without rows, as in the first batch of a stream, does not count as rare.
    """
    _, Y, weight = data
    counts = np.bincount(Y[:, 0].astype(int), weight, minlength=num_classes)
    part = (counts.min() + 1) / (counts + 1).sum()
    return "stationary" if counts.all() and part < RARE else "integral"


def _make_likelihood(spec: Specification) -> Likelihood:
    """:return: the likelihood for numbers, or for one, two or more classes."""
    number = spec.num_classes
    if spec.loss == "epsilon_insensitive":
        return likelihoods.EpsilonInsensitive(spec.penalty, spec.epsilon)
    if spec.loss == "one_class":
        return likelihoods.OneClass(spec.penalty, spec.bound)
    if spec.loss == "levels" and number <= 2:
        return likelihoods.LevelHinge(spec.penalty, spec.bound, spec.levels, spec.link)
    if spec.loss == "levels":
        ordinal = spec.multi_class == "ordinal"
        kind = likelihoods.Ordinal if ordinal else likelihoods.OneVsRestLevelHinge
        return kind(number, spec.penalty, spec.bound, spec.levels, spec.link)
    if number > 2:
        return MULTI_CLASS[spec.multi_class](number, spec.penalty, spec.bound)
    return likelihoods.Hinge(spec.penalty, spec.bound)


def make_model(spec: Specification, X: AnyNDArray) -> BSVM:
    """:return: an untrained model, whose likelihood's learned parameters are trainable."""
    likelihood = _make_likelihood(spec)
    for name in ("penalty", "epsilon", "thresholds"):
        if hasattr(likelihood, name):
            gpflow.set_trainable(getattr(likelihood, name), name in spec.learned)
    Z = _inducing_points(spec, X)
    kernel = _default_kernel(spec, X, Z) if spec.kernel is None else copied(spec.kernel)
    if Z is None:
        model = LinearBSVM(X.shape[1], likelihood)
        model.kernel = kernel
        return model
    return BSVM(kernel, likelihood, Z, num_latent_gps=likelihood.latent_dim or 1)


def _inducing_points(spec: Specification, X: AnyNDArray) -> AnyNDArray | None:
    """:return: inducing points; for a linear f distinct rows, or None if N > D."""
    if spec.linear:
        return np.unique(X, axis=0) if len(X) <= X.shape[1] else None
    if spec.Z is not None:
        return spec.Z
    X = distinct(X)
    return centres(spec, X, min(spec.num_inducing, len(X)))


def centres(spec: Specification, X: AnyNDArray, number: int, max_iter: int = 20) -> AnyNDArray:
    """:return: inducing points by k-means, separately for each code if M allows it."""
    if not spec.codes:
        return inducing_points.kmeans(X, number, max_iter=max_iter)
    codes = list(spec.codes)
    apart = X.copy()
    apart[:, codes] *= CODES_APART
    Z = inducing_points.kmeans(apart, number, max_iter=max_iter)
    Z[:, codes] = X[pairwise_distances_argmin(Z, apart)][:, codes]
    return np.unique(Z, axis=0)


def distinct(X: AnyNDArray) -> AnyNDArray:
    """:return: candidates for inducing points: sorted distinct rows; X if N > `SUBSAMPLE`."""
    return np.unique(X, axis=0) if len(X) <= inducing_points.SUBSAMPLE else X


def _default_kernel(spec: Specification, X: AnyNDArray, Z: Any) -> Kernel:
    num_features = X.shape[1]
    if spec.linear:  # f has the same initial variance as with the other default
        variance = VARIANCE / (num_features + 1)
        kernel = WeightKernel(num_features, variance)
        kernel.variance.prior = log_normal(variance, WEIGHT_DEVIATION / spec.prior_penalty**0.5)
        return kernel
    if spec.learn_kernel:
        if spec.is_classifier:
            return default_kernel(num_features, penalty=spec.prior_penalty)
        return _kernel_of_numbers(num_features, len(X))
    distances = pairwise_distances(Z)[np.triu_indices(len(Z), 1)]
    scale = np.median(distances) if len(distances) else 1.0
    return SquaredExponential(DEFAULT_VARIANCE, lengthscales=DEFAULT_LENGTHSCALE * scale)


def _kernel_of_numbers(num_features: int, num_rows: int) -> Kernel:
    """:return: the default kernel of regression, with wide priors and a long median lengthscale."""
    penalty = min(1.0, max(PRIOR_OF_NUMBERS, (num_features / num_rows) ** 2))
    kernel = cast(Sum, default_kernel(num_features, penalty=penalty))
    median = LENGTHSCALE_OF_NUMBERS * num_features**0.5
    prior = log_normal(median, LENGTHSCALE_DEVIATION / penalty**0.5)
    kernel.kernels[0].lengthscales.prior = prior
    return kernel
