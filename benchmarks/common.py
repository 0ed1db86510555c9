"""What the measurements share: data, models, clocks, and rows on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf

import gpflow_bsvm as gb
from gpflow_bsvm.datasets import load

RESULTS = Path(__file__).parent / "results"


def write_rows(name: str, rows: list[dict]) -> None:
    RESULTS.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.8g")


def standardised(name: str, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """:return: shuffled X [N, D], mean 0 and variance 1, and labels [N, 1] in {0, 1}."""
    data = load(name)
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y = data.X[order], data.y[order]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return X, (y == np.unique(y)[1]).astype(float)[:, None]


def waveform(num_rows: int = 4500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """:return: X, Y and 100 inducing points, the setting of Wenzel et al. (2017), Fig. 1."""
    X, Y = standardised("waveform")
    X, Y = X[:num_rows], Y[:num_rows]
    return X, Y, gb.inducing_points.kmeans(X, 100)


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


def reset(model: gpflow.models.SVGP) -> None:
    """Back to the prior."""
    model.q_mu.assign(tf.zeros_like(model.q_mu))
    model.q_sqrt.assign(tf.eye(model.q_mu.shape[0], batch_shape=[1], dtype=model.q_mu.dtype))


def seconds(function: Callable, *arguments: object) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def first_within(elbo: list[float], best: float, tolerance: float = 1e-3) -> int:
    """:return: the first index from which on the ELBO is within `tolerance` of the best."""
    near = np.asarray(elbo) >= best - tolerance * abs(best)
    return int(np.argmax(near)) if near.any() else -1
