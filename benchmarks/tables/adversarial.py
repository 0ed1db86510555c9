"""Tables of attacked and foreign images; means over seeds."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown

#: Strengths that have room in a table.
_SHOWN = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
_KEYS = ["data", "attack", "method"]


def attacked(rows: pd.DataFrame) -> str:
    """Accuracy by strength."""
    rows = rows[rows["attack"] != "foreign"].drop_duplicates([*_KEYS, "seed", "epsilon"])
    wide = rows.groupby([*_KEYS, "epsilon"], sort=False)["accuracy"].mean().unstack()
    return _table(wide.reindex(columns=_SHOWN), ["data", "attack", "method"])


def detected(rows: pd.DataFrame) -> str:
    """AUC of each score by strength, where there is an attack."""
    rows = rows[(rows["attack"] != "foreign") & (rows["epsilon"] > 0)]
    by = [*_KEYS, "score", "epsilon"]
    wide = rows.groupby(by, sort=False)["auc"].mean().unstack()
    return _table(wide.reindex(columns=_SHOWN[1:]), ["data", "attack", "method", "score"])


def foreign(rows: pd.DataFrame) -> str:
    """AUC of each score by the set of training, least and greatest over seeds in brackets."""
    rows = rows[rows["attack"] == "foreign"]
    seeds = rows.groupby(["method", "score", "data"], sort=False)["auc"]
    cells = seeds.agg(["mean", "min", "max", "size"]).apply(_spread, axis=1).unstack()
    others = {"mnist": "Fashion-MNIST among MNIST", "fashion_mnist": "MNIST among Fashion-MNIST"}
    wide = cells[list(others)]
    lines = ([*index, *line] for index, line in zip(wide.index, wide.to_numpy()))
    return markdown(["method", "score", *others.values()], lines)


def _spread(auc: pd.Series) -> str:
    mean = f"{auc['mean']:.3f}"
    return mean if auc["size"] == 1 else f"{mean} ({auc['min']:.3f} to {auc['max']:.3f})"


def _table(wide: pd.DataFrame, header: list[str]) -> str:
    cells = wide.map(lambda value: "" if pd.isna(value) else f"{value:.3f}")
    lines = ([*index, *line] for index, line in zip(cells.index, cells.to_numpy()))
    return markdown([*header, *(f"{epsilon:g}" for epsilon in wide.columns)], lines)
