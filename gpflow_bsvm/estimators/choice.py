"""Selection of loss, penalty and kernel scale by predictions for held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from scipy.special import softmax

from ..engine.projection import plain_points
from ..engine.structure import copied
from ..inference import VEM, History
from ..likelihoods import OneVsRestLevelHinge
from ..model_selection import held_out
from ..model_selection.densities import HeldOut
from ..models import BSVM
from ..prediction.calibration import has_company
from ..prediction.marginals import predict_marginals
from .candidates import HINGES, Candidate, best_of, first_of
from .inputs import MERGE_ROWS
from .rough import SWEEPS, bound_of, lengthscales
from .specification import Data, Specification, centres, distinct, make_model
from .training import (
    GROWTH,
    GROWTH_WORK,
    WORTH_LEARNING,
    InitialModel,
    at_most,
    freeze,
    grown,
    initial_model,
    learn,
    learn_from,
    more_points,
    opened,
    rows_to_learn,
    with_enough_points,
)

#: The largest number of rows for selecting loss and penalty, and the fewest held-out rows.
CHOICE_ROWS = 2_000
FEWEST_LEFT_OUT = 10
#: Up to this number of rows, another penalty keeps the kernel: learning it again takes a third of
#: the time, and predicts no better on average. With more rows, it takes less, and predicts better.
KEPT_ROWS = 1_700
#: The largest number of rows for selecting the scale. Only dense rows reveal a rough function.
SCALE_ROWS = 10_000
#: Candidate factors for all lengthscales. The learned scale is often not the best for prediction:
#: few inducing points can explain only smooth functions, and the prior is not specific to the data.
#: With many more columns than rows, the prior determines the scale, which is then often too short.
SCALES = (8.0, 5.6, 4.0, 2.8, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25)
LONGER = 2.0
#: The factor of M while the scale is chosen, with fewer than FEW_ROWS rows; else it is `GROWTH`.
SCALE_GROWTH = 2
FEW_ROWS = 1_000
#: The initial penalty of a second, steeper start in regression, in units of 1 / deviation of y. It
#: is tried if f's deviation is below LITTLE_SAID times the noise's (f explains less than 8 % of y).
STEEP = 8.0
LITTLE_SAID = 0.3
#: The steeper start is also tried if penalty * epsilon is above this. Nine tenths of the noise are
#: then uniform in the tube, and this part is rather a fast change of f, such as a sine.
MOST_TUBE = 10.0
#: A start with all lengthscales this much shorter is tried if f's deviation is below `MUCH_NOISE`
#: times the noise's (30 % of y are noise), for these numbers of columns. With fewer columns,
#: learning finds a rough f; with more columns, few rows cannot show it. If the bound of at most
#: `TRIAL_ROWS` rows is not larger after these rounds, the trial ends.
SHORT = 0.3
MUCH_NOISE = 1.5
ROUGH_COLUMNS = (3, 6)
TRIAL_ROWS = 500
TRIAL_ROUNDS = 4
#: A hinge without a learned kernel replaces a hinge with a learned kernel unless it is this many
#: standard errors worse: only a learned kernel has seen the held-out rows. A learned kernel is also
#: adapted to its few inducing points, so both hinges are compared with more points. To replace
#: levels, a hinge without a learned kernel must be better (`HeldOut.is_worth`).
NOT_LEARNED = 2.0
#: If a class is rare, the link stays stationary unless the integral gains at least this many nats:
#: the integral suits fits to parts of the rows better than fits to all rows.
STATIONARY = 3.0
#: The search stops at a scale whose held-out log density is this many nats below the best.
NO_WEIGHT = 5.0


def choose(
    spec: Specification, among: Sequence[Candidate], data: Data
) -> tuple[Specification, InitialModel]:
    """
    :return: `spec` with the loss and penalty that maximize the held-out density (see
        `gpflow_bsvm.model_selection.held_out.find_peak`), and a model with its kernel, whose scale
        is selected last. Folds depend only on the data. All candidates with a learned kernel and
        all folds share one kernel, which the first candidate learns from all rows; learning it in
        every fold was no better. It is learned again only in two cases: for another loss, which is
        dropped if it is not worth it with its own kernel, and for another penalty with more than
        `KEPT_ROWS` rows. If a class is rare, the link of levels is selected first.
    """
    first = first_of(among)
    spec = spec._replace(loss=first.loss, penalty=first.penalty)
    begun = initial_model(spec, data)
    if not spec.is_classifier:
        spec, begun = with_enough_points(spec, _best_start(spec, begun, data), data)
        return _with_rough_start(spec, begun, data)
    part = at_most(CHOICE_ROWS, data, seed=0)
    if np.ptp(part[1]) == 0 or has_company(*part[1:]).sum() < FEWEST_LEFT_OUT:
        return spec, begun
    if len(among) > 1:
        if _may_choose_link(spec, begun.model):
            refits = _refits(begun.model, data, part)
            refits(begun.model, False)
            spec = spec._replace(link=_choose_link(begun.model, refits))
        spec, begun = _choose_candidate(spec, among, begun, data, part)
    if spec.learn_kernel:
        choose_scale(spec, begun.model, data)
    return spec, begun


def _choose_candidate(
    spec: Specification, among: Sequence[Candidate], begun: InitialModel, data: Data, part: Data
) -> tuple[Specification, InitialModel]:
    """
    :param spec: specifies the first candidate, whose model is `begun`.
    :param part: rows for the choice.
    :return: `spec` with the best loss and penalty, and its model with a learned kernel.
    """
    first = Candidate(spec.loss, spec.penalty)
    spec = spec._replace(Z=_inducing_points(begun.model))
    trials = _Trials(spec, begun.model, data, part)
    trials.models[first.loss, True] = copied(begun.model)  # folds fit the copy's link
    best = best_of(trials, [one for one in among if one.learned], first)
    may_fix = spec.kernel is None and spec.learn_kernel and spec.rows_of(data) <= KEPT_ROWS
    for fixed in (one for one in among if not one.learned):
        if may_fix and (fixed.loss, True) in trials.models:
            best = _learned_or_not(best, fixed, trials)
    if best.loss != first.loss and best.learned:
        own = spec._replace(loss=best.loss, penalty=best.penalty)
        learned = initial_model(own, data, begun.model)
        softer = best_of(trials, [one for one in among if one.loss == first.loss], first)
        if trials.refits(copied(learned.model), own.calibrates).is_worth(trials(softer)):
            return own, learned
        best = softer
    spec = spec._replace(loss=best.loss, penalty=best.penalty)
    return spec, _with_candidate(spec, best, begun, data, best == first)


def _learned_or_not(best: Candidate, fixed: Candidate, trials: _Trials) -> Candidate:
    """:return: `fixed`, whose kernel is not learned, or `best`; see `NOT_LEARNED`."""
    is_hinge = best.loss == fixed.loss
    compared = trials.denser() if is_hinge else trials
    leader = compared(best)
    found = compared(fixed)
    enough = found.lead(leader) > -NOT_LEARNED if is_hinge else found.is_worth(leader)
    return fixed if enough else best


def _with_candidate(
    spec: Specification, best: Candidate, begun: InitialModel, data: Data, is_first: bool
) -> InitialModel:
    """:return: a model with the loss, penalty and kernel of `best`."""
    if not best.learned:
        return InitialModel(make_model(spec, data[0]), None)
    if spec.rows_of(data) > KEPT_ROWS and not is_first:
        return initial_model(spec, data, begun.model)
    begun.model.likelihood.penalty.assign(best.penalty)
    return begun


class _Trials:
    """Held-out densities of candidates, which all use the inducing points of one specification."""

    def __init__(self, spec: Specification, model: BSVM, data: Data, part: Data) -> None:
        """
        :param model: has the learned kernel.
        :param part: rows for the choice.
        """
        self._spec = spec
        self._model = model
        self._data = data
        self._part = part
        self.refits = _refits(model, data, part)
        self._found: dict[Candidate, HeldOut] = {}
        #: A model for each loss, with a learned kernel or without.
        self.models: dict[tuple[str, bool], BSVM] = {}

    def __call__(self, candidate: Candidate) -> HeldOut:
        if candidate not in self._found:
            self._found[candidate] = self._density(candidate)
        return self._found[candidate]

    def denser(self) -> _Trials:
        """:return: trials with more inducing points."""
        spec = _denser(self._spec, self._model, self._data)
        return _Trials(spec, self._model, self._data, self._part)

    def _density(self, candidate: Candidate) -> HeldOut:
        kernel = "" if candidate.learned else ", kernel not learned"
        text = f"choosing: {candidate.loss} with penalty {candidate.penalty:g}{kernel}"
        self._spec.stages.begin("choice", text)
        own = self._spec._replace(loss=candidate.loss, penalty=candidate.penalty)
        key = candidate.loss, candidate.learned
        if key not in self.models:
            like = self._model if candidate.learned else make_model(own, self._data[0])
            self.models[key] = _other_q(own, like, self._data)
        self.models[key].likelihood.penalty.assign(candidate.penalty)
        return self.refits(self.models[key], own.calibrates)


def _best_start(spec: Specification, begun: InitialModel, data: Data) -> InitialModel:
    """
    :return: `begun`. If its f is nearly constant, or its noise nearly uniform, the model with the
        larger bound: `begun`, or a model that first learns its kernel with a steep loss, which does
        not mistake f for noise.
    """
    if not (spec.learned and spec.learn_kernel):
        return begun
    link = begun.model.likelihood
    in_tube = float(link.penalty.numpy() * link.epsilon.numpy())
    if in_tube < MOST_TUBE and not is_nearly_constant(begun.model, data):
        return begun
    spec = spec._replace(penalty=STEEP if "penalty" in spec.learned else spec.penalty)
    steep = initial_model(spec._replace(learned=()), data)
    other = initial_model(spec, data, steep.model)
    return max(begun, other, key=lambda one: one.history.elbo[-1] if one.history else -np.inf)


def _with_rough_start(
    spec: Specification, begun: InitialModel, data: Data
) -> tuple[Specification, InitialModel]:
    """
    :return: `spec` and `begun`. If much of y is noise by `begun`: those of a kernel that is learned
        from short lengthscales, with more inducing points, if it raises the bound by
        `WORTH_LEARNING`. If f is rough in several columns at once, such as a product of sines,
        learning from long lengthscales takes f for noise.
    """
    if begun.history is None or not _may_be_rough(spec, begun.model, data):
        return spec, begun
    rows = rows_to_learn(spec, begun.model, data)
    num_rows = len(rows[0])
    Z = more_points(spec, begun.model, num_rows, data)
    rough = spec if Z is None else spec._replace(Z=Z)
    model = make_model(rough, data[0])
    freeze(rough, model)
    for scale in lengthscales(model):
        scale.assign(SHORT * scale)
    some = opened(model, at_most(TRIAL_ROWS, rows, seed=0, classes=False))
    trial = learn_from(model, some, rough, VEM(max_steps=TRIAL_ROUNDS))
    if trial.elbo[-1] <= bound_of(begun.model, some)(SWEEPS):
        return spec, begun
    history = learn(rough, model, data)
    if history.elbo[-1] < begun.history.elbo[-1] + WORTH_LEARNING * num_rows:
        return spec, begun
    return with_enough_points(rough, InitialModel(model, history), data)


def _may_be_rough(spec: Specification, model: BSVM, data: Data) -> bool:
    """:return: True if the default kernel is learned, and much of y is noise by this model."""
    fewest, most = ROUGH_COLUMNS
    is_default = spec.kernel is None and not spec.linear
    learns = spec.learned and spec.learn_kernel and spec.grow
    if not (is_default and learns and fewest <= data[0].shape[1] <= most):
        return False
    return is_nearly_constant(model, data, MUCH_NOISE)


def is_nearly_constant(model: BSVM, data: Data, part: float = LITTLE_SAID) -> bool:
    """:return: True if f's standard deviation over rows is below this fraction of the noise's."""
    X, _, _ = at_most(CHOICE_ROWS, data, seed=0, classes=False)
    mean, _ = predict_marginals(model, X)
    return bool(np.std(mean) < part * float(model.likelihood.noise_variance) ** 0.5)


def _other_q(spec: Specification, model: BSVM, data: Data) -> BSVM:
    """:return: a model specified by `spec`, with the kernel of `model`; only q is fitted."""
    fixed = spec._replace(kernel=model.kernel, learn_kernel=False, learned=())
    return initial_model(fixed, data, model).model


def choose_scale(spec: Specification, model: BSVM, data: Data) -> None:
    """
    Multiply all learned lengthscales by the factor with the best predictions for held-out rows,
    using more inducing points (`SCALE_GROWTH`). If calibrate="auto", also choose the link of levels
    again if a class is rare, and fit the temperature of `OneVsRestLevelHinge`.
    """
    if not lengthscales(model):
        return
    denser = _denser(spec, model, data)
    num_latents, num_inducing = model.q_shape
    num_inducing = num_inducing if denser.Z is None else len(denser.Z)
    affordable = int(GROWTH_WORK / (num_latents * num_inducing**2))
    rows = at_most(int(np.clip(affordable, CHOICE_ROWS, SCALE_ROWS)), data, seed=0)
    other = _other_q(denser, model, rows)
    scales = [*lengthscales(model), *lengthscales(other)]
    refits = _refits(model, data, rows)
    learned = [scale.numpy() for scale in scales]

    def assign(factor: float) -> None:
        for scale, value in zip(scales, learned):
            scale.assign(factor * value)

    def score(factor: float) -> HeldOut:
        spec.stages.begin("choice", f"choosing lengthscales: {factor:g} times the learned ones")
        assign(factor)
        return refits(other, spec.calibrates)

    assign(_mean_scale(score))
    if _may_choose_link(spec, model):
        _choose_link(model, refits)
    if spec.calibrate == "auto" and isinstance(model.likelihood, OneVsRestLevelHinge):
        refits.temper(model.likelihood)


def _refits(model: BSVM, data: Data, part: Data) -> held_out.Refits:
    return held_out.Refits(part, model, len(data[0]) <= MERGE_ROWS)


def _may_choose_link(spec: Specification, model: BSVM) -> bool:
    """:return: True if the link is stationary because a class is rare."""
    return spec.calibrate == "auto" and getattr(model.likelihood, "link", "") == "stationary"


def _choose_link(model: Any, refits: held_out.Refits) -> str:
    """:return: the link, which becomes the integral if left-out rows clearly prefer it."""
    levels = model.likelihood
    stationary = refits.density(levels)
    levels.link = "integral"
    if refits.density(levels) < stationary + STATIONARY:
        levels.link = "stationary"
    return str(levels.link)


def _denser(spec: Specification, model: BSVM, data: Data) -> Specification:
    """:return: `spec` with more inducing points if M may grow, else with the model's points."""
    if not spec.grow:
        return spec._replace(Z=_inducing_points(model))
    places = distinct(data[0])
    num_rows = spec.rows_of(data)
    factor = SCALE_GROWTH if num_rows < FEW_ROWS else GROWTH
    number = max(model.q_shape[1], grown(model, places, num_rows, factor))
    return spec._replace(Z=centres(spec, places, number))


def _mean_scale(score: Callable[[float], HeldOut]) -> float:
    """
    :return: the geometric mean of `SCALES`, each weighted by the probability that it predicts for
        the held-out rows. Unlike the best scale, this mean is continuous in the data. The search
        goes from 1 in both directions until weights are negligible, and beyond `LONGER` only as
        long as the density rises.
    """
    nats: dict[float, float] = {}
    last = 1.0
    for ways in (SCALES[SCALES.index(1.0) :], SCALES[SCALES.index(1.0) - 1 :: -1]):
        for factor in ways:
            if factor > LONGER and last != max(nats, key=nats.__getitem__):
                break
            found = score(factor)
            nats[factor] = found.mean * float(found.weight.sum())
            if nats[factor] < max(nats.values()) - NO_WEIGHT:
                break
            last = factor
    return float(np.exp(softmax(list(nats.values())) @ np.log(list(nats))))


def chosen_model(
    spec: Specification, among: Sequence[Candidate], data: Data
) -> tuple[Specification, InitialModel]:
    """
    :return: `spec` with the chosen options, and its model with the final kernel; both may have been
        stored by an earlier process.
    """
    content = spec.stages.result("choice", partial(_choice, spec, among, data))
    chosen = content["loss"], content["penalty"]
    is_steepest = len({one.penalty for one in among}) > 1 and chosen == HINGES[-1][:2]
    steeper = is_steepest and spec.inference is None  # other algorithms may never converge
    spec = spec._replace(loss=chosen[0], penalty=chosen[1], link=content["link"], steeper=steeper)
    model = make_model(spec._replace(Z=content["Z"]), data[0])
    for variable, value in zip(model.variables, content["variables"], strict=True):
        variable.assign(value)
    if content["learned"] is None:
        return spec, InitialModel(model, None)
    freeze(spec, model)
    return spec, InitialModel(model, History(**content["learned"]))


def _choice(spec: Specification, among: Sequence[Candidate], data: Data) -> dict[str, Any]:
    """:return: the result of `choose`, as a checkpoint stores it."""
    spec, begun = choose(spec, among, data)
    return {
        "loss": spec.loss,
        "penalty": float(spec.penalty),
        "link": getattr(begun.model.likelihood, "link", spec.link),
        "Z": _inducing_points(begun.model),
        "variables": [variable.numpy() for variable in begun.model.variables],
        "learned": begun.history and vars(begun.history),
    }


def _inducing_points(model: BSVM) -> AnyNDArray | None:
    points = plain_points(model.inducing_variable)
    return points[0] if points else None
