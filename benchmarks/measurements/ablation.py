"""What each part of the levels of probability is worth: held-out NLL without it.

Levels with penalty 2, 100 inducing points, the kernel learned by `VEM` on at most 2000 rows, the
first three folds of `quality`; a variant differs from "levels" in what its name says:

    location            Q = 1, no spread
    smooth              Q = 3 eigenfunctions of a covariance over logit t
    independent         Q = T = 5, calibrated
    3, 5, 9, 33 levels  in the place of 17
    no interpolation    P = sum_k P(f_k > 0) times the cell of t_k, the same fit
    hinge's kernel      learned under `Hinge(2)`
    penalty 8           in the place of 2
    classifier          `BSVMClassifier()`, which chooses penalty and M
    classifier, M = 100 the same, M fixed
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import gpflow
import numpy as np
import pandas as pd
from gpflow.likelihoods import Likelihood
from gpflow.utilities import multiple_assign, parameter_dict
from scipy.special import expit
from scipy.stats import norm

import gpflow_bsvm as gb
from gpflow_bsvm import metrics
from gpflow_bsvm.compare import Fold, folds
from gpflow_bsvm.likelihoods import (
    Hinge,
    LevelHinge,
    Levels,
    location_spread,
)
from gpflow_bsvm.prediction import calibrate, predict_probabilities
from gpflow_bsvm.priors import ard_kernel

from ._common import numbered

SETS = ("heart", "breast_cancer", "diabetis", "flare", "banana", "splice", "sonar")
NUM_FOLDS, LEARN_ROWS, PENALTY = 3, 2000, 2.0


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    rows = [
        {"data": name, "fold": fold.number, "variant": variant, "nll": nll, "error": error}
        for name in SETS
        for fold in _folds(name)
        for variant, nll, error in _variants(fold)
    ]
    keys = ["data", "variant"]
    means = pd.DataFrame(rows).groupby(keys, sort=False)[["nll", "error"]].mean()
    return means.reset_index().to_dict("records")


def _folds(name: str) -> Iterator[Fold]:
    for fold in folds(*numbered(name), 10):
        if fold.number == NUM_FOLDS:
            return
        print(name, fold.number, flush=True)
        yield fold


def _variants(fold: Fold) -> Iterator[tuple[str, float, float]]:
    def seen(name: str, p: np.ndarray) -> tuple[str, float, float]:
        P = np.stack([1 - p, p], axis=1)
        return name, metrics.nll(fold.y_test, P), metrics.error(fold.y_test, P)

    usual = fitted(LevelHinge(PENALTY), fold)
    yield seen("levels", _p(usual, fold))
    yield seen("no interpolation", _steps(usual, fold))
    for name, levels in STRUCTURES.items():
        model = fitted(LevelHinge(PENALTY, levels=levels()), fold)
        if name == "independent":
            calibrate(model, (fold.X, _column(fold)))
        yield seen(name, _p(model, fold))
    yield seen("hinge's kernel", _p(fitted(LevelHinge(PENALTY), fold, Hinge(PENALTY)), fold))
    yield seen("penalty 8", _p(fitted(LevelHinge(8.0), fold), fold))
    for name, M in {"classifier": "auto", "classifier, M = 100": 100}.items():
        chosen = gb.BSVMClassifier(num_inducing=M, random_state=fold.number).fit(fold.X, fold.y)
        yield seen(name, chosen.predict_proba(fold.X_test)[:, 1])


FIVE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
#: "smooth", the level as one more input, has rows and no more code.
STRUCTURES: dict[str, Callable[[], Levels]] = {
    "location": lambda: location_spread(spread=0.0),
    "independent": lambda: Levels(FIVE, np.eye(5), np.zeros(5)),
    **{f"{n} levels": lambda n=n: location_spread(n) for n in (3, 5, 9, 33)},
}


def fitted(likelihood: Likelihood, fold: Fold, learner: Likelihood | None = None) -> gb.models.BSVM:
    model = _model(likelihood, fold)
    first = model if learner is None else _model(learner, fold)
    part = np.random.default_rng(fold.number).permutation(len(fold.X))[:LEARN_ROWS]
    data = fold.X, _column(fold)
    gb.inference.VEM().run(first, tuple(column[part] for column in data), progress=False)
    multiple_assign(model.kernel, parameter_dict(first.kernel))
    gb.fit(model, data, progress=False)
    return model


def _model(likelihood: Likelihood, fold: Fold) -> gb.models.BSVM:
    kernel = ard_kernel(fold.X.shape[1], penalty=float(likelihood.penalty.numpy()))
    number = likelihood.latent_dim or 1
    model = gb.models.BSVM(kernel, likelihood, fold.Z.copy(), num_latent_gps=number)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def _column(fold: Fold) -> np.ndarray:
    return fold.y[:, None].astype(float)


def _p(model: gb.models.BSVM, fold: Fold) -> np.ndarray:
    return predict_probabilities(model, fold.X_test)[:, 0]


def _steps(model: gb.models.BSVM, fold: Fold) -> np.ndarray:
    """The integral over t as a sum over cells around each level."""
    levels = model.likelihood.levels
    mean, variance = (np.asarray(part) for part in model.predict_f(fold.X_test))
    m, v = levels.b + mean @ levels.W.T, variance @ np.square(levels.W).T
    t = np.asarray(levels.t)
    logits = np.log(t / (1 - t))
    ends = np.concatenate([[0.0], expit((logits[1:] + logits[:-1]) / 2), [1.0]])
    return np.clip(norm.cdf(m / np.sqrt(v)) @ np.diff(ends), 1e-12, 1 - 1e-12)
