"""A model as a TensorFlow SavedModel, which predicts without this package, without GPflow."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from sklearn.utils.validation import check_is_fitted

from ..engine.contracts import plain_points
from ..engine.natural import Gaussian, compiled_solve
from ..engine.projection import project
from ..engine.statistics import Marginals, marginals_of_f
from ..estimators import BSVMClassifier, BSVMRegressor
from ..estimators.inputs import shift_and_scale
from ..likelihoods.binary import normal_cdf
from ..models.features import SparseFeatures
from ..version import __version__

Prepare = Callable[[tf.Tensor], tf.Tensor]
Finish = Callable[[tf.Tensor, Marginals], dict[str, tf.Tensor]]

#: Beside the graphs: what the columns of X and of the probabilities are.
ABOUT = "about.json"


def export(model: Any, directory: str | os.PathLike[str]) -> None:
    """
    Write a model as a TensorFlow SavedModel of two signatures, of any number of rows N:

        predict_f:      X [N, D] -> {"mean": [N, L], "variance": [N, L]} of the latent functions,
        predict_proba:  X [N, D] -> {"probabilities": [N, C]},

    of a regressor instead of the latter

        predict:        X [N, D] -> {"mean": [N], "std": [N]} of y,

    equal to those of the model up to rounding. Of a classifier the standardisation is inside, and
    the columns are in the order of `classes_`; of a model they are the mean of `predict_y`: of two
    classes the one column P(y = 1). `tf.saved_model.load(directory).predict_proba(X)` needs
    TensorFlow and nothing else, and does no checks: a row with NaN gives NaN.

    The file `about.json` in it has "classes", the labels (null for a model), "features", the names
    of the columns of X where a data frame told them, and "version".

    :param model: a fitted `BSVMClassifier` or `BSVMRegressor`, or a model of `gpflow_bsvm.models`.
    :param directory: new or empty.
    :raise FileExistsError: if there is something in it.
    :raise sklearn.exceptions.NotFittedError: for a classifier that was not fitted.
    """
    directory = Path(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FileExistsError(f"{directory} exists already: export to a new directory")
    of = _of_estimator if isinstance(model, (BSVMClassifier, BSVMRegressor)) else _of_model
    module, about = of(model)
    part = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}")
    try:
        signatures = {name: getattr(module, name) for name in ("predict_f", module.predicts)}
        tf.saved_model.save(module, str(part), signatures=signatures)
        (part / ABOUT).write_text(
            json.dumps(about | {"version": __version__}, indent=1), encoding="utf-8"
        )
        os.replace(part, directory)
    finally:
        shutil.rmtree(part, ignore_errors=True)


class Exported(tf.Module):  # type: ignore[misc]
    """What is written: functions of X, and the variables that they look at."""

    def __init__(
        self,
        model: Any,
        num_columns: int | None,
        prepare: Prepare,
        finish: Finish,
        predicts: str = "predict_proba",
    ) -> None:
        """
        :param num_columns: D; None: any.
        :param prepare: of X, the inputs of the model.
        :param finish: of these and of f, what the function called `predicts` returns.
        """
        super().__init__()
        self.predicts = predicts
        self._Lz = _constant(model.prior_factor())
        self._q = [_constant(part) for part in compiled_solve(model.natural())]
        spec = tf.TensorSpec([None, num_columns], gpflow.config.default_float(), "X")

        def look(X: tf.Tensor) -> Marginals:
            features = project(model.prior, X, tf.convert_to_tensor(self._Lz))
            q = Gaussian(*map(tf.convert_to_tensor, self._q))
            return marginals_of_f(q, features)

        def predict_f(X: tf.Tensor) -> dict[str, tf.Tensor]:
            return look(prepare(X))._asdict()

        def predict(X: tf.Tensor) -> dict[str, tf.Tensor]:
            X = prepare(X)
            return finish(X, look(X))

        self.predict_f = self._traced(predict_f, spec)
        setattr(self, predicts, self._traced(predict, spec))

    def _traced(self, function: Callable[..., Any], spec: tf.TensorSpec) -> Any:
        """:return: a graph; the variables that it has met are written with it."""
        graph = tf.function(function, input_signature=[spec], autograph=False)
        met = graph.get_concrete_function().graph.variables
        setattr(self, f"_of_{function.__name__}", list(met))
        return graph


def _constant(value: tf.Tensor) -> tf.Variable:
    """:return: a value that is written as an array, not into the graph, which has its bounds."""
    return tf.Variable(value, trainable=False)


def _of_model(model: Any) -> tuple[Exported, dict[str, Any]]:
    if not isinstance(model, SparseFeatures):
        raise TypeError(
            "export takes a BSVMClassifier, a BSVMRegressor or a model of gpflow_bsvm.models, got "
            f"{type(model).__name__}"
        )
    variable = model.prior.inducing_variable
    widths = [Z.shape[-1] for Z in plain_points(variable)]
    width = getattr(variable, "num_inputs", widths[0] if widths else None)
    about = {"classes": None, "features": None}
    return Exported(model, width, tf.identity, _mean_of_y(model)), about


def _of_estimator(estimator: Any) -> tuple[Exported, dict[str, Any]]:
    check_is_fitted(estimator)
    model, width = estimator.model_, estimator.n_features_in_
    centre, scale = shift_and_scale(estimator.scaler_, width)
    dtype = gpflow.config.default_float()

    def standardise(X: tf.Tensor) -> tf.Tensor:
        return (X - tf.constant(centre, dtype)) / tf.constant(scale, dtype)

    names = getattr(estimator, "feature_names_in_", None)
    about = {"features": None if names is None else [str(name) for name in names]}
    if isinstance(estimator, BSVMRegressor):
        finish = _numbers(model.likelihood, estimator.y_center_, estimator.y_scale_)
        return Exported(model, width, standardise, finish, "predict"), about
    about["classes"] = [_plain(label) for label in estimator.classes_]
    finish = _both(model) if len(estimator.classes_) == 2 else _mean_of_y(model)
    return Exported(model, width, standardise, finish), about


def _numbers(likelihood: Any, centre: float, scale: float) -> Finish:
    def numbers(X: tf.Tensor, f: Marginals) -> dict[str, tf.Tensor]:
        mean, variance = likelihood.predict_mean_and_var(X, f.mean, f.variance)
        return {"mean": mean[:, 0] * scale + centre, "std": tf.sqrt(variance[:, 0]) * scale}

    return numbers


def _both(model: Any) -> Finish:
    def both(X: tf.Tensor, f: Marginals) -> dict[str, tf.Tensor]:
        z = model.likelihood.probit_argument(f.mean, f.variance)
        return {"probabilities": normal_cdf(tf.concat([-z, z], axis=-1))}

    return both


def _mean_of_y(model: Any) -> Finish:
    def mean(X: tf.Tensor, f: Marginals) -> dict[str, tf.Tensor]:
        return {"probabilities": model.likelihood.predict_mean_and_var(X, f.mean, f.variance)[0]}

    return mean


def _plain(label: Any) -> Any:
    """:return: a label as JSON has it; of another type, its text."""
    value = label.item() if isinstance(label, np.generic) else label
    return value if isinstance(value, bool | int | float | str) else str(label)
