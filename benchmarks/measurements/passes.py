"""A sweep of CAVI over five million rows, features beyond the cache, in rows a second.

Beside it in turn, the matrix products of such a pass and nothing else (X Z^T, Phi, Phi R^T, Phi^T
Phi, in single precision, in one graph, from X that is there in single precision already), and
steps of GPflow's natural gradients (SVGP, Bernoulli), compiled, of minibatches of several sizes
that are there beforehand, in single and in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import gpflow
import numpy as np
import tensorflow as tf
from generated import SusyLike

import gpflow_bsvm as gb
from gpflow_bsvm.data.passes import sum_over
from gpflow_bsvm.engine.contracts import open_all
from gpflow_bsvm.engine.natural import compiled_solve
from gpflow_bsvm.engine.projected_data import ProjectedData
from gpflow_bsvm.inference.run import Reports

from ._common import batches, natgrad_step, reset, seconds

NUM_ROWS, NUM_POINTS, REPEATS = 5_000_000, 64, 7
PART, BLOCK = 2**14, 2**17
BATCHES = (1000, 5000, 20_000)


def run(num_rows: int = NUM_ROWS) -> Iterator[dict]:
    X, Y = standardised_rows(num_rows)
    Z = X[:NUM_POINTS].copy()
    timers = {"matrix products": rate_of_products(X, Z)}
    for dtype in (np.float32, np.float64):
        for size in BATCHES:
            name = f"GPflow {np.dtype(dtype).name}, batch {size}"
            timers[name] = _natural_gradients(X, Y, Z, size, dtype)
    for timer in timers.values():  # traces
        timer()
    timers = {"CAVI": _passes(usual_model(Z), X, Y), **timers}
    for repeat in range(REPEATS):
        for name, timer in timers.items():
            row = {"method": name, "rows": num_rows, "repeat": repeat, "rows_per_s": timer()}
            print(row, flush=True)
            yield row


def _passes(model: gb.models.BSVM, X: np.ndarray, Y: np.ndarray) -> Callable[[], float]:
    sweep = a_pass(model, X, Y)
    return lambda: len(X) / seconds(sweep)


def a_pass(model: gb.models.BSVM, X: np.ndarray, Y: np.ndarray) -> Callable[[], object]:
    """:return: one pass of `CAVI`, in single precision, at the q of a first sweep."""
    source = open_all(model, (X, Y))
    gb.inference.CAVI(max_steps=1).run_on(model, source, gb.inference.History(), Reports())
    data, q = ProjectedData(model, source), compiled_solve(model.natural())
    data.dtype = tf.as_dtype(np.float32)
    rows, statistics = data.summed(model.likelihood)
    return lambda: sum_over(rows, partial(statistics, q)).expectation.numpy()


def standardised_rows(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = SusyLike(num_rows).arrays()
    first = X[:100_000]
    X -= first.mean(axis=0)
    X /= first.std(axis=0)
    return X, Y


def usual_model(Z: np.ndarray, bound: str = "exact") -> gb.models.BSVM:
    D = Z.shape[1]
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=np.full(D, np.sqrt(D)))
    return gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound=bound), Z)


def rate_of_products(
    X: np.ndarray, Z: np.ndarray, seconds: Callable[..., float] = seconds
) -> Callable[[], float]:
    """:param seconds: the clock."""
    parts = [tf.constant(X[i : i + BLOCK], tf.float32) for i in range(0, min(len(X), 10**6), BLOCK)]
    Z32 = tf.constant(Z, tf.float32)
    lower = tf.linalg.band_part(tf.random.stateless_normal([len(Z), len(Z)], [0, 1]), -1, 0)

    @tf.function(reduce_retracing=True)
    def products(X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        def add(start: tf.Tensor, total: tuple) -> tuple:
            K = tf.matmul(X[start : start + PART], Z32, transpose_b=True)
            phi = tf.matmul(K, lower, transpose_b=True)
            W = tf.matmul(phi, lower, transpose_b=True)
            P = tf.matmul(phi, phi, transpose_a=True)
            return start + PART, (total[0] + W[0], total[1] + P)

        nothing = tf.zeros_like(Z32[:, 0]), tf.zeros_like(lower)
        more = lambda start, _: start < tf.shape(X)[0]  # noqa: E731
        return tf.while_loop(more, add, (0, nothing), parallel_iterations=4)[1]

    number = sum(len(part) for part in parts)
    return lambda: number / seconds(lambda: [products(part)[1].numpy() for part in parts])


def _natural_gradients(X, Y, Z, size: int, dtype: type) -> Callable[[], float]:
    config = gpflow.config.Config(float=dtype)
    num_steps = max(1, 20_000 // size)
    index = np.random.default_rng(0).integers(0, len(X), (num_steps, size))
    with gpflow.config.as_context(config):
        D = Z.shape[1]
        kernel = gpflow.kernels.SquaredExponential(
            dtype(4.0), lengthscales=np.full(D, np.sqrt(D), dtype)
        )
        model = gpflow.models.SVGP(
            kernel, gpflow.likelihoods.Bernoulli(), Z.astype(dtype), num_data=len(X)
        )
        step = natgrad_step(model, 1e-5)  # as fast as any; 0.01 fails in single precision
        made = batches((X.astype(dtype, copy=False), Y.astype(dtype, copy=False)), index)

    def timer() -> float:
        with gpflow.config.as_context(config):
            reset(model)
            return index.size / seconds(lambda: [step(*batch) for batch in made])

    return timer
