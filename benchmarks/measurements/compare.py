"""The main job on the paper's Table 1 sets and the bundled ones: scores at a fixed kernel."""

from __future__ import annotations

from collections.abc import Iterator

from gpflow_bsvm.compare.protocol import Comparison, Settings
from gpflow_bsvm.datasets import load

SETS = (
    *("breast-cancer", "banana-like", "breast_cancer", "diabetis", "german", "heart"),
    *("splice", "waveform"),
)


def run() -> Iterator[dict]:
    for name in SETS:
        comparison = Comparison(load(name), Settings(fixed_kernel=True))
        comparison.run(progress=False)
        for fit in comparison.fold_scores:
            about = {"data": name, "model": fit.model, "fold": fit.fold, "status": fit.status}
            yield {**about, **fit.scores}
