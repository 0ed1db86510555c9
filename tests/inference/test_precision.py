"""Products in single precision, and everything in it: the answer of double, by its rounding."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from ascents import BOUNDS, assert_ascent, big_passes
from gpflow import kernels as k
from helpers import assert_same_state, make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import Hinge


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("products", ["float64", "float32"])
def test_chunks_change_nothing(small_chunks, monkeypatch, cached, products):
    big_passes(monkeypatch, products)
    data = make_data(150)  # chunks of 64, 64 and 22 rows
    whole, chunked = make_model(data), make_model(data)
    weight = np.random.default_rng(0).random(150)
    algorithm = CAVI(max_steps=8, tol=1e-6)
    expected = algorithm.run(whole, data, sample_weight=weight)
    small_chunks(cached)
    assert gb.engine.contracts.open_data(chunked, data).chunk_rows == 64
    history = algorithm.run(chunked, data, sample_weight=weight)
    # Single precision sums in another order: 1e-7, of which the last sweeps forget most.
    tolerance = 1e-10 if products == "float64" else 1e-6
    np.testing.assert_allclose(history.elbo, expected.elbo, rtol=tolerance)
    assert_same_state(state(whole), state(chunked), tolerance if products == "float64" else 1e-4)


@pytest.mark.slow
@BOUNDS
def test_products_in_single_precision_reach_the_answer_of_double(bound, monkeypatch):
    data = make_data(200, 3)
    double, single = (
        make_model(data, likelihood=Hinge(bound=bound), num_inducing=20) for _ in range(2)
    )
    CAVI(tol=1e-9).run(double, data)
    big_passes(monkeypatch)
    history = CAVI(tol=1e-6).run(single, data)
    assert_ascent(history, rounding=1e-6)
    np.testing.assert_allclose(single.elbo(data), double.elbo(data), rtol=1e-5)
    np.testing.assert_allclose(history.elbo[-1], single.elbo(data), rtol=1e-5)


@pytest.mark.parametrize("tol", [1e-5, 1e-7])
def test_big_passes_are_in_single_precision(monkeypatch, data, tol):
    """Not so where gains are to be seen that are smaller than its rounding."""
    algorithm = CAVI(tol=tol)
    expected = algorithm.run(make_model(data), data)
    big_passes(monkeypatch)
    found = algorithm.run(make_model(data), data)
    assert found.converged
    np.testing.assert_allclose(found.elbo[0], expected.elbo[0], rtol=1e-5)
    assert (found.elbo[0] == expected.elbo[0]) == (tol < 1e-6)


def test_single_precision_may_overflow_where_double_does_not(monkeypatch, data):
    big_passes(monkeypatch)
    model = make_model(data, kernel=k.SquaredExponential(1e100))
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match="float64 does not hold"):
        history = CAVI(max_steps=10).run(model, data)
    assert len(history) == 10
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)


@pytest.mark.slow
@BOUNDS
def test_everything_in_single_precision(bound):
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        data = tuple(array.astype(np.float32) for array in make_data(100))
        model = make_model(data, likelihood=Hinge(bound=bound))
        assert model.q_mu.dtype == tf.float32
        history = CAVI().run(model, data)
        assert_ascent(history, rounding=1e-6)
        single = model.elbo(data).numpy()
        np.testing.assert_allclose(history.elbo[-1], single, rtol=1e-5)
        before = single
        gb.inference.SVI(batch_size=20, max_steps=30, learning_rate=0.1).run(model, data)
        model.natgrad_step(data, 0.5)
        model.natgrad_step(data)
        p, _ = model.predict_y(data[0])
        assert p.dtype == tf.float32
        assert np.isfinite(p).all()
        assert model.elbo(data).numpy() > before - 5
    double = make_data(100)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-4)):
        model = make_model(double, likelihood=Hinge(bound=bound))
        CAVI().run(model, double)
        np.testing.assert_allclose(model.elbo(double), single, rtol=1e-4)
