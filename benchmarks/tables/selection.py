"""Tables of kernels that are learned by a bound, beside those of the literature."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown

#: Seeger (2000), Table 1: test errors of one split; of the variational methods by mode and mean.
PRINTED = {
    "crabs": {"GP": (3, 4), "Laplace": 4, "SVM": (4, 4), "CV": 4, "linear": 3},
    "pima": {"GP": (66, 66), "Laplace": 68, "SVM": (64, 66), "CV": 67, "linear": 67},
    "wdbc": {"GP": (11, 11), "Laplace": 8, "SVM": (10, 10), "CV": 9, "linear": 19},
    "twonorm": {"GP": (233, 224), "Laplace": 297, "SVM": (260, 223), "CV": 163, "linear": 207},
    "ringnorm": {"GP": (119, 124), "Laplace": 184, "SVM": (129, 126), "CV": 160, "linear": 1763},
    "waveform": {"GP": (206, 204), "Laplace": 221, "SVM": (211, 206), "CV": 197, "linear": 220},
}
SIZES = {
    **{"crabs": "80 / 120", "pima": "200 / 332", "wdbc": "300 / 269", "twonorm": "300 / 7100"},
    **{"ringnorm": "400 / 7000", "waveform": "800 / 2504"},
}
#: Of our methods, beside the paper's; one method, or by mode and by mean.
COLUMNS: dict[str, tuple[str | tuple[str, str], str | None]] = {
    "variational SVM": (("variational SVM, plugged in", "variational SVM, posterior"), "SVM"),
    "variational GP": (("variational GP, plugged in", "variational GP, posterior"), "GP"),
    "GP, Laplace": ("GP Laplace", "Laplace"),
    "SVM, 10-fold": ("SVM 10-CV", "CV"),
    "linear": ("linear", "linear"),
    "`VEM`, full covariance": (("VEM, plugged in", "VEM, posterior"), None),
    "`BSVMClassifier`": ("BSVMClassifier", None),
}


def seeger(rows: pd.DataFrame) -> str:
    """Means over splits, in brackets the printed numbers."""
    errors = rows[rows["kind"] == "errors"]
    means = errors.groupby(["data", "method"])["errors"].mean()
    splits = errors.groupby("data")["split"].nunique()
    lines, known = [], set(errors["method"])
    columns = {
        title: column
        for title, column in COLUMNS.items()
        if column[1] or known & {column[0], *column[0]}
    }
    for name in PRINTED:
        cells = (_cell(means, name, *column) for column in columns.values())
        lines.append([name, SIZES[name], splits.get(name, 0), *cells])
    return markdown(["set", "rows, training / test", "splits", *columns], lines)


def _cell(means: pd.Series, name: str, ours: str | tuple[str, str], theirs: str | None) -> str:
    both = (ours,) if isinstance(ours, str) else ours
    found = " / ".join(_count(means, name, method) for method in both)
    if theirs is None:
        return found
    printed = PRINTED[name][theirs]
    shown = f"{printed[0]} / {printed[1]}" if isinstance(printed, tuple) else str(printed)
    return f"{found} ({shown})"


def _count(means: pd.Series, name: str, method: str) -> str:
    if (name, method) not in means:
        return "-"
    return f"{means[(name, method)]:.1f}".removesuffix(".0")


def seeger_inputs(rows: pd.DataFrame) -> str:
    """What is switched off, and support vectors."""
    lines = []
    inputs = {"crabs": 5, "pima": 7, "wdbc": 30, "twonorm": 20, "ringnorm": 20, "waveform": 21}
    printed = {"crabs": "3", "pima": "2", "waveform": "3"}
    errors = rows[rows["kind"] == "errors"]
    for name, total in inputs.items():
        of = errors[errors["data"] == name].set_index("method")
        ours = of[of.index == "variational SVM, posterior"]
        support = of.loc[of.index == "variational SVM, plugged in", "support"]
        lines.append(
            [
                *(name, total, printed.get(name, ""), _listed(ours["ignored"])),
                *(_listed(ours["first"]), f"{_listed(support)} of {SIZES[name].split(' / ')[0]}"),
            ]
        )
    header = ["set", "inputs", "ignored, printed", "ignored", "most relevant"]
    return markdown([*header, "support vectors, plugged in"], lines)


def _listed(values: pd.Series) -> str:
    return ", ".join(f"{value:.0f}" for value in values) or "-"
