"""Tables of active learning."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown, shows


@shows("few_labels")
def few_labels(rows: pd.DataFrame) -> str:
    """Error and NLL of ways to a kernel, means over sets and seeds."""
    ways = list(dict.fromkeys(rows["way"]))
    lines = []
    for (loss, labels), part in rows.groupby(["loss", "labels"], sort=False):
        means = part.groupby("way")[["error", "nll"]].mean()
        learned = part[part["way"] == "vem"]["variance"]
        cells = [f"{100 * means.error[way]:.1f} / {means.nll[way]:.2f}" for way in ways]
        lines.append([loss, labels, *cells, f"{(learned < 0.1).sum()} of {len(learned)}"])
    names = {"given": "as given", "vem": "`VEM`", "vem, priors": "`VEM`, default priors"}
    names |= {"guard": "that, where left-out density gains", "left out": "by left-out density"}
    return markdown(
        ["loss", "labels", *(names[way] for way in ways), "`VEM` to a variance below 0.1"],
        sorted(lines, key=lambda line: line[0]),
    )
