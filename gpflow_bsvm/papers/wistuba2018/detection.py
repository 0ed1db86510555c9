"""Detection of attacked or foreign rows by a classifier's doubt, as in the paper's section 4.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy.stats import entropy
from sklearn.metrics import roc_auc_score

from ...adversarial.attacks import class_probabilities, fgsm, number_labels
from ...adversarial.targets import target_of
from ...prediction.uncertainty import predictive_entropy, variation_ratio

#: A function of rows X: the doubt about each, [N].
Score = Callable[[AnyNDArray], AnyNDArray]


class UnderAttack(NamedTuple):
    """How a classifier fares at one strength of an attack."""

    epsilon: float
    accuracy: float  #: on the attacked rows
    mean: dict[str, float]  #: mean of each score over the attacked rows
    auc: dict[str, float]  #: of telling attacked rows from clean ones by each score


def detection_auc(clean: Any, other: Any) -> float:
    """
    How well a score tells two sets of rows apart: the chance that a row of `other` has a greater
    score than one of `clean`, ties counting half (the area under the ROC curve).

    :param clean: [N], scores of ordinary rows.
    :param other: [M], scores of attacked or foreign ones.
    :return: 1/2 if the score tells nothing, 1 if it separates the sets completely.
    :raise ValueError: for anything but two columns of finite numbers.
    """
    for name, scores in (("clean", clean), ("other", other)):
        if np.ndim(scores) != 1 or len(scores) == 0 or not np.isfinite(scores).all():
            raise ValueError(f"scores of `{name}` must be [N], N > 0, and finite")
    labels = np.repeat([0, 1], [len(clean), len(other)])
    return float(roc_auc_score(labels, np.concatenate([clean, other])))


def under_attack(
    target: Any,
    X: Any,
    y: Any,
    epsilons: Iterable[float],
    scores: Mapping[str, Score] | None = None,
    *,
    attack: Callable[..., AnyNDArray] = fgsm,
    **options: Any,
) -> list[UnderAttack]:
    """
    Accuracy, mean doubt and detection against the strength of an attack (Wistuba & Rawat 2018,
    Fig. 6): one attacked row for every row of X at every strength.

    :param target: X and y: as in `fgsm`; rows that it has not seen.
    :param epsilons: strengths of the attack.
    :param scores: functions of X by name; None: the `doubts` of the target.
    :param attack: a function (target, X, y, epsilon, **options) of the moved X.
    :param options: of the attack.
    :raise ValueError, TypeError: as `fgsm` and `detection_auc`.
    """
    X = target_of(target).check_inputs(X)
    label = number_labels(target, X, y)
    scores = doubts(target) if scores is None else scores
    clean, found = {name: score(X) for name, score in scores.items()}, []
    for epsilon in epsilons:
        moved = attack(target, X, y, epsilon, **options)
        right = class_probabilities(target, moved).argmax(axis=1) == label
        attacked = {name: score(moved) for name, score in scores.items()}
        mean = {name: float(np.mean(values)) for name, values in attacked.items()}
        auc = {name: detection_auc(clean[name], values) for name, values in attacked.items()}
        found.append(UnderAttack(float(epsilon), float(right.mean()), mean, auc))
    return found


def doubts(target: Any) -> dict[str, Score]:
    """
    :return: scores by name: for a model of this package "variation ratio" and "entropy" as in
        `gpflow_bsvm.prediction`, for all others the "entropy" of the probabilities.
    """
    if not hasattr(target, "natural"):
        return {"entropy": lambda X: entropy(class_probabilities(target, X), axis=1)}
    return {
        "variation ratio": lambda X: variation_ratio(target, X),
        "entropy": lambda X: predictive_entropy(target, X),
    }
