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
# # Regression with error bars
#
# Support vector regression is a Gaussian process with another likelihood. We compare how outliers
# affect this model and a Gaussian process with Gaussian noise. We also look at the quality of error
# bars, and at quantiles that do not cross.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np

import gpflow_bsvm as gb

# %% short="ROWS = 40"
ROWS = 150

# %% [markdown]
# ## 1. Outliers
#
# The data are a sine with small noise. Large noise (standard deviation 2) is added to one label in
# ten.

# %%
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-3, 3, ROWS))[:, None]
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=ROWS)
moved = rng.random(ROWS) < 0.1
y[moved] += 2 * rng.normal(size=moved.sum())
grid = np.linspace(-4, 4, 200)[:, None]

regressor = gb.BSVMRegressor().fit(X, y)
mean, std = regressor.predict(grid, return_std=True)
quantiles = regressor.predict_quantiles(grid, [0.05, 0.95])

gpr = gpflow.models.GPR((X, y[:, None]), gpflow.kernels.SquaredExponential(), noise_variance=0.1)
gpflow.optimizers.Scipy().minimize(gpr.training_loss, gpr.trainable_variables)
gpr_mean, gpr_variance = (part.numpy()[:, 0] for part in gpr.predict_y(grid))

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True)
gpr_ends = gpr_mean + 1.645 * np.sqrt(gpr_variance) * np.array([[-1], [1]])
for axis, title, line, ends in [
    (axes[0], "BSVMRegressor", mean, quantiles.T),
    (axes[1], "GPR", gpr_mean, gpr_ends),
]:
    axis.plot(X, y, ".", color="grey", ms=4)
    axis.plot(grid, np.sin(2 * grid), "k:", lw=1)
    axis.plot(grid, line)
    axis.fill_between(grid[:, 0], *ends, alpha=0.2)
    axis.set(title=title, ylim=(-3, 3))
plt.show()

# %% [markdown]
# The Gaussian process explains the outliers with more noise everywhere. With the
# epsilon-insensitive loss, outliers have little effect, and the band is only as wide as most rows
# require.

# %%
truth = np.sin(2 * X[:, 0])
errors = {
    "BSVMRegressor": regressor.predict(X) - truth,
    "GPR": gpr.predict_f(X)[0].numpy()[:, 0] - truth,
}
for name, error in errors.items():
    print(f"{name:15} root mean squared error to the sine: {np.sqrt(np.mean(error**2)):.3f}")
print(f"penalty {regressor.penalty_:.3g} per unit of y")
print(f"epsilon {regressor.epsilon_:.3g} in units of y")

# %% [markdown]
# ## 2. Noise that depends on x
#
# If noise depends on x, a band of constant width is wrong nearly everywhere. The likelihood
# `Quantile` has a location and a spread, which are both functions of x.

# %%
X = np.sort(rng.uniform(-3, 3, 3 * ROWS))[:, None]
y = np.sin(X[:, 0]) + (0.05 + 0.2 * np.abs(X[:, 0])) * rng.normal(size=len(X))
likelihood = gb.likelihoods.Quantile((0.05, 0.5, 0.95))
model = gb.models.BSVM(
    gpflow.kernels.SquaredExponential(), likelihood, gb.inducing_points.kmeans(X, 20)
)
gb.inference.VEM().run(model, (X, y[:, None]))
tied = model.predict_y(grid)[0].numpy()
even = gb.BSVMRegressor().fit(X, y).predict_quantiles(grid, [0.05, 0.5, 0.95])

figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True)
for axis, title, lines in [(axes[0], "Quantile", tied), (axes[1], "BSVMRegressor", even)]:
    axis.plot(X, y, ".", color="grey", ms=3)
    axis.plot(grid, lines)
    axis.set(title=title, ylim=(-3, 3))
plt.show()

# %%
inner = model.predict_y(X)[0].numpy()
print("rows below each quantile:", (y[:, None] < inner).mean(axis=0).round(2))
print("crossings:", int((np.diff(tied, axis=1) < 0).sum()))

# %% [markdown]
# ## 3. Ordered classes
#
# The same rows are sorted into four grades. The model learns one function and three thresholds. The
# probability of "at least this grade" decreases from grade to grade.

# %%
grades = np.digitize(y, [-0.7, 0.0, 0.7])
ordered = gb.BSVMClassifier(multi_class="ordinal", penalty=2.0).fit(X, grades)
P = ordered.predict_proba(grid)
plt.figure(figsize=(6, 3))
plt.stackplot(grid[:, 0], P.T, labels=[f"grade {k}" for k in range(4)], alpha=0.7)
plt.legend(loc="upper right")
plt.show()
print("thresholds:", ordered.model_.likelihood.thresholds.numpy().round(2))
