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
# # Asking for labels that are worth it
#
# Handwritten digits (bundled with scikit-learn), a pool of 300 of four classes, and a classifier
# that chooses which of them somebody should label.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gpflow_bsvm as gb
from gpflow_bsvm.active import ActiveLearner, distance_from_refit

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
# `oracle` is a function of row numbers of the pool. A new label is added to q by `Streaming`, in
# tens of milliseconds; with 20 labels the kernel is chosen, by what the other labels say of each.


# %%
def oracle(index):
    return y_pool[index]


runs = {}
for policy in ("variation_ratio", "softmax_entropy", "random"):
    learner = ActiveLearner(new_model(), X_pool, policy, relearn=(20,), seed=1)
    learner.run(oracle, 30, callback=lambda one: error(one.model))
    runs[policy] = [query.value for query in learner.history]
    print(f"{policy:16} error after 10, 20, 30 labels:", np.round(runs[policy][9::10], 3))

assert len(learner.labelled) == 30
assert [query.num_labelled for query in learner.history if query.relearned] == [20]

# %% [markdown]
# ## 2. How far updates lead from a refit
#
# Sites of earlier rows stay as they were when they were new. Where that matters, `refit` goes over
# all labelled rows again. (From here on with the last learner, that of random rows.)

# %%
distance, _ = distance_from_refit(learner, X_test)
print(distance)
learner.refit()
assert distance_from_refit(learner, X_test)[0].mean < 1e-6

# %% [markdown]
# ## 3. Several at a time
#
# The three most doubtful rows may be three times the same. `batch_bald` looks at what their labels
# would tell together, which is never more than the sum of what each would.

# %%
each = gb.prediction.mutual_information(learner.model, X_pool, num_samples=128)
together = gb.active.batch_bald(learner.model, X_pool, 3, num_samples=128)
P = gb.prediction.draw_probabilities(learner.model, X_pool[np.argsort(-each)[:3]], num_samples=128)
print("information of the batch:", together.information, "nats")
print("of the three of most each:", gb.active.joint_mutual_information(P), "nats")
assert (np.diff(together.information) >= 0).all()

# %% [markdown]
# ## 4. Declining to answer
#
# A classifier that knows its doubt may leave some rows to somebody else. What it expects of itself
# on rows without labels is `expected_error`: as good as its probabilities, which are those of a
# hinge and not calibrated here.

# %%
P_test = gb.prediction.predict_probabilities(learner.model, X_test)
expected = gb.prediction.expected_error(learner.model, X_test, num_samples=64)
print(f"expected error {expected.mean:.3f} +- {expected.deviation:.3f}")
print(f"found          {error(learner.model):.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for policy, errors in runs.items():
    left.plot(np.arange(1, 31), errors, label=policy)
left.set(xlabel="labels", ylabel="held-out error", yscale="log")
left.legend()
gb.plotting.accuracy_against_coverage(right, y_test, P_test, label="1 - max p")
doubt = gb.prediction.variation_ratio(learner.model, X_test)
gb.plotting.accuracy_against_coverage(right, y_test, P_test, doubt, label="variation ratio")
right.legend()
plt.show()
