"""Tables 3 and 4 of Gold & Sollich (2003): test errors where searches from random starts end.

Kernel (8): k0 exp(-sum (x - x')^2 / (2 l_a^2)) + koff. Starts are the paper's of section 4.3:
uniform C in [.4, .8], log l_a in [-1, 2], log k0 in [-1, 1], log koff in [-2, -1]; each method gets
the same. Searches are `optimise(method="L-BFGS-B")`, 25 gradients; where C counts, C is learned. On
crabs the paper's own way is there too: "..., walk" is `method="random-walk"` of 200 evaluations,
from its one start. "evidence" is its gradient ascent on `SampledEvidence` (16 chains of 200 draws,
where the paper has 40 000 in a row), on the paper's sets. `VEM` is a `BatchBSVM` with `Hinge()`,
whose penalty is 2, at most 20 rounds (the posterior mean classifies); "plug-in" an `SVC` with its
kernel; "..., prior" the same with the package's default priors of k0 and l_a, "..., C=1" with
penalty 1. Start -1 is one more, where the kernel makes sense: l_a = sqrt(D), k0 = 1, koff = .1,
C = 1. `BSVMClassifier()` is as it is, ten seeds ("no offset": three, when its kernel had none);
"SVC, grid" has C and gamma by 5 folds, shuffled ten times.

    python run.py gold_sollich               fits that are missing, and all rows
    LIMIT=600 python run.py gold_sollich     no fit is begun after ten minutes of processor time

Rows are kept in results/gold_sollich/NAME.csv as they come. Seconds are processor time, with what
it took TensorFlow to trace.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import gpflow
import numpy as np
from gpflow.utilities import multiple_assign
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm import model_selection as ms
from gpflow_bsvm.papers import gold2003
from gpflow_bsvm.papers.gold2003 import StaticHMC

from ._gold_sollich_data import SIZES, Split, split
from ._kept import Kept

STARTS = 10
#: One more, with a number of its own.
SENSIBLE = -1
MOST_EVALUATIONS = 25
#: Most rounds of `VEM`.
MOST_ROUNDS = 20
#: 16 chains of this length.
SAMPLER = StaticHMC(num_draws=200, burn_in=150, leapfrog_steps=15)
#: On a set for which it takes minutes: the paper's walk, from its one start.
WALKED, WALK_EVALUATIONS = "crabs", 200
NOT_IN_THE_PAPER = "waveform"

CRITERIA: dict[str, gold2003.ModeCriterion] = {
    "laplace": gold2003.LaplaceEvidence(),
    "laplace_quadratic": gold2003.QuadraticLaplaceEvidence(),
    "gacv": gold2003.GACV(),
    "hinge_span": gold2003.HingeSpan(),
    "smoothed_span": gold2003.SmoothedSpan(),
}
#: Section 4.3.
RANGES = {
    ".kernels[0].lengthscales": (np.exp(-1), np.exp(2)),
    ".kernels[0].variance": (np.exp(-1), np.exp(1)),
    ".kernels[1].variance": (np.exp(-2), np.exp(-1)),
    "penalty": (0.4, 0.8),
}
GRID_C, GRID_GAMMA = 10.0 ** np.arange(-1, 4), 10.0 ** np.arange(-3, 1.5, 0.5)  # times 1 / D


def run() -> list[dict]:
    warnings.simplefilter("ignore")
    kept, data = Kept("gold_sollich"), {name: split(name) for name in SIZES}
    for name, method, start, fit in _wanted():
        key = {"data": name, "method": method, "start": start}
        kept.complete(name, key, partial(fit, data[name], start))
    return kept.rows("data", "method", "start")


def _wanted() -> Iterator[tuple[str, str, int, Callable]]:
    """Yield set, method, number of the start and the fit."""
    searched = {name: _searched(criterion) for name, criterion in CRITERIA.items()}
    walked = {f"{name}, walk": _walked(criterion) for name, criterion in CRITERIA.items()}
    seeds = {"SVC, grid": _grid, "BSVMClassifier": _classifier}
    bound = {
        "VEM": _vem,
        "VEM, prior": partial(_vem, prior=True),
        "VEM, C=1": partial(_vem, penalty=1.0),
        "VEM, C=1, prior": partial(_vem, penalty=1.0, prior=True),
    }
    papers = [name for name in SIZES if name != NOT_IN_THE_PAPER]
    for names, fits, starts in (
        (SIZES, seeds, range(STARTS)),
        (SIZES, bound | searched, (SENSIBLE, *range(STARTS))),
        ([WALKED], walked, range(STARTS)),
        (papers, {"evidence": _ascent}, range(STARTS)),
    ):
        for start, name, (method, fit) in itertools.product(starts, names, fits.items()):
            yield name, method, start, fit


def start_of(number: int, num_features: int) -> tuple[gpflow.kernels.Kernel, float]:
    """:return: kernel and penalty."""
    kernel = _kernel(np.full(num_features, num_features**0.5))
    if number == SENSIBLE:
        return kernel, 1.0
    values = gold2003.random_starts(kernel, 1.0, 1, ranges=RANGES, seed=number)[0]
    penalty = float(values.pop("penalty"))
    multiple_assign(kernel, values)
    return kernel, penalty


def _kernel(lengthscales: np.ndarray) -> gpflow.kernels.Kernel:
    smooth = gpflow.kernels.SquaredExponential(1.0, lengthscales=lengthscales)
    return smooth + gpflow.kernels.Constant(0.1)


def _searched(criterion: gold2003.ModeCriterion) -> Callable:
    def fit(data: Split, start: int) -> Iterator[dict]:
        kernel, penalty = start_of(start, data.X.shape[1])
        penalty = penalty if criterion.looks_at_penalty else 1.0
        how = {"method": "L-BFGS-B", "max_evaluations": MOST_EVALUATIONS}
        found = gold2003.optimise(criterion, kernel, data[:2], penalty, **how)
        yield _found(criterion.slack, kernel, data, found)

    return fit


def _walked(criterion: gold2003.ModeCriterion) -> Callable:
    """The paper's: from l_a = k0 = C = 1, koff = .1, and another way for each number."""

    def fit(data: Split, start: int) -> Iterator[dict]:
        kernel = _kernel(np.ones(data.X.shape[1]))
        how = {"method": "random-walk", "max_evaluations": WALK_EVALUATIONS, "seed": start}
        found = gold2003.optimise(criterion, kernel, data[:2], 1.0, **how)
        yield _found(criterion.slack, kernel, data, found)

    return fit


def _ascent(data: Split, start: int) -> Iterator[dict]:
    """The paper's gradient ascent, on far fewer draws than its 40 000."""
    kernel, penalty = start_of(start, data.X.shape[1])
    criterion = gold2003.SampledEvidence(sampler=SAMPLER)
    how = {"method": "gradient-ascent", "max_evaluations": MOST_EVALUATIONS}
    found = gold2003.optimise(criterion, kernel, data[:2], penalty, **how)
    yield _found("linear", kernel, data, found)


def _found(
    slack: str, kernel: gpflow.kernels.Kernel, data: Split, found: gold2003.Selection
) -> dict:
    mode = gold2003.svm_mode(kernel, data[:2], found.penalty, slack=slack)
    f = mode.predict(kernel, data.X, data.X_test)
    about = {"value": found.best.value, "evaluations": found.best.evaluations}
    return {"error": _error(data, f), **about}


def _vem(data: Split, start: int, prior: bool = False, penalty: float = 2.0) -> Iterator[dict]:
    """With the plug-in's row beside its own."""
    kernel, _ = start_of(start, data.X.shape[1])
    if prior:
        gb.priors.set_default_priors(kernel.kernels[0], data.X.shape[1])
    model = gb.models.BatchBSVM(data[:2], kernel, gb.likelihoods.Hinge(penalty))
    history = gb.inference.VEM(max_steps=MOST_ROUNDS).run(model, progress=False)
    f = model.predict_f(data.X_test)[0].numpy()[:, 0]
    yield {
        "error": _error(data, f),
        "value": float(history.elbo[-1]) / len(data.X),
        "evaluations": len(history),
    }
    svc = ms.plug_in(model).fit(data.X, data.Y[:, 0])
    suffix = (", C=1" if penalty == 1 else "") + (", prior" if prior else "")
    yield {"method": f"plug-in{suffix}", "error": _error(data, svc.decision_function(data.X_test))}


def _grid(data: Split, start: int) -> Iterator[dict]:
    grid = {"C": GRID_C, "gamma": GRID_GAMMA / data.X.shape[1]}
    folds = StratifiedKFold(5, shuffle=True, random_state=start)
    search = GridSearchCV(SVC(), grid, cv=folds)
    search.fit(data.X, data.Y[:, 0])
    yield {
        "error": _error(data, search.decision_function(data.X_test)),
        "value": search.best_score_,
    }


def _classifier(data: Split, start: int) -> Iterator[dict]:
    model = gb.BSVMClassifier(random_state=start).fit(data.X, data.Y[:, 0])
    yield {"error": float((model.predict(data.X_test) != data.y_test).mean())}


def _error(data: Split, f: np.ndarray) -> float:
    return float(((f > 0) != (data.y_test == 1)).mean())
