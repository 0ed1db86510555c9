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
# # How to add your own likelihood
#
# A likelihood defines p(y | f) for one label. The engine needs only two of its functions: GPflow's
# `variational_expectations`, and the Gaussian *sites*
#
#     w = -2 dV/dFvar,    r = dV/dFmu + w Fmu,    V = E_q log p(y | f).
#
# If you do not write formulas for the sites, the package derives them with automatic
# differentiation. Therefore, a class with a single method works in all models and algorithms. The
# example is the likelihood of logistic regression, p(y | f) = 1 / (1 + exp(-y f)).

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from sklearn.datasets import make_moons

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Sites, signs

# %% [markdown]
# ## 1. One method is enough
#
# `BinaryLikelihood` reads and checks the labels ({0, 1} or {-1, +1}), and predicts with a probit
# link. Expectations come from GPflow's quadrature, and sites from automatic differentiation.


# %%
class Logit(gb.likelihoods.BinaryLikelihood):
    """p(y | f) = 1 / (1 + exp(-y f))."""

    @inherit_check_shapes
    def _scalar_log_prob(self, X, F, Y):
        return tf.math.log_sigmoid(signs(Y, F) * F)


X, y = make_moons(300, noise=0.3, random_state=0)
data = X, y[:, None].astype(float)
Z = gb.inducing_points.kmeans(X, 20)


def fitted(likelihood):
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=1.0)
    model = gb.models.BSVM(kernel, likelihood, Z, num_data=len(X))
    return model, gb.inference.CAVI(tol=1e-8).run(model, data)


model, history = fitted(Logit())
print(history)
assert history.converged

# %% [markdown]
# ## 2. A closed form makes it faster
#
# For the Pólya-Gamma bound (Jaakkola & Jordan 1997; Polson, Scott & Windle 2013), the sites have a
# closed form with c = sqrt(Fmu^2 + Fvar):
#
#     E log p >= (y Fmu - c) / 2 - log(1 + exp(-c)),    w = tanh(c / 2) / (2 c),    r = y / 2.
#
# We add two methods, and nothing else in the package changes. The package uses the closed form of
# every likelihood with `sites`. If a likelihood has `check_labels`, its labels are checked before a
# fit.


# %%
class LogitByPolyaGamma(Logit):
    """`Logit` with the Pólya-Gamma bound as its expectation."""

    @inherit_check_shapes
    def _variational_expectations(self, X, Fmu, Fvar, Y):
        c = tf.sqrt(tf.square(Fmu) + Fvar)
        return tf.reduce_sum((signs(Y, Fmu) * Fmu - c) / 2 - tf.math.softplus(-c), axis=-1)

    def sites(self, X, Fmu, Fvar, Y):
        """Precision and precision-mean of the site of each label."""
        c = tf.sqrt(tf.square(Fmu) + Fvar)
        return Sites(tf.tanh(c / 2) / (2 * c), signs(Y, Fmu) / 2)


augmented, augmented_history = fitted(LogitByPolyaGamma())
print(augmented_history)
assert augmented_history.elbo[-1] <= history.elbo[-1]  # it is a bound on the first one's

# %% [markdown]
# ## 3. Test it as the package tests its own likelihoods
#
# We compare the closed form of the sites with automatic differentiation, and a step with GPflow's
# `NaturalGradient`.

# %%
random = np.random.default_rng(0)
Fmu, Fvar = random.normal(size=(50, 1)), random.uniform(0.1, 4, size=(50, 1))
Y = random.integers(0, 2, (50, 1)).astype(float)
closed = LogitByPolyaGamma().sites(None, Fmu, Fvar, Y)
derived = gb.likelihoods.sites_by_autodiff(
    LogitByPolyaGamma(), random.normal(size=(50, 2)), Fmu, Fvar, Y
)
for one, other in zip(closed, derived):
    np.testing.assert_allclose(one, other, atol=1e-12)

ours, _ = fitted(LogitByPolyaGamma())
theirs = gpflow.models.SVGP(ours.kernel, ours.likelihood, Z, num_data=len(X))
theirs.q_mu.assign(ours.q_mu)
theirs.q_sqrt.assign(ours.q_sqrt)
ours.natgrad_step(data, learning_rate=0.5)
gpflow.optimizers.NaturalGradient(0.5).minimize(
    theirs.training_loss_closure(data), [(theirs.q_mu, theirs.q_sqrt)]
)
np.testing.assert_allclose(ours.q_mu, theirs.q_mu, atol=1e-9)

# %%
fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.plot(history.step, history.elbo, ".-", label="automatic differentiation")
ax.plot(augmented_history.step, augmented_history.elbo, ".-", label="Pólya-Gamma")
ax.set(xlabel="sweep", ylabel="ELBO")
ax.legend()
plt.show()
