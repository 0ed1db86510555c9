"""What the machines of `wenzel2016` share: how far fits go, and q against draws by Gibbs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpflow_bsvm.compare.protocol import Fold
from gpflow_bsvm.inference import CAVI, SVI, VEM, Adaptive
from gpflow_bsvm.models import BSVM
from gpflow_bsvm.sampling import Gibbs

from . import _harness

PENALTY = 2.0
#: Rows at which q and draws are compared.
COMPARED = 1000


class Fitted(NamedTuple):
    """
    :ivar predict: p(y = 1) [n, 1] or of both classes [n, 2] of rows [n, D]; or their classes [n].
    :ivar cells: of the row, beside scores and seconds.
    """

    predict: Callable[[np.ndarray], Any]
    cells: dict


class Steps(NamedTuple):
    """How far the algorithms of a fit go."""

    vem: VEM
    cavi: CAVI
    tight: CAVI  #: where q is compared, and many rows are one ELBO
    svi: SVI
    kernel_gibbs: Gibbs
    linear_gibbs: Gibbs


#: The paper prints neither the sizes of batches nor the number of draws.
WHOLE = Steps(
    VEM(),
    CAVI(max_steps=1000),
    CAVI(max_steps=1000, tol=1e-8),
    SVI(batch_size=100, max_steps=1000, learning_rate=Adaptive()),
    Gibbs(num_draws=200, burn_in=50, num_chains=1),
    Gibbs(num_draws=1000, burn_in=200, num_chains=1),
)
#: The same graphs.
FEW = Steps(
    VEM(max_steps=2),
    CAVI(max_steps=1),
    CAVI(max_steps=1, tol=1e-8),
    SVI(batch_size=100, max_steps=250, learning_rate=Adaptive()),  # a block of steps
    Gibbs(num_draws=4, burn_in=0, num_chains=1),
    Gibbs(num_draws=4, burn_in=0, num_chains=1),
)


def pairs(fold: Fold) -> tuple[np.ndarray, np.ndarray]:
    """:return: X [n, D] and Y [n, 1]."""
    return fold.X, fold.y[:, None].astype(float)


def predictor(model: Any) -> Callable[[np.ndarray], Any]:
    """:param model: or draws."""
    return lambda X: model.predict_y(X)[0]


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """:return: what `function` returns, and processor seconds."""
    found: list = []
    seconds = _harness.processor_seconds(lambda: found.append(function(*arguments)))
    return found[0], seconds


def compared(make_model: Callable[[str], BSVM], fold: Fold, steps: Steps, gibbs: Gibbs) -> Fitted:
    """
    Draws, and how far q is from them: `gap_BOUND`, the mean over held-out rows of the difference
    between the means of f, in deviations of the draws; `ratio_BOUND`, that of q's deviation to
    theirs (geometric mean). `effective` is the least of all weights' numbers of effective draws.

    :param make_model: of a bound.
    """
    data, X, cells, found = pairs(fold), fold.X_test[:COMPARED], {}, {}
    for bound in ("augmented", "exact"):
        model = make_model(bound)
        run = partial(steps.tight.run, progress=False)
        cells[f"q_seconds_{bound}"] = timed(run, model, data)[1]
        found[bound] = [np.asarray(part) for part in model.predict_f(X)]
    draws, cells["seconds"] = timed(partial(gibbs.run, progress=False), model, data)
    mean, variance = draws.predict_f(X)
    for bound, (q_mean, q_variance) in found.items():
        cells[f"gap_{bound}"] = np.mean(abs(q_mean - mean) / np.sqrt(variance))
        cells[f"ratio_{bound}"] = np.exp(np.mean(np.log(q_variance / variance)) / 2)
    cells["effective"] = draws.effective_draws().min()
    return Fitted(predictor(draws), cells)
