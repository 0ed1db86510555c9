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
# # The family in one figure
#
# We fit one likelihood after another to the same rows, with the same kernel and inducing points:
# the hinge, the squared hinge, smooth losses, hinges at many levels of probability, and machines
# for several classes. For comparison, we add GPflow's SVGP and scikit-learn's SVC. The true
# probabilities are known.

# %%
import time

import gpflow
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf
from scipy.stats import multivariate_normal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.papers import gold2003, seeger2000

# %% short="ROWS, M, RESOLUTION, STEPS, SKIPPED = 120, 15, 20, 30, ('logistic',)"
ROWS, M, RESOLUTION, STEPS, SKIPPED = 400, 30, 60, 500, ()

# %% [markdown]
# ## 1. Data
#
# Each of three classes is a mixture of two Gaussian clouds. Bayes' rule gives the probability of
# each class, and no classifier has fewer errors than `least error`. The machines for two classes
# separate class 1 from the others.

# %%
CLOUDS = [
    [(-1.6, 0.6), (0.9, -1.3)],
    [(0.3, 0.9), (-1.2, -1.2)],
    [(1.7, 1.0), (1.9, -0.9)],
]


def truth(X):
    density = np.stack(
        [sum(multivariate_normal(c, 0.45).pdf(X) for c in clouds) for clouds in CLOUDS], axis=-1
    )
    return density / density.sum(axis=-1, keepdims=True)


def draw(num_rows, seed):
    random = np.random.default_rng(seed)
    y, cloud = random.integers(0, 3, num_rows), random.integers(0, 2, num_rows)
    return np.array(CLOUDS)[y, cloud] + np.sqrt(0.45) * random.normal(size=(num_rows, 2)), y


X, y = draw(ROWS, 0)
X_test, _ = draw(5000, 1)
Z = gb.inducing_points.kmeans(X, M)
Y_three, Y_two = y[:, None].astype(float), (y[:, None] == 1).astype(float)

# %% [markdown]
# ## 2. Models
#
# The models differ in their likelihood, and in the number of latent functions that it needs. All
# penalties are 2. Hinges are calibrated with leave-one-out marginals. Levels and the smooth
# likelihoods need no calibration, because they are distributions of labels. SVGP takes
# natural-gradient steps of 0.5 with Bernoulli, and Adam steps on q with Softmax. SVC has the same
# kernel, and probabilities from Platt's sigmoid; a grid search chooses C.


# %%
def kernel():
    return gpflow.kernels.SquaredExponential(4.0, lengthscales=1.2)


def bsvm(likelihood, num_latents=1, calibrated=False):
    def fit(X, Y):
        for _ in range(2):  # the second time nothing is traced
            model = gb.models.BSVM(kernel(), likelihood(), Z, num_latent_gps=num_latents)
            start = time.process_time()
            history = gb.fit(model, (X, Y))
            if calibrated:
                gb.prediction.calibrate(model, (X, Y))
            seconds = time.process_time() - start
        steps = len(history)
        return lambda X: gb.prediction.predict_probabilities(model, X), steps, seconds

    return fit


def svgp(likelihood, num_latents, dtype, learn):
    def fit(X, Y):
        data = X, Y.astype(dtype)
        model = gpflow.models.SVGP(kernel(), likelihood(), Z, num_latent_gps=num_latents)
        steps, seconds = learn(model, data)
        return lambda X: model.predict_y(X)[0].numpy(), steps, seconds

    return fit


def natural_gradients(model, data):
    optimizer, q = gpflow.optimizers.NaturalGradient(0.5), [(model.q_mu, model.q_sqrt)]

    @tf.function(autograph=False)
    def step():
        optimizer.minimize(model.training_loss_closure(data, compile=False), q)
        return model.elbo(data)

    step()  # traces
    start, elbo = time.process_time(), [float(step())]
    while len(elbo) < 2 or elbo[-1] - elbo[-2] > 1e-5 * abs(elbo[-1]):
        elbo.append(float(step()))
    return len(elbo), time.process_time() - start


def adam(model, data):
    optimizer = gpflow.keras.tf_keras.optimizers.Adam(0.05)
    variables = [model.q_mu.unconstrained_variable, model.q_sqrt.unconstrained_variable]
    optimizer.build(variables)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            loss = model.training_loss(data)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    step()  # traces
    start = time.process_time()
    for _ in range(STEPS):
        step()
    return STEPS, time.process_time() - start


def svc(X, Y):
    start, gamma = time.process_time(), 0.5 / 1.2**2
    search = GridSearchCV(SVC(gamma=gamma), {"C": np.logspace(-1, 3, 9)}, cv=3, refit=False)
    C = search.fit(X, Y[:, 0]).best_params_["C"]
    model = CalibratedClassifierCV(SVC(C=C, gamma=gamma), ensemble=False).fit(X, Y[:, 0])
    seconds = time.process_time() - start
    P = model.predict_proba
    return (P if len(model.classes_) > 2 else lambda X: P(X)[:, 1:]), "", seconds


L = gb.likelihoods
TWO = {
    "hinge": bsvm(L.Hinge, calibrated=True),
    "squared hinge": bsvm(gold2003.SquaredHinge, calibrated=True),
    "normalized hinge": bsvm(seeger2000.NormalizedHinge),
    "logistic": bsvm(L.Logistic),
    "levels": bsvm(L.LevelHinge, 2),
    "SVGP, Bernoulli": svgp(gpflow.likelihoods.Bernoulli, 1, float, natural_gradients),
    "SVC, Platt": svc,
}
THREE = {
    "Crammer-Singer": bsvm(lambda: L.CrammerSinger(3), 3, calibrated=True),
    "one-vs-rest levels": bsvm(lambda: L.OneVsRestLevelHinge(3), 6),
    "SVGP, Softmax": svgp(lambda: gpflow.likelihoods.Softmax(3), 3, np.int64, adam),
    "SVC, Platt, one-vs-one": svc,
}
TWO = {name: fit for name, fit in TWO.items() if name not in SKIPPED}
rows, predictors = [], {}
for names, Y in ((TWO, Y_two), (THREE, Y_three)):
    for name, fit in names.items():
        predictors[name], steps, seconds = fit(X, Y)
        P, p = truth(X_test), predictors[name](X_test)
        P = P[:, 1:2] if names is TWO else P
        both, guess = (np.hstack([1 - q, q]) if names is TWO else q for q in (P, p))
        guess = np.clip(guess, 1e-15, 1)
        rows.append(
            {
                "classes": both.shape[1],
                "likelihood": name,
                "steps": steps,
                "seconds": seconds,
                "distance": np.sqrt(np.mean((guess - both) ** 2)),
                "NLL": -np.sum(both * np.log(guess), axis=1).mean(),
                "least NLL": -np.sum(both * np.log(both), axis=1).mean(),
                "error": 1 - np.mean(both[np.arange(len(P)), guess.argmax(axis=1)]),
                "least error": 1 - np.mean(both.max(axis=1)),
            }
        )

# %% [markdown]
# ## 3. The figure
#
# In the pictures of two classes, blue is p = 0, red is p = 1, and the black line is p = 1/2. In the
# pictures of three classes, the color shows the most probable class, and is paler where this class
# is less probable. Each title gives the root mean square distance from the true probability.

# %%
side = np.linspace(-3.6, 3.9, RESOLUTION), np.linspace(-3.2, 3.0, RESOLUTION)
grid = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
extent = (*side[0][[0, -1]], *side[1][[0, -1]])
COLOURS = plt.get_cmap("tab10")(range(3))[:, :3]
distance = {row["likelihood"]: row["distance"] for row in rows}


def show(ax, p, title):
    p = p.reshape(RESOLUTION, RESOLUTION, -1)
    if p.shape[-1] == 1:
        image = p[..., 0]
        ax.contour(*side, image, levels=[0.5], colors="black", linewidths=1.2)
        ax.scatter(*X.T, c=Y_two[:, 0], cmap="RdBu_r", s=5, edgecolor="white", linewidth=0.2)
    else:
        sure = (3 * p.max(axis=-1, keepdims=True) - 1) / 2
        image = 1 - 0.8 * sure * (1 - COLOURS[p.argmax(axis=-1)])
        ax.scatter(*X.T, c=COLOURS[y], s=5, edgecolor="white", linewidth=0.2)
    ax.imshow(image, origin="lower", extent=extent, cmap="RdBu_r", vmin=0, vmax=1, aspect="auto")
    ax.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)


P_grid = truth(grid)
panels = [("the truth, class 1", P_grid[:, 1:2])]
panels += [(f"{name}: {distance[name]:.3f}", predictors[name](grid)) for name in TWO]
panels += [("the truth, three classes", P_grid)]
panels += [(f"{name}: {distance[name]:.3f}", predictors[name](grid)) for name in THREE]
fig, axes = plt.subplots(3, 5, figsize=(11, 6.6), layout="constrained")
for ax, (title, p) in zip(axes.flat, panels):
    show(ax, p, title)
f, ax = np.linspace(-3, 3, 301), axes.flat[-1]
for name, loss in {
    "hinge": 2 * np.maximum(0, 1 - f),
    "squared hinge": 2 * np.maximum(0, 1 - f) ** 2,
    "logistic": np.logaddexp(0, -f),
    "normalized hinge": 2 * np.maximum(0, 1 - f)
    + np.logaddexp(-2 * np.maximum(0, 1 - f), -2 * np.maximum(0, 1 + f)),
}.items():
    ax.plot(f, loss, label=name)
ax.set(ylim=(0, 8), xticks=[-2, 0, 2], yticks=[])
ax.set_title("loss of y f", fontsize=9)
ax.legend(fontsize=7, frameon=False)
plt.show()

# %% [markdown]
# ## 4. Along a line
#
# We show the probability of class 1 along a horizontal line at height 0.9, which crosses a cloud of
# each class.

# %%
line = np.stack([side[0], np.full(RESOLUTION, 0.9)], axis=-1)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, names, column in ((left, TWO, 0), (right, THREE, 1)):
    ax.plot(side[0], truth(line)[:, 1], "k--", linewidth=2, label="the truth")
    for name in names:
        ax.plot(side[0], predictors[name](line)[:, column], label=name, linewidth=1.2)
    ax.set(xlabel="x1", title=f"P(class 1), {'two' if names is TWO else 'three'} classes")
    ax.legend(fontsize=7)
plt.show()

# %% [markdown]
# ## 5. All in one table
#
# `distance` is the root mean square distance from the true probabilities. NLL and error are
# expectations under the true probabilities; `least NLL` and `least error` are their lower limits.
# `time` is processor time without tracing, as a multiple of the time of the hinge (two classes) or
# of Crammer-Singer (three classes).

# %%
table = pd.DataFrame(rows).set_index(["classes", "likelihood"])
unit = table.seconds.groupby(level="classes").transform("first")
table.insert(1, "time", table.pop("seconds") / unit)
assert table.distance.max() < 0.25
table.round({"time": 1, "distance": 3, "NLL": 3, "least NLL": 3, "error": 3, "least error": 3})

# %% [markdown]
# ## What we see
#
# With two classes, our machines and SVGP draw nearly the same border. Their errors are .136 to
# .139, the error of SVC is .146, and the least possible error is .127. Only the shades of color
# differ. The logistic likelihood, levels and Bernoulli are nearest to the true probabilities, and
# the hinges are slightly behind. The normalized hinge is last among our likelihoods, because its
# shades are too pale. Far from all rows, our probabilities return to 1/2. Those of SVC remain as
# they are at its outermost support vectors.
#
# With three classes, Softmax and one-vs-rest levels are equally near to the true probabilities, and
# Crammer and Singer's hinge is slightly behind. With Adam, Softmax takes 21 times as long as this
# hinge. The probabilities of Softmax are means of random draws, so its picture is grainy and
# changes with every call. SVC lets machines for pairs of classes vote, which makes its borders
# jagged.
#
# Calibration takes most of the time of the calibrated hinges. With so few rows, compiled steps of
# SVGP with Bernoulli take a fifth of the time of a hinge.

# %% [markdown]
# ## What this does not show
#
# - Which likelihood is best for other data: we use one draw of one distribution, and one kernel.
#   Levels and Bernoulli suit probabilities between 0 and 1, as here. If classes hardly overlap, the
#   hinge is as good, and has one latent function instead of two.
# - Other penalties: all our penalties are 2, while SVC's C is chosen by a grid search. On some
#   data, another penalty is better.
# - Speed on larger data: in such small fits, most of the time goes into function calls.
# - The whole family: docs/guide/choosing.md describes the other likelihoods.
