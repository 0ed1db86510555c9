"""The README's picture: what a fit gives, and how fast it gets there (from `results/sweeps.csv`).

python benchmarks/picture.py
"""

from __future__ import annotations

from pathlib import Path

import gpflow
import matplotlib
import numpy as np
import pandas as pd
from common import RESULTS, make, waveform
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from sklearn.datasets import make_moons

import gpflow_bsvm as gb

PICTURE = Path(__file__).parent.parent / "docs" / "picture.png"


def main() -> None:
    matplotlib.use("Agg")
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    _boundary(left)
    _climb(right)
    fig.savefig(PICTURE, dpi=110)


def _boundary(ax: Axes) -> None:
    X, y = make_moons(400, noise=0.3, random_state=0)
    Y, Z = y[:, None].astype(float), gb.inducing_points.kmeans(X, 20)
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=1.0)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="exact"), Z, num_data=len(X))
    gb.fit(model, (X, Y))
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


def _climb(ax: Axes) -> None:
    """How far each method is from its own final ELBO, against time in units of the exact fit's."""
    X, Y, Z = waveform()
    rows = pd.read_csv(RESULTS / "sweeps.csv")
    rows = rows[(rows["variance"] == 4) & (rows["theta"] == 5)]
    unit = rows[rows["method"] == "CAVI, Hinge exact"]["ms"].median()
    for bound in ("exact", "augmented"):
        for _ in range(2):  # the first one traces
            hinge = gb.likelihoods.Hinge(bound=bound)
            model = make(gb.models.BSVM, hinge, Z, len(X), variance=4.0)
            history = gb.inference.CAVI(tol=1e-8, max_iter=400).run(model, (X, Y))
        elbo = np.array(history.elbo)
        gap = (elbo[-1] - elbo) / abs(elbo[-1])
        ax.plot(1e3 * np.array(history.seconds) / unit, gap, ".-", label=f"BSVM, {bound} bound")
    steps = rows[rows["method"].str.match(r"GPflow .*, steps$")].groupby("method")["ms"].median()
    ax.axvline(steps.min() / unit, color="C2", ls="--", label="GPflow natural gradients, probit")
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


if __name__ == "__main__":
    main()
