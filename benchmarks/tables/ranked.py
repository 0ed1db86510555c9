"""Mean ranks of methods as lines of a table."""

from __future__ import annotations

import pandas as pd
from ranking import ranks, wide


def rank_lines(rows: pd.DataFrame, scores: dict[str, str]) -> list[list[str]]:
    """
    :param scores: their labels, by column.
    :return: for each score mean ranks, on how many sets a method is best, Friedman's p.
    """
    lines = []
    for score, label in scores.items():
        table = wide(rows, score)
        found, p_value = ranks(table)
        best = table.idxmin(axis=1).value_counts()
        cells = (f"{rank:.2f} ({best.get(name, 0)})" for name, rank in found.items())
        lines.append([label, *cells, f"{p_value:.1g}"])
    return lines
