"""Levels of several classes: is a joint form better than one class against the rest?

Held-out NLL and error of the first three folds of `quality`; penalty 2, 100 inducing points, the
kernel learned as in `ablation`. What is fitted ("fit"):

    two each            location and spread of each class, as `OneVsRestLevelHinge`
    one spread          a location of each class, one spread that all share
    no spread           a location of each class

and how the binary probabilities p_c = sigmoid(l_c) become those of classes ("form"):

    sum                 p_c / sum_j p_j, as `OneVsRestLevelHinge`
    odds                the product of odds: p_c prod_{j != c} (1 - p_j), divided by its sum,
                        which is softmax(l)
    softmax             the mean over q of softmax of logit P_c, which is g_0 / (1 + .4 g_1)
    sum, calibrated     with the scale of l that leave-one-out marginals choose
    odds, calibrated
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import tensorflow as tf
from gpflow.base import TensorType
from scipy.special import softmax

from gpflow_bsvm import metrics
from gpflow_bsvm.compare import Fold, folds
from gpflow_bsvm.likelihoods import OneVsRestLevelHinge, location, location_spread
from gpflow_bsvm.likelihoods.base import Sites
from gpflow_bsvm.models import BSVM
from gpflow_bsvm.prediction import calibrate, predict_probabilities

from ._common import numbered
from .ablation import NUM_FOLDS, PENALTY, fitted

SETS = ("glass", "cleveland", "balance-scale", "yeast", "vowel")
SPREAD, LEAST, DRAWS = 0.4, 0.1, 1000


class Joint(OneVsRestLevelHinge):
    """With other probabilities of the same fit, if `form` says so."""

    form = "sum"

    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        if self.form == "sum":
            return super().probabilities(Fmu, Fvar)
        return tf.nn.softmax(self.log_odds(self.latents(Fmu), self.latents(Fvar)), axis=-1)


class OneSpread(Joint):
    """C locations, and the spread after them: L = C + 1."""

    def __init__(self, num_classes: int, penalty: float) -> None:
        super().__init__(num_classes, penalty, levels=location_spread(spread=SPREAD))
        self.latent_dim = num_classes + 1

    def by_target(self, F: TensorType) -> tf.Tensor:
        F = self.latents(F)
        locations, spread = F[..., :-1], F[..., -1:]
        return tf.stack([locations, spread + tf.zeros_like(locations)], axis=-1)

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """As `LevelHinges.sites`, where the spread has a part of each class."""
        seen, W = self._seen(Fmu, Fvar, Y), self._constants(Fmu)[1]
        w, r = self.bound.sites(seen)
        precision = _together(tf.einsum("...t,tq->...q", w, tf.square(W)))
        slope = _together(tf.einsum("...t,tq->...q", r - w * seen.Fmu, W))
        return Sites(precision, slope + precision * tf.convert_to_tensor(Fmu))


def _together(parts: tf.Tensor) -> tf.Tensor:
    """[..., C, 2] as [..., C + 1]."""
    spread = tf.reduce_sum(parts[..., 1], axis=-1, keepdims=True)
    return tf.concat([parts[..., 0], spread], axis=-1)


FITS = {
    "two each": lambda C: Joint(C, PENALTY, levels=location_spread(spread=SPREAD)),
    "one spread": lambda C: OneSpread(C, PENALTY),
    "no spread": lambda C: Joint(C, PENALTY, levels=location()),
}


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    rows = []
    for name in SETS:
        for fold in _folds(name):
            for fit, form, p in _forms(fold):
                scores = {s: getattr(metrics, s)(fold.y_test, p) for s in ("nll", "error")}
                rows.append({"data": name, "fit": fit, "form": form, **scores})
                print(fold.number, rows[-1], flush=True)
    keys = ["data", "fit", "form"]
    return pd.DataFrame(rows).groupby(keys, sort=False).mean().reset_index().to_dict("records")


def _folds(name: str) -> Iterator[Fold]:
    X, y = numbered(name)
    kept = np.bincount(y)[y] >= 10
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    for fold in folds(X, y, 10):
        if fold.number == NUM_FOLDS:
            return
        yield fold


def _forms(fold: Fold) -> Iterator[tuple[str, str, np.ndarray]]:
    for name, make in FITS.items():
        model = fitted(make(int(fold.y.max()) + 1), fold)
        yield name, "softmax", _softmax(model, fold.X_test)
        for form in ("sum", "odds"):
            model.likelihood.form = form
            model.likelihood.scale.assign(1.0)
            yield name, form, predict_probabilities(model, fold.X_test)
            calibrate(model, (fold.X, fold.y[:, None].astype(float)))
            yield name, f"{form}, calibrated", predict_probabilities(model, fold.X_test)


def _softmax(model: BSVM, X: np.ndarray) -> np.ndarray:
    Fmu, Fvar = model.predict_f(X)
    noise = np.random.default_rng(0).normal(size=(DRAWS, *Fmu.shape))
    total = 0.0
    for draw in noise:
        g = model.likelihood.by_target(Fmu + np.sqrt(Fvar) * draw).numpy()
        spread = 1 + SPREAD * g[..., 1] if g.shape[-1] > 1 else 1.0
        total += softmax(g[..., 0] / np.maximum(spread, LEAST), axis=-1)
    return total / DRAWS
