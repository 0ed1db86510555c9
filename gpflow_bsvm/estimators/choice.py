"""Selection of loss, penalty and kernel scale by predictions for held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy.special import softmax

from ..engine.projection import plain_points
from ..engine.structure import copied
from ..inference import History
from ..likelihoods import OneVsRestLevelHinge
from ..model_selection import held_out
from ..model_selection.densities import HeldOut
from ..models import BSVM
from ..prediction.calibration import has_company
from ..prediction.marginals import predict_marginals
from .inputs import MERGE_ROWS
from .rough import lengthscales
from .specification import LOSSES, NUM_LEVELS, Data, Specification, centres, distinct, make_model
from .training import GROWTH, GROWTH_WORK, InitialModel, at_most, freeze, grown, initial_model

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
SCALES = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25)
#: The factor of M while the scale is chosen, below this number of rows; above it, `GROWTH`.
SCALE_GROWTH = 2
FEW_ROWS = 1_000
#: The initial penalty of a second, steeper start in regression, in units of 1 / deviation of y. It
#: is tried if f's deviation is below this fraction of the noise's (f explains less than 8 % of y).
STEEP = 8.0
LITTLE_SAID = 0.3
#: It is also tried if penalty * epsilon is above this, so that nine tenths of the noise are uniform
#: in the tube: it is then rather a part of f that changes fast, such as a sine.
MOST_TUBE = 10.0
#: The other loss is tried if the first loss, at its steepest, is at most this many standard errors
#: worse than at its best. This saves time where classes overlap.
NO_WORSE = 1.0
#: Of two hinges, one with a kernel that is not learned is chosen unless it is this many standard
#: errors worse: only the learned kernel has seen the held-out rows. The learned kernel is also
#: adapted to the few inducing points; so both get more points. Compared with levels, it has no
#: such advantage.
NOT_LEARNED = 2.0
#: The stationary link of a rare class needs at most this many nats less than the integral, which
#: suits fits to parts of the rows better than fits to all.
STATIONARY = 3.0
#: Scales are ignored if their held-out log density is this many nats below the best.
NO_WEIGHT = 5.0


class Candidate(NamedTuple):
    """
    A loss and its penalty.

    :ivar learned: whether the kernel is learned; if not, it is at the medians of its priors.
    """

    loss: str
    penalty: float
    learned: bool = True


#: Candidates from soft to sharp. Levels estimate probabilities; steep hinges suit separate classes.
HINGES = tuple(Candidate("hinge", penalty) for penalty in held_out.PENALTIES)
LEVEL_PENALTIES = (1.0, 2.0, 8.0, 32.0)


def candidates(
    loss: str, penalty: float | str, linear: bool, num_levels: int = NUM_LEVELS
) -> tuple[Candidate, ...]:
    """:return: the candidates for these options, from soft to sharp; the hinge for a linear f."""
    losses = ("hinge",) if loss == "auto" and linear else LOSSES if loss == "auto" else (loss,)
    if penalty != "auto":
        return tuple(Candidate(loss, float(penalty)) for loss in reversed(losses))
    part = num_levels / NUM_LEVELS
    levels = tuple(Candidate("levels", _short(part * slope)) for slope in LEVEL_PENALTIES)
    if len(losses) > 1:
        return (*levels, HINGES[-1], HINGES[-1]._replace(learned=False))
    return levels if losses == ("levels",) else HINGES


def first_of(among: Sequence[Candidate]) -> Candidate:
    """
    :return: the candidate to try first, which learns the kernel: the second penalty of the first
        loss. With the softest penalty, f would be too smooth.
    """
    softest, *others = (one for one in among if one.loss == among[0].loss)
    return others[0] if others else softest


def _short(penalty: float) -> float:
    return float(f"{penalty:.3g}")


def between(among: Sequence[Candidate], place: float) -> Candidate:
    """:return: the candidate at this position among those of one loss, with its penalty."""
    low = among[int(place)]
    high = among[math.ceil(place)]
    penalty = low.penalty * (high.penalty / low.penalty) ** (place % 1)
    return Candidate(low.loss, _short(penalty))


def best_of(
    score: Callable[[Candidate], HeldOut], among: Sequence[Candidate], first: Candidate
) -> Candidate:
    """
    :return: the best penalty of the first loss, as in `held_out.find_peak`; or a candidate with
        another loss that is worth it (`HeldOut.is_worth`). These are not tried if the steepest
        penalty of the first loss is worse than `NO_WORSE` allows.
    """
    tried: dict[Candidate, HeldOut] = {}

    def look(candidate: Candidate) -> HeldOut:
        tried[candidate] = score(candidate)
        return tried[candidate]

    same_loss = [one for one in among if one.loss == first.loss]
    place = held_out.find_peak(look, same_loss, first)
    best = between(same_loss, place)
    leader = tried[same_loss[round(place)]]
    steepest = same_loss[-1]
    if steepest not in tried or tried[steepest].lead(leader) < -NO_WORSE:
        return best
    for other in among[len(same_loss) :]:
        found = score(other)
        if found.is_worth(leader):
            best = other
            leader = found
    return best


def choose(
    spec: Specification, among: Sequence[Candidate], data: Data
) -> tuple[Specification, InitialModel]:
    """
    :return: `spec` with the loss and penalty that maximize the held-out density (see
        `gpflow_bsvm.model_selection.held_out.find_peak`), and a model with its kernel, whose scale
        is selected last. Folds depend only on the data. All candidates with a learned kernel and
        all folds share one kernel, which the first candidate learns from all rows; learning it in
        every fold was no better. It is learned again only for another loss, which must then still
        be worth it, or, with more than `KEPT_ROWS` rows, for another penalty. If a class is rare,
        its link is selected first.
    """
    first = first_of(among)
    spec = spec._replace(loss=first.loss, penalty=first.penalty)
    begun = initial_model(spec, data)
    if not spec.is_classifier:
        return spec, _best_start(spec, begun, data)
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
    trials.models[first.loss, True] = copied(begun.model)  # whose link is fitted to folds
    best = best_of(trials, [one for one in among if one.learned], first)
    many = spec.rows_of(data) > KEPT_ROWS
    fixed = [one for one in among if not one.learned and (one.loss, True) in trials.models]
    if fixed and not many and spec.kernel is None and spec.learn_kernel:
        is_hinge = best.loss == fixed[0].loss
        compared = trials
        if is_hinge:
            compared = _Trials(_denser(spec, begun.model, data), begun.model, data, part)
        leader = compared(best)
        found = compared(fixed[0])
        enough = found.lead(leader) > -NOT_LEARNED if is_hinge else found.is_worth(leader)
        best = fixed[0] if enough else best
    if best.loss != first.loss and best.learned:
        own = spec._replace(loss=best.loss, penalty=best.penalty)
        learned = initial_model(own, data, begun.model)
        softer = best_of(trials, [one for one in among if one.loss == first.loss], first)
        if trials.refits(copied(learned.model), own.calibrates).is_worth(trials(softer)):
            return own, learned
        best = softer
    spec = spec._replace(loss=best.loss, penalty=best.penalty)
    if not best.learned:
        return spec, InitialModel(make_model(spec, data[0]), None)
    if many and best != first:
        return spec, initial_model(spec, data, begun.model)
    begun.model.likelihood.penalty.assign(best.penalty)
    return spec, begun


class _Trials:
    """Held-out densities of candidates with the inducing points of a specification."""

    def __init__(self, spec: Specification, model: BSVM, data: Data, part: Data) -> None:
        """
        :param model: has the learned kernel.
        :param part: rows for the choice.
        """
        self._spec = spec
        self._model = model
        self._data = data
        self.refits = _refits(model, data, part)
        self._found: dict[Candidate, HeldOut] = {}
        #: A model for each loss, with a learned kernel or without.
        self.models: dict[tuple[str, bool], BSVM] = {}

    def __call__(self, candidate: Candidate) -> HeldOut:
        if candidate not in self._found:
            self._found[candidate] = self._density(candidate)
        return self._found[candidate]

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
    """:return: `spec` with more inducing points, if M may grow; else those of the model."""
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
        goes from 1 in both directions until weights are negligible.
    """
    nats: dict[float, float] = {}
    for ways in (SCALES[SCALES.index(1.0) :], SCALES[SCALES.index(1.0) - 1 :: -1]):
        for factor in ways:
            found = score(factor)
            nats[factor] = found.mean * float(found.weight.sum())
            if nats[factor] < max(nats.values()) - NO_WEIGHT:
                break
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
