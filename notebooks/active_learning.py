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
# # Choosing which rows to label
#
# The data are handwritten digits of four classes (bundled with scikit-learn). A classifier chooses
# which of 300 unlabeled rows somebody should label next.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from skactiveml.pool import BatchBALD
from sklearn.datasets import load_digits

import gpflow_bsvm as gb
from gpflow_bsvm.active import POLICIES, best_kernel
from gpflow_bsvm.active.scikit_activeml import ModelClassifier
from gpflow_bsvm.inference import CAVI, Streaming
from gpflow_bsvm.papers.wistuba2018 import softmax_entropy

X, y = load_digits(n_class=4, return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = (X[order] - X.mean(axis=0)) / 4, y[order]
X_pool, X_test, y_pool, y_test = X[:300], X[300:], y[:300], y[300:]
Z = gb.inducing_points.kmeans(X_pool, 20)


def new_model():
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=8.0)
    gb.priors.set_default_priors(kernel, X.shape[1])
    model = gb.models.BSVM(kernel, gb.likelihoods.CrammerSinger(4), Z, num_latent_gps=4)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def error(model):
    return np.mean(gb.prediction.predict_probabilities(model, X_test).argmax(axis=1) != y_test)


# %% [markdown]
# ## 1. A loop
#
# A query policy is a function of model and rows. It returns a score for each row, and the row with
# the largest score is labeled next. `Streaming` adds the new label to q in tens of milliseconds.
# After 20 labels, `best_kernel` chooses the kernel by the leave-one-out density of the labels.

# %%
random = np.random.default_rng(1)
policies = {
    "variation_ratio": POLICIES["variation_ratio"],
    "softmax_entropy": softmax_entropy,
    "random": lambda model, X: random.random(len(X)),
}


def rows_of(labelled):
    """Whoever is asked answers."""
    return X_pool[labelled], y_pool[labelled, None].astype(float)


runs = {}
for name, policy in policies.items():
    model, labelled, runs[name] = new_model(), [], []
    for _ in range(30):
        left = np.setdiff1d(np.arange(len(X_pool)), labelled)
        labelled.append(left[np.argmax(policy(model, X_pool[left]))])
        Streaming().run(model, rows_of(labelled[-1:]), progress=False)
        if len(labelled) == 20:
            best_kernel(model, *rows_of(labelled))
        runs[name].append(error(model))
    print(f"{name:16} error after 10, 20, 30 labels:", np.round(runs[name][9::10], 3))

# %% [markdown]
# ## 2. How far updates are from a refit
#
# `Streaming` does not update the sites of earlier rows (the Gaussian factors that replace their
# likelihoods). If you need updated sites, let `CAVI` pass over all labeled rows again. From here
# on, we use the last model, whose rows were chosen at random.

# %%
P_updated = gb.prediction.predict_probabilities(model, X_test)
CAVI().run(model, rows_of(labelled), progress=False)
P_refitted = gb.prediction.predict_probabilities(model, X_test)
moved = np.abs(P_updated - P_refitted).sum(axis=1).mean() / 2
print(f"a refit moves {moved:.3f} of the probability, and changes the class of", end=" ")
print(f"{np.mean(P_updated.argmax(axis=1) != P_refitted.argmax(axis=1)):.1%} of the rows")
assert moved < 0.1

# %% [markdown]
# ## 3. Several at a time
#
# The three most doubtful rows may be nearly the same. Therefore, `BatchBALD` of scikit-activeml
# uses joint draws of f, which measure how much information the labels of several rows would give
# together. All strategies of scikit-activeml accept a `ModelClassifier`.

# %%
batch_bald = BatchBALD(
    sample_predictions_method_name="sample_proba",
    sample_predictions_dict={"num_samples": 128},
    random_state=0,
)
y_known = np.full(len(y_pool), np.nan)
y_known[labelled] = y_pool[labelled]
ensemble = ModelClassifier(model, classes=[0, 1, 2, 3])
together = batch_bald.query(X=X_pool, y=y_known, ensemble=ensemble, batch_size=3)
left = np.flatnonzero(np.isnan(y_known))
each = left[np.argsort(-gb.prediction.mutual_information(model, X_pool[left]))[:3]]
for name, rows in (("a batch", together), ("the three of most each", each)):
    F = gb.prediction.draw_f(model, X_pool[rows])  # [S, 3, 4]
    alike = np.mean([np.corrcoef(F[:, :, c].T)[np.triu_indices(3, 1)] for c in range(4)])
    print(f"{name}: rows {rows}, mean correlation of f {alike:.2f}")

# %% [markdown]
# ## 4. Declining to answer
#
# A classifier that measures its doubt can leave some rows to a person. `expected_error` estimates
# its error on rows without labels. The estimate is only as good as the probabilities. Here, they
# come from a hinge without calibration.

# %%
P_test = gb.prediction.predict_probabilities(model, X_test)
expected = gb.prediction.expected_error(model, X_test, num_samples=64)
print(f"expected error {expected.mean:.3f} +- {expected.deviation:.3f}")
print(f"found          {error(model):.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for policy, errors in runs.items():
    left.plot(np.arange(1, 31), errors, label=policy)
left.set(xlabel="labels", ylabel="held-out error", yscale="log")
left.legend()
ratio = gb.prediction.variation_ratio(model, X_test)
for label, doubt in {"1 - max p": None, "variation ratio": ratio}.items():
    curve = gb.metrics.accuracy_against_coverage(y_test, P_test, doubt)
    right.plot(curve.coverage, curve.accuracy, label=label)
right.set(xlabel="coverage, share of rows that are answered", ylabel="accuracy on these")
right.legend()
plt.show()
