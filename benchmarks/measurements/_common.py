"""What the measurements share: data, models, clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import gpflow
import numpy as np
import tensorflow as tf

import gpflow_bsvm as gb
from gpflow_bsvm import metrics
from gpflow_bsvm.datasets import load


def standardised(name: str, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """:return: shuffled X [N, D], mean 0 and variance 1, and labels [N, 1] in {0, 1}."""
    X, y = numbered(name)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return X, (y == 1).astype(float)[:, None]


def numbered(name: str) -> tuple[np.ndarray, np.ndarray]:
    """:return: X [N, D], and labels 0..C-1."""
    data = load(name)
    return data.X, np.unique(data.y, return_inverse=True)[1]


def waveform(num_rows: int = 4500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """:return: X, Y and 100 inducing points, the setting of Wenzel et al. (2017), Fig. 1."""
    X, Y = (part[:num_rows] for part in standardised("waveform"))
    return X, Y, gb.inducing_points.kmeans(X, 100)


def usual_kernel(num_features: int) -> gpflow.kernels.Kernel:
    """Variance 4, lengthscale sqrt(D)."""
    return gpflow.kernels.SquaredExponential(4.0, lengthscales=np.sqrt(num_features))


def paper_kernel(theta: float = 5.0, variance: float = 1.0) -> gpflow.kernels.Kernel:
    """exp(-|x - x'|^2 / theta^2): the paper's lengthscale is sqrt(2) times GPflow's."""
    return gpflow.kernels.SquaredExponential(variance, lengthscales=theta / np.sqrt(2))


def make(cls: type, likelihood: object, Z: np.ndarray, num_data: int, **kernel: float):
    return cls(paper_kernel(**kernel), likelihood, Z.copy(), num_data=num_data)


def natgrad_step(model: gpflow.models.SVGP, gamma: float) -> Callable:
    """:return: a compiled natural-gradient step of GPflow's own, a function of (X, Y)."""
    optimizer = gpflow.optimizers.NaturalGradient(gamma)

    @tf.function(reduce_retracing=True)
    def step(X: tf.Tensor, Y: tf.Tensor) -> None:
        optimizer.minimize(lambda: model.training_loss((X, Y)), [(model.q_mu, model.q_sqrt)])

    return step


def batches(data: tuple, index: np.ndarray) -> list[tuple]:
    return [tuple(tf.constant(part[i]) for part in data) for i in index]


def reset(model: gpflow.models.SVGP) -> None:
    """Back to the prior."""
    model.q_mu.assign(tf.zeros_like(model.q_mu))
    model.q_sqrt.assign(tf.eye(model.q_mu.shape[0], batch_shape=[1], dtype=model.q_mu.dtype))


def scores(model: gpflow.models.SVGP, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """:return: error and NLL of any number of classes; y: [N] in 0..C-1."""
    P = gb.prediction.predict_probabilities(model, X)
    P = np.hstack([1 - P, P]) if P.shape[1] == 1 else P
    return {"error": metrics.error(y, P), "nll": metrics.nll(y, P)}


def seconds(function: Callable, *arguments: object) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def first_within(elbo: list[float], best: float, tolerance: float = 1e-3) -> int:
    """:return: the first index from which on the ELBO is within `tolerance` of the best."""
    near = np.asarray(elbo) >= best - tolerance * abs(best)
    return int(np.argmax(near)) if near.any() else -1


def repeated(timers: dict[str, Callable[[], float]], repeats: int) -> Iterator[dict]:
    """Yield microseconds of every timer in turn, so often, after a first time that traces."""
    for timer in timers.values():
        timer()
    for repeat in range(repeats):
        for name, timer in timers.items():
            yield {"method": name, "repeat": repeat, "step_us": 1e6 * timer()}


def svi_timer(make_model: Callable, data: tuple, svi: gb.inference.SVI) -> Callable[[], float]:
    """Seconds a step of a whole fit: start-up, projection and records included."""

    def timer() -> float:
        model = make_model()
        return seconds(lambda: svi.run(model, data, progress=False)) / svi.max_steps

    return timer


def natgrad_timer(
    model: gpflow.models.SVGP, data: tuple, index: np.ndarray, gamma: float
) -> Callable[[], float]:
    """A compiled step of GPflow's, called once a minibatch. The batches are made beforehand."""
    step, made = natgrad_step(model, gamma), batches(data, index)
    return lambda: seconds(lambda: [step(*batch) for batch in made]) / len(made)
