"""Tables of kernels that are learned by a bound, beside those of the literature."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown, spread

SETS = ("crabs", "pima", "wdbc", "twonorm", "ringnorm", "waveform")
SIZES = ("80 / 120", "200 / 332", "300 / 269", "300 / 7100", "400 / 7000", "800 / 2504")
INPUTS = (5, 7, 30, 20, 20, 21)
#: Method of the rows -> what the table calls it.
METHODS = {
    "variational SVM, plugged in": "variational SVM, plugged in",
    "variational SVM, posterior": "variational SVM, mean",
    "variational GP, plugged in": "variational GP, plugged in",
    "variational GP, posterior": "variational GP, mean",
    "GP Laplace": "GP, Laplace",
    "SVM 10-CV": "SVM, 10-fold",
    "linear": "linear",
    "VEM, plugged in": "`VEM`, plugged in",
    "VEM, posterior": "`VEM`, mean",
    "BSVMClassifier": "`BSVMClassifier`",
    "BSVMClassifier, no offset": "`BSVMClassifier`, without an offset",
    "as printed, SVM, plugged in": "variational SVM without the `White`, plugged in",
    "as printed, SVM, posterior": "variational SVM without the `White`, mean",
}
#: Seeger (2000), Table 1: test errors of one split.
PRINTED = {
    "variational SVM, plugged in": (4, 64, 10, 260, 129, 211),
    "variational SVM, posterior": (4, 66, 10, 223, 126, 206),
    "variational GP, plugged in": (3, 66, 11, 233, 119, 206),
    "variational GP, posterior": (4, 66, 11, 224, 124, 204),
    "GP Laplace": (4, 68, 8, 297, 184, 221),
    "SVM 10-CV": (4, 67, 9, 163, 160, 197),
    "linear": (3, 67, 19, 207, 1763, 220),
}
#: So many inputs were ignored, as printed, by the variational machine.
PRINTED_IGNORED = {"crabs": 3, "pima": 2, "waveform": 3}


def seeger(rows: pd.DataFrame) -> str:
    """Mean and deviation of test errors over splits [how many], (as printed, of one split)."""
    errors = rows[rows["kind"] == "errors"]
    found, lines = errors.groupby(["method", "data"])["errors"], []
    for method in (method for method in METHODS if (errors["method"] == method).any()):
        printed = PRINTED.get(method, ("",) * len(SETS))
        cells = (_cell(found, (method, name), paper) for name, paper in zip(SETS, printed))
        lines.append([METHODS[method], *cells])
    header = (f"{name}, {size}" for name, size in zip(SETS, SIZES))
    return markdown(["errors", *header], lines)


def _cell(found: pd.core.groupby.SeriesGroupBy, key: tuple[str, str], printed: object) -> str:
    own = spread(found.get_group(key)) if key in found.groups else "-"
    return f"{own} ({printed})" if printed != "" else own


def seeger_inputs(rows: pd.DataFrame) -> str:
    """What is switched off, what counts most, and support vectors: means over splits."""
    lines = []
    for name, total, size in zip(SETS, INPUTS, SIZES):
        line = [name, total, PRINTED_IGNORED.get(name, "")]
        of = rows[(rows["kind"] == "errors") & (rows["data"] == name)].set_index("method")
        for method in ("variational SVM", "VEM"):
            ours = of[of.index == f"{method}, posterior"]
            support = of.loc[of.index == f"{method}, plugged in", "support"]
            line += [_mean(ours["ignored"]), _most(ours["first"]), _mean(support)]
        lines.append([*line, size.split(" / ")[0]])
    header = ["set", "inputs", "ignored, printed", "ignored", "most relevant", "support vectors"]
    return markdown([*header, *(f"{title}, `VEM`" for title in header[3:]), "rows"], lines)


def _mean(values: pd.Series) -> str:
    return f"{values.mean():.1f}".removesuffix(".0") if len(values) else "-"


def _most(values: pd.Series) -> str:
    """:return: the most frequent value, and of how many it is that."""
    if not len(values):
        return "-"
    counts = values.value_counts()
    return f"{counts.index[0]:.0f} ({counts.iloc[0]} of {len(values)})"
