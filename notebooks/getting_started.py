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
# # A Bayesian support vector machine in GPflow
#
# Each section supports one claim with a number and, if it helps, a picture.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_moons

import gpflow_bsvm as gb

X, y = make_moons(400, noise=0.3, random_state=0)
Y = y[:, None].astype(float)
Z = gb.inducing_points.kmeans(X, 20)
kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=1.0)

# %% [markdown]
# ## 1. The hinge is a likelihood like any other
#
# `Hinge` works in GPflow's own `SVGP` with GPflow's own optimizers.

# %%
plain = gpflow.models.SVGP(kernel, gb.likelihoods.Hinge(), Z, num_data=len(X))
gpflow.utilities.set_trainable(plain.kernel, False)
gpflow.utilities.set_trainable(plain.inducing_variable, False)
before = float(plain.elbo((X, Y)))
gpflow.optimizers.Scipy().minimize(
    plain.training_loss_closure((X, Y)), plain.trainable_variables, options={"maxiter": 300}
)
print(f"ELBO {before:.1f} -> {float(plain.elbo((X, Y))):.1f}")

# %% [markdown]
# ## 2. With another model, steps have a closed form
#
# `BSVM` is an `SVGP` with the method `natgrad_step`. On all the data, a step of size 1 is one sweep
# of coordinate ascent, and equals a step of GPflow's `NaturalGradient(1.0)`.

# %%
ours = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), Z, num_data=len(X))
theirs = gpflow.models.SVGP(kernel, gb.likelihoods.Hinge(), Z, num_data=len(X))
ours.natgrad_step((X, Y), learning_rate=1.0)
gpflow.optimizers.NaturalGradient(1.0).minimize(
    theirs.training_loss_closure((X, Y)), [(theirs.q_mu, theirs.q_sqrt)]
)
difference = np.abs(ours.q_mu.numpy() - theirs.q_mu.numpy()).max()
print(f"largest difference of the means: {difference:.1e}")
assert difference < 1e-10

# %% [markdown]
# ## 3. The exact bound needs about a third as many sweeps as the augmented bound
#
# Neither bound needs a step size. The augmented bound comes from the papers; the exact bound is
# tighter.

# %%
fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
for bound in ("augmented", "exact"):
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound=bound), Z, num_data=len(X))
    history = gb.inference.CAVI(tol=1e-7).run(model, (X, Y))
    ax.plot(history.step, history.elbo, ".-", label=f"{bound}: {len(history)} sweeps")
    print(bound, history)
ax.set(xlabel="sweep", ylabel="ELBO", xscale="log")
ax.legend()
plt.show()

# %% [markdown]
# ## 4. Probabilities come without a second model
#
# p(y = 1) = Phi(mu / sqrt(1 + v)) approaches 1/2 far from the data.

# %%
X_new, y_new = make_moons(2000, noise=0.3, random_state=1)
p = model.predict_y(X_new)[0].numpy()[:, 0]
print(f"test error {np.mean((p > 0.5) != y_new):.3f}, Brier score {np.mean((p - y_new) ** 2):.3f}")
CalibrationDisplay.from_predictions(y_new, p, n_bins=10, name="BSVM")
plt.show()

# %% [markdown]
# ## 5. The soft support vectors lie on the margin
#
# alpha = E (1 - y f)^2 is the parameter of the distribution of a row's local variable. The rows
# with the smallest alpha would be support vectors of a support vector machine.

# %%
support = gb.prediction.soft_support_vectors(model, (X, Y), num=40)
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 80), np.linspace(-1.5, 2, 80)), axis=-1)
p_grid = model.predict_y(grid.reshape(-1, 2))[0].numpy().reshape(80, 80)

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
filled = ax.contourf(grid[..., 0], grid[..., 1], p_grid, levels=20, cmap="RdBu_r", alpha=0.7)
ax.scatter(*X.T, c=y, cmap="RdBu_r", edgecolor="k", linewidth=0.3, s=18)
ax.scatter(*X[support].T, facecolor="none", edgecolor="k", s=70, label="soft support vectors")
ax.scatter(*Z.T, marker="x", color="k", s=25, label="inducing points")
fig.colorbar(filled, label="p(y = 1)")
ax.legend(loc="lower left")
plt.show()

# %% [markdown]
# ## 6. As in scikit-learn
#
# The estimator accepts any labels and weights, scales X, and works in pipelines and
# cross-validation.

# %%
labels = np.where(y == 1, "moon", "sun")
classifier = gb.BSVMClassifier(num_inducing=20, random_state=0).fit(X, labels)
score = classifier.score(X_new, np.where(y_new == 1, "moon", "sun"))
print(classifier.classes_, classifier.predict_proba(X_new[:2]).round(3), f"score {score:.3f}")
