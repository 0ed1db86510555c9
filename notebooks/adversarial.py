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
# # Inputs that mean to mislead
#
# A small move of every pixel, along the gradient of the loss, makes a classifier err. Does the
# model at least notice? Handwritten digits, one claim a section.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from art.attacks.evasion import ProjectedGradientDescent
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gpflow_bsvm as gb
from gpflow_bsvm.adversarial import art_classifier, class_probabilities, fgsm
from gpflow_bsvm.papers.wistuba2018 import detection_auc, doubts, under_attack

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
    return np.mean(class_probabilities(model, X).argmax(axis=1) == y_test)


print(f"accuracy {accuracy(X_test):.3f}")

# %% [markdown]
# ## 1. The gradient goes through the whole model
#
# `fgsm` moves every pixel by epsilon to where its own label becomes less probable; projected
# gradient descent, of the Adversarial Robustness Toolbox, goes the same distance in steps. Noise of
# the same size does nothing like it.

# %%
wrapped = art_classifier(model, input_shape=(64,))


def pgd(target, X, y, epsilon):
    """Ten steps of a quarter of epsilon."""
    if epsilon == 0:
        return X
    how = {"eps": epsilon, "eps_step": epsilon / 4, "max_iter": 10, "verbose": False}
    return ProjectedGradientDescent(wrapped, **how).generate(X, np.eye(10)[y]).astype(float)


epsilon = 0.2
noise = epsilon * np.random.default_rng(0).choice([-1, 1], size=X_test.shape)
moved = {
    "as it is": X_test,
    "noise": np.clip(X_test + noise, 0, 1),
    "fgsm": fgsm(model, X_test, y_test, epsilon),
    "pgd": pgd(model, X_test, y_test, epsilon),
}
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for ax, (name, images) in zip(axes, moved.items()):
    ax.imshow(images[0].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=f"{name}: {accuracy(images):.2f}", xticks=[], yticks=[])
plt.show()
assert accuracy(moved["noise"]) > 0.9 > 0.5 > accuracy(moved["fgsm"])
assert accuracy(moved["pgd"]) <= accuracy(moved["fgsm"]) + 0.02

# %% [markdown]
# ## 2. Doubt tells attacked digits from clean ones, up to a point
#
# The area under the ROC curve is the chance that an attacked digit has more doubt than a clean one:
# 1/2 is a guess. The iterated attack goes on past the border between two classes, to where the
# model is sure of the wrong one: an attack that is strong enough also hides itself.

# %%
epsilons = [0, 0.05, 0.1, 0.15, 0.2, 0.3]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
for ax, attack in zip(axes, (fgsm, pgd)):
    found = under_attack(model, X_test, y_test, epsilons, attack=attack)
    ax.plot(epsilons, [one.accuracy for one in found], label="accuracy")
    ax.plot(epsilons, [one.mean["variation ratio"] for one in found], label="mean doubt")
    ax.plot(epsilons, [one.auc["variation ratio"] for one in found], label="ROC area of detection")
    ax.set(xlabel="strength of the attack, epsilon", ylim=(0, 1.03), title=attack.__name__)
    ax.legend(frameon=False)
    print(attack.__name__, *(f"{one.auc['variation ratio']:.2f}" for one in found))
    auc = [one.auc["variation ratio"] for one in found]
    assert abs(auc[0] - 0.5) < 1e-9 and max(auc) > 0.85
    assert (auc[-1] > 0.85) == (attack is fgsm)
plt.show()

# %% [markdown]
# ## 3. Rows of something else
#
# Digits turned upside down, and pixels in any order: neither is a digit.

# %%
shuffled = X_test[:, np.random.default_rng(0).permutation(64)]
others = {"upside down": X_test[:, ::-1], "shuffled": shuffled}
for name, score in doubts(model).items():
    auc = {what: detection_auc(score(X_test), score(rows)) for what, rows in others.items()}
    print(name, *(f"{what}: {value:.2f}" for what, value in auc.items()), sep=", ")
    assert auc["shuffled"] > 0.8
