"""The main job on the paper's Table 1 sets and the bundled ones: scores at a fixed kernel."""

from __future__ import annotations

from gpflow_bsvm.compare.baselines import default_peers
from gpflow_bsvm.compare.protocol import Comparison, Settings
from gpflow_bsvm.datasets import load

SETS = (
    "breast-cancer",
    "banana-like",
    "breast_cancer",
    "diabetis",
    "german",
    "heart",
    "splice",
    "waveform",
)


def run() -> list[dict]:
    rows = []
    for name in SETS:
        comparison = Comparison(load(name), Settings())
        comparison.run(default_peers(2), with_traces=False, progress=False)
        rows += [
            {"data": name, "model": row.peer, "fold": row.fold, "status": row.status, **row.scores}
            for row in comparison.rows
        ]
    return rows
