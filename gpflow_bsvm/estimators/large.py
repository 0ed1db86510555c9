"""Fits to rows outside memory: a sample determines everything but q; all rows determine q."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.base import is_classifier

from ..data.opening import open_source
from ..engine.natural import compiled_gaussian, scaled_sites
from ..models import BSVM
from . import inputs
from .choice import chosen_model
from .kernels import check_covariance, unscaled_columns
from .prepared import CHUNK_ROWS, Prepared
from .stages import Stages
from .survey import Rows, Survey, survey
from .training import fit_q, train


def fit_large(estimator: Any, rows: Any, stages: Stages) -> None:
    """
    Select and learn on a sample, then fit q to all rows, starting from the sample's scaled q.

    :param estimator: a `BSVMEstimator`; it is fitted in place.
    :param rows: see `prepared.source_of`.
    :param stages: may hold results of an earlier call.
    :raise ValueError: as in `survey`, and for non-numeric rows; the message names their position.
    """
    source: Any = open_source(rows, Rows(estimator._labelled), CHUNK_ROWS)
    seed = stages.seed(estimator, source)
    stages.bar.stage("rows", "looking at all rows")
    classes = is_classifier(estimator)
    looked = stages.result("survey", lambda: survey(source, seed, classes)._asdict())
    found = Survey(**looked)
    source.known_rows = found.num_rows
    estimator.fill_ = None
    encoding = estimator._learn_survey(rows, found)
    (X, Y, weight) = found.sample
    codes = unscaled_columns(estimator.kernel, X)
    scaler = inputs.without(found.scaler, codes)
    estimator.scaler_ = scaler if estimator.standardize else None
    inputs.warn_of_extremes(estimator.scaler_, X, getattr(rows, "features", None))
    estimator.n_features_in_ = X.shape[1]
    Y, factors = encoding(Y)
    weights = (weight[:, None] * factors)[:, 0]
    X, y, weights = inputs.merge_equal(X, np.asarray(Y, X.dtype)[:, 0], weights)
    sample = inputs.scale(estimator.scaler_, X), y[:, None], weights
    check_covariance(estimator.kernel, sample[0])
    spec = estimator._specify(seed, sample)
    num_rows = found.num_rows if len(weight) < found.num_rows else len(y)
    spec = spec._replace(num_rows=num_rows, codes=tuple(codes), progress=stages.bar)
    spec, begun = chosen_model(spec, estimator._candidates(spec), sample, stages)
    model, _ = train(spec, sample, begun, stages)
    model.num_data = None
    scale_up(model, 1 / float(weight.sum() / found.weight))
    prepared = Prepared(source, estimator.scaler_, encoding)
    estimator.history_ = fit_q(spec, model, prepared, stages.place("q of all rows"))
    model.num_data = found.num_rows
    estimator.model_ = model
    estimator._found(spec, sample)
    if hasattr(rows, "features"):
        estimator.feature_names_in_ = np.asarray(rows.features, dtype=object)


def scale_up(model: BSVM, factor: float) -> None:
    """Change q as if each of its rows and sites occurred `factor` times."""
    sums = scaled_sites(model.natural(), factor)
    model.assign_natural(compiled_gaussian(sums, tf.zeros([], sums.h.dtype))[0])


def open_later(rows: Any, estimator: Any, labelled: bool = True) -> Prepared:
    """
    :param rows: see `prepared.source_of`; classes may be absent.
    :param estimator: a fitted `BSVMEstimator`.
    :return: the rows as inputs of its model, with labels if `labelled`.
    :raise ValueError: for columns that differ from the fit, and for unknown labels.
    """
    names = getattr(rows, "features", None)
    expected = getattr(estimator, "feature_names_in_", None)
    if names is not None and expected is not None and list(names) != list(expected):
        raise ValueError(
            f"the columns of X are {list(names)}, but training had {list(expected)}: give the "
            "source features=[...], with the columns of training in this order"
        )
    source = open_source(rows, Rows(labelled, estimator.n_features_in_), CHUNK_ROWS)
    return Prepared(source, estimator.scaler_, estimator._encoding(rows) if labelled else None)
