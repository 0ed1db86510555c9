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
# # A Bayesian SVM on a network
#
# A Keras network inside a GPflow kernel is learned together with the Bayesian SVM, on handwritten
# digits of 8 x 8 pixels. Each section shows one claim.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from gpflow.keras import tf_keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gpflow_bsvm as gb
from gpflow_bsvm import deep, metrics

layers = tf_keras.layers
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.4, stratify=y, random_state=0)
Y = y[:, None].astype(float)


def network():
    tf_keras.utils.set_random_seed(0)
    return tf_keras.Sequential(
        [
            layers.InputLayer((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(16),
        ]
    )


def scores(P):
    return {name: round(getattr(metrics, name)(y_test, P), 4) for name in ("error", "nll", "ece")}


# %% [markdown]
# ## 1. The network with a softmax layer
#
# Keras trains the network for eight epochs, as usual.

# %%
features = network()
softmax = tf_keras.Sequential([features, layers.Activation("relu"), layers.Dense(10)])
softmax.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images, images_test = (part.reshape(-1, 8, 8, 1).astype("float32") for part in (X, X_test))
softmax.fit(images, y, batch_size=50, epochs=8, verbose=0)
P_softmax = tf_keras.activations.softmax(softmax(images_test)).numpy()
print("softmax", scores(P_softmax))

# %% [markdown]
# ## 2. Compute features once, then fit a Bayesian SVM in seconds
#
# `deep.hybrid` puts a kernel on the output of the network, chooses inducing points among its
# features, and sets a suitable lengthscale. `deep.head` is the same model, with the same
# parameters, but its inputs are features. So `CAVI` does not have to run the network in each pass.

# %%
likelihood = gb.likelihoods.CrammerSinger(num_classes=10, penalty=4.0)
model = deep.hybrid(features, likelihood, X, num_inducing=50)
F = model.kernel.features_of(X)
history = gb.fit(deep.head(model), (F, Y))
P_frozen = model.predict_y(X_test)[0].numpy()
print("frozen", scores(P_frozen), history)
assert metrics.nll(y_test, P_frozen) < metrics.nll(y_test, P_softmax)

# %% [markdown]
# You can use the features of any network, if you pass them as an array. `BSVMClassifier` chooses
# loss, kernel and penalty by itself.

# %%
classifier = gb.BSVMClassifier(num_inducing=50, loss="hinge", random_state=0).fit(F, y)
P_classifier = classifier.predict_proba(model.kernel.features_of(X_test))
print("classifier on features", scores(P_classifier))

# %% [markdown]
# ## 3. Everything together
#
# `ML2` is one compiled loop. It updates q with natural gradients, and network, kernel and inducing
# points with Keras optimizers. Dropout and batch normalization are in training mode during this fit
# only. At the end, `CAVI` brings q to convergence. The likelihood has hinges at many levels of
# probability, because the training of a new network with a single hinge can get stuck before the
# network separates the classes.

# %%
joint = deep.hybrid(network(), gb.likelihoods.OneVsRestLevelHinge(10), X, num_inducing=50)
epoch = len(X) // 50
gb.inference.ML2(
    batch_size=50,
    max_steps=8 * epoch,
    record_every=epoch,
    every=1,
    learning_rate=0.1,
    optimizer=0.01,
    network_optimizer=tf_keras.optimizers.Adam(2e-3),
).run(joint, (X, Y))
gb.fit(deep.head(joint), (joint.kernel.features_of(X), Y))
P_joint = joint.predict_y(X_test)[0].numpy()
print("hybrid", scores(P_joint))
assert metrics.error(y_test, P_joint) < 0.05

# %% [markdown]
# ## 4. When to decline an answer
#
# Most errors are among the rows about which the model is least sure.

# %%
fig, ax = plt.subplots(figsize=(5, 3.5))
for label, P in {"softmax": P_softmax, "frozen": P_frozen, "hybrid": P_joint}.items():
    order = np.argsort(-P.max(axis=1))
    right = (P.argmax(axis=1) == y_test)[order]
    share = np.arange(1, len(right) + 1) / len(right)
    ax.plot(share, 1 - np.cumsum(right) / np.arange(1, len(right) + 1), label=label)
ax.set(xlabel="rows that are answered", ylabel="error among them")
ax.legend()
plt.show()

# %% [markdown]
# ## 5. It is a model like any other
#
# It can be saved, loaded and exported. Any GPflow kernel works on the features, and can be combined
# with any other kernel.

# %%
gb.save(joint, "hybrid.bsvm")
again = gb.load("hybrid.bsvm", network=network())
assert (again.predict_y(X_test)[0].numpy() == P_joint).all()
kernel = deep.DeepKernel(network(), gpflow.kernels.Matern32()) + gpflow.kernels.Linear()
print(kernel(X[:2]).numpy())
