"""Numbers: `BSVMRegressor()` beside SVR with a grid, Gaussian processes and boosting, 10 folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gpflow
import numpy as np
from sklearn import datasets

from gpflow_bsvm import inducing_points
from gpflow_bsvm.compare.baselines import KernelSettings
from gpflow_bsvm.compare.gp_baselines import make_baseline
from gpflow_bsvm.compare.protocol import folds
from gpflow_bsvm.compare.regression import evaluate, gaussian


def baseline(name: str) -> Callable[..., np.ndarray]:
    """:return: a model of `gpflow_bsvm.compare` that uses neither inducing points nor a kernel."""

    def fit(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> np.ndarray:
        model = make_baseline(name, 0)
        model.fit(X, y, X[:1], KernelSettings(1.0, learn=True), 0)
        return model.predict_numbers(X_test, y_test)

    return fit


def gaussian_process(likelihood: Callable[[], Any] | None = None) -> Callable[..., np.ndarray]:
    """:return: GPflow's exact `GPR`, or its `SVGP` of at most 100 points and a likelihood."""

    def fit(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> np.ndarray:
        model = _gaussian_process(X, y[:, None], likelihood)
        loss = gpflow.models.training_loss_closure(model, (X, y[:, None]))
        options = {"maxiter": 300}
        gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options=options)
        mean, variance = (part.numpy()[:, 0] for part in model.predict_y(X_test))
        log_p = model.predict_log_density((X_test, y_test[:, None])).numpy().reshape(-1)
        predicted = gaussian(mean, np.sqrt(variance), y_test)
        predicted[:, 1] = log_p
        return predicted

    return fit


def _gaussian_process(X: np.ndarray, Y: np.ndarray, likelihood: Any) -> gpflow.models.GPModel:
    D = X.shape[1]
    smooth = gpflow.kernels.SquaredExponential(1.0, np.full(D, np.sqrt(D)))
    kernel = smooth + gpflow.kernels.Constant(1.0)
    if likelihood is None:
        return gpflow.models.GPR((X, Y), kernel, noise_variance=0.1)
    Z = inducing_points.kmeans(X, min(100, len(np.unique(X, axis=0))))
    model = gpflow.models.SVGP(kernel, likelihood(), Z)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


METHODS = {
    "BSVMRegressor": baseline("BSVMRegressor"),
    "SVR, grid": baseline("svr"),
    "boosting, grid": baseline("boosting"),
    "GPR": gaussian_process(),
    "SVGP, Gaussian": gaussian_process(lambda: gpflow.likelihoods.Gaussian(0.1)),
    "SVGP, Student t": gaussian_process(lambda: gpflow.likelihoods.StudentT(0.3)),
}


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """:return: names, X and y; measured ones, then made ones."""
    yield "diabetes", *datasets.load_diabetes(return_X_y=True)
    for name, load, column in [
        ("iris, petal width", datasets.load_iris, 3),
        ("wine, alcohol", datasets.load_wine, 0),
        ("wine, proline", datasets.load_wine, 12),
        ("breast cancer, worst concavity", datasets.load_breast_cancer, 26),
        ("breast cancer, worst texture", datasets.load_breast_cancer, 21),
    ]:
        X = load().data
        yield name, np.delete(X, column, axis=1), X[:, column]
    rng = np.random.default_rng(0)
    for number, make in enumerate(
        (datasets.make_friedman1, datasets.make_friedman2, datasets.make_friedman3), 1
    ):
        X, y = make(300, noise=0.0, random_state=number)
        yield f"Friedman {number}", X, y + 0.2 * y.std() * rng.normal(size=300)
        if number > 2:
            continue
        noise = 0.1 * rng.normal(size=300) + 4 * (rng.random(300) < 0.1) * rng.normal(size=300)
        yield f"Friedman {number}, outliers", X, y + y.std() * noise
        yield f"Friedman {number}, heavy tails", X, y + 0.2 * y.std() * rng.standard_t(2, 300)
    X = rng.uniform(-3, 3, (300, 1))
    wave = np.sinc(X[:, 0])
    yield "sinc, uneven noise", X, wave + 0.15 * np.abs(X[:, 0]) / 3 * rng.normal(size=300)
    yield "sinc, uniform noise", X, wave + rng.uniform(-0.3, 0.3, 300)
    X = rng.normal(size=(300, 10))
    yield "linear, heavy tails", X, X[:, 0] - 2 * X[:, 1] + rng.standard_t(1.5, 300)
    step = np.sign(X[:, 0]) + X[:, 1] * (X[:, 2] > 0)
    yield "steps, Laplace noise", X, step + 0.3 * rng.laplace(size=300)


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name, X, y in sets():
        for part in folds(X, y, num_inducing=1):
            for method, fit in METHODS.items():
                start = time.perf_counter()
                found = evaluate(part.y_test, fit(part.X, part.y, part.X_test, part.y_test))
                found |= {"rmse": found.pop("mse") ** 0.5, "seconds": time.perf_counter() - start}
                yield {"data": name, "fold": part.number, "method": method, **found}
