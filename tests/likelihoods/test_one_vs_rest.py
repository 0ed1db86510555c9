"""One hinge for each class: binary models side by side, and probabilities that sum to one."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from multiclass import draw, three_blobs

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Hinge, OneVsRest, sites_by_autodiff


@pytest.mark.parametrize("one_hot_labels", [True, False])
def test_one_vs_rest_is_binary_models_side_by_side(one_hot_labels):
    X, Y = three_blobs()
    one_hot = (np.arange(3) == Y).astype(float)
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=2.0)
    likelihood = Hinge(bound="exact") if one_hot_labels else OneVsRest(3)
    together = gb.models.BSVM(kernel, likelihood, X[:10].copy(), num_latent_gps=3)
    together.natgrad_step((X, one_hot if one_hot_labels else Y), 0.7)
    for c in range(3):
        alone = gb.models.BSVM(kernel, Hinge(bound="exact"), X[:10].copy())
        alone.natgrad_step((X, one_hot[:, c : c + 1]), 0.7)
        np.testing.assert_allclose(together.q_mu[:, c : c + 1], alone.q_mu, atol=1e-10)
        np.testing.assert_allclose(together.q_sqrt[c], alone.q_sqrt[0], atol=1e-10)


def test_one_vs_rest_is_the_hinge_of_each_class():
    X, Fmu, Fvar, Y = draw(4, num_rows=6, spread=3.0)
    likelihood, one_hot = OneVsRest(4, penalty=1.5), (np.arange(4) == Y).astype(float)
    hinge = Hinge(1.5, "exact")
    pairs = [
        (likelihood.log_prob(X, Fmu, Y), hinge.log_prob(X, Fmu, one_hot)),
        (
            likelihood.variational_expectations(X, Fmu, Fvar, Y),
            hinge.variational_expectations(X, Fmu, Fvar, one_hot),
        ),
        *zip(likelihood.sites(X, Fmu, Fvar, Y), hinge.sites(X, Fmu, Fvar, one_hot)),
        *zip(likelihood.sites(X, Fmu, Fvar, Y), sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_one_vs_rest_predicts_a_distribution():
    X, Fmu, Fvar, Y = draw(4, num_rows=6, spread=3.0)
    likelihood = OneVsRest(4)
    p, variance = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    binary, _ = Hinge().predict_mean_and_var(X, Fmu, Fvar)
    np.testing.assert_allclose(p, binary / tf.reduce_sum(binary, -1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(variance, p - p**2)
    rows = np.arange(6), Y[:, 0].astype(int)
    np.testing.assert_allclose(
        likelihood.predict_log_density(X, Fmu, Fvar, Y), np.log(p.numpy()[rows]), atol=1e-10
    )
    far = likelihood.class_probabilities(
        tf.constant([[-60.0, -50.0, -70.0, -80.0]]), tf.zeros((1, 4))
    )
    np.testing.assert_allclose(far, [[0, 1, 0, 0]], atol=1e-6)  # each alone underflows to 0
