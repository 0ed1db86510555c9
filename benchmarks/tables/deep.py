"""Tables of networks with a Bayesian SVM on them."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown

SETS = ("mnist", "fashion_mnist", "cifar10_jpeg_12k")
#: Whose overfitting is looked at, of which methods, after which epochs.
OVERFITTED, EPOCHS = "cifar10_jpeg_12k", (1, 2, 4, 8, 12, 16, 18, 20, 22, 23)
MILDER = ("softmax", "hybrid", "penalty 1/2", "weight decay")
SHOWN = (
    *("softmax", "softmax, temperature", "hybrid, frozen", "hybrid, warm", "hybrid"),
    "hybrid, at the end",
)


def hybrid(rows: pd.DataFrame) -> str:
    """Each at its best epoch; processor time as a ratio to that of softmax of the same seed."""
    ends = rows.groupby(["data", "seed", "method"], sort=False).last()
    unit = ends.xs("softmax", level="method")["seconds"].loc[ends.index.droplevel("method")]
    times = ends.assign(time=ends["seconds"] / unit.to_numpy())
    groups = dict(list(times.groupby(["data", "method"])))
    lines = [
        [name, method, len(group), *_ranges(group), f"{group['time'].median():.2f}"]
        for name in SETS
        for method in SHOWN
        if (group := groups.get((name, method))) is not None
    ]
    scores = ("error in %", "NLL", "ECE", "epoch")
    return markdown(["data", "method", "seeds", *scores, "time, softmax is 1"], lines)


def hybrid_time(rows: pd.DataFrame) -> str:
    """Medians over seeds of processor time; an epoch of softmax is 1, held-out rows included."""
    last = rows.groupby(["data", "seed", "method"], sort=False).last()
    lines = []
    for name in SETS:
        softmax, epochs, whole = (
            last.loc[name].xs(method, level="method")
            for method in ("softmax, by epoch", "hybrid, by epoch", "hybrid")
        )
        unit = softmax["seconds"] / softmax["epoch"]
        epoch = epochs["seconds"] / epochs["epoch"] / unit
        rest = (whole["seconds"] - epochs["seconds"]) / unit
        lines.append([name, *(f"{part.median():.2f}" for part in (epoch, rest))])
    return markdown(["data", "an epoch of the hybrid", "what comes after the last"], lines)


def hybrid_epochs(rows: pd.DataFrame) -> str:
    """NLL of training and test rows on the way, of the first seed."""
    rows = rows[(rows["data"] == OVERFITTED) & (rows["seed"] == 0)]
    methods = [m for m in MILDER if f"{m}, by epoch" in set(rows["method"])]
    seen = {m: rows[rows["method"] == f"{m}, by epoch"].set_index("epoch") for m in methods}
    lines = [[epoch, *(_both(seen[m], epoch) for m in methods)] for epoch in EPOCHS]
    return markdown(["after epoch", *(f"{m}, training / test" for m in methods)], lines)


def _both(group: pd.DataFrame, epoch: int) -> str:
    if epoch not in group.index:
        return ""
    return f"{group.loc[epoch, 'nll_train']:.2f} / {group.loc[epoch, 'nll']:.2f}"


def network_step(rows: pd.DataFrame) -> str:
    """Processor time of a hybrid's step of training as a ratio to softmax's, of turns of both."""
    times = rows.pivot(index=["network", "repeat"], columns="method", values="step_ms")
    ratios = (times["hybrid"] / times["softmax"]).groupby("network", sort=False)
    lines = [
        [name, len(group), f"{group.median():.2f}", f"{group.min():.2f} to {group.max():.2f}"]
        for name, group in ratios
    ]
    return markdown(["network", "turns", "median", "least to greatest"], lines)


def _ranges(group: pd.DataFrame) -> list[str]:
    """:return: error, NLL, ECE and epoch: the mean, and of several the least and the greatest."""
    percent = group.assign(error=100 * group["error"])
    digits = {"error": 2, "nll": 4, "ece": 4, "epoch": 0}
    return [_range(percent[score], number) for score, number in digits.items()]


def _range(values: pd.Series, digits: int) -> str:
    mean, least, most = (f"{v:.{digits}f}" for v in (values.mean(), values.min(), values.max()))
    return mean if least == most else f"{mean} ({least} to {most})"


def hybrid_trials(rows: pd.DataFrame) -> str:
    """From the start, with and without what is to help it; then CAVI."""
    rows = rows.set_index("method")
    lines = [
        [method, *_two(rows.loc[[f"{method}, before CAVI"]]), *_two(rows.loc[[method]])]
        for method in rows.index.unique()
        if "before" not in method
    ]
    return markdown(["", "error in %", "NLL", "error in %, after CAVI", "NLL"], lines)


def _two(rows: pd.DataFrame) -> list[str]:
    return [f"{100 * rows['error'].iloc[-1]:.1f}", f"{rows['nll'].iloc[-1]:.3f}"]


def frozen(rows: pd.DataFrame) -> str:
    """Classifiers on the same features; processor time as a ratio to logistic regression's."""
    lines = []
    for name in rows["data"].unique():
        group = rows[rows["data"] == name].set_index("method")
        unit = group.loc["logistic regression", "seconds"]
        for method, row in group.iterrows():
            time = f"{row['seconds'] / unit:.1f}" if row["seconds"] else ""
            lines.append([name, method, *_scores(row), time])
    header = ["data", "method", "error in %", "NLL", "ECE", "time, logistic regression is 1"]
    return markdown(header, lines)


def _scores(row: pd.Series) -> list[str]:
    return [f"{100 * row['error']:.2f}", f"{row['nll']:.4f}", f"{row['ece']:.4f}"]
