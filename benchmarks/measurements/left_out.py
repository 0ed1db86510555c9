"""Criteria against what they estimate: leave-one-out itself, and errors on rows never seen.

The first 120 shuffled, standardised rows of a set; the others are test rows. Kernel: squared
exponential of variance 1 plus a constant of 0.1, on a grid of lengthscales (in units of sqrt(D))
and C. A row of results is a place of the grid. Linear slack: the leave-one-out error and mean hinge
loss, `GACV`, `HingeSpan`, and `held`: which part of alpha_n K_nn, summed up, the rows on the margin
hold, so that GACV counts it in vain. Quadratic slack: the leave-one-out error, `Span`,
`SmoothedSpan`. Both Laplace evidences, the variational bound and the leave-one-out density of the
Bayesian machine (exact hinge) are beside them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import gpflow
import numpy as np

from gpflow_bsvm import model_selection as ms
from gpflow_bsvm.papers import gold2003

from ._common import standardised

SETS = ("heart", "sonar", "breast_cancer", "crabs", "pima", "banana-like", "twonorm", "ringnorm")
ROWS = 120
#: Most of them.
TEST_ROWS = 2000
SCALES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)

#: What is computed of a machine, by the name of its column.
OF_LINEAR = {
    "gacv": gold2003.GACV(),
    "hinge_span": gold2003.HingeSpan(),
    "laplace": gold2003.LaplaceEvidence(),
}
OF_QUADRATIC = {
    "span": gold2003.Span(),
    "smoothed_span": gold2003.SmoothedSpan(),
    "laplace_quadratic": gold2003.QuadraticLaplaceEvidence(),
}


class Split(NamedTuple):
    data: tuple[np.ndarray, np.ndarray]
    X_test: np.ndarray
    y_test: np.ndarray  # -1 or +1


def run(names: tuple[str, ...] = SETS) -> Iterator[dict]:
    warnings.simplefilter("ignore")  # all at the bound, in some places of the grid
    for name in names:
        start, split = time.process_time(), _split(name)
        for scale in SCALES:
            for penalty in PENALTIES:
                kernel = make_kernel(scale * split.data[0].shape[1] ** 0.5)
                found = _linear(kernel, split, penalty) | _quadratic(kernel, split, penalty)
                found |= _bayesian(kernel, split, penalty)
                yield {"data": name, "scale": scale, "penalty": penalty, **found}
        print(f"{name}: {time.process_time() - start:.0f} s", flush=True)


def make_kernel(lengthscale: float) -> gpflow.kernels.Kernel:
    smooth = gpflow.kernels.SquaredExponential(1.0, lengthscales=lengthscale)
    return smooth + gpflow.kernels.Constant(0.1)


def _split(name: str) -> Split:
    X, Y = standardised(name)
    return Split((X[:ROWS], Y[:ROWS]), X[ROWS:], 2 * Y[ROWS:, 0] - 1)


def _linear(kernel: gpflow.kernels.Kernel, split: Split, penalty: float) -> dict:
    mode = gold2003.svm_mode(kernel, split.data, penalty)
    margins, z = gold2003.left_out_margins(mode), mode.y * mode.latent
    drop = z - gold2003.HingeSpan().left_out_margins(mode)
    return {
        "loo": (margins <= 0).mean(),
        "loo_hinge": np.maximum(1 - margins, 0).mean(),
        "error": _error(mode, kernel, split),
        "held": 1 - drop.sum() / (mode.alpha * mode.gram.diagonal()).sum(),
        **{key: of.of_mode(mode) for key, of in OF_LINEAR.items()},
    }


def _quadratic(kernel: gpflow.kernels.Kernel, split: Split, penalty: float) -> dict:
    mode = gold2003.svm_mode(kernel, split.data, penalty, slack="quadratic")
    return {
        "loo_quadratic": (gold2003.left_out_margins(mode) <= 0).mean(),
        "error_quadratic": _error(mode, kernel, split),
        **{key: of.of_mode(mode) for key, of in OF_QUADRATIC.items()},
    }


def _bayesian(kernel: gpflow.kernels.Kernel, split: Split, penalty: float) -> dict:
    """Of one fit, as `VariationalBound` (with kappa) and `LeaveOneOutDensity` make one each."""
    model = gold2003.VariationalBound().fitted(kernel, split.data, penalty)
    f = model.predict_f(split.X_test[:TEST_ROWS])[0].numpy()[:, 0]
    return {
        "bound": float(model.elbo()) / ROWS,
        "loo_density": ms.leave_one_out_density(model),
        "error_bayesian": float((f * split.y_test[:TEST_ROWS] <= 0).mean()),
    }


def _error(mode: gold2003.Mode, kernel: gpflow.kernels.Kernel, split: Split) -> float:
    f = mode.predict(kernel, split.data[0], split.X_test[:TEST_ROWS])
    return float((f * split.y_test[:TEST_ROWS] <= 0).mean())
