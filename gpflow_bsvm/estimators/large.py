"""A classifier of more rows than fit into memory: all but q from a sample, q from every row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..engine.natural import compiled_gaussian, scaled_sites
from ..inference import History, fit
from ..models import BSVM
from ..prediction.calibration import calibrate
from .choice import Candidate, choose
from .inputs import scale
from .specification import Data, Specification
from .survey import Prepared, Rows, Survey, class_weights, open_rows, survey
from .training import train


class Opened(NamedTuple):
    """Rows that are not in memory, after the pass that says what they are."""

    attributes: dict[str, Any]  #: those of the classifier
    sample: Data
    source: Prepared
    part: float  #: weight of the sample by that of all rows


def open_large(rows: Any, seed: int, standardize: bool, class_weight: Any) -> Opened:
    """
    Options as those of `BSVMClassifier`.

    :param rows: see `is_source`.
    :raise ValueError: see `survey`, and for rows that are no numbers, with where they stand.
    """
    source = open_rows(rows, Rows())
    found = survey(source, seed)
    classes, scaler = _labels(rows, found), found.scaler if standardize else None
    weights = class_weights(found, classes, class_weight)
    X, Y, weight = found.sample
    targets = np.asarray(np.searchsorted(found.values, Y))
    sample = scale(scaler, X), targets.astype(X.dtype), weight * weights[targets[:, 0]]
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
    return whole if np.array_equal(whole, found.values) else found.values


def train_large(
    spec: Specification, among: tuple[Candidate, ...], opened: Opened
) -> tuple[Specification, BSVM, History]:
    """
    Choose and learn on a sample, then passes over all rows, which begin with what the sample says
    of q times what it stands for.
    """
    sample, source = opened.sample, opened.source
    spec = spec._replace(num_rows=source.num_rows)
    spec, start = choose(spec, among, sample)
    model, _ = train(spec, sample, start)
    model.num_data = None
    scale_up(model, 1 / opened.part)
    run = fit if spec.inference is None else spec.inference.run
    history = run(model, source, progress=spec.progress)
    if spec.calibrates:
        calibrate(model, source)
    model.num_data = source.num_rows
    return spec, model, history


def scale_up(model: BSVM, factor: float) -> None:
    """As if every row that q knows of had been there `factor` times, with the same site."""
    sums = scaled_sites(model.natural(), factor)
    model.assign_natural(compiled_gaussian(sums, tf.zeros([], sums.h.dtype))[0])
