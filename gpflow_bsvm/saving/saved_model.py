"""A model as a TensorFlow SavedModel, for predictions without this package and GPflow."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gpflow
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from sklearn.utils.validation import check_is_fitted

from ..atomic import errors_of
from ..engine.natural import Gaussian, compiled_solve
from ..engine.projection import plain_points, project
from ..engine.statistics import marginals_of_f
from ..estimators import BSVMClassifier, BSVMRegressor
from ..estimators.scaling import model_input
from ..likelihoods.base import probabilities
from ..likelihoods.labels import with_both_classes
from ..models.sparse import SparseFeatures
from ..version import __version__

#: A function of X, and of mean and variance of f.
Result = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]


class Parts(NamedTuple):
    """The content of a SavedModel."""

    model: Any
    num_columns: int | None  #: D; None: any number
    results: dict[str, Result]  #: the exported functions, by name
    seen: Callable[[tf.Tensor], tf.Tensor] = tf.identity  #: the model's input of X


def export(model: Any, directory: str | os.PathLike[str]) -> None:
    """
    Write a model as a TensorFlow SavedModel with two signatures, for any number of rows N:

        predict_f:      X [N, D] -> {"mean": [N, L], "variance": [N, L]} of the latent functions,
        predict_proba:  X [N, D] -> {"probabilities": [N, C]},

    or, for a regressor, instead of `predict_proba`,

        predict:        X [N, D] -> {"mean": [N], "std": [N]} of y,

    and f in units of y. Their results equal the model's predictions up to rounding. A classifier's
    export includes its standardization, and its probabilities are in the order of `classes_`. A
    model's probabilities are as in `gpflow_bsvm.prediction.predict_probabilities`: only P(y = 1)
    for two classes.
    `loaded = tf.saved_model.load(directory)`, then `loaded.predict_proba(X)`, needs only TensorFlow
    (which fails without the name `loaded`), and checks nothing: a row with NaN gives NaN.

    The directory's file `about.json` holds "classes" (a classifier's labels, else null), "features"
    (the column names, if X had names in the fit) and "version".

    :param model: a fitted `BSVMClassifier` or `BSVMRegressor`, or a model of `gpflow_bsvm.models`.
    :param directory: a new or empty directory, which is written completely or not at all.
    :raise FileExistsError: if the directory is not empty.
    :raise OSError: if the directory cannot be written; the message names it.
    :raise TypeError: for another object.
    :raise ValueError: for an estimator with `impute`.
    :raise sklearn.exceptions.NotFittedError: for an unfitted estimator.
    """
    directory = Path(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FileExistsError(f"{directory} exists already: export to a new directory")
    of = _of_estimator if isinstance(model, (BSVMClassifier, BSVMRegressor)) else _of_model
    parts, about = of(model)
    module = _exported(parts)
    text = json.dumps(about | {"version": __version__}, indent=1, default=str)
    target = Path(os.path.realpath(directory))
    with errors_of(directory, target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as place:
            made = Path(place, target.name)
            _write(module, made, {name: getattr(module, name) for name in parts.results})
            (made / "about.json").write_text(text, encoding="utf-8")
            if target.is_dir():
                target.rmdir()
            made.rename(target)


def _write(module: Any, place: Path, signatures: dict[str, Any]) -> None:
    """:raise OSError: if TensorFlow's writing fails."""
    try:
        tf.saved_model.save(module, str(place), signatures=signatures)
    except tf.errors.OpError as error:
        full = "No space left" in error.message
        why = os.strerror(errno.ENOSPC) if full else error.message.partition("\n")[0]
        raise OSError(errno.ENOSPC if full else errno.EIO, why, str(place)) from error


def _exported(parts: Parts) -> tf.Module:
    """:return: functions of X, and their variables."""
    model = parts.model
    # Stored as arrays, because graphs have a limited size.
    Lz = tf.Variable(model.prior_factor(), trainable=False)
    q = [tf.Variable(part, trainable=False) for part in compiled_solve(model.natural())]
    dtype = gpflow.config.default_float()
    spec = tf.TensorSpec([None, parts.num_columns], dtype, "X")

    def predict(result: Result, X: tf.Tensor) -> dict[str, tf.Tensor]:
        X = parts.seen(X)
        features = project(model.prior, X, tf.convert_to_tensor(Lz))
        of_f = marginals_of_f(Gaussian._make(map(tf.convert_to_tensor, q)), features)
        return result(X, *of_f)

    module = tf.Module()
    for name, result in parts.results.items():
        graph = tf.function(partial(predict, result), input_signature=[spec], autograph=False)
        setattr(module, name, graph)
        # A graph is saved together with its variables.
        setattr(module, f"_of_{name}", list(graph.get_concrete_function().graph.variables))
    return module


def _of_model(model: Any) -> tuple[Parts, dict[str, Any]]:
    if not isinstance(model, SparseFeatures):
        raise TypeError(
            "export takes a BSVMClassifier, a BSVMRegressor or a model of gpflow_bsvm.models, got "
            f"{type(model).__name__}"
        )
    variable = model.prior.inducing_variable
    widths = [Z.shape[-1] for Z in plain_points(variable)]
    width = getattr(variable, "num_inputs", widths[0] if widths else None)
    results: dict[str, Result] = {"predict_f": _moments}
    results["predict_proba"] = partial(_probabilities, model.likelihood, None)
    return Parts(model, width, results), {"classes": None, "features": None}


def _of_estimator(estimator: Any) -> tuple[Parts, dict[str, Any]]:
    check_is_fitted(estimator)
    if estimator.fill_ is not None:
        raise ValueError("export cannot impute: export an estimator without impute=True")
    model = estimator.model_
    names = getattr(estimator, "feature_names_in_", None)
    about = {"classes": None, "features": None if names is None else [*map(str, names)]}
    units = getattr(estimator, "units_of_y", (1.0, 0.0))
    results: dict[str, Result] = {"predict_f": partial(_moments, units=units)}
    if isinstance(estimator, BSVMRegressor):
        results["predict"] = partial(_numbers, model.likelihood, units)
    else:
        about["classes"] = estimator.classes_.tolist()
        results["predict_proba"] = partial(_probabilities, model.likelihood, estimator._columns)
    width = estimator.n_features_in_
    return Parts(model, width, results, partial(model_input, estimator.scaler_)), about


def _moments(
    X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, units: tuple[float, float] = (1.0, 0.0)
) -> dict[str, tf.Tensor]:
    scale, centre = units
    return {"mean": mean * scale + centre, "variance": variance * scale**2}


def _numbers(
    likelihood: Likelihood, units: tuple[float, float], X: tf.Tensor, Fmu: Any, Fvar: Any
) -> dict[str, tf.Tensor]:
    scale, centre = units
    mean, variance = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    return {"mean": mean[:, 0] * scale + centre, "std": tf.sqrt(variance[:, 0]) * scale}


def _probabilities(
    likelihood: Likelihood, columns: Any, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> dict[str, tf.Tensor]:
    p = probabilities(likelihood, X, mean, variance)
    if columns is not None:
        p = tf.gather(with_both_classes(p), columns, axis=-1)
    return {"probabilities": p}
