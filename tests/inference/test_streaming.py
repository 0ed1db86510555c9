"""New rows without the old ones."""

import warnings

import gpflow
import numpy as np
import pytest
from helpers import assert_same_state, make_data, make_model, state

from gpflow_bsvm.engine.natural import compiled_solve, expected_factor, scaled_sites
from gpflow_bsvm.inducing_points import exchange
from gpflow_bsvm.inference import CAVI, ECM, Streaming
from gpflow_bsvm.likelihoods import CrammerSinger
from gpflow_bsvm.models import BSVM

SWEEPS = {"tol": 1e-12, "max_steps": 50}


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(90)
    return X, X[:, :1] + 0.1 * Y


def gaussian(data):
    """Sites of this likelihood do not depend on q: streaming is exact."""
    return make_model(data, likelihood=gpflow.likelihoods.Gaussian(0.3))


def parts(data, *ends):
    starts = (0, *ends)
    return [tuple(c[a:b] for c in data) for a, b in zip(starts, (*ends, len(data[0])))]


def test_parts_in_turn_are_the_whole_where_sites_do_not_depend_on_q(data):
    whole, streamed = gaussian(data), gaussian(data)
    CAVI(**SWEEPS).run(whole, data)
    for part in parts(data, 30, 50):
        history = Streaming(**SWEEPS).run(streamed, part)
        assert history.converged
    assert_same_state(state(whole), state(streamed), 1e-9)


def test_a_new_unwhitened_model_stands_for_no_earlier_rows(data):
    whole, streamed = gaussian(data), gaussian(data)
    streamed.whiten = whole.whiten = False
    CAVI(**SWEEPS).run(whole, data)
    for part in parts(data, 30):
        Streaming(**SWEEPS).run(streamed, part)
    assert_same_state(state(whole), state(streamed), 1e-9)


def test_the_bound_is_that_of_all_rows_up_to_a_constant(data):
    whole, streamed = gaussian(data), gaussian(data)
    first, second = parts(data, 50)
    before = CAVI(**SWEEPS).run(streamed, first).elbo[-1]
    algorithm, q = Streaming(**SWEEPS), compiled_solve(streamed.natural())
    known = scaled_sites(streamed.natural(), algorithm.forget)
    constant = before + q.kl - expected_factor(known, q)
    bound = algorithm.run(streamed, second).elbo[-1] + constant
    np.testing.assert_allclose(bound, CAVI(**SWEEPS).run(whole, data).elbo[-1], rtol=1e-10)


def test_what_is_forgotten_counts_as_a_weight(data):
    whole, streamed = gaussian(data), gaussian(data)
    weight = np.repeat([0.25, 0.5, 1.0], 30)
    CAVI(**SWEEPS).run(whole, data, sample_weight=weight)
    for part in parts(data, 30, 60):
        Streaming(forget=0.5, **SWEEPS).run(streamed, part)
    assert_same_state(state(whole), state(streamed), 1e-9)


def test_a_point_of_ecm_stands_for_no_earlier_rows():
    data = make_data(60)
    model, fresh = make_model(data), make_model(data)
    ECM().run(model, data)
    with pytest.raises(ValueError, match=r"q has no variance.* fit the earlier rows with CAVI"):
        Streaming().run(model, data)
    Streaming(forget=0, **SWEEPS).run(model, data)
    CAVI(**SWEEPS).run(fresh, data)
    assert_same_state(state(model), state(fresh), 1e-6)


def test_nothing_kept_is_a_fit_of_its_own():
    data = make_data(60)
    one, two = make_model(data), make_model(data)
    for model in (one, two):
        CAVI().run(model, make_data(40, seed=3))
    expected = CAVI().run(one, data).elbo
    np.testing.assert_allclose(Streaming(forget=0).run(two, data).elbo, expected, rtol=1e-12)
    assert_same_state(state(one), state(two), 1e-10)


def test_without_earlier_rows_classes_are_fitted_as_by_cavi():
    """That is, with centering: without it, a fit takes many more sweeps, and ends too early."""
    X, _ = make_data(60)
    labels = np.digitize(X[:, :1], [-0.5, 0.5])
    fitted = []
    for algorithm in (CAVI(), Streaming(), Streaming(forget=0)):
        kernel = gpflow.kernels.SquaredExponential(2.0)
        model = BSVM(kernel, CrammerSinger(3), X[:8].copy(), num_latent_gps=3)
        fitted.append((model, algorithm.run(model, (X, labels))))
    for model, history in fitted[1:]:
        assert history.elbo == fitted[0][1].elbo
        assert_same_state(state(model), state(fitted[0][0]), 1e-12)


def test_other_inducing_points_first(data):
    """Points in another order are the same points."""
    model, other = gaussian(data), gaussian(data)
    first, second = parts(data, 50)
    for one in (model, other):
        CAVI(**SWEEPS).run(one, first)
    exchange(model, model.inducing_variable.Z.numpy()[::-1])
    for one in (model, other):
        Streaming(**SWEEPS).run(one, second)
    for found, expected in zip(model.predict_f(data[0]), other.predict_f(data[0])):
        np.testing.assert_allclose(found, expected, atol=5e-5)  # exchange adds jitter, 1e-6


@pytest.mark.parametrize("forget", [-0.1, 1.1, np.nan, "half"])
def test_bad_rates(forget):
    with pytest.raises(ValueError, match="forget must be"):
        Streaming(forget=forget)


def test_a_stream_goes_on_from_its_checkpoint(tmp_path):
    data = make_data(90)
    first, second = parts(data, 40)
    one, two, three = (make_model(data) for _ in range(3))
    for model in (one, two, three):
        CAVI().run(model, first)
    whole = Streaming(tol=0, max_steps=4).run(one, second)
    Streaming(tol=0, max_steps=2).run(two, second, checkpoint=tmp_path)
    again = Streaming(tol=0, max_steps=4).run(three, second, checkpoint=tmp_path)
    assert again.elbo == whole.elbo
    assert_same_state(state(one), state(three), 1e-12)


def test_rows_far_from_the_inducing_points_are_told(data):
    X, Y = data
    model = gaussian(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Streaming().run(model, data)
    far = X + [6, 0]
    with pytest.warns(UserWarning, match=r"inducing points explain only .* place them among the"):
        Streaming().run(model, (far, Y))
    exchange(model, far[:8])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Streaming().run(model, (far, Y))
