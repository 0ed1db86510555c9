"""Methods over data sets: ranks, Friedman's and Nemenyi's tests, paired differences (Demsar 2006).

A table has a row for each data set, a column for each method and a score that is better the
smaller it is. A fit that failed is NaN there and ranks behind all that did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import bootstrap, friedmanchisquare

#: Scores that are equal to so many digits are a tie.
DIGITS = 6
#: Of posterior draws and of resamples.
DRAWS, SEED = 10_000, 0


def everywhere(rows: pd.DataFrame) -> pd.DataFrame:
    """:return: the rows of those methods that were fitted to every set."""
    sets = rows.groupby("method")["data"].transform("nunique")
    return rows[sets == rows["data"].nunique()]


def wide(rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """:return: a row for each data set, a column for each method, where `rows` have one of each."""
    return rows.pivot(index="data", columns="method", values=score)[rows["method"].unique()]


def each_rank(table: pd.DataFrame) -> pd.DataFrame:
    """:return: of each set, 1 is best; of ties and of all that failed the mean of their ranks."""
    return table.round(DIGITS).fillna(np.inf).rank(axis=1)


def ranks(table: pd.DataFrame) -> tuple[pd.Series, float]:
    """:return: mean ranks by method, and the p-value of Friedman's test."""
    each = each_rank(table)
    return each.mean(), float(friedmanchisquare(*each.to_numpy().T).pvalue)


def apart(table: pd.DataFrame) -> pd.DataFrame:
    """:return: p-values of Nemenyi's test, of all pairs of methods."""
    from scikit_posthocs import posthoc_nemenyi_friedman

    return posthoc_nemenyi_friedman(each_rank(table))


def critical_difference(ax: Axes, table: pd.DataFrame) -> None:
    """Bars join the methods whose mean ranks Nemenyi's test at 5 % does not tell apart."""
    from scikit_posthocs import critical_difference_diagram

    means, colors = each_rank(table).mean(), critical_colors(table)
    critical_difference_diagram(means, apart(table), ax=ax, color_palette=colors)


def critical_colors(table: pd.DataFrame) -> dict[str, str]:
    """:return: by method, for what stands beside such a diagram."""
    return {method: f"C{number}" for number, method in enumerate(table)}


class Pair(NamedTuple):
    """
    A method against another, over data sets.

    :ivar difference: mean of first - second, below 0 where the first is better.
    :ivar low, high: 95 % interval of it, bootstrap over data sets (bias-corrected).
    :ivar better, equal, worse: posterior probabilities, by the Bayesian signed-rank test (Benavoli
        et al. 2014), that on another data set the first is most likely better by more than `rope`,
        within it, worse by more.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    better: float
    equal: float
    worse: float


def pairs(table: pd.DataFrame, first: str, others: Iterable[str], rope: float) -> Iterator[Pair]:
    """
    Yield `first` against each of the others.

    :param table: without NaN: say what a failure is worth, and fill it in.
    :param rope: above 0: differences up to it count as none.
    :raise ImportError: without baycomp.
    """
    from baycomp import SignedRankTest

    for second in others:
        x, y = table[first].to_numpy(), table[second].to_numpy()
        ends = bootstrap((x - y,), np.mean, rng=np.random.default_rng(SEED)).confidence_interval
        # To baycomp the greater score is the better one: its left is where ours is worse.
        worse, equal, better = SignedRankTest.probs(x, y, rope, nsamples=DRAWS, random_state=SEED)
        found = (np.mean(x - y), *ends, better, equal, worse)
        yield Pair(first, second, *map(float, found))
