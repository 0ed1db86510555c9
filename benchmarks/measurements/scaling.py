"""Seconds of a sweep of CAVI against rows, inducing points and columns, features made anew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpflow_bsvm.engine import projected_data

from ._common import seconds
from .passes import a_pass, standardised_rows, usual_model

ROWS = (10**4, 10**5, 10**6, 5 * 10**6, 2 * 10**7)
POINTS = (32, 64, 128, 256, 512, 1024)
COLUMNS = (2, 8, 32, 128, 512)
FEW, REPEATS = 2**16, 2
BASE = 10**6


def run() -> Iterator[dict]:
    projected_data.CACHE_BYTES = 0
    X, Y = standardised_rows(BASE)
    Z = X[:64].copy()
    yield from _sizes(X, Y, Z)
    for number in POINTS:
        yield from _sweeps("points", X[:FEW], Y[:FEW], X[-number:].copy())
    random = np.random.default_rng(0)
    for number in COLUMNS:
        wide = random.normal(size=(FEW, number))
        yield from _sweeps("columns", wide, Y[:FEW], wide[:64].copy())


def _sizes(X: np.ndarray, Y: np.ndarray, Z: np.ndarray) -> Iterator[dict]:
    """Beyond a million rows, those again: in memory they are as any others."""
    for number in ROWS:
        times = -(-number // len(X))
        more = (X, Y) if times == 1 else (np.tile(X, (times, 1)), np.tile(Y, (times, 1)))
        yield from _sweeps("rows", more[0][:number], more[1][:number], Z)


def _sweeps(along: str, X: np.ndarray, Y: np.ndarray, Z: np.ndarray) -> Iterator[dict]:
    model = usual_model(Z)
    size = {"along": along, "rows": len(X), "points": len(Z), "columns": X.shape[1]}
    sweep = a_pass(model, X, Y)
    for repeat in range(REPEATS):
        row = {**size, "repeat": repeat, "seconds": seconds(sweep)}
        print(row, flush=True)
        yield row
