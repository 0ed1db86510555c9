"""Rows seen through a model: its features, and what they leave of the prior's variance."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, make_model, randomise
from kinds_of_sources import sources

import gpflow_bsvm as gb
from gpflow_bsvm.data.sampling import batch_groups
from gpflow_bsvm.engine.contracts import features_of
from gpflow_bsvm.engine.projected_data import ProjectedData
from gpflow_bsvm.engine.projection import with_active_dims
from gpflow_bsvm.prediction.marginals import predict_marginals


@pytest.fixture(scope="module")
def data():
    return make_data(50)


@pytest.mark.parametrize("cached", [True, False])
def test_projected_minibatches_hold_the_rows_of_the_source(data, cached, monkeypatch):
    if not cached:
        monkeypatch.setattr("gpflow_bsvm.engine.projected_data.CACHE_BYTES", 0)
    model = make_model(data)
    for source in sources(data, 8):
        seen = ProjectedData(model, source)
        pairs = zip(batch_groups(source, 7, 2, 0), batch_groups(seen, 7, 2, 0), range(4))
        for raw, projected, _ in pairs:
            rows = projected.rows.take(projected.index[-1])
            np.testing.assert_array_equal(rows.batch.X, tf.gather(raw.rows.X, raw.index[-1]))
            alone = features_of(model, rows.batch.X)
            for one, two in zip(rows.features, alone):
                np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("whiten", [True, False])
def test_marginals_are_those_of_predict_f(whiten):
    data = make_data()
    model = make_model(data, mean_function=gpflow.functions.Linear([[0.3], [-0.2]]), whiten=whiten)
    randomise(model)
    mean, variance = model.predict_f(data[0])
    for chunk_rows in (None, 7):
        found = predict_marginals(model, data[0], chunk_rows=chunk_rows)
        # The explained variance is subtracted: an error relative to k(x, x) = 2.
        np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found[1], variance, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
def test_latent_kernels_see_their_columns_only():
    """GPflow's multi-output kernels ignore the `active_dims` of the kernels that they hold."""
    X, Y = make_data(20)
    kernels = [gpflow.kernels.Linear(active_dims=[dim]) for dim in (0, 1)]
    kernels[1] *= gpflow.kernels.Matern32(lengthscales=[0.5], active_dims=[0])
    shared = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X[:4])
    )
    likelihood = gb.likelihoods.OneVsRest(2)
    both = gb.models.BSVM(gpflow.kernels.SeparateIndependent(kernels), likelihood, shared)
    randomise(both)
    elbos = []
    for part, kernel in enumerate(kernels):
        alone = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), X[:4])
        alone.q_mu.assign(both.q_mu[:, part : part + 1])
        alone.q_sqrt.assign(both.q_sqrt[part : part + 1])
        for expected, found in zip(alone.predict_f(X), both.predict_f(X)):
            np.testing.assert_allclose(found[:, part], expected[:, 0], atol=1e-9)
        fused = both.posterior().fused_predict_f(X)[1]
        np.testing.assert_allclose(fused[:, part], alone.predict_f(X)[1][:, 0], atol=1e-9)
        covariances = (model.predict_f(X, full_cov=True)[1] for model in (both, alone))
        np.testing.assert_allclose(next(covariances)[part], next(covariances)[0], atol=1e-9)
        elbos.append(alone.elbo((X, np.equal(Y, part))))
    np.testing.assert_allclose(both.elbo((X, Y)), sum(elbos), rtol=1e-9)
    gb.inference.CAVI(max_steps=1).run(both, (X, Y))  # its trial call sees the columns, too


class Own(gpflow.kernels.SeparateIndependent):
    """A user's class."""


@pytest.mark.parametrize("several", [gpflow.kernels.SeparateIndependent, Own])
def test_a_kernel_of_several_is_its_kernels(several):
    X, _ = make_data(5)
    kernels = [gpflow.kernels.Linear(active_dims=[0]), gpflow.kernels.Matern32(active_dims=[1])]
    found = with_active_dims(several(kernels))
    assert type(found) is several
    for full in (False, True):
        expected = np.stack([kernel(X, full_cov=full) for kernel in kernels], -1)
        values = np.moveaxis(found(X, full_cov=full, full_output_cov=False), 0, -1 if full else 0)
        np.testing.assert_allclose(values, expected, rtol=1e-12)
