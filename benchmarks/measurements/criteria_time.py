"""What a criterion costs against n: processor time of the machine, and of a criterion of it.

Rows of waveform, standardised; kernel of variance 1 and lengthscale sqrt(D) plus a constant of 0.1,
C = 1. A machine (`svm_mode`) is timed with its Gram matrix; "X, given the machine" is what
criterion X adds to it, so that any number of criteria of one slack share a machine. The bound is a
fit of a `BatchBSVM` by `CAVI` and its bound. The least of three times; leave-one-out once, up to n
= 400.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import gpflow

from gpflow_bsvm.papers import gold2003

from ._common import standardised

SIZES = (50, 100, 200, 400, 800, 1600)
LARGEST_LEFT_OUT = 200
LARGEST_BOUND = 400
CRITERIA = {
    "linear": (gold2003.GACV(), gold2003.HingeSpan(), gold2003.LaplaceEvidence()),
    "quadratic": (gold2003.SmoothedSpan(), gold2003.QuadraticLaplaceEvidence()),
}


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    X, Y = standardised("waveform")
    for n in SIZES:
        data, D = (X[:n], Y[:n]), X.shape[1]
        kernel = gpflow.kernels.SquaredExponential(lengthscales=D**0.5)
        for name, support, seconds in _all(kernel + gpflow.kernels.Constant(0.1), data):
            row = {"n": n, "criterion": name, "support": support, "seconds": seconds}
            print(row, flush=True)
            yield row


def _all(kernel: gpflow.kernels.Kernel, data: tuple) -> Iterator[tuple[str, int, float]]:
    n = len(data[0])
    for slack, criteria in CRITERIA.items():
        times = 3 if n < 800 else 1
        mode, seconds = _least(partial(gold2003.svm_mode, kernel, data, 1.0, slack=slack), times)
        support = len(mode.support)
        yield f"machine, {slack} slack", support, seconds
        for criterion in criteria:
            name = f"{type(criterion).__name__}, given the machine"
            yield name, support, _least(partial(criterion.of_mode, mode), times)[1]
        if n <= LARGEST_LEFT_OUT:
            left_out = _least(partial(gold2003.left_out_margins, mode), repeats=1)[1]
            yield f"leave-one-out, {slack} slack, given the machine", support, left_out
    if n <= LARGEST_BOUND:
        bound = partial(gold2003.VariationalBound(), kernel, data, 1.0)
        yield "VariationalBound", n, _least(bound, repeats=2)[1]


def _least(function: Callable, repeats: int) -> tuple:
    """:return: what the function gives, and its least time, the first time not counted."""
    found, times = function() if repeats > 1 else None, []
    for _ in range(repeats):
        start = time.process_time()
        found = function()
        times.append(time.process_time() - start)
    return found, min(times)
