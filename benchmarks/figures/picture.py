"""The README's picture: what a fit gives (two moons), and how fast it gets there (waveform)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import store
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpflow_bsvm.plotting import figure

ROWS = ("traces", "sweeps")


def draw() -> Figure:
    fig, (left, right) = figure(1, 2)
    _boundary(left)
    _distances(right, store.read("traces"), store.read("sweeps"))
    return fig


def _boundary(ax: Axes) -> None:
    import gpflow
    from sklearn.datasets import make_moons

    import gpflow_bsvm as gb

    X, y = make_moons(400, noise=0.3, random_state=0)
    Y, Z = y[:, None].astype(float), gb.inducing_points.kmeans(X, 20)
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=1.0)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="exact"), Z, num_data=len(X))
    gb.fit(model, (X, Y), progress=False)
    x1, x2 = np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.6, 2.1, 120))
    p = model.predict_y(np.stack([x1.ravel(), x2.ravel()], axis=-1))[0].numpy()
    p = p.reshape(x1.shape)
    filled = ax.contourf(x1, x2, p, levels=np.linspace(0, 1, 21), cmap="RdBu_r", alpha=0.75)
    ax.contour(x1, x2, p, levels=[0.5], colors="k", linewidths=1)
    support = gb.prediction.soft_support_vectors(model, (X, Y), num=40)
    ax.scatter(*X.T, c=y, cmap="RdBu_r", edgecolor="k", linewidth=0.3, s=16)
    ax.scatter(*X[support].T, facecolor="none", edgecolor="k", s=60, label="soft support vectors")
    ax.scatter(*Z.T, marker="x", color="k", s=22, label="inducing points")
    ax.figure.colorbar(filled, ax=ax, label="p(y = 1)", ticks=np.linspace(0, 1, 6))
    ax.legend(loc="lower left", fontsize=8)
    ax.set(title="probabilities and soft support vectors", xticks=[], yticks=[])


def _distances(ax: Axes, traces: pd.DataFrame, sweeps: pd.DataFrame) -> None:
    """How far each method is from its own final ELBO, against time in units of the exact fit's."""
    ends = traces.groupby("bound")["elbo"].transform("last")
    traces = traces.assign(gap=(ends - traces["elbo"]) / ends.abs())
    exact = traces[traces["bound"] == "exact"]
    unit = exact.loc[exact["gap"] <= 1e-3, "seconds"].iloc[0]
    for bound, trace in traces.groupby("bound", sort=False):
        ax.plot(trace["seconds"] / unit, trace["gap"], ".-", label=f"BSVM, {bound} bound")
    sweeps = sweeps[(sweeps["variance"] == 4) & (sweeps["theta"] == 5)]
    medians = sweeps.groupby("method")["ms"].median()
    steps = medians[medians.index.str.match(r"GPflow .*, steps$")].min()
    ours = medians["CAVI, Hinge exact"]
    label = "GPflow natural gradients, probit"
    ax.axvline(steps / ours, color="C2", ls="--", label=label)
    ax.axhline(1e-3, color="0.6", lw=0.8)
    ax.set(
        xscale="log",
        yscale="log",
        ylim=(1e-6, 1),
        xlabel="time, in units of the exact fit's time to 0.1 %",
        ylabel="distance from the final ELBO",
        title="waveform, 4500 rows, 100 inducing points",
    )
    ax.legend(fontsize=8)
