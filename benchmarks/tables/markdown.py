"""How a table and its cells are written."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd


def markdown(header: Iterable, lines: Iterable[Iterable]) -> str:
    header = list(header)
    written = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in written)


def scores(row: pd.Series, digits: int = 3) -> str:
    return f"{row['error']:.{digits}f} / {row['nll']:.{digits}f}"


def longer(ratio: float) -> str:
    return f"{ratio:.1f} times longer"


def spread(values: pd.Series) -> str:
    """:return: mean and standard deviation [of how many]."""
    if len(values) == 1:
        return f"{values.mean():.1f} [1]"
    return f"{values.mean():.1f} ± {values.std():.1f} [{len(values)}]"
