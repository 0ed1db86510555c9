"""Held-out error against training time, while a model is fitted."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import tensorflow as tf

import gpflow_bsvm as gb

from ._common import batches

Trace = list[tuple[float, float]]  # training seconds, held-out error


def our_trace(model, algorithm, data: tuple, error: Callable[[], float]) -> Trace:
    """The library's own clock, which stands still while errors are measured."""
    start, trace = (model.q_mu.numpy(), model.q_sqrt.numpy()), []
    few = 40 if isinstance(algorithm, gb.inference.SVI) else 2
    for _ in range(2):  # the first traces
        dataclasses.replace(algorithm, max_steps=few).run(model, data, progress=False)
    model.q_mu.assign(start[0])
    model.q_sqrt.assign(start[1])

    def callback(_: int, history: gb.inference.History) -> None:
        trace.append((history.seconds[-1], error()))

    algorithm.run(model, data, progress=False, callback=callback)
    return trace


def their_trace(
    step: Callable,
    data: tuple,
    error: Callable[[], float],
    index: np.ndarray,
    *,
    every: int,
    failed: float,
) -> Trace:
    """
    :param step: a compiled function of X and Y, and `error` uses a compiled prediction.
    :param index: [steps, batch], numbers of rows.
    :param every: so many steps before the error is measured.
    :param failed: what the error is from a failed step on, which ends the trace.
    """
    error()
    step(*batches(data, index[:1])[0])  # traces, and is one step for free
    trace, total = [], 0.0
    for first, last in pairwise(range(0, len(index) + 1, every)):
        block = batches(data, index[first:last])
        start = time.perf_counter()
        try:
            for rows in block:
                step(*rows)
        except tf.errors.InvalidArgumentError:  # not a positive definite q
            return [*trace, (total, failed)]
        total += time.perf_counter() - start
        trace.append((total, error()))
    return trace
