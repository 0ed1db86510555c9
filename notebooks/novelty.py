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
# # Novelty
#
# This one-class support vector machine gives a score and its uncertainty. We look at the
# uncertainty near the training rows and far from them, and add a few labeled outliers.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import OneClassSVM

import gpflow_bsvm as gb

# %% short="ROWS = 100"
ROWS = 300

# %%
X, _ = make_moons(ROWS, noise=0.08, random_state=0)
detector = gb.OneClassBSVM(nu=0.05).fit(X)
ticks = np.linspace(-2, 3, 60)
plane = np.stack(np.meshgrid(ticks, ticks - 0.25), axis=-1).reshape(-1, 2)
score, std = detector.score_samples(plane, return_std=True)

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4))
for axis, title, values in [(axes[0], "score", score), (axes[1], "its deviation", std)]:
    drawn = axis.contourf(ticks, ticks - 0.25, values.reshape(60, 60), 12)
    axis.plot(*X.T, ".", color="white", ms=3)
    axis.set(title=title)
    figure.colorbar(drawn)
axes[0].contour(ticks, ticks - 0.25, score.reshape(60, 60), [detector.offset_], colors="red")
plt.show()
print(f"{np.mean(detector.predict(X) == -1):.2f} of the training rows lie outside of the red line")

# %% [markdown]
# The score is high along both moons, and 0 far from all rows. The standard deviation shows why: far
# from all rows, it equals the standard deviation of the prior.
#
# scikit-learn's `OneClassSVM` with the same nu and its own default kernel draws a similar line.

# %%
svm = OneClassSVM(nu=0.05).fit(X)
agree = np.mean(svm.predict(plane) == detector.predict(plane))
print(f"OneClassSVM() with its own kernel says the same at {agree:.2f} of the places")

# %% [markdown]
# ## A few labeled outliers
#
# Labeled outliers do not change the detector. They only determine the link, which turns the score
# into a probability.

# %%
rng = np.random.default_rng(0)
novel, seen = rng.uniform(-2, 3, (40, 2)), make_moons(40, noise=0.08, random_state=1)[0]
rows = np.concatenate([seen, novel]), np.repeat([1, -1], 40)
gb.prediction.calibrate(detector, rows, held_out=True)
P = detector.predict_proba(plane)[:, 0].reshape(60, 60)
plt.figure(figsize=(5, 4))
plt.contourf(ticks, ticks - 0.25, P, np.linspace(0, 1, 11))
plt.colorbar(label="P(novel)")
plt.plot(*X.T, ".", color="white", ms=3)
plt.show()
