"""The scale in which L-BFGS sees a factored Gaussian changes no bound."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from factor_models import N, make, with_some_q
from gpflow.likelihoods import Bernoulli
from helpers import make_data

from gpflow_bsvm.data.batch import Batch
from gpflow_bsvm.likelihoods import sites
from gpflow_bsvm.papers.seeger2000 import NormalizedHinge
from gpflow_bsvm.papers.seeger2000.factor import factored_bound, moments
from gpflow_bsvm.papers.seeger2000.nested import scale_of, scaled, unscaled


@pytest.fixture(scope="module")
def data():
    return make_data(N)


def some_scale(data, likelihood):
    model = with_some_q(make(data, likelihood=likelihood))
    weight = tf.constant(np.random.default_rng(1).uniform(0.5, 2.0, size=(N, 1)))
    q, root, batch = model.factored(), model.root(), Batch(*model.data, weight)
    return q, root, batch, scale_of(likelihood, q, root, batch)


def test_a_scale_is_of_the_sites_and_changes_no_bound(data):
    likelihood = NormalizedHinge(1.5)
    q, root, batch, R = some_scale(data, likelihood)
    of, L = moments(q, root), root.L.numpy()
    w = sites(likelihood, batch.X, of.mean, of.variance(), batch.Y)[0] * batch.weight
    np.testing.assert_allclose(R @ R.numpy().T, np.eye(N) + L.T @ (w.numpy() * L), rtol=1e-10)
    there = scaled(q, R)
    np.testing.assert_allclose(there.B, R.numpy().T @ q.B, rtol=1e-12)
    for part, back in zip(q, unscaled(there, R)):
        np.testing.assert_allclose(back, part, rtol=1e-10)
    bound = factored_bound(likelihood, unscaled(there, R), root, batch)
    np.testing.assert_allclose(bound, factored_bound(likelihood, q, root, batch), rtol=1e-12)


def test_there_is_a_scale_where_a_likelihood_has_no_slope(data):
    """GPflow's Bernoulli takes the logarithm of a probability that is 0."""
    likelihood = Bernoulli(invlink=tf.sigmoid)
    q, root, batch, _ = some_scale(data, likelihood)
    far = q._replace(a=1e5 * q.a)
    of = moments(far, root)
    w, r = sites(likelihood, batch.X, of.mean, of.variance(), batch.Y)
    assert np.isfinite(w).all() and not np.isfinite(r).all()
    assert np.isfinite(scale_of(likelihood, far, root, batch)).all()


def test_of_a_gaussian_likelihood_scaled_means_are_curved_by_one(data):
    """There the sites are the likelihood: a step in R^T a changes the slope by itself."""
    likelihood = gpflow.likelihoods.Gaussian(0.01)
    q, root, batch, R = some_scale(data, likelihood)
    slopes, step = [], np.random.default_rng(2).normal(size=(N, 1))
    for a in (scaled(q, R).a, scaled(q, R).a + step):
        with tf.GradientTape() as tape:
            tape.watch(a)
            there = unscaled(scaled(q, R)._replace(a=a), R)
            bound = factored_bound(likelihood, there, root, batch)
        slopes.append(tape.gradient(bound, a))
    np.testing.assert_allclose(slopes[0] - slopes[1], step, rtol=1e-8)
