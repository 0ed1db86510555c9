"""Tables of networks with a Bayesian SVM on them."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown

SETS = ("mnist", "fashion_mnist", "cifar10_jpeg_12k")
SHOWN = (
    *("softmax", "softmax, temperature", "hybrid, frozen", "hybrid, warm", "hybrid"),
    "hybrid, at the end",
)
EARLIER = ("mnist", "fashion_mnist")
#: Whose overfitting is looked at, and after which epochs.
OVERFITTED, EPOCHS = "cifar10_jpeg_12k", (1, 2, 4, 6, 8, 10, 12, 16, 20, 24)
SWEEPS = (0, 1, 2, 3)


def hybrid(rows: pd.DataFrame) -> str:
    """At the end of training; processor time as a ratio to that of softmax of the same seed."""
    rows = rows[rows["method"].isin(SHOWN) & rows["data"].isin(SETS)]
    unit = rows[rows["method"] == "softmax"].set_index(["data", "seed"])["seconds"]
    units = unit.loc[list(zip(rows["data"], rows["seed"]))].to_numpy()
    groups = dict(list(rows.assign(time=rows["seconds"] / units).groupby(["data", "method"])))
    lines = [
        [name, method, len(group), *_ranges(group), f"{group['time'].mean():.2f}"]
        for name in SETS
        for method in SHOWN
        if (group := groups.get((name, method))) is not None
    ]
    scores = ("error in %", "NLL", "ECE", "epoch")
    return markdown(["data", "method", "seeds", *scores, "time, softmax is 1"], lines)


def hybrid_earlier(rows: pd.DataFrame) -> str:
    """As `hybrid`: the sets that are not measured anew, of one seed; CAVI is the whole of it."""
    last = rows.groupby(["data", "method"], sort=False).last()
    unit = {name: last.loc[(name, "softmax"), "seconds"] for name in EARLIER}
    lines = [
        [name, method, *_scores(row), f"{row['seconds'] / unit[name]:.2f}"]
        for name in EARLIER
        for method, row in last.loc[name].loc[list(SHOWN[:-1])].iterrows()
    ]
    return markdown(["data", "method", "error in %", "NLL", "ECE", "time, softmax is 1"], lines)


def hybrid_epochs(rows: pd.DataFrame) -> str:
    """NLL of training and test rows on the way, of the first seed."""
    rows = rows[(rows["data"] == OVERFITTED) & (rows["seed"] == 0)]
    methods = [
        rows[rows["method"] == f"{method}, by epoch"].set_index("epoch")
        for method in ("softmax", "hybrid")
    ]
    lines = [[epoch, *(_both(group, epoch) for group in methods)] for epoch in EPOCHS]
    return markdown(["after epoch", "softmax, training / test", "hybrid, training / test"], lines)


def hybrid_sweeps(rows: pd.DataFrame) -> str:
    """NLL and ECE after sweeps of CAVI, and their time where one epoch of softmax is 1."""
    lines = []
    for name, group in rows[rows["method"] == "CAVI"].groupby("data", sort=False):
        seen = group.set_index("sweeps")
        soft = rows[(rows["data"] == name) & (rows["method"] == "softmax, by epoch")]
        unit = soft.loc[soft["seed"] == 0, "seconds"].diff().median()
        lines += [
            [name, int(number), f"{row['nll']:.4f}", f"{row['nll_train']:.4f}", f"{row['ece']:.4f}",
             f"{row['seconds'] / unit:.2f}"]
            for number, row in seen.loc[[*SWEEPS, seen.index.max()]].iterrows()
        ]  # fmt: skip
    header = ["data", "sweeps", "NLL", "NLL of training rows", "ECE", "time, an epoch is 1"]
    return markdown(header, lines)


def network_step(rows: pd.DataFrame) -> str:
    """A step of the hybrid, where one of softmax beside it is 1: the median of the repeats."""
    wide = rows.pivot(index=["network", "repeat"], columns="method", values="step_ms")
    ratios = (wide["hybrid"] / wide["softmax"]).groupby("network", sort=False)
    extra = (wide["hybrid"] - wide["softmax"]).groupby("network", sort=False).median()
    lines = [
        [name, f"{wide.loc[name, 'softmax'].median():.0f}", f"{extra[name]:.0f}",
         f"{group.median():.2f} ({group.min():.2f} to {group.max():.2f})"]
        for name, group in ratios
    ]  # fmt: skip
    return markdown(
        ["network", "softmax, ms a step", "more, hybrid", "hybrid, softmax is 1"], lines
    )


def _ranges(group: pd.DataFrame) -> list[str]:
    """:return: error, NLL, ECE and epoch: the mean, and of several the least and the greatest."""
    percent = group.assign(error=100 * group["error"])
    digits = {"error": 2, "nll": 3, "ece": 3, "epoch": 0}
    return [_range(percent[score], number) for score, number in digits.items()]


def _range(values: pd.Series, digits: int) -> str:
    mean, least, most = (f"{v:.{digits}f}" for v in (values.mean(), values.min(), values.max()))
    return mean if least == most else f"{mean} ({least} to {most})"


def _both(group: pd.DataFrame, epoch: int) -> str:
    if epoch not in group.index:
        return ""
    return f"{group.loc[epoch, 'nll_train']:.2f} / {group.loc[epoch, 'nll']:.2f}"


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
