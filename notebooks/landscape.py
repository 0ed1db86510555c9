# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Criteria as landscapes
#
# A criterion tells how good the hyperparameters of a support vector machine are. Gold and Sollich
# (2003) found that every simple criterion has many local optima. With only two hyperparameters, we
# can draw each criterion as a landscape. Each section tests one claim.

# %%
import warnings

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter
from sklearn.datasets import make_moons

import gpflow_bsvm as gb
from gpflow_bsvm.papers import gold2003

warnings.simplefilter("ignore")  # where all rows are at the bound, Laplace's evidence says so
NUM = 13  # places to a side; of the Bayesian machine every second
SCALES, VARIANCES = np.geomspace(0.1, 10, NUM), np.geomspace(0.03, 300, NUM)
X, y = make_moons(60, noise=0.35, random_state=2)
X_test, y_test = make_moons(2000, noise=0.35, random_state=1)
Y = y[:, None].astype(float)


def make_kernel(scale=1.0, variance=1.0):
    """C = 1: only C times the variance counts for the machine."""
    smooth = gpflow.kernels.SquaredExponential(variance, lengthscales=scale)
    offset = gpflow.kernels.Constant(0.1)
    gpflow.set_trainable(offset, False)
    return smooth + offset


def errors(f):
    return np.mean((f > 0) != (y_test == 1))


# %% [markdown]
# ## 1. The plane
#
# We fit three machines at every point of a grid of lengthscale and variance: a support vector
# machine with linear slack, one with quadratic slack, and a Bayesian machine. `VEM` maximizes the
# evidence lower bound of the Bayesian machine.

# %%
LINEAR = {
    "GACV": gold2003.GACV(),
    "HingeSpan": gold2003.HingeSpan(),
    "LaplaceEvidence": gold2003.LaplaceEvidence(),
}
QUADRATIC = {
    "SmoothedSpan": gold2003.SmoothedSpan(),
    "Laplace, quadratic": gold2003.LaplaceEvidence("quadratic"),
}


def of_machine(kernel, criteria, slack):
    mode = gold2003.svm_mode(kernel, (X, Y), 1.0, slack=slack)
    found = {name: criterion.cost(criterion.of_mode(mode)) for name, criterion in criteria.items()}
    return found | {f"test error, {slack} slack": errors(mode.predict(kernel, X, X_test))}


posterior = gb.models.BatchBSVM((X, Y), make_kernel(), gb.likelihoods.Hinge())
cavi = gb.inference.CAVI(max_steps=8, tol=1e-3)


def of_posterior(scale, variance):
    smooth = posterior.kernel.kernels[0]
    smooth.lengthscales.assign(scale)
    smooth.variance.assign(variance)
    bound = cavi.run(posterior, progress=False).elbo[-1]  # q goes on from the place before
    f = posterior.predict_f(X_test)[0].numpy()[:, 0]
    return {"variational bound": -bound / len(X), "test error, Bayesian": errors(f)}


def over_the_plane(function, step=1):
    rows = [[function(s, v) for s in SCALES[::step]] for v in VARIANCES[::step]]
    return {name: np.array([[at[name] for at in row] for row in rows]) for name in rows[0][0]}


costs = over_the_plane(lambda s, v: of_machine(make_kernel(s, v), LINEAR, "linear"))
costs |= over_the_plane(lambda s, v: of_machine(make_kernel(s, v), QUADRATIC, "quadratic"))
costs |= over_the_plane(of_posterior, step=2)

# %% [markdown]
# ## 2. Most landscapes have more than one hill
#
# Colors show ranks: the darkest color marks the tenth of the plane where the criterion is best. A
# ring is a local optimum, better than its eight neighbors; the star is the best point. `VEM` needs
# no grid: the white lines show its paths from three starting points (dots). The paths from a
# sensible kernel and from a much too smooth kernel end at the same point. The path from a small
# lengthscale ends at another point. The bound is better there, but the machine makes many errors,
# because it learns nothing about one row from another. The evidence has this false optimum because
# the hinge is not normalized. Laplace's evidences have a worse false optimum in a corner, where
# they improve without end. The priors of `BSVMClassifier` avoid both false optima.


# %%
def local_optima(cost):
    """Places that are better than their neighbours; plateaus are none."""
    lowest = minimum_filter(cost, size=3, mode="nearest")
    highest = maximum_filter(cost, size=3, mode="nearest")
    rows, columns = np.nonzero((cost == lowest) & (highest - lowest > 1e-6))
    scales, variances = axes_of(cost)
    return scales[columns], variances[rows]


def axes_of(cost):
    step = (NUM - 1) // (len(cost) - 1)
    return SCALES[::step], VARIANCES[::step]


def vem_path(scale, variance):
    model = gb.models.BatchBSVM((X, Y), make_kernel(scale, variance), gb.likelihoods.Hinge())
    history = gb.inference.VEM().run(model, progress=False)
    names = (".kernel.kernels[0].lengthscales", ".kernel.kernels[0].variance")
    path = np.stack([np.ravel(history.hyperparameters[name]) for name in names])
    return np.column_stack([[scale, variance], path])


paths = [vem_path(1.0, 1.0), vem_path(6.0, 200.0), vem_path(0.15, 0.1)]


def draw(ax, name):
    cost = costs[name]
    rank = np.searchsorted(np.sort(cost.ravel()), cost) / cost.size
    levels = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    filled = ax.contourf(*axes_of(cost), rank, levels=levels, cmap="viridis")
    scales, variances = local_optima(cost)
    if "error" not in name:
        ax.plot(scales, variances, "o", mfc="none", mec="white", ms=7, mew=1.2)
    row, column = np.unravel_index(cost.argmin(), cost.shape)
    best = axes_of(cost)[0][column], axes_of(cost)[1][row]
    ax.plot(*best, "*", color="C3", mec="white", ms=14, mew=0.8)
    for path in paths:
        ax.plot(*path, "-", color="white", lw=1.6)
        ax.plot(*path[:, 0], ".", color="white", ms=7)
        ax.plot(*path[:, -1], "D", color="white", mec="k", mew=0.6, ms=6)
    ax.set(xscale="log", yscale="log", title=name, xlabel="lengthscale")
    ax.set(xlim=SCALES[[0, -1]], ylim=VARIANCES[[0, -1]])
    return filled


NAMES = ["test error, linear slack", "GACV", "HingeSpan", "LaplaceEvidence"]
NAMES += ["test error, quadratic slack", "SmoothedSpan", "Laplace, quadratic"]
NAMES += ["variational bound"]
fig, axes = plt.subplots(2, 4, figsize=(15, 7.2), sharex=True, sharey=True, layout="constrained")
for ax, name in zip(axes.flat, NAMES):
    filled = draw(ax, name)
for ax in axes[:, 0]:
    ax.set_ylabel("variance (C = 1)")
fig.colorbar(filled, ax=axes, label="share of the plane that is better", shrink=0.8)
plt.show()

# %%
for name in NAMES:
    if "error" in name:
        continue
    machine = "quadratic slack" if name in QUADRATIC else "linear slack"
    machine = "Bayesian" if name == "variational bound" else machine
    error, cost = costs[f"test error, {machine}"], costs[name]
    at_best = error.flat[cost.argmin()]
    rings = len(local_optima(cost)[0])
    print(
        f"{name:25} {rings} local optima, test error at the best {100 * at_best:.1f} % "
        f"(best of the plane {100 * error.min():.1f} %)"
    )

ends_of_vem = np.log([path[:, -1] for path in paths])
assert np.abs(ends_of_vem[0] - ends_of_vem[1]).max() < 0.3 < ends_of_vem[0, 0] - ends_of_vem[2, 0]

# %% [markdown]
# ## 3. Where GACV is too high
#
# All three curves estimate the mean hinge loss of left-out rows. GACV (generalized approximate
# cross-validation) lowers the margin of each row by alpha k(x, x), as if there were no other rows.
# But the rows on the margin constrain f, and `HingeSpan` takes this into account. GACV is never too
# low, and it is exact if no row is on the margin.

# %%
penalties = np.geomspace(0.01, 300, 16)
curves = {"left out, by refits": [], "HingeSpan": [], "GACV": []}
for penalty in penalties:
    mode = gold2003.svm_mode(make_kernel(), (X, Y), penalty)
    margins = gold2003.LeaveOneOut().left_out_margins(mode)
    left_out = np.maximum(1 - margins, 0).mean()
    found = left_out, gold2003.HingeSpan().of_mode(mode), gold2003.GACV().of_mode(mode)
    for name, value in zip(curves, found):
        curves[name].append(value)
assert (np.array(curves["GACV"]) >= np.array(curves["left out, by refits"]) - 1e-9).all()
fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for (name, values), style in zip(curves.items(), ("k-", "C0--", "C3-")):
    ax.plot(penalties, values, style, label=name)
ax.set(xscale="log", xlabel="C", ylabel="mean hinge loss of rows left out", ylim=(0, 4))
ax.legend()
plt.show()

# %% [markdown]
# ## 4. Many lengthscales, many optima
#
# With a lengthscale for each of six inputs, searches from three starting points end at different
# points. Are two of these end points different optima? Like the paper, we look at the criterion on
# the line between them. If it is worse in between than at both ends, there are two optima. If the
# criterion only increases or only decreases along the line, the worse search had not yet converged.

# %%
rng = np.random.default_rng(0)
y_wide = rng.integers(2, size=60)
X_wide = rng.normal(size=(60, 6)) + (2 * y_wide[:, None] - 1) * 2 / 20**0.5
wide = X_wide, y_wide[:, None].astype(float)


def ends(criterion, num=3):
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(6, 2.0))
    kernel = kernel + gpflow.kernels.Constant(0.1)
    starts = gold2003.random_starts(kernel, 1.0, num - 1, width=0.7, seed=1)
    how = {"method": "L-BFGS-B", "max_evaluations": 30, "reach": 100.0}
    return kernel, gold2003.optimise(criterion, kernel, wide, 1.0, starts=starts, **how)


def between(criterion, kernel, first, second, shares):
    """The criterion on the line between two optima, in logarithms."""
    values = []
    for share in shares:
        at = {
            name: np.exp((1 - share) * np.log(one) + share * np.log(second.parameters[name]))
            for name, one in first.parameters.items()
        }
        penalty = float(at.pop("penalty", 1.0))
        gpflow.utilities.multiple_assign(kernel, at)
        values.append(criterion(kernel, wide, penalty))
    return values


fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
shares = np.linspace(0, 1, 15)
for ax, criterion in zip(axes, (gold2003.SmoothedSpan(), gold2003.LaplaceEvidence())):
    kernel, found = ends(criterion)
    order = sorted(found.optima, key=lambda optimum: criterion.cost(optimum.value))
    for number, other in enumerate(order[1:], 2):
        values = between(criterion, kernel, order[0], other, shares)
        ax.plot(shares, values, ".-", ms=4, label=f"to number {number}")
    ax.set(title=type(criterion).__name__, xlabel="from the best end to another")
axes[0].set_ylabel("criterion")
axes[0].legend()
plt.show()
