"""What is predicted, classes or numbers: how models are asked, and by what they are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from .. import metrics
from ..metrics import CLIP, METRICS, Metric
from . import regression
from .baselines import Baseline
from .splits import Fold

Loss = Callable[[AnyNDArray, AnyNDArray], AnyNDArray]


@dataclass(frozen=True)
class Kind:
    """
    Labels y [n] of held-out rows, and predictions P [n, K] for them.

    :ivar metrics: by name.
    :ivar evaluate: values of all `metrics` for y and P, by name.
    :ivar losses: for those of `metrics` that are means over rows the loss of each row, [n].
    :ivar predict: P of a fitted model for the held-out rows of a fold.
    """

    metrics: Mapping[str, Metric]
    evaluate: Callable[[AnyNDArray, AnyNDArray], dict[str, float]]
    losses: Mapping[str, Loss]
    predict: Callable[[Baseline, Fold], Any]


#: P: probabilities of the C classes.
OF_CLASSES = Kind(
    METRICS,
    metrics.evaluate,
    {
        "error": lambda y, P: (P.argmax(axis=1) != y).astype(float),
        "brier": lambda y, P: np.square(P - np.eye(P.shape[1])[y]).sum(axis=1) / 2,
        "nll": lambda y, P: -np.log(np.clip(P[np.arange(len(y)), y], CLIP, 1 - CLIP)),
    },
    lambda model, fold: model.predict_proba(fold.X_test),
)
#: P: as `regression.columns`.
OF_NUMBERS = Kind(
    regression.METRICS,
    regression.evaluate,
    regression.LOSSES,
    lambda model, fold: model.predict_numbers(fold.X_test, fold.y_test),
)
KINDS = {"classification": OF_CLASSES, "regression": OF_NUMBERS}
