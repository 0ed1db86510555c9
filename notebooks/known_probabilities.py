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
# # Probabilities, where the true ones are known
#
# A support vector machine decides on which side of the border a row lies. How good are its
# probabilities? We estimate known probabilities in five ways: SVC with Platt's sigmoid or with
# isotonic regression, SVGP with Bernoulli, and the Bayesian SVM with the hinge or with levels of
# probability.

# %%
import time
import warnings

import gpflow
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit, xlogy
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import gpflow_bsvm as gb

# %% short="SETTINGS, M, TEST_ROWS = {('overlapping', 250): 1}, 20, 500"
SETTINGS = {("overlapping", 250): 1, ("overlapping", 1000): 1, ("overlapping", 4000): 1}
SETTINGS |= {("clean", 250): 1, ("clean", 1000): 1}
M, TEST_ROWS = 50, 4000

# %% [markdown]
# ## 1. Data
#
# x is standard normal in the plane. The log odds of y = 1 are a sum of waves. For clean classes,
# the waves are five times as large as for overlapping classes. No method uses waves in its model.
# The probit link of Bernoulli is close to the logistic function that generates the labels.

# %%
STRENGTH = {"overlapping": 2.0, "clean": 10.0}


def truth(X, kind):
    a, b = X.T
    return expit(STRENGTH[kind] * (np.sin(2 * a) + a * np.cos(1.5 * b)))


def draw(kind, num_rows, seed):
    random = np.random.default_rng([seed, num_rows])
    X = random.normal(size=(num_rows, 2))
    return X, (random.random(num_rows) < truth(X, kind)).astype(int)


# %% [markdown]
# ## 2. The methods
#
# All methods learn their kernel from the same rows. `BSVMClassifier` uses `VEM`. SVGP has the same
# kernel without an offset, wider priors, and L-BFGS on its bound. SVC uses a grid of 20 pairs of C
# and gamma on three folds (of at most 1000 rows). Each calibration of SVC uses five folds. All
# Bayesian methods have the same number of inducing points.


# %%
def svc(method):
    def fit(X, y):
        grid = {"C": (0.1, 1, 10, 100, 1000), "gamma": (0.1, 0.3, 1.0, 3.0)}
        search = GridSearchCV(SVC(), grid, cv=3, refit=False).fit(X[:1000], y[:1000])
        model = CalibratedClassifierCV(SVC(**search.best_params_), method=method, ensemble=False)
        model.fit(X, y)
        return lambda X_new: model.predict_proba(X_new)[:, 1]

    return fit


def svgp(X, y):
    data = X, y[:, None].astype(float)
    kernel, Z = gb.priors.ard_kernel(2), gb.inducing_points.kmeans(X, M)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Bernoulli(), Z)
    gpflow.set_trainable(model.inducing_variable, False)
    gpflow.optimizers.Scipy().minimize(
        model.training_loss_closure(data), model.trainable_variables, options={"maxiter": 300}
    )
    return lambda X_new: np.clip(model.predict_y(X_new)[0].numpy()[:, 0], 0, 1)


def bsvm(**options):
    def fit(X, y):
        model = gb.BSVMClassifier(num_inducing=M, random_state=0, **options).fit(X, y)
        return lambda X_new: model.predict_proba(X_new)[:, 1]

    return fit


METHODS = {
    "SVC, Platt": svc("sigmoid"),
    "SVC, isotonic": svc("isotonic"),
    "SVGP, Bernoulli": svgp,
    "BSVM, hinge, not calibrated": bsvm(loss="hinge", penalty=2.0, calibrate=False),
    "BSVM, hinge": bsvm(loss="hinge", penalty=2.0),
    "BSVM, levels": bsvm(loss="levels", penalty=2.0),
    "BSVM, its own choice": bsvm(),
}

# %% [markdown]
# ## 3. All methods on all data
#
# `distance` is the root mean square of p - P on new rows, where P is the true probability. `excess`
# is the NLL of p minus the NLL of P itself, in nats per row: the mean of KL(P, p).


# %%
def scores(P, p):
    q = np.clip(p, 1e-15, 1 - 1e-15)
    excess = xlogy(P, P / q) + xlogy(1 - P, (1 - P) / (1 - q))
    wrong = np.where(p > 0.5, 1 - P, P)
    return {
        "distance": np.sqrt(np.mean((p - P) ** 2)),
        "excess": excess.mean(),
        "error": wrong.mean(),
        "least error": np.minimum(P, 1 - P).mean(),
    }


warnings.filterwarnings("ignore", message=".*converge.*")
rows, fitted = [], {}
X_test, _ = draw("overlapping", TEST_ROWS, 99)
for (kind, num_rows), num_seeds in SETTINGS.items():
    for seed in range(num_seeds):
        X, y = draw(kind, num_rows, seed)
        for name, fit in METHODS.items():
            start = time.process_time()
            fitted[kind, num_rows, name] = predict = fit(X, y)
            seconds = time.process_time() - start
            found = scores(truth(X_test, kind), predict(X_test))
            about = {"classes": kind, "rows": num_rows, "method": name, "seconds": seconds}
            rows.append(about | found)
rows = pd.DataFrame(rows)

# %% [markdown]
# ## 4. The predictions in a picture
#
# The plane is blue where p is near 0, and red where p is near 1; the line is p = 1/2. The hinge
# finds the line, but has almost the same shade everywhere on one side of it. Levels and SVGP also
# find the right shades.

# %%
kind, num_rows = min(SETTINGS, key=lambda one: (one[0] != "overlapping", abs(one[1] - 1000)))
side = np.linspace(-2.2, 2.2, 70)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
pictures = {"the truth": truth(grid, kind)}
pictures |= {name: fitted[kind, num_rows, name](grid) for name in METHODS}
fig, axes = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained", sharex=True, sharey=True)
for ax, (name, p) in zip(axes.flat, pictures.items()):
    p = p.reshape(70, 70)
    image = ax.imshow(
        p, origin="lower", extent=(-2.2, 2.2) * 2, cmap="RdBu_r", vmin=0, vmax=1, aspect="auto"
    )
    ax.contour(side, side, p, levels=[0.5], colors="black", linewidths=1)
    off = np.sqrt(np.mean((p.ravel() - pictures["the truth"]) ** 2))
    ax.set_title(name if name == "the truth" else f"{name}: {off:.2f}", fontsize=10)
fig.colorbar(image, ax=axes, label=f"p(y = 1), {num_rows} rows", shrink=0.8)
plt.show()

# %% [markdown]
# ## 5. Do more rows help?

# %%
mean = rows.groupby(["classes", "method", "rows"], sort=False).mean(numeric_only=True)
kinds = [*dict.fromkeys(kind for kind, _ in SETTINGS)]
fig, axes = plt.subplots(1, len(kinds), figsize=(5 * len(kinds), 3.8), layout="constrained")
for ax, kind in zip(np.ravel(axes), kinds):
    for name in METHODS:
        line = mean.distance.loc[kind, name]
        ax.plot(line.index, line, "o-", markersize=4, label=name)
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="distance from P", title=kind)
    ticks = sorted({number for k, number in SETTINGS if k == kind})
    ax.set_xticks(ticks, ticks)
    ax.minorticks_off()
    ax.set_yticks([0.03, 0.05, 0.1, 0.2], ["0.03", "0.05", "0.1", "0.2"])
np.ravel(axes)[-1].legend(fontsize="small")
plt.show()
assert mean.distance.loc["overlapping", "BSVM, levels"].iloc[-1] < 0.2

# %% [markdown]
# ## 6. All in one table
#
# `error` is the expected error under the true probabilities, and cannot be less than `least error`.
# `time` is processor time relative to *BSVM, levels*, and includes the choice of kernel and penalty
# and all tracing.

# %%
unit = mean.seconds.xs("BSVM, levels", level="method")
keys = pd.MultiIndex.from_arrays([mean.index.get_level_values(k) for k in ("classes", "rows")])
mean["time"] = mean.pop("seconds") / unit.reindex(keys).to_numpy()
mean.swaplevel().sort_index(
    level=["classes", "rows"], ascending=[False, True], sort_remaining=False
)[["distance", "excess", "error", "least error", "time"]].round(
    {"distance": 3, "excess": 4, "error": 4, "least error": 4, "time": 2}
)

# %% [markdown]
# ## What we see
#
# If classes overlap and there are many rows, the likelihood matters most. At 4000 rows, the
# distance from the true probabilities is .039 for levels, and .035 for SVGP, whose likelihood is
# nearly the true likelihood. The distance remains .08 for the hinge, and .07 for SVC with either
# calibration. With fewer rows the methods are closer. Levels and SVGP are nearest to the truth at
# 250 rows; Platt's sigmoid and SVGP are nearest at 1000 rows.
#
# If classes are clean, there is little to learn except on which side of the border a row lies. With
# 1000 rows, the hinge is nearest to the truth, all Bayesian methods are within .007 of each other,
# and SVC is almost twice as far from the truth. With 250 rows, no method is near the truth.
#
# Isotonic regression predicts 0 or 1 for some rows. This raises its NLL, above all with few rows.
# If classes overlap, the classifier that chooses its own loss is as near to the truth as levels,
# but needs time to try both losses.
#
# Compare only times with large ratios: the first method traces graphs that later methods reuse, so
# the classifier that chooses its own loss may seem cheaper than levels alone.

# %% [markdown]
# ## What this does not show
#
# - More than two inputs, or several classes: docs/lab/probabilities.md measures both, with up to 32
#   000 rows.
# - Real labels: their true probabilities are unknown, so only NLL and calibration can be measured.
# - Other kernels: our waves are smooth, and as wide as the learned kernels.
# - The role of chance: we draw data of each size only once, so the second digit of a distance means
#   nothing.
