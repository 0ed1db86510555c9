"""Sentences of the pages with numbers in them, made of the rows: `draw.py --check` looks for each.

A public function is a claim: it takes the rows that `claim` names, and returns words as they stand
in the page; where lines break does not matter. Those of the guide are in `claims_guide.py`, and
`prose.py` looks for figures that none of them makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import store
from figures.quality import peers
from ranking import apart, each_rank, ranks, wide
from tables.beside import on_public_tables
from tables.scores import TABLE1
from tables.suite_means import complete, shown

ROOT = Path(__file__).parent.parent
CLAIMS: list[tuple[str, str, Callable[..., str]]] = []
PEERS = {
    "svgp": "SVGP",
    "svc, platt": "SVC with Platt scaling",
    "svc, temperature": "SVC with a temperature",
}
SCORES = {"nll": "NLL", "error": "error", "brier": "Brier score", "ece": "ECE"}


def claim(page: str, rows: str = "") -> Callable:
    """
    :param rows: their name; none for words that are made of options of the code.
    :return: a decorator of what makes the words from the rows.
    """

    def kept(words: Callable[..., str]) -> Callable[..., str]:
        CLAIMS.append((page, rows, words))
        return words

    return kept


def stale() -> Iterator[str]:
    """:return: pages that do not say what the rows say."""
    for page, rows, words in CLAIMS:
        expected = words_of(rows, words)
        if expected not in " ".join((ROOT / page).read_text(encoding="utf-8").split()):
            yield f"{page}: by {f'the rows of {rows}' if rows else 'the code'} “{expected}”"


def words_of(rows: str, words: Callable[..., str]) -> str:
    """:return: what a claim says now, on one line."""
    return " ".join((words(store.read(rows)) if rows else words()).split())


@claim("README.md", "quality")
def leads(rows: pd.DataFrame) -> str:
    """Who is first in which score, and whom ours leads by Nemenyi's test, if Friedman's rejects."""
    first: dict[str, list[str]] = {}
    scores: dict[str, list[str]] = {}
    for score, name in SCORES.items():
        table = wide(peers(rows), score)
        means, p = each_rank(table).mean(), apart(table)["bsvm"]
        first.setdefault(means.idxmin(), []).append(name)
        behind = means.index[(p < 0.05) & (means > means["bsvm"])]
        if ranks(table)[1] < 0.05 and len(behind):
            over = " and ".join(PEERS[other] for other in behind)
            over = over.replace("scaling and SVC", "scaling and")
            scores.setdefault(over, []).append(name)
    leading = ", ".join(first["bsvm"][:-1]) + f" and {first['bsvm'][-1]}"
    others = [
        f"{PEERS[who]} ranks first in {' and '.join(what)}"
        for who, what in first.items()
        if who != "bsvm"
    ]
    ahead = [f"of {over} in {' and '.join(names)}" for over, names in scores.items()]
    listed = f"{', '.join(ahead[:-1])}, and {ahead[-1]}"
    firsts = "; ".join([f"`bsvm` ranks first in {leading}", *others])
    return (
        f"{firsts}. `bsvm` is significantly ahead {listed} (at 5 %, by Friedman's test, then "
        "Nemenyi's)."
    )


@claim("README.md", "quality")
def sets_of_quality(rows: pd.DataFrame) -> str:
    """How many sets there are."""
    classes = peers(rows).groupby("data")["classes"].first()
    two, more = (classes == 2).sum(), (classes > 2).sum()
    known = "all of our data sets with at most 10 000 rows"
    parts = f"{two} with two classes ({known}) and {more} with more classes"
    return f"on 10 folds of each of {two + more} data sets: {parts}"


@claim("README.md", "regression_trials")
def first_in_regression(rows: pd.DataFrame) -> str:
    """On public tables, in both scores, or this sentence is to be written anew."""
    means = on_public_tables(rows).groupby(["data", "method"])[["rmse", "nll"]].mean().unstack()
    best = {each_rank(means[score]).mean().idxmin() for score in ("rmse", "nll")}
    assert best == {"BSVMRegressor"}
    return (
        f"On {len(means)} public tables for regression, `BSVMRegressor` is first in mean rank in "
        "RMSE and NLL of [six methods](docs/lab/regression.md#on-public-tables)."
    )


@claim("README.md", "quality")
def behind(rows: pd.DataFrame) -> str:
    """On how many sets a peer does better, and where most."""
    worse = []
    for score, peer in (("nll", "svgp"), ("error", "svc, platt")):
        table = wide(peers(rows), score)
        gap = table["bsvm"].sub(table[peer]).round(6)
        worse.append(((gap > 0).sum(), gap.idxmax()))
    (svgp, first), (svc, second) = worse
    return (
        f"`bsvm` has a higher NLL than SVGP on {svgp} of the sets, most of all on {first}, and "
        f"more errors than SVC with Platt scaling on {svc}, most of all on {second}."
    )


@claim("docs/lab/replication.md", "wenzel2017")
def off_by_folds(rows: pd.DataFrame) -> str:
    """How far errors of Algorithm 1 are from the printed ones."""
    errors = rows[rows["method"] == "s-bsvm"].groupby("data")["error"].mean()
    off = {name: abs(errors[name] - printed[0]) for name, printed in TABLE1.items()}
    flare, cancer, diabetis = (
        f"{off[name]:.3f}"[1:] for name in ("flare", "breast_cancer", "diabetis")
    )
    assert max(off.values()) == off["flare"]
    return f"off by up to {flare} (flare; breast_cancer {cancer}, diabetis {diabetis})"


def _slower(rows: pd.DataFrame, method: str, data: str) -> float:
    """:return: time as a multiple of Algorithm 1's on the same folds."""
    seconds = rows[(rows["data"] == data) & (rows["status"] == "ok")].pivot(
        index="split", columns="method", values="seconds"
    )
    seconds = seconds[seconds[method].notna()]
    return float(seconds[method].mean() / seconds["s-bsvm"].mean())


@claim("docs/lab/suites.md", "wenzel2017")
@claim("docs/lab/replication.md", "wenzel2017")
def ecm_and_gpc(rows: pd.DataFrame) -> str:
    """How much slower the dense methods are."""
    german, splice, waveform = (_slower(rows, "ecm", d) for d in ("german", "splice", "waveform"))
    gpc = _slower(rows, "gpc", "splice"), _slower(rows, "gpc", "waveform")
    return (
        f"{german:.0f} times slower at 900, and (one fold each) {splice:.0f} times at 2700 and "
        f"{waveform:.0f} times at 4500. GPC, whose kernel is not learned, is faster below 1000 "
        f"rows, but {gpc[0]:.1f} and {gpc[1]:.0f} times slower at 2700 and 4500."
    )


@claim("docs/lab/replication.md", "wistuba2018")
def time_of_svgp(rows: pd.DataFrame) -> str:
    """SVGP's time as a multiple of ours, by the paper's protocol and to convergence."""
    names = "adam-bsvm-published", "adam-svgp"
    seconds = wide(complete(rows[rows["split"] == 0], names), "seconds")
    adam = seconds[names[1]] / seconds[names[0]]
    whole = wide(complete(rows, shown(rows)), "seconds")
    softmax, robustmax = ((whole[n] / whole["bsvm"]).median() for n in ("svgp", "svgp-robustmax"))
    least = f"{adam.min():.2f}".removeprefix("0")
    return (
        f"with Adam, SVGP takes {adam.median():.1f} times as long (median of ten sets; {least} to "
        f"{adam.max():.1f}). To convergence on {len(whole)} sets, it takes {softmax:.1f} times as "
        f"long with Softmax, and {robustmax:.1f} times with RobustMax"
    )


@claim("docs/lab/suites.md", "wistuba2018")
def lower_than_svc(rows: pd.DataFrame) -> str:
    """On how many sets SVC errs less; equal up to rounding is a tie."""
    errors = wide(complete(rows, shown(rows)), "error").round(6)
    return f"lower on {(errors['svc'] < errors['bsvm']).sum()} of {len(errors)} sets"
