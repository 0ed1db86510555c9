"""Regression and what else is no classification."""

from __future__ import annotations

import pandas as pd
from ranking import wide

from .markdown import shows, table
from .ranked import rank_lines

SCORES = {"rmse": "RMSE", "mae": "MAE", "nll": "NLL"}


def _ranks(rows: pd.DataFrame, scores: dict[str, str]) -> str:
    return table(["", *rows.method.unique(), "p"], rank_lines(rows, scores))
