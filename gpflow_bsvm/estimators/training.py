"""Train a model for a specification and rows: learn the kernel, fit q, grow M, calibrate."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import multiple_assign, parameter_dict
from scipy.linalg.lapack import dpstrf
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning

from ..data.sources import ArraySource, Source
from ..engine.contracts import chunk_rows
from ..engine.structure import copied
from ..inducing_points.points import exchange
from ..inference import VEM, History, fit
from ..likelihoods import Ordinal
from ..model_selection.densities import HeldOut
from ..models import BSVM
from ..notices import Held, held, warn
from ..prediction.calibration import calibrate, leave_one_out_density, left_out_log_densities
from .rough import SWEEPS, begin_shorter, bound_of, learn_from_shorter, lengthscales
from .specification import DEFAULT_VARIANCE, Data, Specification, centres, distinct, make_model

#: The number of rows for learning the kernel: a fraction of all rows within limits. Many classes or
#: inducing points reduce it, down to a minimum, so that rows * L M^2 stays below LEARN_WORK.
#: Probabilities are more precise with more rows.
LEARN_ROWS = 2_000
LEARN_PART = 0.25
MOST_LEARN_ROWS = 5_000
FEWEST_LEARN_ROWS = 1_000
LEARN_WORK = 5e8
#: While each of D lengthscales is tried, rows * D L M^2 stays below LEARN_WORK / ROUGH_PART, but
#: at least FEWEST_ROUGH_ROWS rows are used.
ROUGH_PART = 2
FEWEST_ROUGH_ROWS = 300
#: The assumed share of an ordered class without rows, for the initial thresholds.
NO_ROWS = 1e-3
#: While penalty, epsilon and kernel are learned, labels are clipped at this distance from their
#: center. This hardly changes f, because the slope of the loss is the same there. Without clipping,
#: a few errors of a thousand deviations would raise the noise of all rows.
REACH = 10.0
#: A kernel is learned with fewer inducing points if it distinguishes at most this fraction. It is
#: learned again if the new kernel distinguishes MORE_POINTS times as many as before.
MOST_POINTS = 0.75
MORE_POINTS = 1.3
UNEXPLAINED = 1e-2
#: In regression, a kernel is learned again with up to AGAIN times as many inducing points (rows * L
#: M^2 stays below AGAIN_WORK), as long as these raise the bound by WORTH_LEARNING nats per row.
AGAIN = 2
WORTH_LEARNING = 0.03
AGAIN_WORK = 2.5e8
#: If inducing points are farther from 0 than this, rounding spoils covariances of q(u).
FAR = 1e3
#: The number of rows of each rare class in every sample.
RARE_ROWS = 20

#: M grows by this factor (at least by LEAST_GROWTH) while the leave-one-out density improves by the
#: fraction LEAST_GAIN. MOST_INDUCING limits M, GROWTH_WORK the work of a sweep (N L M^2).
GROWTH = 3
LEAST_GROWTH = 1.25
LEAST_GAIN = 0.01
MOST_INDUCING = 1000
GROWTH_WORK = 5e9
#: At the end, STEEPER times a hinge's penalty is tried: only with all inducing points can f be this
#: steep. If the kernel is not learned, SHORTER times its lengthscale is also tried.
STEEPER = 4.0
SHORTER = 0.8
#: Number of Lloyd iterations while M grows: the many points are dense anyway.
_ITERATIONS = 5


class InitialModel(NamedTuple):
    """A model before the fit of q to all rows."""

    model: BSVM
    history: History | None  #: of learning the kernel; None if it was not learned


def initial_model(spec: Specification, data: Data, like: BSVM | None = None) -> InitialModel:
    """
    :param like: a model with the same kernel to start from; None: start from the prior.
    :return: a model with its final kernel.
    """
    model = make_model(spec, data[0])
    if isinstance(model.likelihood, Ordinal):
        model.likelihood.thresholds.assign(first_thresholds(data, spec.num_classes))
    if like is not None:
        multiple_assign(model.kernel, parameter_dict(like.kernel))
        if hasattr(like.likelihood, "thresholds"):
            model.likelihood.thresholds.assign(like.likelihood.thresholds)
        if model.q_shape == like.q_shape:
            model.assign_natural(like.natural())
    learns = spec.learn_kernel or spec.learned
    return InitialModel(model, learn(spec, model, data) if learns else None)


def first_thresholds(data: Data, num_classes: int = 0) -> AnyNDArray:
    """:return: [C-1], thresholds at which the prior P(y >= k) equals the label frequency."""
    _, Y, weight = data
    counts = np.bincount(Y[:, 0].astype(int), weight, minlength=num_classes)
    counts[counts == 0] = NO_ROWS * counts.sum()
    above = 1 - np.cumsum(counts / counts.sum())[:-1]
    # Expected logistic function of a Gaussian (MacKay 1992).
    return np.asarray(-logit(above) * np.sqrt(1 + np.pi * DEFAULT_VARIANCE / 8))


def with_enough_points(
    spec: Specification, begun: InitialModel, data: Data
) -> tuple[Specification, InitialModel]:
    """
    Learn a kernel of regression again with more inducing points, as long as these raise the bound
    by `WORTH_LEARNING` nats per row. With too few points, f cannot be rough, and the learned
    lengthscales are too long. (For classifiers, see `choice.choose_scale`.)

    :return: `spec` with the points of the last model, and this model.
    """
    while spec.learn_kernel and spec.grow and not spec.linear:
        rows = opened(begun.model, rows_to_learn(spec, begun.model, data))
        larger = _with_more_points(spec, begun.model, rows, data)
        if larger is None:
            break
        begun = InitialModel(larger, learn_from(larger, rows, spec, VEM()))
        spec = spec._replace(Z=larger.inducing_variable.Z.numpy())
    return spec, begun


def learn_from(model: BSVM, rows: ArraySource, spec: Specification, vem: VEM) -> History:
    """:return: the history of learning the trainable parameters from these rows."""
    number = model.q_shape[1]
    spec.stages.begin("kernel", f"learning the kernel with {number} inducing points")
    with _fits_of_q_warn():
        return vem.run(model, rows, progress=spec.stages)


def _with_more_points(
    spec: Specification, model: BSVM, rows: ArraySource, data: Data
) -> BSVM | None:
    """
    :param rows: the rows that learn the kernel.
    :return: a copy with more inducing points, and the same kernel, if they are worth it.
    """
    Z = more_points(spec, model, rows.num_rows, data)
    if Z is None:
        return None
    larger = copied(model)
    exchange(larger, Z)
    gain = bound_of(larger, rows)(SWEEPS) - bound_of(model, rows)(SWEEPS)
    return larger if gain > WORTH_LEARNING * rows.num_rows else None


def more_points(spec: Specification, model: BSVM, num_rows: int, data: Data) -> AnyNDArray | None:
    """:return: `AGAIN` times as many inducing points, as far as these rows allow; None if few."""
    places = distinct(data[0])
    affordable = int((AGAIN_WORK / (model.q_shape[0] * num_rows)) ** 0.5)
    number = min(grown(model, places, num_rows, AGAIN), affordable)
    return centres(spec, places, number) if number >= LEAST_GROWTH * model.q_shape[1] else None


def train(
    spec: Specification, data: Data, start: InitialModel | None = None
) -> tuple[BSVM, History]:
    """
    :param start: the `initial_model` of `spec`, if known.
    :return: the model, and the history of learning the kernel or, without learning, of fitting q.
    """
    model, learned = start or initial_model(spec, data)
    history = fit_q(spec, model, opened(model, data))
    if spec.grow and not spec.linear:
        model = grow(spec, model, data)
    return model, learned or history


def freeze(spec: Specification, model: BSVM) -> None:
    """Fix all parameters that are not to be learned."""
    gpflow.set_trainable(model.inducing_variable, False)
    if not spec.learn_kernel:
        gpflow.set_trainable(model.kernel, False)


def learn(spec: Specification, model: BSVM, data: Data) -> History:
    """Learn the trainable parameters from a subset of the rows, at fixed inducing points."""
    freeze(spec, model)
    X, Y, weight = rows_to_learn(spec, model, data)
    spec.stages.begin("kernel", f"learning the kernel from {len(X)} rows")
    with _fits_of_q_warn():
        rows = opened(model, (X, Y, weight))
        run = partial(VEM().run, model, rows, progress=spec.stages)
        if spec.kernel is not None or spec.linear:
            return run()
        learned = partial(_with_few_points, model, run)
        if not spec.learn_kernel:
            return learned()
        number = int(max(_affordable(model) / (ROUGH_PART * X.shape[1]), FEWEST_ROUGH_ROWS))
        some = opened(model, at_most(number, (X, Y, weight), seed=0, classes=spec.is_classifier))
        if not (spec.is_classifier or spec.learned):  # the loss is steep
            begin_shorter(model, some)
        history = learned()
        return learn_from_shorter(model, rows, some, learned) or history


@contextlib.contextmanager
def _fits_of_q_warn() -> Iterator[None]:
    """Suppress warnings that the later fits of q would repeat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "most y are")
        yield


def rows_to_learn(spec: Specification, model: BSVM, data: Data) -> Data:
    """:return: the rows from which the kernel is learned."""
    wanted = np.clip(LEARN_PART * spec.rows_of(data), LEARN_ROWS, MOST_LEARN_ROWS)
    number = int(np.clip(_affordable(model), FEWEST_LEARN_ROWS, wanted))
    X, Y, weight = at_most(number, data, spec.seed, classes=spec.is_classifier)
    return X, Y if spec.is_classifier else np.clip(Y, -REACH, REACH), weight


def _affordable(model: BSVM) -> float:
    """:return: the number of rows for `LEARN_WORK`."""
    num_latents, num_inducing = model.q_shape
    return LEARN_WORK / (num_latents * num_inducing**2)


def _with_few_points(model: BSVM, run: Callable[[], History]) -> History:
    """
    Learn the default kernel with only the inducing points that it distinguishes: the bound is
    nearly the same, and its cost grows with the square of their number. If the learned kernel
    distinguishes many more points, continue with these.
    """
    Z = model.inducing_variable.Z.numpy()
    few = told_apart(model.kernel, Z)
    if len(few) > MOST_POINTS * len(Z):
        return run()
    while True:
        exchange(model, few)
        number = len(few)
        history = run()
        few = told_apart(model.kernel, Z)
        if len(few) <= MORE_POINTS * number:
            exchange(model, Z)
            return history


def told_apart(kernel: Kernel, Z: AnyNDArray) -> AnyNDArray:
    """
    :return: the inducing points that the kernel distinguishes, in the order of Z, by greedy
        conditional variance (Burt et al. 2020). All but the fraction `UNEXPLAINED` of the prior
        variances at Z is explained, even with halved lengthscales (doubled Z): learning may halve
        them.
    """
    if np.abs(Z).max() > FAR:
        return Z
    K = kernel(2.0 * Z).numpy()
    factor, order, rank, _ = dpstrf(K, tol=0.0)
    explained = np.cumsum(np.square(np.triu(factor)[:rank]).sum(axis=1))
    number = int(np.searchsorted(explained, (1 - UNEXPLAINED) * np.trace(K))) + 1
    return Z[np.sort(order[:number] - 1)]


def opened(model: BSVM, data: Data) -> ArraySource:
    """:return: a source of rows that were already checked; a class may be absent."""
    X, Y, weight = data
    return ArraySource(X, Y, weight[:, None], chunk_rows(model))


def fit_q(
    spec: Specification, model: BSVM, rows: Source, name: str = "", kind: str = "q"
) -> History:
    """
    Fit q with the current kernel, then the link if `spec.calibrates` (unless q is the prior).

    :param name: the name of the stored stage; "": a name with the number of points.
    :param kind: the kind of the stage, see `Stages.begin`.
    """
    stages = spec.stages
    number = model.q_shape[1]
    stages.begin(kind, f"fitting {number} inducing points to {rows.num_rows} rows")
    run = fit if spec.inference is None else spec.inference.run
    place = stages.place(name or f"q of {number} points")
    history: History = run(model, rows, progress=stages, checkpoint=place)
    if spec.calibrates and np.any(model.natural().h):  # a q equal to the prior cannot be calibrated
        stages.begin("link", "calibrating probabilities")
        calibrate(model, rows)
    return history


def grow(spec: Specification, model: BSVM, data: Data) -> BSVM:
    """
    :return: a model with the same kernel and a larger M, which grows as long as the gain is worth
        the cost. Each time, q is projected onto the new inducing points and fitted again.
    """
    density = leave_one_out_density(model, opened(model, data))
    places = distinct(data[0])
    while (number := grown(model, places, spec.rows_of(data))) > LEAST_GROWTH * model.q_shape[1]:
        spec.stages.begin("growth", f"choosing {number} inducing points")
        larger = copied(model)
        exchange(larger, centres(spec, places, number, max_iter=_ITERATIONS))
        rows = opened(larger, data)
        before = density
        with held() as told:
            fit_q(spec, larger, rows, kind="growth")
            density = leave_one_out_density(larger, rows)
        # A log density of numbers has no natural zero: require a gain in nats.
        if density < before + LEAST_GAIN * (abs(before) if spec.is_classifier else 1.0):
            return model
        model = larger
        for one in told:
            warn(*one)
    return model


def steeper(
    spec: Specification, model: BSVM, data: Data, is_learned: bool
) -> tuple[Specification, BSVM]:
    """
    :param model: fitted to all rows.
    :param is_learned: whether the model's kernel was learned; if it was not, but `spec` allows
        learning, a shorter lengthscale is tried too.
    :return: `spec` and the model, or a model with a steeper hinge if its fit converges and its
        leave-one-out densities are worth it (`HeldOut.is_worth`).
    """
    rows = opened(model, data)
    best = model
    told = Held()  # the warnings of the fit that is kept
    densities = HeldOut(*left_out_log_densities(model, rows))
    steep = spec._replace(penalty=STEEPER * spec.penalty)
    may_shorten = spec.learn_kernel and not is_learned
    for factor in (1.0, SHORTER) if may_shorten else (1.0,):
        other = copied(model)
        other.likelihood.penalty.assign(steep.penalty)
        for scale in lengthscales(other):
            scale.assign(factor * scale)
        name = f"q of a steeper hinge, lengthscale {factor:g}"
        with held() as said:
            history = fit_q(steep, other, rows, name, kind="growth")
            found = HeldOut(*left_out_log_densities(other, rows))
        if history.converged and found.is_worth(densities):
            best = other
            densities = found
            told = said
    for one in told:
        warn(*one)
    return (spec if best is model else steep), best


def grown(model: BSVM, places: Any, num_rows: int, factor: int = GROWTH) -> int:
    """:return: `factor` times M, limited by the distinct rows and the work of a sweep."""
    num_latents, num_inducing = model.q_shape
    affordable = int((GROWTH_WORK / (num_rows * num_latents)) ** 0.5)
    return min(factor * num_inducing, MOST_INDUCING, affordable, len(places))


def at_most(number: int, data: Data, seed: int, classes: bool = True) -> Data:
    """
    :param classes: whether labels are classes.
    :return: at most this many random rows, always including rows of rare classes.
    """
    X, Y, weight = data
    if len(Y) <= number:
        return data
    order = np.random.default_rng(seed).permutation(len(Y))
    first = few_of_each_first(Y[order, 0])[:number] if classes else slice(number)
    chosen = np.sort(order[first])
    return X[chosen], Y[chosen], weight[chosen]


def few_of_each_first(labels: AnyNDArray) -> AnyNDArray:
    """:return: row indices [N], starting with a few rows of each label."""
    place: AnyNDArray = np.empty(len(labels), dtype=int)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        place[members] = np.arange(len(members))
    return np.argsort(place >= RARE_ROWS, kind="stable")
