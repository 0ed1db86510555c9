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
# # Several classes, and the model's doubt
#
# The model has one latent function per class and the hinge of Crammer and Singer. Each section
# shows one claim on handwritten digits.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)
Y = y[:, None].astype(float)

# %% [markdown]
# ## 1. Swap the likelihood; everything else stays
#
# The engine is the same as for two classes: a sweep is a natural-gradient step for all classes. If
# a full step would lower the ELBO, a smaller step is taken, so that the ELBO rises in every sweep.

# %%
model = gb.models.BSVM(
    kernel=gpflow.kernels.SquaredExponential(4.0, lengthscales=8.0),
    likelihood=gb.likelihoods.CrammerSinger(num_classes=10),
    inducing_variable=gb.inducing_points.kmeans(X, 100),
    num_latent_gps=10,
    num_data=len(X),
)
history = gb.fit(model, (X, Y))
assert (np.diff(history.elbo) > -1e-6 * abs(history.elbo[-1])).all()
p = model.predict_y(X_test)[0].numpy()
wrong = p.argmax(axis=1) != y_test
print(f"{len(history)} sweeps, {100 * wrong.mean():.1f} % error")

# %%
ConfusionMatrixDisplay.from_predictions(y_test, p.argmax(axis=1), colorbar=False)
plt.show()

# %% [markdown]
# ## 2. The doubt shows possible errors
#
# Each draw of f from q favors one class. The *variation ratio* is the probability that a draw does
# not favor the class that most draws favor. The *mutual information* is the part of the doubt that
# more data can remove. Most errors are among the most doubtful rows. If a person labels the most
# doubtful rows, fewer errors are left.

# %%
doubts = {
    "variation ratio": gb.prediction.variation_ratio(model, X_test),
    "predictive entropy": gb.prediction.predictive_entropy(model, X_test),
    "mutual information": gb.prediction.mutual_information(model, X_test),
}
handed_over = np.linspace(0, 0.3, 31)
for name, doubt in doubts.items():
    sorted_wrong = wrong[np.argsort(doubt)]
    left = [sorted_wrong[: round(len(wrong) * (1 - share))].mean() for share in handed_over]
    plt.plot(100 * handed_over, 100 * np.array(left), label=name)
    assert left[10] < 0.5 * left[0]
plt.xlabel("most doubtful rows handed over, %")
plt.ylabel("error on the others, %")
plt.legend()
plt.show()

# %% [markdown]
# ## 3. The model doubts rows far from all data
#
# We predict the classes of rows of random noise. Their probabilities still favor some class, but
# their mutual information shows that no training row is like them.

# %%
noise = np.random.default_rng(0).normal(scale=3, size=(200, 64))
plt.hist(doubts["mutual information"], bins=30, density=True, alpha=0.6, label="digits")
information = gb.prediction.mutual_information(model, noise)
plt.hist(information, bins=30, density=True, alpha=0.6, label="noise")
plt.xlabel("mutual information, nats")
plt.legend()
plt.show()
assert np.median(information) > 2 * np.median(doubts["mutual information"])

# %% [markdown]
# ## 4. The estimator, and one-vs-rest
#
# `BSVMClassifier` does all this with `fit` and `predict_proba`. It has two losses: one-vs-rest
# hinges at every level of probability, or a single hinge (Crammer and Singer's, or one-vs-rest).
# Without arguments it chooses the loss, learns a lengthscale for each of the 64 pixels, and lets
# the number of inducing points grow. On these digits, this takes a few minutes.

# %%
for options in ({"loss": "levels"}, {"loss": "hinge"}, {"loss": "hinge", "multi_class": "ovr"}):
    classifier = gb.BSVMClassifier(
        learn_kernel=False, penalty=8.0, num_inducing=100, random_state=0, **options
    ).fit(X, y)
    shown = ", ".join(options.values())
    print(f"{shown}: {100 * (1 - classifier.score(X_test, y_test)):.1f} % error")
