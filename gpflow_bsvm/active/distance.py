"""How far updates by new rows alone have led from a fit to all of them."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import gpflow
import numpy as np

from ..engine.contracts import Model
from ..likelihoods.labels import with_both_classes
from ..prediction.marginals import predict_marginals, predict_probabilities
from .learner import ActiveLearner


class Distance(NamedTuple):
    """Between a model and the same after a refit, at some rows."""

    mean: float  #: root mean square difference of the means of f, in standard deviations
    variance: float  #: mean ratio of the variances of f, model to refit
    probability: float  #: mean total variation between the probabilities
    decisions: float  #: share of the rows that change their class


def distance_from_refit(learner: ActiveLearner, X: Any) -> tuple[Distance, Model]:
    """
    Sites of earlier rows stay as they were when they were new, those of a refit (`CAVI` on all
    labelled rows, at the same kernel) belong to its q; this is what that comes to.

    :param learner: with a label at least; it is not changed.
    :param X: [N, D], rows to compare the predictions at.
    :return: the distance, and the refitted model.
    :raise ValueError: for bad inputs, or if there is no label yet.
    """
    if len(learner.labelled) == 0:
        raise ValueError("no row has a label yet, so that there is nothing to refit")
    again = copy.copy(learner)
    again.model = gpflow.utilities.deepcopy(learner.model)
    again.refit()
    (mean, variance), (mean_, variance_) = (predict_marginals(m.model, X) for m in (learner, again))
    p, p_ = (with_both_classes(predict_probabilities(m.model, X)) for m in (learner, again))
    distance = Distance(
        float(np.sqrt(np.mean(np.square(mean - mean_) / variance_))),
        float(np.mean(variance / variance_)),
        float(np.abs(p - p_).sum(axis=1).mean() / 2),
        float(np.mean(p.argmax(axis=1) != p_.argmax(axis=1))),
    )
    return distance, again.model
