"""Six large sets at hand: accuracy, NLL and seconds of the classifier and of what is usual there.

A tenth of the rows is held out, at random. `bsvm` is `BSVMClassifier()` as it is; `svgp` GPflow's
SVGP with minibatches of 1000, 100 inducing points, Adam for the kernel and natural gradients for q
in turn, five epochs but 3000 steps at most (one latent function for each class, Softmax), begun
anew with smaller steps of q where they end in NaN;
`nystroem` 300 components with averaged `SGDClassifier`, gamma and alpha from three folds of 5000
rows; `boosting` scikit-learn's `HistGradientBoostingClassifier` with early stopping. All see
standardised columns. covtype is the balanced part of 15 120 rows that is at hand. Seconds are those
of a processor, of one thread each: what else the machine does does not count.

Fits are kept as they come in results/large_sets, see `store.Kept`.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from store import Kept
from threadpoolctl import threadpool_limits

import gpflow_bsvm as gb
from gpflow_bsvm import BSVMClassifier, metrics

from ._common import numbered

SETS = ("electricity", "adult", "a9a", "covtype_15k", "skin_nonskin", "poker")
#: A random part of larger sets (of poker, which has 829 201) is taken.
MOST_ROWS = 250_000
NUM_POINTS, BATCH, EPOCHS, MOST_STEPS = 100, 1000, 5, 3000
#: Of natural gradients.
STEP_SIZES = (0.03, 0.01, 0.003, 0.001)
GRID = {
    "nystroem__gamma": (0.01, 0.03, 0.1, 0.3, 1.0),
    "sgdclassifier__alpha": (1e-6, 1e-5, 1e-4),
}


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    kept = Kept("large_sets")
    with threadpool_limits(1):
        for name, method in itertools.product(SETS, FITS):
            key = {"data": name, "method": method}
            kept.complete(name, key, lambda n=name, m=method: [_scores(n, m)])
    place = {name: number for number, name in enumerate(SETS)}
    return sorted(kept.rows("data"), key=lambda row: place[row["data"]])


def _scores(name: str, method: str) -> dict:
    X, y = numbered(name)
    some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS] if len(y) > MOST_ROWS else ...
    X, X_test, y, y_test = train_test_split(X[some], y[some], test_size=0.1, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    known = np.isin(y_test, y)
    start = time.process_time()
    predict = FITS[method](X, y)
    seconds = time.process_time() - start
    P = predict(X_test[known])
    scores = {name: getattr(metrics, name)(y_test[known], P) for name in ("error", "nll")}
    about = {"n": len(y), "d": X.shape[1], "classes": P.shape[1]}
    return {**about, **scores, "seconds": seconds}


def _bsvm(X: np.ndarray, y: np.ndarray) -> Callable:
    return BSVMClassifier(random_state=0).fit(X, y).predict_proba


def _svgp(X: np.ndarray, y: np.ndarray) -> Callable:
    for size in STEP_SIZES:
        try:
            return _svgp_of(X, y, size)
        except tf.errors.InvalidArgumentError:
            print(f"svgp: NaN at step size {size}", flush=True)
    raise RuntimeError("NaN at all step sizes")


def _svgp_of(X: np.ndarray, y: np.ndarray, size: float) -> Callable:
    classes, D = int(y.max()) + 1, X.shape[1]
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=np.full(D, D**0.5))
    binary = classes == 2
    likelihood = gpflow.likelihoods.Bernoulli() if binary else gpflow.likelihoods.Softmax(classes)
    model = gpflow.models.SVGP(
        kernel,
        likelihood,
        gb.inducing_points.kmeans(X, NUM_POINTS),
        num_latent_gps=1 if binary else classes,
        num_data=len(X),
    )
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    rows = tf.data.Dataset.from_tensor_slices((X, y[:, None].astype(float if binary else int)))
    rows = iter(rows.shuffle(len(X), seed=0).repeat().batch(BATCH).prefetch(2))
    loss = model.training_loss_closure(rows, compile=False)
    natural, adam = gpflow.optimizers.NaturalGradient(size), tf_keras.optimizers.Adam(0.01)

    @tf.function
    def steps(number: tf.Tensor) -> None:
        for _ in tf.range(number):
            natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
            adam.minimize(loss, model.trainable_variables)

    steps(tf.constant(min(MOST_STEPS, EPOCHS * len(X) // BATCH)))

    def predict(X: np.ndarray) -> np.ndarray:
        parts = [model.predict_y(X[i : i + 5000])[0].numpy() for i in range(0, len(X), 5000)]
        p = np.concatenate(parts)
        return np.hstack([1 - p, p]) if binary else p / p.sum(axis=1, keepdims=True)

    return predict


def _nystroem(X: np.ndarray, y: np.ndarray) -> Callable:
    some = np.random.default_rng(0).permutation(len(X))[:5000]
    model = make_pipeline(
        Nystroem(n_components=300, random_state=0),
        SGDClassifier(loss="log_loss", average=True, random_state=0),
    )
    best = GridSearchCV(model, GRID, scoring="neg_log_loss", cv=3).fit(X[some], y[some])
    return model.set_params(**best.best_params_).fit(X, y).predict_proba


def _boosting(X: np.ndarray, y: np.ndarray) -> Callable:
    """Its own split for early stopping refuses a class of one row: then a random tenth serves."""
    model = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
    if np.bincount(y).min() > 1:
        return model.fit(X, y).predict_proba
    seen = np.random.default_rng(0).random(len(y)) > 0.1
    return model.fit(X[seen], y[seen], X_val=X[~seen], y_val=y[~seen]).predict_proba


FITS = {"bsvm": _bsvm, "svgp": _svgp, "nystroem": _nystroem, "boosting": _boosting}
