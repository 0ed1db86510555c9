"""A classifier of more rows than fit into memory: all but q from a sample, q from every row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..data.sources import Source
from ..engine.natural import compiled_gaussian, scaled_sites
from ..inference import History, fit
from ..models import BSVM
from ..prediction.calibration import calibrate
from . import inputs
from .choice import chosen_model
from .prepared import Prepared, open_rows
from .specification import Data, Specification, specify
from .stages import Stages
from .survey import Rows, Survey, class_weights, survey
from .training import InitialModel, train


class Opened(NamedTuple):
    """Rows that are not in memory, after the pass that says what they are."""

    attributes: dict[str, Any]  #: those of the classifier
    sample: Data
    source: Prepared
    part: float  #: weight of the sample by that of all rows


def open_large(rows: Any, source: Source, estimator: Any, seed: int, stages: Stages) -> Opened:
    """
    :param rows: see `prepared.source_of`.
    :param source: these, opened.
    :param estimator: a `BSVMClassifier`.
    :param stages: where the pass may have left what it has found.
    :raise ValueError: see `survey`, and for rows that are no numbers, with where they stand.
    """
    progress = bool(estimator.verbose)
    content = stages.result("survey", lambda: survey(source, seed, progress).content())
    found = Survey.of(content)
    source.expect(found.num_rows)
    classes, scaler = _labels(rows, found), found.scaler if estimator.standardize else None
    weights = class_weights(found.counts, classes, estimator.class_weight)
    X, Y, weight = found.sample
    targets = np.asarray(np.searchsorted(found.values, Y))
    sample = inputs.scale(scaler, X), targets.astype(X.dtype), weight * weights[targets[:, 0]]
    attributes = {
        "classes_": classes,
        "scaler_": scaler,
        "n_features_in_": X.shape[1],
        **({"feature_names_in_": _names(rows)} if hasattr(rows, "features") else {}),
    }
    prepared = Prepared(source, scaler, found.values, weights)
    return Opened(attributes, sample, prepared, float(weight.sum() / found.weight))


def _names(rows: Any) -> AnyNDArray:
    return np.asarray(rows.features, dtype=object)


def _labels(rows: Any, found: Survey) -> AnyNDArray:
    """:return: [C], what the numbers stand for: those of files may have names."""
    names = getattr(rows, "classes", None)
    whole = found.values.astype(int)
    if names is not None:
        return np.asarray(names)[whole]
    return whole


def fit_large(estimator: Any, rows: Any, stages: Stages) -> dict[str, Any]:
    """
    Choose and learn on a sample, then passes over all rows, which begin with what the sample says
    of q times what it stands for.

    Arguments as in `open_large`.

    :return: attributes of the fitted estimator.
    """
    source = open_rows(rows, Rows())
    seed = stages.seed(estimator, source)
    opened = open_large(rows, source, estimator, seed, stages)
    spec = specify(estimator, len(opened.attributes["classes_"]), seed)
    spec, begun = chosen_model(
        estimator, spec._replace(num_rows=source.num_rows), opened.sample, stages
    )
    model, history = _train(spec, begun, opened, stages)
    learned = {"loss_": spec.loss, "penalty_": spec.penalty, "model_": model, "history_": history}
    return opened.attributes | learned


def _train(
    spec: Specification, begun: InitialModel, opened: Opened, stages: Stages
) -> tuple[BSVM, History]:
    sample, source = opened.sample, opened.source
    model, _ = train(spec, sample, begun, stages)
    model.num_data = None
    scale_up(model, 1 / opened.part)
    run = fit if spec.inference is None else spec.inference.run
    history = run(model, source, progress=spec.progress, **stages.fit("q of all rows"))
    if spec.calibrates:
        calibrate(model, source)
    model.num_data = source.num_rows
    return model, history


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
