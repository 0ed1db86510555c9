"""Tables of `wenzel2016`: the kernel machine, samplers, the linear machine, grids."""

from __future__ import annotations

import numpy as np
import pandas as pd
from suites.wenzel2016 import (
    ALL,
    CONSTANT_SETS,
    GENERATED,
    GRIDS,
    KERNEL_MCMC,
    LARGEST,
    LEARNED,
    LINEAR,
    LINEAR_MCMC,
    MACHINES,
    PEERS,
    SETS,
)

from .markdown import markdown, shows
from .scores import BATCH

UNIT = MACHINES[0]


@shows("wenzel2016")
def wenzel2016(rows: pd.DataFrame) -> str:
    """Error in % and its deviation over folds, and time against that of the paper's bound."""
    methods = (*MACHINES, *PEERS)
    lines = []
    for name in SETS:
        group = _ok(rows, name)
        if not len(group):
            continue
        cells = (_kernel_cell(group, method) for method in methods)
        about = group.iloc[0]
        printed = " / ".join(map(str, BATCH[name]))
        lines.append([name, f"{about['n']:.0f} / {about['d']:.0f}", printed, *cells])
    return markdown(["data", "N / D", "paper: VI-BSVM / LibSVM / GPC", *methods], lines)


def _kernel_cell(group: pd.DataFrame, method: str) -> str:
    fits = _splits(group, method)
    if not len(fits):
        return "-"
    errors = 100 * fits["error"]
    text = f"{errors.mean():.1f}" + (f" ± {errors.std():.1f}" if len(fits) > 1 else "")
    return f"{text}, {_longer(group, method, UNIT)} ({len(fits)})"


@shows("wenzel2016")
def wenzel2016_all(rows: pd.DataFrame) -> str:
    """The kernel learned over all points, against 200: errors of the same folds, and time."""
    lines = []
    for name in SETS:
        group, (method,) = _ok(rows, name), ALL
        whole = _splits(group, method)
        if not len(whole):
            continue
        few = _splits(group, UNIT).loc[whole.index]
        scores = (_both(few, whole, cell) for cell in ("error", "lengthscale", "variance"))
        lines.append([name, len(whole), *scores, _longer(group, method, UNIT)])
    if not lines:
        return "(No rows yet.)"
    header = ["data", "folds", "error: 200 / all", "lengthscale", "variance", "all takes"]
    return markdown(header, lines)


def _both(few: pd.DataFrame, whole: pd.DataFrame, cell: str) -> str:
    return f"{few[cell].mean():.3g} / {whole[cell].mean():.3g}"


@shows("wenzel2016")
def wenzel2016_mcmc(rows: pd.DataFrame) -> str:
    """Gibbs' draws against q: error, time, and f at held-out rows."""
    kinds = {KERNEL_MCMC[0]: ("kernel", UNIT, SETS)}
    kinds[LINEAR_MCMC[0]] = ("linear", LINEAR[0], (*GENERATED, SETS[-1]))
    lines = []
    for method, (machine, q, names) in kinds.items():
        for name in names:
            group = _ok(rows, name)
            draws = _splits(group, method)
            if not len(draws):
                continue
            own = _splits(group, q).loc[draws.index]
            ratio = (draws["seconds"] / draws["q_seconds_augmented"]).median()
            cells = [f"{machine}, {name}", f"{draws['n'].iloc[0]:.0f}", len(draws)]
            cells += [f"{100 * own['error'].mean():.1f} / {100 * draws['error'].mean():.1f}"]
            cells += [f"{ratio:.3g}", _longer(group, method, q), f"{draws['effective'].mean():.0f}"]
            lines.append([*cells, *(_bounds(draws, cell) for cell in ("gap", "ratio"))])
    header = ["machine, data", "N", "splits", "error in %: q / MCMC", "MCMC, sweeps are 1"]
    header += ["MCMC, a whole fit is 1", "effective draws", "gap: augmented / exact"]
    return markdown([*header, "deviation: augmented / exact"], lines)


def _bounds(draws: pd.DataFrame, cell: str) -> str:
    return " / ".join(f"{draws[f'{cell}_{bound}'].mean():.2f}" for bound in ("augmented", "exact"))


@shows("wenzel2016")
def wenzel2016_linear(rows: pd.DataFrame) -> str:
    """Error in %, time against that of the least rows, and how time grows."""
    methods, names = (*LINEAR[:3], *LINEAR_MCMC, *LINEAR[3:]), (*GENERATED, *LARGEST)
    fits = rows[(rows["status"] == "ok") & rows["data"].isin(names)]
    means = fits.groupby(["method", "n"])[["error", "seconds"]].mean()
    unit = means.loc[LINEAR[0], "seconds"].iloc[0]
    lines = []
    for n in sorted(fits["n"].unique()):
        cells = (_linear_cell(means, (method, n), unit) for method in methods)
        lines.append([f"{n:.0f}", fits.loc[fits["n"] == n, "split"].nunique(), *cells])
    growth = (_growth(means.loc[method, "seconds"]) for method in methods)
    lines.append(["time grows as", "", *growth])
    return markdown(["rows", "draws", *methods], lines)


def _linear_cell(means: pd.DataFrame, key: tuple, unit: float) -> str:
    if key not in means.index:
        return "-"
    error, seconds = means.loc[key]
    return f"{100 * error:.1f}, {seconds / unit:.3g}"


def _growth(seconds: pd.Series) -> str:
    """The exponent between the two largest numbers of rows."""
    low, high = seconds.index[-2:]
    power = np.log(seconds[high] / seconds[low]) / np.log(high / low)
    return f"N^{power:.2f}"


@shows("wenzel2016")
def wenzel2016_grid(rows: pd.DataFrame) -> str:
    """The regularisation constant: learned or by a grid, error in % on the same folds, time."""
    lines = []
    for name in CONSTANT_SETS:
        group = _ok(rows, name)
        whole = _splits(group, GRIDS[-1]).index
        if not len(whole):
            continue
        line = [name, len(whole)]
        for method in (*LEARNED, *GRIDS):
            fits = _splits(group, method).loc[whole]
            C = np.exp(np.log(fits["C"]).mean())
            line.append(f"{100 * fits['error'].mean():.1f}, {C:.2g}")
        svc = 100 * _splits(group, LEARNED[0]).loc[whole, "error_svc"].mean()
        longer = (_longer(group, method, LEARNED[0]) for method in GRIDS)
        lines.append([*line, f"{svc:.1f}", *longer])
    header = ["data", "folds", *(f"{method}: error, C" for method in (*LEARNED, *GRIDS))]
    return markdown([*header, "SVC at learned-augmented", *(f"{m} takes" for m in GRIDS)], lines)


def _ok(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    return rows[(rows["data"] == name) & (rows["status"] == "ok")]


def _splits(group: pd.DataFrame, method: str) -> pd.DataFrame:
    """:return: fits of a set by their splits."""
    return group[group["method"] == method].set_index("split").sort_index()


def _longer(group: pd.DataFrame, method: str, unit: str) -> str:
    """The ratio of processor seconds, median over the splits of both."""
    ratios = _splits(group, method)["seconds"] / _splits(group, unit)["seconds"]
    return f"{ratios.median():.2g}"
