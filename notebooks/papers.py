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
# # The papers in ten cells
#
# We go from equation 5 of Wenzel et al. (2017) to Algorithm 1 of Wistuba & Rawat (2018), with the
# papers' names. For comparison, we fit GPflow's `SVGP`, with the same kernel and Z, by natural
# gradients.

# %% short="N, M = 60, 10"
N, M = 300, 20

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.svm import SVC

import gpflow_bsvm as gb

X, y = make_moons(N, noise=0.25, random_state=0)
X_new, y_new = make_moons(2000, noise=0.25, random_state=1)
Y = y[:, None].astype(float)
Z = gb.inducing_points.kmeans(X, M)


def kernel():
    return gpflow.kernels.SquaredExponential(4.0, lengthscales=0.8)


# %% [markdown]
# ## 1. Wenzel et al., eq. 5: f given the local variables is Gaussian
#
# Conditionally on lambda, f at new points has the mean k' (K + Lambda)^-1 Y (1 + lambda). The model
# `BatchBSVM` computes the same mean in its own way. It adds a jitter of 1e-6 to K, so we add this
# jitter in the formula, too.

# %%
batch = gb.models.BatchBSVM((X, Y), kernel(), gb.likelihoods.Hinge(bound="augmented"))
lam = np.random.default_rng(0).uniform(0.2, 3.0, size=(N, 1))
mean, variance = gb.prediction.predict_f_given(batch, None, lam, X_new[:5])
K, k = kernel()(X).numpy(), kernel()(X, X_new[:5]).numpy()
smooth = K @ np.linalg.inv(K + batch.jitter * np.eye(N))
inverse = np.linalg.inv(smooth @ K + np.diag(lam[:, 0]))
by_hand = (smooth @ k).T @ inverse @ ((2 * Y - 1) * (1 + lam))
print(f"largest difference to eq. 5: {np.abs(mean - by_hand).max():.1e}")
assert np.allclose(mean, by_hand, atol=1e-6)

# %% [markdown]
# ## 2. Eq. 8: the objective, with a GIG distribution for every row
#
# `local_variables` gives q(lambda_n) = GIG(1/2, 1, alpha_n). With these values of alpha,
# `augmented_elbo` is the ELBO that the model maximizes. With any other values it is smaller.

# %%
sparse = gb.models.BSVM(kernel(), gb.likelihoods.Hinge(bound="augmented"), Z, num_data=N)
ours = gb.prediction.local_variables(sparse, (X, Y))
best = gb.prediction.augmented_elbo(sparse, (X, Y), ours.alpha)
other = gb.prediction.augmented_elbo(sparse, (X, Y), 2 * ours.alpha)
print(f"ELBO {float(sparse.elbo((X, Y))):.6f}, eq. 8 {best:.6f}, at twice alpha {other:.2f}")
assert np.isclose(best, sparse.elbo((X, Y))) and other < best

# %% [markdown]
# ## 3. Eqs. 9 and 10: coordinate ascent is GPflow's natural gradient of size 1

# %%
theirs = gpflow.models.SVGP(kernel(), gb.likelihoods.Hinge(bound="augmented"), Z, num_data=N)
q = [(theirs.q_mu, theirs.q_sqrt)]
loss = theirs.training_loss_closure((X, Y))
for _ in range(5):
    sparse.natgrad_step((X, Y), 1.0)
    gpflow.optimizers.NaturalGradient(1.0).minimize(loss, q)
difference = np.abs(sparse.q_mu.numpy() - theirs.q_mu.numpy()).max()
print(f"largest difference of q_mu after 5 steps: {difference:.1e}")
assert difference < 1e-8

# %% [markdown]
# ## 4. Until convergence, with each bound
#
# `CAVI` repeats such steps until the bound converges. The bound with the exact expectation of the
# hinge is tighter; it is not in the papers.

# %%
fits = {}
for bound in ("augmented", "exact"):
    fits[bound] = gb.models.BSVM(kernel(), gb.likelihoods.Hinge(bound=bound), Z, num_data=N)
    history = gb.inference.CAVI().run(fits[bound], (X, Y))
    print(f"{bound}: ELBO {history.elbo[-1]:.2f} after {len(history)} sweeps")

# %% [markdown]
# ## 5. Algorithm 1: minibatches with an adaptive learning rate
#
# The adaptive rate of Ranganath et al. (2013) needs no schedule.

# %%
stochastic = gb.models.BSVM(kernel(), gb.likelihoods.Hinge(bound="augmented"), Z, num_data=N)
svi = gb.inference.SVI(batch_size=20, max_steps=600, learning_rate="adaptive", record_every=50)
history = svi.run(stochastic, (X, Y))
print(f"ELBO on all rows {float(stochastic.elbo((X, Y))):.2f}")
print("rates", np.round(history.learning_rate, 3)[[0, 2, -1]])

# %% [markdown]
# ## 6. Section 4.3: hyperparameters without cross-validation
#
# The paper learns on minibatches, like `ML2`; `VEM` needs no learning rate. SVGP with Bernoulli has
# the same kernel and Z. SVGP learns q with natural gradients, and its kernel with Adam.


# %%
def error(model):
    p = model.predict_y(X_new)[0].numpy()
    labels = p.argmax(axis=1) if p.shape[1] > 1 else (p[:, 0] > 0.5).astype(int)
    return np.mean(labels != y_new)


learned = gb.models.BSVM(kernel(), gb.likelihoods.Hinge(), Z, num_data=N)
gpflow.set_trainable(learned.inducing_variable, False)
gb.inference.VEM().run(learned, (X, Y))
gb.prediction.calibrate(learned, (X, Y))

svgp = gpflow.models.SVGP(kernel(), gpflow.likelihoods.Bernoulli(), Z, num_data=N)
for part in (svgp.inducing_variable, svgp.q_mu, svgp.q_sqrt):
    gpflow.set_trainable(part, False)
loss = svgp.training_loss_closure((X, Y))
natural = gpflow.optimizers.NaturalGradient(0.5)
adam = gpflow.keras.tf_keras.optimizers.Adam(0.05)
for _ in range(100):
    natural.minimize(loss, [(svgp.q_mu, svgp.q_sqrt)])
    adam.minimize(loss, svgp.trainable_variables)
for name, model in (("BSVM", learned), ("SVGP", svgp)):
    nll = -model.predict_log_density((X_new, y_new[:, None].astype(float))).numpy().mean()
    print(f"{name}: error {error(model):.3f}, NLL {nll:.3f}")

# %% [markdown]
# ## 7. Soft support vectors
#
# A row with a small alpha is near the margin. The mean of 1 / lambda is the precision of the row's
# site.

# %%
ours = gb.prediction.local_variables(learned, (X, Y))
rows = gb.prediction.soft_support_vectors(learned, (X, Y), num=15)
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.scatter(*X.T, c=y, s=12, cmap="coolwarm", alpha=0.6)
ax.scatter(*X[rows].T, s=60, facecolors="none", edgecolors="k", label="15 smallest alpha")
ax.set(xlabel="$x_1$", ylabel="$x_2$")
ax.legend(loc="upper right")
plt.show()
print(f"E 1/lambda from {ours.mean_inverse.min():.2f} to {ours.mean_inverse.max():.2f}")

# %% [markdown]
# ## 8. Henao et al. (2014): the mode is the support vector machine
#
# `ECM` finds the mode for every sum of hinges. With the same kernel, the mode equals scikit-learn's
# `SVC` without a bias. A `Constant` kernel of large variance adds a bias that can take any value,
# as in this cell.

# %%
mode = gb.models.BatchBSVM((X, Y), kernel() + gpflow.kernels.Constant(1e4), gb.likelihoods.Hinge())
gb.inference.ECM(max_steps=3000).run(mode)
gram = kernel()(X).numpy()
svc = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(gram, y)
f = mode.predict_f(X)[0].numpy()[:, 0]
print(f"largest difference to SVC: {np.abs(f - svc.decision_function(gram)).max():.1e}")
assert np.allclose(f, svc.decision_function(gram), atol=1e-2)

# %% [markdown]
# ## 9. Wistuba & Rawat, eq. 4: several classes, three objectives
#
# "wistuba2018" is the paper's objective. The loss compares f of the true class with the largest f
# of the other classes, its rivals. The objective uses the rival with the largest mean of f instead.
# It can therefore be above the expectation of the log likelihood, so it is not a bound. "augmented"
# is a true bound, with the same GIG variables.

# %%
C = 3
XC, yC = make_blobs(N, centers=C, cluster_std=2.2, random_state=3)
XC = (XC - XC.mean(axis=0)) / XC.std(axis=0)
dataC, ZC = (XC, yC[:, None].astype(float)), gb.inducing_points.kmeans(XC, M)
machines = {}
for bound in ("exact", "augmented", "wistuba2018"):
    likelihood = gb.likelihoods.CrammerSinger(C, bound=bound)
    machines[bound] = gb.models.BSVM(kernel(), likelihood, ZC, num_latent_gps=C, num_data=N)
    print(f"{bound}: {float(machines[bound].elbo(dataC)):.2f} at the prior")

# %% [markdown]
# ## 10. Algorithm 1 of Wistuba & Rawat
#
# `ClassByClass` updates one class after another, and keeps alpha and the rivals fixed meanwhile.
# For comparison, we fit GPflow's SVGP with Softmax and the same kernel and Z, by natural gradients.

# %%
printed = gb.papers.wistuba2018.ClassByClass(learning_rate=0.5, tol=1e-3)
history = printed.run(machines["wistuba2018"], dataC)
fell = int((np.diff(history.elbo) < 0).sum())
print(f"Algorithm 1: {len(history)} sweeps, of which {fell} lowered the objective")
for bound in ("augmented", "exact"):
    gb.inference.CAVI().run(machines[bound], dataC)

softmax = gpflow.models.SVGP(
    kernel(), gpflow.likelihoods.Softmax(C), ZC, num_latent_gps=C, num_data=N
)
loss = softmax.training_loss_closure((XC, yC[:, None]))
for _ in range(50):
    gpflow.optimizers.NaturalGradient(0.1).minimize(loss, [(softmax.q_mu, softmax.q_sqrt)])
for name, model in {**machines, "SVGP, Softmax": softmax}.items():
    p = model.predict_y(XC)[0].numpy()
    nll = -np.log(p[np.arange(N), yC]).mean()
    print(f"{name}: training error {np.mean(p.argmax(axis=1) != yC):.3f}, NLL {nll:.3f}")
