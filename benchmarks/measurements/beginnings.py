"""How many passes over 500 000 rows q needs, from where, and what each is worth on held-out rows.

`SusyLike`, M = 64, kernel and scaling as `BSVMClassifier` finds them in 20 000 rows. Then `CAVI` at
its default tolerance over all rows: from the prior ("cold"); from the q of so many rows, each
counted as often as it stands for, as `fit` begins; and from that of rows counted once, whose sites
are scaled up, as `BSVMClassifier` does. 100 000 other rows are held out. "passes" counts those over
all rows, the first look and halved steps among them.
"""

from __future__ import annotations

from collections.abc import Iterator

import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm import metrics
from gpflow_bsvm.data.passes import sum_over
from gpflow_bsvm.estimators.large import scale_up
from gpflow_bsvm.generated import SusyLike
from gpflow_bsvm.inference import cavi

NUM_ROWS, HELD_OUT, NUM_INDUCING = 500_000, 100_000, 64
LOSSES = (("levels", 2.0), ("hinge", 4.0))
STARTS = (("cold", 0), ("counted", 5_000), ("counted", 20_000), ("scaled up", 20_000))


def run() -> Iterator[dict]:
    X, Y = SusyLike(NUM_ROWS).arrays()
    X_test, Y_test = SusyLike(HELD_OUT, start=NUM_ROWS).arrays()
    some = np.random.default_rng(0).permutation(NUM_ROWS)[:20_000]
    for loss, penalty in LOSSES:
        how = {"loss": loss, "penalty": penalty, "num_inducing": NUM_INDUCING, "random_state": 0}
        learned = gb.BSVMClassifier(calibrate=False, **how).fit(X[some], Y[some, 0])
        data, test = learned.scaler_.transform(X), (learned.scaler_.transform(X_test), Y_test[:, 0])
        for start, number in STARTS:
            model = gpflow.utilities.deepcopy(learned.model_)
            model.q_mu.assign(np.zeros(model.q_mu.shape))
            model.q_sqrt.assign(np.broadcast_to(np.eye(NUM_INDUCING), model.q_sqrt.shape))
            model.num_data = None
            if number:
                _begin(model, start, (data[some[:number]], Y[some[:number]]))
            for row in _watched(model, (data, Y), test):
                yield {"loss": loss, "start": start, "rows": number, **row}


def _begin(model: gb.models.BSVM, start: str, some: tuple) -> None:
    model.num_data = NUM_ROWS if start == "counted" else None
    gb.inference.CAVI().run(model, some, progress=False)
    model.num_data = None
    if start == "scaled up":
        scale_up(model, NUM_ROWS / len(some[0]))


def _watched(model: gb.models.BSVM, data: tuple, test: tuple) -> Iterator[dict]:
    passes, rows = [], [{"passes": 0, "elbo": np.nan, **_scores(model, test)}]

    def counted(*arguments):
        passes.append(1)
        return sum_over(*arguments)

    def record(_, history) -> None:
        found = {"passes": len(passes), "elbo": history.elbo[-1]}
        rows.append({**found, **_scores(model, test)})

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
