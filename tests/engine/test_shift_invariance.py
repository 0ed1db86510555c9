"""What all classes have in common costs prior and changes no likelihood: fits take it out."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import assert_same_state, make_data, randomise, state

import gpflow_bsvm as gb
from gpflow_bsvm.engine.contracts import shares_shifts
from gpflow_bsvm.engine.natural import centre, compiled_natural_step, solve
from gpflow_bsvm.inference import CAVI, SVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest

BOUNDS = pytest.mark.parametrize("bound", ["exact", "augmented", "wistuba2018"])


@pytest.fixture
def three():
    """X and labels of three classes."""
    X, _ = make_data()
    return X, np.digitize(X[:, :1] + 0.3 * X[:, 1:], [-0.5, 0.5]).astype(float)


def make(data, likelihood, kernel=None, num_latents=3):
    return gb.models.BSVM(
        gpflow.kernels.SquaredExponential(3.0) if kernel is None else kernel,
        likelihood,
        data[0][:8].copy(),
        num_latent_gps=num_latents,
        num_data=len(data[0]),
    )


@BOUNDS
def test_the_elbo_rises_by_what_the_prior_charged(three, bound):
    model = make(three, CrammerSinger(3, bound=bound))
    randomise(model)
    before, common = model.elbo(three), model.q_mu.numpy().mean(axis=1)
    root = model.q_sqrt.numpy()
    q, zero = model.natural(), tf.zeros([], tf.float64)
    model.assign_natural(compiled_natural_step(q, q, zero, zero + 1)[0])
    np.testing.assert_allclose(model.elbo(three) - before, 1.5 * common @ common, rtol=1e-8)
    np.testing.assert_allclose(model.q_mu.numpy().mean(axis=1), 0, atol=1e-10)
    covariance = root @ np.swapaxes(root, -1, -2)
    np.testing.assert_allclose(state(model)[1], covariance, atol=1e-10)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_gaussian_is_that_of_the_natural_parameters(three, share):
    model = make(three, CrammerSinger(3))
    randomise(model)
    natural = model.natural()
    moved, q = centre(natural, solve(natural), tf.constant(share, tf.float64))
    for one, other in zip(q, solve(moved)):
        np.testing.assert_allclose(one, other, atol=1e-10)
    assert np.allclose(moved.h, natural.h) == (share == 0)


@pytest.mark.drill
@pytest.mark.slow
@BOUNDS
def test_fits_end_with_nothing_in_common(three, bound):
    for algorithm in (CAVI(max_steps=5), SVI(max_steps=30, learning_rate=0.3)):
        model = make(three, CrammerSinger(3, bound=bound))
        algorithm.run(model, three)
        assert abs(model.q_mu.numpy()).max() > 0.1
        np.testing.assert_allclose(model.q_mu.numpy().mean(axis=1), 0, atol=1e-10)


def test_where_the_fit_ends_plain_steps_stay(three):
    model = make(three, CrammerSinger(3))
    CAVI(tol=1e-15, max_steps=2000).run(model, three)
    end = state(model)
    for _ in range(5):
        model.natgrad_step(three, 0.5)
    # A relative gain of 1e-15 in the ELBO leaves some 1e-7 in the mean.
    assert_same_state(state(model), end, 1e-5)


def test_it_needs_fewer_sweeps(three, monkeypatch):
    sweeps = []
    for invariant in (True, False):
        monkeypatch.setattr(CrammerSinger, "shift_invariant", invariant)
        model = make(three, CrammerSinger(3))
        sweeps.append(len(CAVI(tol=1e-8, max_steps=2000).run(model, three)))
    assert sweeps[0] < 0.5 * sweeps[1]


def test_whose_shifts_cost_nothing(three):
    kernel = gpflow.kernels.SeparateIndependent(
        [gpflow.kernels.SquaredExponential(), gpflow.kernels.Matern32(), gpflow.kernels.Matern52()]
    )
    variable = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(three[0][:8].copy())
    )
    separate = gb.models.BSVM(kernel, CrammerSinger(3), variable, num_latent_gps=3)
    kernel = gpflow.kernels.SharedIndependent(gpflow.kernels.SquaredExponential(3.0), 3)
    shared = gb.models.BSVM(kernel, CrammerSinger(3), variable)
    plain = make(three, CrammerSinger(3))
    assert shares_shifts(plain) and shares_shifts(shared)
    assert CAVI().run(shared, three).elbo == CAVI().run(plain, three).elbo
    assert not shares_shifts(separate)
    assert not shares_shifts(make(three, OneVsRest(3)))
    assert not shares_shifts(make(three, Hinge(), num_latents=1))


@pytest.mark.parametrize("likelihood", [OneVsRest(3), Hinge()], ids=["one-vs-rest", "binary"])
def test_others_are_left_alone(three, likelihood):
    """CAVI from the prior at rho = 1 is a plain natural-gradient step."""
    X, labels = three
    num_latents = 3 if isinstance(likelihood, OneVsRest) else 1
    data = three if num_latents == 3 else (X, (labels > 0).astype(float))
    one, two = (make(data, likelihood, num_latents=num_latents) for _ in range(2))
    CAVI(max_steps=1).run(one, data)
    two.natgrad_step(data, 1.0)
    assert_same_state(state(one), state(two), 1e-10)
