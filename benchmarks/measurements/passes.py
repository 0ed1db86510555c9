"""How many passes over 500 000 rows q needs, from where, and what each is worth on held-out rows.

`SusyLike`, M = 64, kernel, penalty and scaling as `BSVMClassifier` finds them in 20 000 rows. Then
`CAVI` at its default tolerance over all rows: from the prior ("cold"), from q of the 20 000 rows
with their sites scaled up ("sample"), and from q of 5 000 of them. 100 000 other rows are held out.
"passes" counts those over all rows, halved steps among them; 0 is where a fit begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm import metrics
from gpflow_bsvm.data.passes import sum_over
from gpflow_bsvm.generated import SusyLike
from gpflow_bsvm.inference import cavi

NUM_ROWS, HELD_OUT, NUM_INDUCING = 500_000, 100_000, 64
LOSSES = (("levels", 2.0), ("hinge", 4.0))
STARTS = {"cold": 0, "sample": 20_000, "5 000": 5_000}


def run() -> Iterator[dict]:
    X, Y = SusyLike(NUM_ROWS).arrays()
    X_test, Y_test = SusyLike(HELD_OUT, start=NUM_ROWS).arrays()
    for loss, penalty in LOSSES:
        how = {"loss": loss, "penalty": penalty, "num_inducing": NUM_INDUCING, "random_state": 0}
        some = np.random.default_rng(0).permutation(NUM_ROWS)[: max(STARTS.values())]
        learned = gb.BSVMClassifier(calibrate=False, **how).fit(X[some], Y[some, 0])
        data, test = learned.scaler_.transform(X), (learned.scaler_.transform(X_test), Y_test[:, 0])
        for start, number in STARTS.items():
            model = gpflow.utilities.deepcopy(learned.model_)
            model.num_data = None
            begin(model, (data, Y), some[:number])
            for row in _watched(model, (data, Y), test):
                yield {"loss": loss, "start": start, **row}


def begin(model: gb.models.BSVM, data: tuple, some: np.ndarray) -> None:
    """Give the model the q of some rows, scaled up; of none the prior."""
    model.q_mu.assign(np.zeros(model.q_mu.shape))
    model.q_sqrt.assign(np.broadcast_to(np.eye(model.num_features[1]), model.q_sqrt.shape))
    if len(some):
        gb.inference.CAVI().run(model, (data[0][some], data[1][some]), progress=False)
        gb.estimators.large.scale_up(model, len(data[0]) / len(some))


def _watched(model: gb.models.BSVM, data: tuple, test: tuple) -> Iterator[dict]:
    passes, rows = [], [{"passes": 0, "sweep": 0, **_scores(model, test)}]

    def counted(*arguments):
        passes.append(1)
        return sum_over(*arguments)

    def record(step, history) -> None:
        last = {"elbo": history.elbo[-1], "seconds": history.seconds[-1]}
        rows.append({"passes": len(passes), "sweep": step, **last, **_scores(model, test)})

    cavi.sum_over = counted
    try:
        gb.inference.CAVI().run(model, data, callback=record, progress=False)
    finally:
        cavi.sum_over = sum_over
    yield from rows


def _scores(model: gb.models.BSVM, test: tuple) -> dict:
    p = gb.prediction.predict_probabilities(model, test[0])[:, 0]
    P = np.column_stack([1 - p, p])
    return {"auc": metrics.auc(test[1], P), "nll": metrics.nll(test[1], P)}
