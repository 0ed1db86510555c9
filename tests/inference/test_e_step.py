"""Damped steps: rho is halved where a step overshoots, and it ends where no step gains more."""

import gpflow
import numpy as np
import pytest
from ascents import BOUNDS, assert_ascent
from gpflow import kernels as k
from helpers import make_data, make_model
from multiclass import three_blobs
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge


@pytest.mark.slow
def test_an_undamped_step_overshoots_and_cavi_does_not():
    X, Y = three_blobs()
    kernel = gpflow.kernels.SquaredExponential(100.0, lengthscales=2.0)
    model = gb.models.BSVM(kernel, CrammerSinger(3), X[:10].copy(), num_latent_gps=3, num_data=90)
    elbo = [float(model.elbo((X, Y)))]
    for _ in range(5):
        model.natgrad_step((X, Y), 1.0)
        elbo.append(float(model.elbo((X, Y))))
    assert min(np.diff(elbo)) < 0
    model.q_mu.assign(np.zeros((10, 3)))
    model.q_sqrt.assign(np.tile(np.eye(10), (3, 1, 1)))
    history = gb.inference.CAVI().run(model, (X, Y))
    assert min(history.learning_rate) < 1
    assert (np.diff(history.elbo) >= 0).all()


def test_a_sweep_that_just_does_not_overshoot_is_not_the_end():
    """Such a sweep gains little anywhere: without a look at half the step, wine ends 0.3 % low."""
    X, y = load_wine(return_X_y=True)
    X, Y = StandardScaler().fit_transform(X), y[:, None].astype(float)
    ends = []
    for cavi in (gb.inference.CAVI(), gb.inference.CAVI(tol=1e-9, max_steps=1000)):
        kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=np.sqrt(13))
        model = gb.models.BSVM(kernel, CrammerSinger(3), X[::6].copy(), num_latent_gps=3)
        ends.append(cavi.run(model, (X, Y)).elbo[-1])
    assert ends[1] - ends[0] < 1e-5 * abs(ends[1])


def test_steps_are_halved_where_a_full_step_overshoots():
    data = make_data(100, 6)
    model = make_model(
        data,
        kernel=k.SquaredExponential(30.0, 2.0),
        likelihood=Hinge(8.0, "exact"),
        num_inducing=50,
    )
    history = CAVI(tol=1e-9).run(model, data)
    assert min(history.learning_rate) < 1  # the case that this test is about
    assert_ascent(history)
    assert history.converged
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)


@BOUNDS
def test_first_rate_and_number_of_sweeps_are_respected(data, bound):
    model = make_model(data, likelihood=Hinge(bound=bound))
    history = CAVI(max_steps=4, tol=0, learning_rate=0.25).run(model, data)
    np.testing.assert_allclose(history.learning_rate, [0.25, 0.3, 0.36, 0.432])
    assert not history.converged
    assert "4 steps" in repr(history) and "not converged" in repr(history)
