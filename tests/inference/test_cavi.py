"""Coordinate ascent: never down, the right optimum, whatever the chunks, weights and precision."""

import gzip
import os
import pathlib

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from ascents import BOUNDS, assert_ascent, big_passes
from gpflow import kernels as k
from helpers import assert_same_state, make_data, make_model, randomise, source_of, state

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, SVI, History, cavi
from gpflow_bsvm.inference.run import Reports
from gpflow_bsvm.likelihoods import Hinge, Probit

# --- ascent --------------------------------------------------------------------------------------


def test_numpy_integer_as_number_of_steps(data):
    assert CAVI(np.int64(2), tol=0).run(make_model(data), data).step == [1, 2]


@BOUNDS
@pytest.mark.parametrize(
    "kernel",
    [
        k.SquaredExponential(1.0),
        k.SquaredExponential(30.0),
        k.Matern12(5.0, 0.3),
        k.Linear(3.0) + k.Constant(10.0),
        k.SquaredExponential(1e6, 0.5),
    ],
    ids=["plain", "variance 30", "matern", "linear", "variance 1e6"],
)
def test_the_elbo_never_falls_and_is_that_of_the_model(data, kernel, bound):
    model = make_model(data, kernel=kernel, likelihood=Hinge(bound=bound))
    start = model.elbo(data).numpy()
    history = CAVI().run(model, data)
    assert_ascent(history)
    assert history.elbo[0] > start
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)
    assert history.step == list(range(1, len(history) + 1))
    assert np.all(np.diff(history.seconds) >= 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood", [Probit(), gpflow.likelihoods.Bernoulli()], ids=["probit", "bernoulli"]
)
def test_ascent_for_likelihoods_without_closed_sites(data, likelihood):
    model = make_model(data, likelihood=likelihood)
    history = CAVI().run(model, data)
    assert_ascent(history)
    assert history.converged and len(history) < 30
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)


# --- the right answer ----------------------------------------------------------------------------


@BOUNDS
def test_a_sweep_is_gpflows_natural_gradient(data, bound):
    model = make_model(data, likelihood=Hinge(bound=bound))
    plain = gpflow.models.SVGP(model.kernel, model.likelihood, model.inducing_variable)
    CAVI(max_steps=1).run(model, data)
    gpflow.optimizers.NaturalGradient(1.0).minimize(
        lambda: plain.training_loss(data), [(plain.q_mu, plain.q_sqrt)]
    )
    assert_same_state(state(model), state(plain), 1e-10)


@BOUNDS
@pytest.mark.parametrize("whiten", [True, False])
def test_the_end_is_a_fixed_point(data, bound, whiten):
    model = make_model(data, likelihood=Hinge(bound=bound), whiten=whiten)
    # The ELBO is flat at its maximum: 1e-15 in it is 1e-7 in q.
    CAVI(tol=1e-15, max_steps=2000).run(model, data)
    with tf.GradientTape() as tape:
        elbo = model.elbo(data)
    gradients = tape.gradient(
        elbo, (model.q_mu.unconstrained_variable, model.q_sqrt.unconstrained_variable)
    )
    assert all(np.abs(gradient).max() < 1e-4 for gradient in gradients)
    before = state(model)
    model.natgrad_step(data)
    assert_same_state(state(model), before, 1e-6)


@BOUNDS
def test_against_brute_force(bound):
    X, Y = make_data(30)
    model = make_model((X, Y), likelihood=Hinge(1.5, bound), num_inducing=3)
    history = CAVI(tol=1e-14, max_steps=2000).run(model, (X, Y))
    dense = reference.SparseModel(
        X, 2 * Y[:, 0] - 1, X[:3], variance=2.0, lengthscale=1.0, penalty=1.5, bound=bound
    )
    mean, covariance, elbo = dense.optimum()
    np.testing.assert_allclose(history.elbo[-1], elbo, rtol=1e-9)
    mine = state(model)
    np.testing.assert_allclose(dense.elbo(mine[0][:, 0], mine[1][0]), elbo, rtol=1e-9)
    # A quasi-Newton method with numerical gradients finds the argument to some 1e-5.
    np.testing.assert_allclose(mine[0][:, 0], mean, atol=2e-4)
    np.testing.assert_allclose(mine[1][0], covariance, atol=2e-4)


@BOUNDS
def test_the_start_does_not_matter(data, bound):
    one, two = (make_model(data, likelihood=Hinge(bound=bound)) for _ in range(2))
    randomise(two)
    for model in (one, two):
        CAVI(tol=1e-13, max_steps=2000).run(model, data)
    np.testing.assert_allclose(one.elbo(data), two.elbo(data), rtol=1e-10)
    np.testing.assert_allclose(state(one)[0], state(two)[0], atol=1e-4)


def test_symmetries_of_the_data(data):
    X, Y = data
    order = np.random.default_rng(3).permutation(len(X))
    one, two, three = (make_model(data) for _ in range(3))
    CAVI(max_steps=5, tol=0).run(one, data)
    CAVI(max_steps=5, tol=0).run(two, (X[order], Y[order]))
    CAVI(max_steps=5, tol=0).run(three, (X, 1 - Y))
    assert_same_state(state(one), state(two), 1e-10)
    np.testing.assert_allclose(state(one)[0], -state(three)[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(state(one)[1], state(three)[1], rtol=1e-9, atol=1e-11)


# --- weights and scale ---------------------------------------------------------------------------


@BOUNDS
def test_an_integer_weight_is_a_repeated_row(data, bound):
    X, Y = data
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    one, two = (make_model(data, likelihood=Hinge(bound=bound)) for _ in range(2))
    weighted = CAVI(max_steps=6, tol=0).run(one, data, sample_weight=weight)
    repeated = CAVI(max_steps=6, tol=0).run(two, (np.repeat(X, weight, 0), np.repeat(Y, weight, 0)))
    np.testing.assert_allclose(weighted.elbo, repeated.elbo, rtol=1e-10)
    assert_same_state(state(one), state(two), 1e-9)


@pytest.mark.parametrize("algorithm", [CAVI(max_steps=1), SVI(batch_size=20, max_steps=1)])
def test_fewer_rows_than_there_are_is_warned_of(data, algorithm):
    with pytest.warns(UserWarning, match="num_data is 15, but the data have 60 rows: .* 0.25 rows"):
        algorithm.run(make_model(data, num_data=15), data)


def test_num_data_scales_the_likelihood(data):
    one, two = make_model(data, num_data=180), make_model(data)
    scaled = CAVI(max_steps=5, tol=0).run(one, data)
    weighted = CAVI(max_steps=5, tol=0).run(two, data, sample_weight=np.full(60, 3.0))
    np.testing.assert_allclose(scaled.elbo, weighted.elbo, rtol=1e-12)
    np.testing.assert_allclose(scaled.elbo[-1], one.elbo(data), rtol=1e-9)
    assert_same_state(state(one), state(two), 1e-11)


@pytest.mark.parametrize(
    ("options", "seen"),
    [({}, False), ({}, True), ({"max_steps": 3}, False), ({"tol": 1e-4}, True)],
)
def test_sweeps_in_one_call_are_those_one_by_one(options, seen, monkeypatch):
    """Line search included: steps overshoot. Chunks are summed up, and steps halved, by Python."""
    big_passes(monkeypatch, "float32" if "tol" in options else "float64")
    data, calls, some = make_data(100, 6), [], cavi.Sweeps._some

    def counted(self, ascent, most):
        calls.append(most)
        return some(self, ascent, most)

    def run(source, callback=None):
        kernel, likelihood = k.SquaredExponential(30.0, 2.0), Hinge(8.0, bound="exact")
        model = make_model(data, kernel=kernel, likelihood=likelihood, num_inducing=50)
        CAVI(**options).run_on(model, source, history := History(), Reports(callback))
        return history, state(model)

    expected, there = run(source_of(data, chunk_rows=60))
    monkeypatch.setattr(cavi.Sweeps, "_some", counted)
    history, here = run(source_of(data), callback=(lambda *_: None) if seen else None)
    assert len(calls) == 1 + len(history) if seen else len(calls) == 2
    assert min(history.learning_rate) < 1 or "max_steps" in options
    assert history.converged == expected.converged
    np.testing.assert_allclose(history.learning_rate, expected.learning_rate, rtol=1e-12)
    by_precision = (1e-6, 1e-4) if "tol" in options else (1e-9, 1e-6)
    np.testing.assert_allclose(history.elbo, expected.elbo, rtol=by_precision[0])
    assert_same_state(here, there, by_precision[1])


# --- real data -----------------------------------------------------------------------------------


def binary_sets() -> list[str]:
    """What the data directory has; without one the test is there and skips, with the reason."""
    folder = pathlib.Path(os.environ.get("GPFLOW_BSVM_DATA", "")) / "binary"
    return sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz")) or ["none"]


def read(directory, name, num_rows):
    with gzip.open(directory / "binary" / f"{name}.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    table = np.random.default_rng(0).permutation(table)[:num_rows]
    X, Y = table[:, :-1], table[:, -1:]
    return (X - X.mean(0)) / np.maximum(X.std(0), 1e-12), Y


@pytest.mark.drill
@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", binary_sets())
def test_every_binary_set(data_directory, name):
    data = read(data_directory, name, 500)
    Z = gb.inducing_points.kmeans(data[0], 50)
    lengthscale = np.sqrt(data[0].shape[1])
    for bound in ("augmented", "exact"):
        for variance in (1.0, 30.0):
            model = gb.models.BSVM(
                k.SquaredExponential(variance, lengthscale), Hinge(bound=bound), Z
            )
            history = CAVI().run(model, data)
            assert_ascent(history)
            np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-8)
            p, _ = model.predict_y(data[0])
            error = np.mean((p.numpy() > 0.5) != (data[1] == 1))
            assert error <= np.mean(data[1] == 1), "worse than a constant"
