"""Models of Seeger's factored Gaussian, and the same by dense matrices."""

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Bernoulli
from helpers import ard

from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.papers.seeger2000 import FactorVGP, NestedLoop, NormalizedHinge
from gpflow_bsvm.papers.seeger2000.factor import (
    FactoredGaussian,
)

N = 14


#: As far as L-BFGS goes: it ends where rounding hides the next step.
TIGHT = NestedLoop(inner_tol=1e-14, inner_iterations=3000)


LIKELIHOODS = {
    "hinge": lambda: Hinge(bound="exact"),
    "normalised hinge": lambda: NormalizedHinge(1.5),
    "logistic": lambda: Bernoulli(invlink=tf.sigmoid),
}


def make(data, rank=3, likelihood=None, kernel=None, fixed=False, **how):
    likelihood = likelihood or Hinge(bound="exact")
    model = FactorVGP(data, kernel or ard(), likelihood, rank=rank, **how)
    if fixed:
        gpflow.set_trainable((model.kernel, model.mean_function, likelihood), False)
    return model


def noisy():
    """A kernel for which few factors are enough, and optimisers quick."""
    white = gpflow.kernels.White(0.1)
    gpflow.set_trainable(white, False)
    return ard() + white


def with_some_q(model, seed=0):
    rng, (num_rows, rank) = np.random.default_rng(seed), model.q_factors.shape
    scales = {"a": 0.5, "B": 0.4, "log_u": 0.7}
    shapes = {"a": 1, "B": rank, "log_u": 1}
    q = {name: s * rng.normal(size=(num_rows, shapes[name])) for name, s in scales.items()}
    model.assign_factored(FactoredGaussian(**q))
    return model


def as_vgp(model):
    """GPflow's own model, with the same q."""
    prior = model.kernel, model.likelihood, model.mean_function
    other = gpflow.models.VGP(model.data, *prior, num_latent_gps=1)
    root = model.root()
    q = model.moments()
    Sigma = np.diag(q.rest.numpy()[:, 0]) + q.factors.numpy() @ q.factors.numpy().T
    other.q_mu.assign(model.q_mu)
    white = np.linalg.solve(root.L, np.linalg.cholesky(Sigma))
    other.q_sqrt.assign(np.linalg.cholesky(white @ white.T)[None])
    return other


def settle(model, **how):
    """q at its optimum, the kernel as it is. :return: the ELBO."""
    return NestedLoop(**{**vars(TIGHT), **how}).run(model, progress=False).elbo[-1]
