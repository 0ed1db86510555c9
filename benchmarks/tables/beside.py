"""Regression, quantiles, ordered classes and novelty."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown, shows
from .ranked import rank_lines

SCORES = {"rmse": "RMSE", "mae": "MAE", "nll": "NLL"}
#: Variants on public tables, and their methods.
PUBLIC = {
    "now": "BSVMRegressor",
    "GPR": "GPR",
    "forest": "random forest",
    "ridge": "ridge",
    "SVR": "SVR, grid",
    "boosting": "boosting",
}


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: means over folds, a row for each set and method."""
    return rows.groupby(["data", "method"], sort=False).mean(numeric_only=True).reset_index()


def _ranked(rows: pd.DataFrame, scores: dict[str, str]) -> str:
    means = _means(rows.dropna(subset=list(scores)))
    return markdown(["mean rank (first)", *means.method.unique(), "p"], rank_lines(means, scores))


def _by_set(rows: pd.DataFrame, score: str) -> str:
    table = _means(rows.dropna(subset=[score])).pivot(index="data", columns="method", values=score)
    table = table.loc[rows.data.unique(), rows.dropna(subset=[score]).method.unique()]
    lines = [[name, *(f"{value:.3f}" for value in row)] for name, row in table.iterrows()]
    return markdown(["", *table.columns], [*lines, ["mean", *(f"{v:.3f}" for v in table.mean())]])


@shows("regression")
def regression_ranks(rows: pd.DataFrame) -> str:
    return _ranked(rows, SCORES)


@shows("regression_trials")
def public_regression(rows: pd.DataFrame) -> str:
    return _ranked(on_public_tables(rows), {"rmse": "RMSE", "nll": "NLL"})


def on_public_tables(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: the rows of methods, without those of trials."""
    some = rows.assign(method=rows["variant"].map(PUBLIC)).dropna(subset=["method"])
    return some[some["data"].str.endswith(", table")]


@shows("regression")
def regression_all(rows: pd.DataFrame) -> str:
    return _by_set(rows, "nll")


@shows("regression")
def regression_mae(rows: pd.DataFrame) -> str:
    return _by_set(rows, "mae")


@shows("regression")
def regression_rest(rows: pd.DataFrame) -> str:
    table = _means(rows).groupby("method", sort=False)[["coverage", "seconds"]].median()
    lines = [[name, *(f"{v:.2f}" for v in table[name])] for name in table]
    return markdown(["", *table.index], lines)


def _over_sets(rows: pd.DataFrame, scores: dict[str, str]) -> str:
    means = _means(rows.dropna(subset=list(scores))).groupby("method", sort=False)[list(scores)]
    lines = [[name, *(f"{v:.3f}" for v in row)] for name, row in means.mean().iterrows()]
    return markdown(["", *scores.values()], lines)


@shows("ordered")
def ordered(rows: pd.DataFrame) -> str:
    return _over_sets(rows, {"error": "error", "mae": "MAE of classes", "nll": "NLL"})


@shows("ordered")
def quantiles(rows: pd.DataFrame) -> str:
    return _over_sets(rows, {"pinball": "pinball loss", "coverage": "rows within .1 to .9"})


@shows("novelty")
def novelty(rows: pd.DataFrame) -> str:
    return _by_set(rows, "auc")


@shows("novelty_trials")
def novelty_trials(rows: pd.DataFrame) -> str:
    """Mean areas over usual classes: of peers, and by rule and score."""
    means = rows.fillna({"rule": ""}).groupby(["rule", "score", "group"], sort=False)["auc"].mean()
    number = rows.groupby("group", sort=False)[["data", "label"]].apply(
        lambda part: len(part.drop_duplicates())
    )
    lines = [
        [rule, score, *(f"{row[group]:.3f}" for group in number.index)]
        for (rule, score), row in means.unstack("group").iterrows()
    ]
    head = [f"{group}, {count} classes" for group, count in number.items()]
    return markdown(["lengthscale", "score", *head], lines)
