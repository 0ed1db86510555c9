"""A model as a TensorFlow SavedModel, for predictions without this package and GPflow."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from sklearn.utils.validation import check_is_fitted

from ..atomic import errors_of
from ..engine.natural import Gaussian, compiled_solve
from ..engine.projection import plain_points, project
from ..engine.statistics import marginals_of_f
from ..estimators import BSVMClassifier, BSVMRegressor
from ..estimators.columns import shift_and_scale
from ..likelihoods.base import probabilities
from ..models.sparse import SparseFeatures
from ..version import __version__

Finish = Callable[..., dict[str, tf.Tensor]]


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
    (the column names, if X was a data frame in the fit) and "version".

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
    module, about = of(model)
    signatures = {name: getattr(module, name) for name in ("predict_f", module.predicts)}
    text = json.dumps(about | {"version": __version__}, indent=1, default=str)
    target = Path(os.path.realpath(directory))
    with errors_of(directory, target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as place:
            made = Path(place, target.name)
            _write(module, made, signatures)
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


class Exported(tf.Module):
    """The SavedModel's content: functions of X, and their variables."""

    def __init__(
        self,
        model: Any,
        num_columns: int | None,
        finish: Finish,
        predicts: str = "predict_proba",
        standardise: tuple[Any, Any] = (0.0, 1.0),
        units: tuple[float, float] = (1.0, 0.0),
    ) -> None:
        """
        :param num_columns: D; None: any number.
        :param finish: a function of likelihood, X, and mean and variance of f, which returns the
            result of the exported function `predicts`.
        :param standardise: shift and scale of X.
        :param units: scale and shift of the result of `predict_f`.
        """
        super().__init__()
        self.predicts = predicts
        # Stored as arrays, because graphs have a limited size.
        self._Lz = tf.Variable(model.prior_factor(), trainable=False)
        q = compiled_solve(model.natural())
        self._q = [tf.Variable(part, trainable=False) for part in q]
        dtype = gpflow.config.default_float()
        spec = tf.TensorSpec([None, num_columns], dtype, "X")
        shift, scale = (tf.constant(part, dtype) for part in standardise)

        def seen(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            X = (X - shift) / scale
            features = project(model.prior, X, tf.convert_to_tensor(self._Lz))
            q = Gaussian._make(map(tf.convert_to_tensor, self._q))
            mean, variance = marginals_of_f(q, features)
            return X, mean, variance

        def predict_f(X: tf.Tensor) -> dict[str, tf.Tensor]:
            _, mean, variance = seen(X)
            return {"mean": mean * units[0] + units[1], "variance": variance * units[0] ** 2}

        def predict(X: tf.Tensor) -> dict[str, tf.Tensor]:
            X, mean, variance = seen(X)
            return finish(model.likelihood, X, mean, variance)

        self.predict_f = self._traced(predict_f, spec)
        setattr(self, predicts, self._traced(predict, spec))

    def _traced(self, function: Callable[..., Any], spec: tf.TensorSpec) -> Any:
        """:return: a graph, saved together with its variables."""
        graph = tf.function(function, input_signature=[spec], autograph=False)
        met = graph.get_concrete_function().graph.variables
        setattr(self, f"_of_{function.__name__}", list(met))
        return graph


def _of_model(model: Any) -> tuple[Exported, dict[str, Any]]:
    if not isinstance(model, SparseFeatures):
        raise TypeError(
            "export takes a BSVMClassifier, a BSVMRegressor or a model of gpflow_bsvm.models, got "
            f"{type(model).__name__}"
        )
    variable = model.prior.inducing_variable
    widths = [Z.shape[-1] for Z in plain_points(variable)]
    width = getattr(variable, "num_inputs", widths[0] if widths else None)
    return Exported(model, width, _probabilities), {"classes": None, "features": None}


def _of_estimator(estimator: Any) -> tuple[Exported, dict[str, Any]]:
    check_is_fitted(estimator)
    if estimator.fill_ is not None:
        raise ValueError("export cannot impute: export an estimator without impute=True")
    model = estimator.model_
    width = estimator.n_features_in_
    standardise = shift_and_scale(estimator.scaler_, width)
    names = getattr(estimator, "feature_names_in_", None)
    features = None if names is None else [str(name) for name in names]
    about = {"classes": None, "features": features}
    if isinstance(estimator, BSVMRegressor):
        units = estimator.units_of_y
        finish = partial(_numbers, units)
        return Exported(model, width, finish, "predict", standardise, units), about
    about["classes"] = estimator.classes_.tolist()
    finish = partial(_probabilities, both=len(estimator.classes_) == 2)
    return Exported(model, width, finish, standardise=standardise), about


def _numbers(
    units: tuple[float, float], likelihood: Likelihood, X: tf.Tensor, Fmu: Any, Fvar: Any
) -> dict[str, tf.Tensor]:
    scale, centre = units
    mean, variance = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    return {"mean": mean[:, 0] * scale + centre, "std": tf.sqrt(variance[:, 0]) * scale}


def _probabilities(
    likelihood: Likelihood, X: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor, both: bool = False
) -> dict[str, tf.Tensor]:
    p = probabilities(likelihood, X, mean, variance)
    return {"probabilities": tf.concat([1 - p, p], axis=-1) if both else p}
