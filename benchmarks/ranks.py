"""Mean ranks of the methods in `results/quality.csv`, and which of their differences are real.

python benchmarks/ranks.py     draws docs/quality.png: critical-difference diagrams (Demsar
                               2006), bars join methods that Nemenyi's test does not tell apart
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from common import RESULTS
from scipy.stats import friedmanchisquare

SCORES = {"nll": "NLL", "error": "error", "brier": "Brier score", "ece": "ECE"}
PICTURE = Path(__file__).parent.parent / "docs" / "quality.png"


def wide(rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """:return: means over folds, a row for each data set and a column for each method."""
    table = rows.pivot(index="data", columns="method", values=score).astype(float)
    return table[list(dict.fromkeys(rows["method"]))]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: mean ranks (1 is best) by score and method, and the p-value of Friedman's test."""
    lines = {}
    for score, label in SCORES.items():
        table = wide(rows, score)
        ranks = table.round(6).rank(axis=1).mean()  # equal to six digits: a tie
        lines[label] = {**ranks, "p": friedmanchisquare(*table.to_numpy().T).pvalue}
    return pd.DataFrame(lines).T


def draw() -> None:
    import matplotlib.pyplot as plt
    from scikit_posthocs import critical_difference_diagram, posthoc_nemenyi_friedman

    rows = pd.read_csv(RESULTS / "quality.csv")
    figure, axes = plt.subplots(2, 2, figsize=(10, 4.2))
    for ax, (score, label) in zip(axes.flat, SCORES.items()):
        ranks = wide(rows, score).round(6).rank(axis=1)
        p_values = posthoc_nemenyi_friedman(ranks)
        colors = {method: f"C{n}" for n, method in enumerate(ranks.columns)}
        critical_difference_diagram(ranks.mean(), p_values, ax=ax, color_palette=colors)
        ax.set_title(f"mean rank in {label}")
    figure.suptitle(f"{rows['data'].nunique()} data sets, 10 folds; rank 1 is best")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    draw()
