"""Fits of the harness of `gpflow_bsvm.compare`, timed in processor seconds."""

from __future__ import annotations

import contextlib
import functools
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import tensorflow as tf

# GPflow's graphs need no AutoGraph, and to rewrite its sources takes most of the time to trace. As
# GPflow is not imported yet, its own functions are made so.
tf.function = functools.partial(tf.function, autograph=False)

from gpflow_bsvm import metrics  # noqa: E402
from gpflow_bsvm.compare import gp_baselines  # noqa: E402
from gpflow_bsvm.compare.baselines import Estimator, KernelSettings  # noqa: E402
from gpflow_bsvm.compare.gp_baselines import make_baseline  # noqa: E402
from gpflow_bsvm.compare.protocol import Fold  # noqa: E402

SCORES = ("error", "nll", "brier", "ece")
#: So many rows are fitted first, untimed, where TensorFlow would trace in the timed fit.
WARM_ROWS = 64


def scored(fold: Fold, P: np.ndarray) -> dict:
    """:return: cells of the scores of p [n, C] of the held-out rows."""
    found = metrics.evaluate(fold.y_test, P)
    return {score: found[score] for score in SCORES}


def measured(name: str, fold: Fold, kernel: KernelSettings) -> dict:
    """
    A baseline of the harness. Its first fit, of a few rows, pays for TensorFlow's tracing, which
    is reported on its own: the second fit has graphs of any number of rows.

    :param name: in `gpflow_bsvm.compare.BASELINES`.
    """
    model = make_baseline(name, num_classes(fold))
    tf.random.set_seed(fold.number)  # for GPflow's Softmax

    def fit(rows: slice) -> None:
        model.fit(fold.X[rows], fold.y[rows], fold.Z, kernel, fold.number)

    cells = {}
    if not isinstance(model, Estimator):  # but one by TensorFlow
        few_steps = patch.object(gp_baselines, "MAX_STEPS", 2)
        with few_steps, contextlib.suppress(Exception):  # a few rows may fail where all do well
            cells["first_seconds"] = processor_seconds(fit, slice(WARM_ROWS))
    seconds = processor_seconds(fit, slice(None))
    scores = scored(fold, model.predict_proba(fold.X_test))
    return {**scores, "seconds": seconds, **cells, "note": model.note}


def num_classes(fold: Fold) -> int:
    return int(fold.y.max()) + 1


def processor_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """:return: of all threads, while `function` ran without warnings."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(*arguments)
    return time.process_time() - start
