"""The choice of loss and penalty by predictions of held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpflow.base import AnyNDArray

from ..engine.prior import plain_points
from ..inference import History
from ..model_selection import held_out
from ..models import BSVM
from .specification import LOSSES, Data, Specification, make_model
from .stages import Stages
from .training import InitialModel, at_most, freeze, initial_model, train

#: Most rows on which loss and penalty are chosen, and fewest that must be left out for a choice.
CHOICE_ROWS, FEWEST_LEFT_OUT = 2_000, 10


class Candidate(NamedTuple):
    """A loss and its penalty."""

    loss: str
    penalty: float


#: Candidates from soft to sharp, and where the search starts. Levels know probabilities; a steep
#: hinge is better where classes do not overlap at all.
HINGES = tuple(Candidate("hinge", penalty) for penalty in held_out.PENALTIES)
LEVELS = tuple(Candidate("levels", penalty) for penalty in (1.0, 2.0, 8.0, 32.0))
FIRST = (Candidate("levels", 2.0), Candidate("hinge", held_out.FIRST_PENALTY))


def candidates(loss: str, penalty: float | str, linear: bool) -> tuple[Candidate, ...]:
    """
    :param loss: "hinge", "levels" or "auto": both, except that a linear f has the hinge only.
    :param penalty: a number or "auto".
    :return: the candidates that suit these options, from soft to sharp.
    """
    losses = ("hinge",) if loss == "auto" and linear else LOSSES if loss == "auto" else (loss,)
    if penalty != "auto":
        return tuple(Candidate(loss, float(penalty)) for loss in reversed(losses))
    if len(losses) > 1:
        return (*LEVELS, HINGES[-1])
    return LEVELS if losses == ("levels",) else HINGES


def between(among: Sequence[Candidate], place: float) -> Candidate:
    """:return: the candidate at this place; a loss is never interpolated."""
    low, high = among[int(place)], among[math.ceil(place)]
    if low.loss != high.loss:
        return low
    penalty = low.penalty * (high.penalty / low.penalty) ** (place % 1)
    return Candidate(low.loss, float(f"{penalty:.3g}"))


def choose(
    spec: Specification, among: Sequence[Candidate], data: Data
) -> tuple[Specification, InitialModel]:
    """
    :return: `spec` with loss and penalty of the greatest density of held-out rows, see
        `gpflow_bsvm.model_selection.find_peak`. Folds depend only on the data. All candidates and
        folds share the kernel that the first learns from all rows: learning it anew in every fold
        chose no better. Also a model with the kernel of the choice.
    """
    first = next((one for one in FIRST if one in among), among[0])
    spec = spec._replace(**first._asdict())
    X, Y, weight = at_most(CHOICE_ROWS, data, seed=0)
    if len(among) == 1 or held_out.num_left_out((X, Y)) < FEWEST_LEFT_OUT:
        return spec, initial_model(spec, data)
    begun = initial_model(spec, data)
    of_fold = spec._replace(grow=False, progress=False, Z=_inducing_points(begun.model))
    if spec.learn_kernel:
        of_fold = of_fold._replace(kernel=begun.model.kernel, learn_kernel=False, learned=())

    def score(candidate: Candidate) -> held_out.HeldOut:
        """One model serves all folds: each fit begins where the one before ended."""
        this = of_fold._replace(**candidate._asdict())
        model = initial_model(this, data, begun.model)
        return held_out.held_out(
            lambda *part: train(this, part, model)[0],
            (X, Y),
            sample_weight=weight,
        )

    best = between(among, held_out.find_peak(score, among, first))
    spec = spec._replace(**best._asdict())
    return spec, begun if best == first else initial_model(spec, data, begun.model)


def chosen_model(
    spec: Specification, among: Sequence[Candidate], data: Data, stages: Stages
) -> tuple[Specification, InitialModel]:
    """
    :param among: the candidates.
    :param stages: may hold an earlier result.
    :return: `spec` as chosen, and its model with the final kernel.
    """
    content = stages.result("choice", lambda: _content(*choose(spec, among, data)))
    spec = spec._replace(loss=content["loss"], penalty=content["penalty"])
    model = make_model(spec._replace(Z=content["Z"]), data[0])
    for variable, value in zip(model.variables, content["variables"], strict=True):
        variable.assign(value)
    if content["learned"] is None:
        return spec, InitialModel(model, None)
    freeze(spec, model)
    return spec, InitialModel(model, History(**content["learned"]))


def _content(spec: Specification, begun: InitialModel) -> dict[str, Any]:
    return {
        "loss": spec.loss,
        "penalty": float(spec.penalty),
        "Z": _inducing_points(begun.model),
        "variables": [variable.numpy() for variable in begun.model.variables],
        "learned": begun.history and vars(begun.history),
    }


def _inducing_points(model: BSVM) -> AnyNDArray | None:
    """:return: inducing points [M, D], None for a linear model."""
    points = plain_points(model.inducing_variable)
    return points[0] if points else None
