"""Tables 3 and 4 of Gold & Sollich (2003): where searches end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from .markdown import markdown, spread

#: Test error in % as printed in Table 3 (mean, standard deviation) and Table 4 (best trial).
PRINTED = {
    "crabs": ((10.7, 2.1), (10.5, 1.3), (13.0, 1.8), (6.0, 1.8), (9.2, 1.5)),
    "pima": ((30.3, 2.0), (33.5, 2.2), (23.2, 2.7), (21.0, 1.1), (20.8, 1.5)),
    "wdbc": ((5.8, 2.5), (5.8, 3.6), (9.6, 2.8), (7.8, 4.2), (4.0, 1.2)),
    "twonorm": ((13.5, 12.6), (12.6, 5.0), (5.2, 1.9), (4.6, 0.9), (4.0, 0.2)),
    "ringnorm": ((4.7, 1.6), (2.5, 5.3), (3.3, 1.3), (3.5, 1.3), (3.2, 0.6)),
}
PRINTED_BEST = {
    "crabs": (5.9, 9.2, 10.9, 3.4, 5.0),
    "pima": (27.8, 28.4, 20.2, 19.0, 19.3),
    "wdbc": (1.9, 3.4, 4.1, 1.9, 1.5),
    "twonorm": (2.9, 3.1, 3.4, 3.5, 3.4),
    "ringnorm": (2.1, 2.2, 1.9, 2.0, 2.5),
}
#: Method of the rows -> column of the printed tables.
COLUMNS = {"laplace": 0, "laplace_quadratic": 1, "gacv": 2, "smoothed_span": 3, "evidence": 4}
#: What tables call the printed columns.
PAPERS = ("LE1", "LE2", "GACV", "Span", "evidence")
#: Those of this package.
OURS = (
    *("VEM", "VEM, prior", "VEM, C=1", "VEM, C=1, prior"),
    *("BSVMClassifier", "BSVMClassifier, no offset"),
)
#: What the paper's own searches are called, behind the criterion.
WALK = ", walk"
METHODS = {
    "laplace": "Laplace (LE1)",
    "laplace_quadratic": "Laplace, quadratic (LE2)",
    "gacv": "GACV",
    "smoothed_span": "SmoothedSpan (Span)",
    "evidence": "evidence by HMC",
    "hinge_span": "HingeSpan",
    "VEM": "VEM, penalty 2",
    "plug-in": "SVC, that kernel",
    "VEM, prior": "VEM, penalty 2, default priors",
    "plug-in, prior": "SVC, that kernel",
    "VEM, C=1": "VEM, penalty 1",
    "plug-in, C=1": "SVC, that kernel",
    "VEM, C=1, prior": "VEM, penalty 1, default priors",
    "plug-in, C=1, prior": "SVC, that kernel",
    "BSVMClassifier": "BSVMClassifier()",
    "BSVMClassifier, no offset": "BSVMClassifier, without an offset",
    "SVC, grid": "SVC, grid",
}


def gold_sollich(rows: pd.DataFrame) -> str:
    """Table 3: mean and deviation of the test error over starts [how many], (as printed)."""
    return _by_method(rows, spread, lambda name, column: "{} ± {}".format(*PRINTED[name][column]))


def gold_sollich_best(rows: pd.DataFrame) -> str:
    """Table 4: the best start by test error."""
    return _by_method(
        rows,
        lambda errors: f"{errors.min():.1f}",
        lambda name, column: str(PRINTED_BEST[name][column]),
    )


def gold_sollich_sensible(rows: pd.DataFrame) -> str:
    """Test error from the one start where the kernel makes sense."""
    rows = rows[rows["start"] == -1]
    return _table(rows, lambda errors: f"{errors.mean():.1f}", lambda *_: "")


def gold_sollich_aim(rows: pd.DataFrame) -> str:
    """Of each set: the best column as printed, ours, and what is least of over 3 starts."""
    rows, lines = rows[rows["start"] >= 0], []
    for name in (name for name in PRINTED if (rows["data"] == name).any()):
        of = rows[rows["data"] == name].groupby("method")["error"]
        errors, many = 100 * of.agg(["mean", "std"]), of.count() >= min(4, of.count().max())
        column = min(range(len(PAPERS)), key=lambda column: PRINTED[name][column][0])
        best = "{}, {} ± {}".format(PAPERS[column], *PRINTED[name][column])
        cells = (_found(errors, method) if method in errors.index else "-" for method in OURS)
        least = (_named(errors, errors.loc[many, what].idxmin()) for what in ("mean", "std"))
        lines.append([name, best, *cells, *least])
    ours = (METHODS[method] for method in OURS)
    return markdown(["error in %", "best printed", *ours, "least mean", "least spread"], lines)


def _found(errors: pd.DataFrame, method: str) -> str:
    return "{:.1f} ± {:.1f}".format(*errors.loc[method])


def _named(errors: pd.DataFrame, method: str) -> str:
    return f"{dict(_titles([method]))[method]}, {_found(errors, method)}"


def _by_method(rows: pd.DataFrame, cell: Callable, printed: Callable) -> str:
    return _table(rows[rows["start"] >= 0], cell, printed)


def _table(rows: pd.DataFrame, cell: Callable, printed: Callable) -> str:
    names, lines = [name for name in (*PRINTED, "waveform") if (rows["data"] == name).any()], []
    for method, title in _titles(set(rows["method"])):
        column = COLUMNS.get(method.removesuffix(WALK))
        line = [title]
        for name in names:
            group = rows[(rows["method"] == method) & (rows["data"] == name)]
            own = cell(100 * group["error"]) if len(group) else "-"
            known = column is not None and name in PRINTED
            paper = printed(name, column) if known else ""
            line.append(f"{own} ({paper})" if paper else own)
        lines.append(line)
    return markdown(["error in %", *names], lines)


def _titles(known: Iterable[str]) -> list[tuple[str, str]]:
    """:return: methods that there are, and what tables call them; the paper's walk last."""
    walks = {f"{method}{WALK}": f"{title}, random walk" for method, title in METHODS.items()}
    return [pair for pair in {**METHODS, **walks}.items() if pair[0] in known]
