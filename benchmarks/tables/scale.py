"""Tables of what it takes to fit many rows."""

from __future__ import annotations

import pandas as pd

from .markdown import markdown, scores, shows

#: Nearer than this to the best, an AUC is at its end.
AUC_NEAR = 1e-3


@shows("passes")
def passes(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat; GPflow at the best of its batch sizes."""
    wide = rows.pivot(index="repeat", columns="method", values="rows_per_s")
    ratios = wide.div(wide["CAVI"], axis=0).median()
    lines = [["matrix products of the pass alone", "-", f"{ratios['matrix products']:.2f}"]]
    for dtype in ("float32", "float64"):
        best = ratios[ratios.index.str.startswith(f"GPflow {dtype}")].idxmax()
        batch = best.rpartition(" ")[-1]
        lines.append([f"GPflow, natural gradients, {dtype}", batch, f"{ratios[best]:.2f}"])
    return markdown(["", "batch", "rows a second, those of CAVI are 1"], lines)


@shows("products")
def products(rows: pd.DataFrame) -> str:
    """Medians over repeats of the ratio within a repeat."""
    wide = rows.pivot_table(index="M", columns="bound", values="ratio", aggfunc="median")
    wide = wide[["exact", "augmented"]].map("{:.2f}".format)
    header = ["M", *(f"{bound} bound" for bound in wide)]
    return markdown(header, wide.reset_index().to_numpy().tolist())


@shows("tensor_float")
def tensor_float(rows: pd.DataFrame) -> str:
    wide = rows.pivot(index=["data", "n"], columns="factors", values=["error", "nll"])
    lines = [
        [
            f"`{data}`",
            n,
            *(
                f"{row['error', factors]:.3f} / {row['nll', factors]:.3f}"
                for factors in ("exact", "rounded")
            ),
        ]
        for (data, n), row in wide.iterrows()
    ]
    return markdown(["data", "rows", "error / NLL", "with rounded factors"], lines)


@shows("time_to_auc")
def time_to_auc(rows: pd.DataFrame) -> str:
    """The best is that of our fits and of SVGP."""
    best = rows[rows["method"].str.contains("fit|SVI|SVGP")]["auc"].max()
    lines = []
    for method, fit in rows.groupby("method", sort=False):
        near = fit[fit["auc"] >= best - AUC_NEAR]["seconds"]
        shown = "not reached" if near.empty else f"{near.iloc[0]:.1f}"
        lines.append([method, shown, f"{fit['auc'].max():.4f}", f"{fit['seconds'].iloc[-1]:.0f}"])
    header = [f"seconds until AUC is within {AUC_NEAR:g} of the best ({best:.4f})", "best AUC"]
    return markdown(["", *header, "seconds in all"], lines)


@shows("large_sets")
def large_sets(rows: pd.DataFrame) -> str:
    """Error / NLL, and in brackets our seconds, those of others in units of them."""
    methods = rows["method"].unique()
    lines = []
    for name, group in rows.groupby("data", sort=False):
        about, fits = group.iloc[0], group.set_index("method")
        ours = fits.loc["bsvm", "seconds"]
        times = [f"{ours:.0f} s", *(f"{s / ours:.2g}" for s in fits.loc[methods[1:], "seconds"])]
        cells = (f"{scores(fits.loc[m], 4)} ({time})" for m, time in zip(methods, times))
        lines.append([name, f"{about['n']} / {about['d']} / {about['classes']}", *cells])
    return markdown(["data", "rows / columns / classes", *methods], lines)
