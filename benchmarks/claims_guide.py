"""Sentences of the guide with figures: claims like those of `claims.py`.

Figures that are options of the code, and not measured, are made of the code: their claims have no
rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from claims import SCORES, claim
from figures.quality import peers
from ranking import apart, each_rank, ranks, wide
from tables.beside import SCORES as NUMBER_SCORES

GUIDE = "docs/guide/"


def listed(words: list[str]) -> str:
    """:return: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _longer_than(rows: pd.DataFrame, peer: str) -> tuple[float, float]:
    """:return: median ratios of times below 1000 and above 3000 rows, as in the table."""
    times = rows.pivot_table(index=["data", "n"], columns="method", values="again")
    times = times[times["svgp"].notna()]  # of made data there are other peers
    ratio, n = times["bsvm"] / times[peer], times.index.get_level_values("n")
    return ratio[n < 1000].median(), ratio[n >= 3000].median()


@claim(GUIDE + "coming-from.md", "fit_time")
def faster_svc(rows: pd.DataFrame) -> str:
    """By how much SVC's grid is done sooner."""
    small, large = _longer_than(rows, "svc, platt")
    return (
        f"The classifier takes {small:.1f} times as long on sets with fewer than 1000 rows, and "
        f"{large:.1f} times as long on sets with 3000 or more rows"
    )


@claim("docs/lab/README.md", "fit_time")
def whole_fits(rows: pd.DataFrame) -> str:
    """Beside both peers."""
    (svgp, svgp_large), (svc, svc_large) = (
        _longer_than(rows, peer) for peer in ("svgp", "svc, platt")
    )
    return (
        f"a classifier takes {svgp:.1f} times as long as SVGP and {svc:.1f} times as long as SVC "
        f"below 1000 rows, {svgp_large:.1f} and {svc_large:.1f} times as long above 3000"
    )


@claim(GUIDE + "coming-from.md", "quality")
def slowest(rows: pd.DataFrame) -> str:
    """The worst case beside SVC."""
    vowel = rows[rows["data"] == "vowel"].set_index("method")
    ours, svc = vowel.loc["bsvm"], vowel.loc["svc, platt"]
    return (
        f"on vowel ({ours['n']} rows, {ours['classes']} classes) the classifier errs on "
        f"{100 * ours['error']:.1f} % of rows, and SVC on {100 * svc['error']:.1f} %"
    )


@claim(GUIDE + "coming-from.md", "quality")
def before_svgp(rows: pd.DataFrame) -> str:
    """In which scores ours is ahead of SVGP, and in which significantly so."""
    rows = peers(rows)
    tables = {name: wide(rows, score) for score, name in SCORES.items()}
    means = {name: each_rank(table).mean() for name, table in tables.items()}
    ahead = [name for name, mean in means.items() if mean["bsvm"] < mean["svgp"]]
    sure = [
        name
        for name in ahead
        if ranks(tables[name])[1] < 0.05 and apart(tables[name]).loc["bsvm", "svgp"] < 0.05
    ]
    return (
        f"On {rows['data'].nunique()} sets, the mean rank of `BSVMClassifier` is better than "
        f"SVGP's in {listed(ahead)}. The difference is significant in {listed(sure)}."
    )


@claim(GUIDE + "probabilities.md", "quality")
def real_sets(rows: pd.DataFrame) -> str:
    """How many there are."""
    return f"with SVGP and SVC on {peers(rows)['data'].nunique()} real sets"


@claim(GUIDE + "probabilities.md", "few_rows")
def few(rows: pd.DataFrame) -> str:
    """Beside the better of two at every size, as the table's last line."""
    found = rows.groupby(["data", "n", "method"])["nll"].mean().unstack("method")
    ratio = found["bsvm"] / found[["logistic", "svc, platt"]].min(axis=1)
    means = np.exp(np.log(ratio.unstack("n")).mean())
    least = f"{means.min():.2f}".removeprefix("0")
    return (
        f"We reduced {rows['data'].nunique()} sets to between {means.index.min()} and "
        f"{means.index.max()} rows. The classifier's NLL is then {least} to {means.max():.2f} "
        "times the NLL of logistic regression or SVC, whichever is better"
    )


@claim(GUIDE + "large-data.md", "large_sets")
def boosting(rows: pd.DataFrame) -> str:
    """On how many sets boosting errs less than any kernel."""
    errors = wide(rows, "error")
    ahead = errors["boosting"] < errors.drop(columns="boosting").min(axis=1)
    least, most = (f"{n:,}".replace(",", " ") for n in (rows["n"].min(), rows["n"].max()))
    sets = f"{ahead.sum()} of {len(errors)} sets with {least} to {most} rows"
    return f"On {sets}, boosting has the fewest errors"


@claim(GUIDE + "networks.md", "hybrid")
def hybrids(rows: pd.DataFrame) -> str:
    """Beside softmax, by seeds."""
    rows = rows[rows["method"].isin(["hybrid", "softmax"])]
    fits = rows.set_index(["data", "seed", "method"])[["error", "nll", "seconds"]].unstack()
    ours, softmax = (fits.xs(name, axis=1, level="method") for name in ("hybrid", "softmax"))
    grey = ["mnist", "fashion_mnist"]
    assert (ours.loc[grey] < softmax.loc[grey])[["error", "nll"]].all(axis=None)
    slower = (ours["seconds"] / softmax["seconds"]).groupby("data").median()[grey]
    cifar = (100 * part.loc["cifar10_jpeg_12k", "error"].mean() for part in (ours, softmax))
    more, less = (f"{error:.2f} %" for error in cifar)
    return (
        f"with each of {len(ours.loc['mnist'])} seeds, but takes {slower.min():.2f} to "
        f"{slower.max():.2f} times as long (medians). On a small part of CIFAR-10 it errs on "
        f"{more} of the images, and softmax on {less}"
    )


@claim(GUIDE + "regression-and-novelty.md", "regression")
def numbers(rows: pd.DataFrame) -> str:
    """How many sets there are."""
    sets, folds = rows["data"].nunique(), rows["fold"].nunique()
    return f"mean ranks (1 is best) on {sets} sets with {folds} folds each"


@claim(GUIDE + "regression-and-novelty.md", "regression")
def first_of_numbers(rows: pd.DataFrame) -> str:
    """In all scores, or this sentence is to be written anew."""
    whole = rows.dropna(subset=list(NUMBER_SCORES))
    means = whole.groupby(["data", "method"], sort=False).mean(numeric_only=True).reset_index()
    best = {each_rank(wide(means, score)).mean().idxmin() for score in NUMBER_SCORES}
    assert best == {"BSVMRegressor"}
    return "`BSVMRegressor` is first on average in all three scores."


@claim(GUIDE + "regression-and-novelty.md", "novelty")
def novelty_order(rows: pd.DataFrame) -> str:
    """By the mean area."""
    names = {
        "IsolationForest": "isolation forests",
        "LocalOutlierFactor": "local outlier factors",
        "OneClassSVM": "`OneClassSVM`",
    }
    sets = rows.groupby(["data", "method"])["auc"].mean().unstack()
    order = list(sets.mean().sort_values(ascending=False).index)
    assert order.index("OneClassBSVM") == 0 and sets.idxmax(axis=1).nunique() > 1
    behind = [names[name] for name in order[1:]]
    return (
        f"`OneClassBSVM` has the highest mean area under the ROC curve on {len(sets)} sets, "
        f"followed by {listed(behind)}; no method leads on all sets"
    )


# --- options of the code --------------------------------------------------------------------------


@claim(GUIDE + "kernels.md")
def scale() -> str:
    """Rows and inducing points of the choice of the scale."""
    from gpflow_bsvm.estimators import choice, training
    from gpflow_bsvm.estimators.specification import FIRST_INDUCING

    most = training.GROWTH * FIRST_INDUCING
    rows = f"{choice.SCALE_ROWS:,}".replace(",", " ")
    return f"on up to {rows} rows and with up to {most} inducing points"


@claim(GUIDE + "kernels.md")
def not_learned() -> str:
    """Where a kernel that is not learned is tried."""
    from gpflow_bsvm.estimators.choice import KEPT_ROWS

    return f"With up to {KEPT_ROWS} rows, the hinge is also tried with equal lengthscales"


@claim(GUIDE + "kernels.md")
@claim(GUIDE + "probabilities.md")
def tempered() -> str:
    """Where levels get a temperature."""
    from gpflow_bsvm.model_selection.held_out import ENOUGH_ROWS

    return f"several classes and fewer than {ENOUGH_ROWS} rows"


@claim(GUIDE + "coming-from.md")
def learned_of() -> str:
    """Where chance has a part."""
    from gpflow_bsvm.estimators.training import LEARN_ROWS

    return f"only with more than {LEARN_ROWS} rows"


@claim(GUIDE + "probabilities.md")
def levels() -> str:
    """The default ones."""
    from gpflow_bsvm.likelihoods import location_spread

    t = [f"{level:.2f}".removeprefix("0") for level in location_spread().t]
    thresholds = f"{len(t)} thresholds between {t[0]} and {t[-1]}"
    return f"{thresholds}: is the probability above {t[0]}, above {t[1]}, ...?"


@claim(GUIDE + "probabilities.md")
def further_levels() -> str:
    """Those of many rows."""
    from gpflow_bsvm.estimators import specification
    from gpflow_bsvm.estimators.specification import ROWS_AT_LAST, levels_for

    halfway = specification.LEAST_OUTERMOST + 0.5, specification.MOST_OUTERMOST - 0.5
    first, last = (round(int(ROWS_AT_LAST * np.exp(end)), -2) for end in halfway)
    t = [f"{level:.4f}".removeprefix("0") for level in levels_for(np.inf).t[[0, -1]]]
    return (
        f"`BSVMClassifier` adds thresholds from about {first} rows on, and more from about {last}, "
        f"up to {levels_for(np.inf).t.size} between {t[0]} and {t[1]}"
    )


@claim(GUIDE + "probabilities.md")
def merged_rows() -> str:
    """As many rows as are sorted and merged."""
    from gpflow_bsvm.estimators.inputs import MERGE_ROWS

    return f"This holds for up to {MERGE_ROWS:_} rows.".replace("_", " ")


@claim(GUIDE + "large-data.md")
def inducing_points() -> str:
    """What `training.grow` allows: of levels a class has two functions, of two classes both one."""
    from gpflow_bsvm.estimators import training
    from gpflow_bsvm.estimators.specification import FIRST_INDUCING

    def most(rows: int, latents: int) -> int:
        affordable = int((training.GROWTH_WORK / (rows * latents)) ** 0.5)
        return min(affordable, training.MOST_INDUCING)

    two, ten = 2, 20
    assert most(160_000, two) <= 1.25 * FIRST_INDUCING < most(150_000, two)  # else M stays
    return (
        f"With two classes and levels, the limit is {most(5000, two)} points for 5000 rows, "
        f"{most(50_000, two)} points for 50 000 rows, and 100 points for 160 000 or more rows. "
        f"With ten classes, it is {most(5000, ten)} points for 5000 rows."
    )


@claim(GUIDE + "large-data.md")
def cache() -> str:
    """Features that are kept."""
    from gpflow_bsvm.engine.projected_data import CACHE_BYTES

    return f"apart from a cache of {CACHE_BYTES // 2**20} MB"
