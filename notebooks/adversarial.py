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
# # Inputs that are meant to mislead
#
# A small change of every pixel, along the gradient of the loss, makes a classifier err. Is the
# model at least in doubt about such inputs? Each section tests one claim on handwritten digits.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from art.attacks.evasion import FastGradientMethod, ProjectedGradientDescent
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import gpflow_bsvm as gb
from gpflow_bsvm.adversarial import art_classifier
from gpflow_bsvm.prediction import predictive_entropy, variation_ratio

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=300, stratify=y, random_state=0)
model = gb.models.BSVM(
    kernel=gpflow.kernels.SquaredExponential(4.0, lengthscales=2.0),
    likelihood=gb.likelihoods.CrammerSinger(num_classes=10),
    inducing_variable=gb.inducing_points.kmeans(X, 100),
    num_latent_gps=10,
    num_data=len(X),
)
gb.fit(model, (X, y[:, None].astype(float)))


def accuracy(X):
    p = gb.prediction.predict_probabilities(model, X)
    return np.mean(p.argmax(axis=1) == y_test)


print(f"accuracy {accuracy(X_test):.3f}")

# %% [markdown]
# ## 1. Attacks by the gradient of the whole model
#
# The Adversarial Robustness Toolbox (ART) attacks the model. The fast gradient sign method moves
# every pixel by epsilon, so that the true label becomes less probable. Projected gradient descent
# moves equally far, but in several steps. In comparison, random noise of the same size hardly
# lowers the accuracy.

# %%
wrapped = art_classifier(model, input_shape=(64,), clip=(0, 1))


def fgsm(X, y, epsilon):
    """One step of epsilon."""
    return FastGradientMethod(wrapped, eps=epsilon).generate(X, y).astype(float)


def pgd(X, y, epsilon):
    """Ten steps of a quarter of epsilon."""
    how = {"eps": epsilon, "eps_step": epsilon / 4, "max_iter": 10, "verbose": False}
    return ProjectedGradientDescent(wrapped, **how).generate(X, y).astype(float)


epsilon = 0.2
noise = epsilon * np.random.default_rng(0).choice([-1, 1], size=X_test.shape)
moved = {
    "as it is": X_test,
    "noise": np.clip(X_test + noise, 0, 1),
    "fgsm": fgsm(X_test, y_test, epsilon),
    "pgd": pgd(X_test, y_test, epsilon),
}
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for ax, (name, images) in zip(axes, moved.items()):
    ax.imshow(images[0].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=f"{name}: {accuracy(images):.2f}", xticks=[], yticks=[])
plt.show()
assert accuracy(moved["noise"]) > 0.9 > 0.5 > accuracy(moved["fgsm"])
assert accuracy(moved["pgd"]) <= accuracy(moved["fgsm"]) + 0.02

# %% [markdown]
# ## 2. Doubt separates attacked digits from clean digits, up to a point
#
# The area under the ROC curve is the chance that the model has more doubt about an attacked digit
# than about a clean digit; a guess gives 1/2. Projected gradient descent crosses the border between
# two classes, and continues to a place where the model is sure of the wrong class. So doubt is less
# good at detecting this stronger attack.


# %%
def detection(score, others):
    """The area under the ROC curve of telling other rows from the test rows."""
    scores = np.concatenate([score(model, X_test), score(model, others)])
    return roc_auc_score(np.repeat([0, 1], len(X_test)), scores)


epsilons = [0.05, 0.1, 0.15, 0.2, 0.3]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
for ax, attack in zip(axes, (fgsm, pgd)):
    attacked = [attack(X_test, y_test, epsilon) for epsilon in epsilons]
    auc = [detection(variation_ratio, rows) for rows in attacked]
    doubt = [variation_ratio(model, rows).mean() for rows in attacked]
    ax.plot(epsilons, [accuracy(rows) for rows in attacked], label="accuracy")
    ax.plot(epsilons, doubt, label="mean doubt")
    ax.plot(epsilons, auc, label="ROC area of detection")
    ax.set(xlabel="strength of the attack, epsilon", ylim=(0, 1.03), title=attack.__name__)
    ax.legend(frameon=False)
    print(attack.__name__, *(f"{area:.2f}" for area in auc))
    assert max(auc) > 0.85
    assert (auc[-1] > 0.85) == (attack is fgsm)
plt.show()

# %% [markdown]
# ## 3. Rows that are not digits
#
# We turn digits upside down, or shuffle their pixels.

# %%
shuffled = X_test[:, np.random.default_rng(0).permutation(64)]
others = {"upside down": X_test[:, ::-1], "shuffled": shuffled}
for score in (variation_ratio, predictive_entropy):
    auc = {what: detection(score, rows) for what, rows in others.items()}
    print(score.__name__, *(f"{what}: {value:.2f}" for what, value in auc.items()), sep=", ")
    assert auc["shuffled"] > 0.8
