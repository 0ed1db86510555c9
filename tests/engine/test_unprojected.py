"""Rows whose features are not kept: seen in one graph, and as if they were."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import gpflow_bsvm as gb
from gpflow_bsvm.data.passes import sum_over
from gpflow_bsvm.engine import projected_data
from gpflow_bsvm.engine.contracts import open_all
from gpflow_bsvm.engine.projected_data import ProjectedData
from gpflow_bsvm.engine.statistics import compiled_accumulate

N, M = 300, 8


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, (X[:, :1] + 0.5 * rng.normal(size=(N, 1)) > 0).astype(float)


def _model(X, kernel=None, lengthscale=2.0, **kwargs):
    kernel = kernel or gpflow.kernels.SquaredExponential(4.0, lengthscales=[lengthscale] * 3)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="exact"), X[:M].copy(), **kwargs)
    model.q_mu.assign(np.linspace(-1, 1, M)[:, None])
    return model


def _both(model, data, dtype, monkeypatch):
    """:return: statistics of features that are kept, and of blocks."""
    source = open_all(model, data)
    source.chunk_rows = 70
    kept = ProjectedData(model, source)
    kept.dtype = dtype
    q = gb.engine.natural.compiled_solve(model.natural())
    accumulate = compiled_accumulate.bind(model.likelihood)
    expected = sum_over(kept, lambda rows: accumulate(q, rows))
    monkeypatch.setattr(projected_data, "CACHE_BYTES", 0)
    monkeypatch.setattr(projected_data, "BLOCK_BYTES", 2 * 70 * 3 * 8)  # blocks of two chunks
    anew = ProjectedData(model, source)
    anew.dtype, anew.chunk_rows = dtype, 64  # parts that no chunk is a multiple of
    rows, accumulate = anew.summed(model.likelihood)
    read = list(rows.chunks())
    assert [len(block.batch.Y) for block in read] == [140, 140, 20]
    return expected, sum_over(rows, lambda block: accumulate(q, block)), read[0].how


def _assert_close(found, expected, rtol):
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected)):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * scale)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["shared", "sum", "per latent"])
def test_blocks_give_what_kept_features_give(data, kernel, monkeypatch):
    X, Y = data
    SE, kernels = gpflow.kernels.SquaredExponential, gpflow.kernels
    made, latents = {
        "shared": (None, 1),
        "sum": (SE(2.0) + kernels.Linear(0.5), 1),
        "per latent": (kernels.SeparateIndependent([SE(2.0), SE(1.0, 0.7)]), 2),
    }[kernel]
    model = _model(X, made, num_latent_gps=latents) if latents == 1 else _two(X, made)
    pair = X, Y if latents == 1 else np.hstack([Y, 1 - Y])
    expected, found, _ = _both(model, pair, tf.float64, monkeypatch)
    _assert_close(found, expected, 1e-12)


def _two(X, kernel):
    Z = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X[:M].copy())
    )
    return gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="exact"), Z, num_latent_gps=2)


@pytest.mark.parametrize("made_of", ["one", pytest.param("several", marks=pytest.mark.slow)])
def test_single_precision_is_that_of_single_precision_also_with_offsets(data, made_of, monkeypatch):
    X, Y = data
    k = gpflow.kernels
    several = k.SquaredExponential(2.0, [1.0, 2.0, 1.5]) * k.Matern32(0.5, active_dims=[2, 0])
    for offset in (0.0, 1e4):
        model = _model(X + offset, several + k.Constant(0.3) if made_of == "several" else None)
        with monkeypatch.context() as patch:
            expected, found, view = _both(model, (X + offset, Y), tf.float32, patch)
        assert bool(view.single)
        # Some ten roundings of 6e-8 in each entry; without centring the offset costs all digits.
        _assert_close(found, expected, 2e-6)


def test_features_are_made_in_double_precision_where_single_is_not_enough(data, monkeypatch):
    X, Y = data
    model = _model(X, lengthscale=50.0)  # Kuu is nearly singular
    expected, found, view = _both(model, (X, Y), tf.float32, monkeypatch)
    assert not bool(view.single)
    _assert_close(found, expected, 2e-6)  # of the products; single precision is off by 1e-3


def test_kernels_that_are_not_stationary_are_seen_in_double_precision(data):
    X, _ = data
    kernels = gpflow.kernels
    SE = kernels.SquaredExponential()
    assert projected_data.has_single(_model(X, SE * kernels.Matern32()).prior)
    assert projected_data.has_single(_model(X, SE + kernels.Constant()).prior)
    assert not projected_data.has_single(_model(X, SE + kernels.Linear()).prior)
    assert not projected_data.has_single(gb.models.LinearBSVM(3, gb.likelihoods.Hinge()).prior)
    change = kernels.ChangePoints([SE, SE], [0.0])
    assert not projected_data.has_single(_model(X, SE).prior._replace(kernel=change))


def test_blocks_of_a_stream_are_its_chunks_joined(data):
    X, Y = data
    rows = gb.data.Blocks(lambda: [(X[i : i + 110], Y[i : i + 110]) for i in range(0, N, 110)])
    source = open_all(_model(X), rows)
    source.chunk_rows = 70
    found = list(source.in_blocks(2 * 70 * 3 * 8))
    assert [len(batch.Y) for batch in found] == [140, 140, 20]
    for column, expected in zip(zip(*found), (X, Y, np.ones((N, 1)))):
        np.testing.assert_array_equal(np.concatenate(column), expected)


@pytest.mark.slow
def test_a_fit_without_kept_features_is_the_fit_with_them(data, monkeypatch):
    X, _ = data
    fits = []
    for size in (2**28, 0):
        monkeypatch.setattr(projected_data, "CACHE_BYTES", size)
        model = _model(X)
        fits.append(gb.inference.CAVI().run(model, data, progress=False).elbo)
    np.testing.assert_allclose(fits[1], fits[0], rtol=1e-12)
