"""A classifier of more rows than fit into memory: all but q from a sample, q from every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..engine.natural import compiled_gaussian, scaled_sites
from ..models import BSVM
from . import inputs
from .choice import chosen_model
from .prepared import Prepared, open_rows
from .specification import specify
from .stages import Stages
from .survey import Rows, Survey, class_weights, survey
from .training import fit_q, train


def fit_large(estimator: Any, rows: Any, stages: Stages) -> dict[str, Any]:
    """
    Choose and learn on a sample, then passes over all rows, which begin with what the sample says
    of q times what it stands for.

    :param estimator: a `BSVMClassifier`.
    :param rows: see `prepared.source_of`.
    :param stages: where an earlier call may have left what it has found.
    :return: attributes of the fitted estimator.
    :raise ValueError: see `survey`, and for rows that are no numbers, with where they stand.
    """
    source, progress = open_rows(rows, Rows()), bool(estimator.verbose)
    seed = stages.seed(estimator, source)
    content = stages.result("survey", lambda: survey(source, seed, progress)._asdict())
    found = Survey(**content)
    source.expect(found.num_rows)
    classes, scaler = _labels(rows, found.values), found.scaler if estimator.standardize else None
    weights = class_weights(found.counts, classes, estimator.class_weight)
    X, Y, weight = found.sample
    targets = np.asarray(np.searchsorted(found.values, Y))
    sample = inputs.scale(scaler, X), targets.astype(X.dtype), weight * weights[targets[:, 0]]
    spec = specify(estimator, len(classes), seed)._replace(num_rows=found.num_rows)
    spec, begun = chosen_model(estimator, spec, sample, stages)
    model, _ = train(spec, sample, begun, stages)
    model.num_data = None
    scale_up(model, 1 / float(weight.sum() / found.weight))
    prepared = Prepared(source, scaler, found.values, weights)
    history = fit_q(spec, model, prepared, **stages.fit("q of all rows"))
    model.num_data = found.num_rows
    learned = {"loss_": spec.loss, "penalty_": spec.penalty, "model_": model, "history_": history}
    if hasattr(rows, "features"):
        learned["feature_names_in_"] = np.asarray(rows.features, dtype=object)
    return {"classes_": classes, "scaler_": scaler, "n_features_in_": X.shape[1], **learned}


def _labels(rows: Any, values: AnyNDArray) -> AnyNDArray:
    """:return: [C], what the numbers stand for: those of files may have names."""
    names, whole = getattr(rows, "classes", None), values.astype(int)
    return whole if names is None else np.asarray(names)[whole]


def scale_up(model: BSVM, factor: float) -> None:
    """As if every row that q knows of had been there `factor` times, with the same site."""
    sums = scaled_sites(model.natural(), factor)
    model.assign_natural(compiled_gaussian(sums, tf.zeros([], sums.h.dtype))[0])


def open_later(rows: Any, estimator: Any) -> Prepared:
    """
    :param rows: see `prepared.source_of`; some of the classes may be all that they have.
    :param estimator: a fitted `BSVMClassifier`.
    :raise ValueError: for other columns, and for names of labels that it does not know.
    """
    inputs.check_names(rows, getattr(estimator, "feature_names_in_", None))
    classes = estimator.classes_
    weights = class_weights(None, classes, estimator.class_weight)
    source = open_rows(rows, Rows(num_columns=estimator.n_features_in_))
    return Prepared(source, estimator.scaler_, _numbers(rows, classes), weights)


def _numbers(rows: Any, classes: AnyNDArray) -> AnyNDArray:
    """:return: [C], what each class is called in the rows; -1 where they do not know it."""
    names = getattr(rows, "classes", None)
    if names is None and classes.dtype.kind not in "fiub":
        raise ValueError(
            f"the classes are {classes.tolist()}, and these labels are numbers: give the source "
            "classes=..., their names in the order of the numbers"
        )
    if names is None:
        return classes
    if unknown := [name for name in names if name not in classes.tolist()]:
        raise ValueError(
            f"the source has classes {unknown}; the classes are {classes.tolist()}: fit anew with "
            "rows of all of them"
        )
    return np.array([names.index(one) if one in names else -1 for one in classes.tolist()])
