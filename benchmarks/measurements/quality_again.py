"""`BSVMClassifier()` of today beside the rows of `quality`: the first three folds, the same ones.

A whole run of `quality` takes hours.

    python run.py quality_again
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from .quality import BINARY, FOLDER, MULTICLASS, fits

FOLDS = 3


def run() -> Iterator[dict]:
    for name in (*BINARY, *MULTICLASS):
        yield from paired(name, fits(name, ["bsvm"], first=FOLDS))


def paired(name: str, now: pd.DataFrame) -> Iterator[dict]:
    """:return: rows of `now`, and of the same folds before."""
    kept = pd.read_csv(FOLDER / f"{name}.csv").drop(columns="ece")
    kept = kept[(kept["method"] == "bsvm") & (kept["fold"] < FOLDS)]
    both = pd.concat([kept.assign(method="before"), now.assign(method="now")])
    yield from both.to_dict("records")
