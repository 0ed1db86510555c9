"""What q gives away: its variances against those of Gibbs and HMC draws, small sets.

`BatchBSVM` on 150 rows of each set, squared exponential of variance 4 and lengthscale sqrt(D),
penalty 2; f at 100 other rows. Ratios of standard deviations are geometric means over these rows,
their differences of means are in deviations of Gibbs; the largest R-hat and the smallest effective
sample size (of 4 x 1000 draws) by ArviZ; NLL on the rows, links not calibrated.
"""

from __future__ import annotations

from collections.abc import Iterator

import arviz
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, HMC, Gibbs

from ._common import standardised, usual_kernel

SETS = ("heart", "sonar", "banana", "german", "breast_cancer")
ROWS, TEST_ROWS = 150, 100


def run() -> Iterator[dict]:
    for name in SETS:
        yield from _set(name)


def _set(name: str) -> Iterator[dict]:
    X, Y = standardised(name)
    (X, X_test), (Y, Y_test) = ((part[:ROWS], part[ROWS:][:TEST_ROWS]) for part in (X, Y))
    found = {}
    for bound in ("exact", "augmented"):
        model = gb.models.BatchBSVM(
            (X, Y), usual_kernel(X.shape[1]), gb.likelihoods.Hinge(2.0, bound=bound)
        )
        CAVI(tol=1e-9).run(model, progress=False)
        found[f"q, {bound}"] = (*model.predict_f(X_test), model.predict_y(X_test)[0], None)
    for sampler in (Gibbs(), HMC()):
        draws = sampler.run(model)
        mean, variance = draws.predict_f(X_test)
        found[type(sampler).__name__] = mean, variance, draws.predict_y(X_test)[0], draws
    exact = [np.asarray(part) for part in found["Gibbs"][:2]]
    for method, (mean, variance, p, draws) in found.items():
        diagnosis = {}
        if draws is not None:
            table = arviz.summary(draws.to_arviz(), kind="diagnostics", round_to=6)
            diagnosis = {"r_hat": table["r_hat"].max(), "ess": table["ess_bulk"].min()}
        p = np.where(Y_test == 1, p, 1 - p)
        yield {
            "data": name,
            "method": method,
            "deviation_ratio": np.exp(0.5 * np.mean(np.log(np.asarray(variance) / exact[1]))),
            "mean_difference": np.mean(abs(np.asarray(mean) - exact[0]) / np.sqrt(exact[1])),
            "nll": -np.mean(np.log(p)),
            **diagnosis,
        }
