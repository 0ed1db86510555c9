"""Where `fit` begins if there are many rows."""

import importlib

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import assert_same_state, make_data, make_model, source_of, state
from scipy.sparse import csr_array

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.data.batch import SparseRows
from gpflow_bsvm.data.opening import open_source
from gpflow_bsvm.data.sampling import sample
from gpflow_bsvm.estimators.large import Rows
from gpflow_bsvm.inference import CAVI

FIT = importlib.import_module("gpflow_bsvm.inference.fit")
N = 120


@pytest.fixture
def many(monkeypatch):
    """For 120 rows to be many."""
    monkeypatch.setattr(FIT, "_FIRST_ROWS", 40)
    monkeypatch.setattr(FIT, "_TIMES", 3)


def blocks(X, Y, size=50):
    parts = [(X[n : n + size], Y[n : n + size]) for n in range(0, len(X), size)]
    return Blocks(parts, num_rows=len(X))


def as_they_come(X, Y, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    return {"arrays": (X, Y), "on disk": (mapped, Y), "blocks": blocks(X, Y)}


def test_a_sample_is_of_distinct_rows(tmp_path):
    X, Y = np.arange(float(N))[:, None], np.arange(float(N))[:, None] % 2
    for data in as_they_come(X, Y, tmp_path).values():
        rows = sample(open_source(data, Rows(), 30), 40, seed=1)
        (batch,) = rows.chunks() if rows.num_rows <= rows.chunk_rows else [rows.take(slice(None))]
        numbers = batch.X.numpy()[:, 0]
        assert len(set(numbers)) == 40 and (np.diff(numbers) > 0).all()
        np.testing.assert_array_equal(batch.Y[:, 0], numbers % 2)
    sparse = sample(source_of((SparseRows(csr_array(X)), Y)), 40, seed=1)
    expected = sample(source_of((X, Y)), 40, seed=1)
    np.testing.assert_array_equal(sparse.take(slice(None)).X, expected.take(slice(None)).X)


@pytest.mark.slow
def test_every_row_is_as_likely_as_any_other():
    X = np.arange(float(N))[:, None]
    source, number = open_source(blocks(X, X % 2), Rows(), 30), np.zeros(N)
    for seed in range(400):
        number[sample(source, 40, seed).take(slice(None)).X.numpy().astype(int)] += 1
    assert np.abs(number / 400 - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / 400)


@pytest.mark.slow
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("num_data", [None, 2 * N])
def test_many_rows_begin_with_some(tmp_path, num_data):
    X, Y = make_data(N)
    by_hand, cold = (make_model((X, Y), num_data=num_data) for _ in range(2))
    some = sample(source_of((X, Y)), 40, seed=0)
    CAVI().run(by_hand, some if num_data else some.scaled(3.0))
    expected = CAVI().run(by_hand, (X, Y))
    CAVI(tol=1e-12).run(cold, (X, Y))
    for name, data in as_they_come(X, Y, tmp_path).items():
        model = make_model((X, Y), num_data=num_data)
        history = gb.fit(model, data)
        if name != "blocks":  # of which others are drawn
            assert_same_state(state(model), state(by_hand), 1e-9)
            np.testing.assert_allclose(history.elbo, expected.elbo, rtol=1e-12)
        assert_same_state(state(model), state(cold), 0.02)  # two ways to tol
        again = gb.fit(model, data)
        assert again.elbo[0] >= history.elbo[-1]  # q is no prior any more: it is where it begins


@pytest.mark.usefixtures("many")
def test_a_fit_of_many_rows_goes_on(tmp_path):
    data, calls = make_data(N), []

    def die(step, _):
        calls.append(step)
        if step == 2:
            raise KeyboardInterrupt

    dead, model, whole = (make_model(data) for _ in range(3))
    expected = gb.fit(whole, data)
    with pytest.raises(KeyboardInterrupt):
        gb.fit(dead, data, callback=die, checkpoint=tmp_path)
    assert calls == [1, 2]
    history = gb.fit(model, data, checkpoint=tmp_path)
    assert history.elbo == expected.elbo
    assert_same_state(state(model), state(whole), 0)


@pytest.mark.usefixtures("many")
def test_a_beginning_says_nothing_that_the_whole_fit_says():
    X, Y = make_data(N)
    model = make_model((X, Y), likelihood=gpflow.likelihoods.MultiClass(3), num_latent_gps=3)
    Y = np.digitize(X[:, :1] + np.cos(9 * X[:, 1:]), [-0.5, 0.5]).astype(float)
    with pytest.warns(UserWarning, match="has not converged") as told:
        gb.fit(model, (X, Y))
    assert len(told) == 1


def test_fit_chooses_coordinate_ascent_for_small_data(data):
    one, two = make_model(data), make_model(data)
    history = gb.fit(one, data, sample_weight=np.full(60, 2.0))
    CAVI().run(two, data, sample_weight=np.full(60, 2.0))
    assert history.converged
    assert_same_state(state(one), state(two), 1e-12)


@pytest.mark.slow
def test_fit_chooses_minibatches_for_big_data(data, monkeypatch):
    monkeypatch.setattr(FIT, "_SWEEP_LIMIT", 10)
    model = make_model(data)
    start = model.elbo(data)
    history = gb.fit(model, data)
    assert history.step[-1] == 1000 and not history.converged
    assert model.elbo(data) > start


@pytest.mark.slow
def test_fit_takes_a_dataset(data, monkeypatch):
    monkeypatch.setattr(FIT, "_FEWEST_STEPS", 30)
    monkeypatch.setattr(FIT, "_MOST_STEPS", 30)
    model = make_model(data, num_data=60)
    start = model.elbo(data)
    assert gb.fit(model, tf.data.Dataset.from_tensor_slices(data).batch(20)).step[-1] == 30
    assert model.elbo(data) > start
