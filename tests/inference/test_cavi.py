"""Coordinate ascent: never down, the right optimum, whatever the chunks, weights and precision."""

import gzip
import io
import os
import pathlib
import sys

import gpflow
import numpy as np
import pytest
import reference
import tensorflow as tf
from gpflow import kernels as k
from helpers import assert_same_state, make_data, make_model, randomise, source_of, state
from tqdm import tqdm

import gpflow_bsvm as gb
from gpflow_bsvm.engine import projected_data
from gpflow_bsvm.inference import CAVI, cavi
from gpflow_bsvm.likelihoods import Hinge, Probit

BOUNDS = pytest.mark.parametrize("bound", ["augmented", "exact"])


def assert_ascent(history: gb.inference.History, rounding: float = 1e-11) -> None:
    elbo = np.array(history.elbo)
    assert np.isfinite(elbo).all() and len(elbo) > 1
    assert (np.diff(elbo) >= -rounding * np.abs(elbo[:-1])).all()


# --- ascent --------------------------------------------------------------------------------------


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


@BOUNDS
def test_first_rate_and_number_of_sweeps_are_respected(data, bound):
    model = make_model(data, likelihood=Hinge(bound=bound))
    history = CAVI(max_steps=4, tol=0, learning_rate=0.25).run(model, data)
    np.testing.assert_allclose(history.learning_rate, [0.25, 0.3, 0.36, 0.432])
    assert not history.converged
    assert "4 steps" in repr(history) and "not converged" in repr(history)


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


def test_num_data_scales_the_likelihood(data):
    one, two = make_model(data, num_data=180), make_model(data)
    scaled = CAVI(max_steps=5, tol=0).run(one, data)
    weighted = CAVI(max_steps=5, tol=0).run(two, data, sample_weight=np.full(60, 3.0))
    np.testing.assert_allclose(scaled.elbo, weighted.elbo, rtol=1e-12)
    np.testing.assert_allclose(scaled.elbo[-1], one.elbo(data), rtol=1e-9)
    assert_same_state(state(one), state(two), 1e-11)


# --- chunks and precision ------------------------------------------------------------------------


def big_passes(monkeypatch, products="float32"):
    """Any pass is one whose products are in single precision."""
    if products != "float64":
        monkeypatch.setattr(projected_data, "BIG_PASS", 1)


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
    assert gb.engine.open.open_data(chunked, data).chunk_rows == 64
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


# --- reports and interrupts ----------------------------------------------------------------------


def test_callback_and_monitor_see_the_model_after_each_sweep(data):
    model, seen = make_model(data), []

    def callback(step, history):
        seen.append((step, len(history), model.elbo(data).numpy() - history.elbo[-1]))

    monitored = []

    class Task(gpflow.monitor.MonitorTask):
        def run(self, **_):
            monitored.append((self.current_step, model.elbo(data).numpy()))

    monitor = gpflow.monitor.Monitor(gpflow.monitor.MonitorTaskGroup(Task(), period=2))
    history = CAVI(max_steps=6, tol=0).run(model, data, callback=callback, monitor=monitor)
    assert [entry[:2] for entry in seen] == [(n, n) for n in range(1, 7)]
    assert max(abs(entry[2]) for entry in seen) < 1e-9
    assert [step for step, _ in monitored] == [2, 4, 6]
    np.testing.assert_allclose([elbo for _, elbo in monitored], history.elbo[1::2], rtol=1e-9)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("no more"), StopIteration])
def test_an_interrupt_keeps_the_state_and_goes_on(data, error):
    interrupted, short = make_model(data), make_model(data)

    def callback(step, history):
        if step == 3:
            raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        CAVI(tol=0).run(interrupted, data, callback=callback)
    CAVI(max_steps=3, tol=0).run(short, data)
    assert_same_state(state(interrupted), state(short), 1e-12)


def test_an_interrupt_between_sweeps_keeps_the_last_one(data, monkeypatch):
    model = make_model(data)
    calls = iter(range(100))
    some = gb.inference.cavi.Sweeps._some

    def interrupted(self, *how):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return some(self, *how)

    monkeypatch.setattr(gb.inference.cavi.Sweeps, "_some", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CAVI(tol=0).run(model, data, callback=lambda *_: None)
    monkeypatch.undo()
    short = make_model(data)
    CAVI(max_steps=2, tol=0).run(short, data)
    assert_same_state(state(model), state(short), 1e-12)


def test_progress_bar_shows_the_elbo(data, capsys):
    model = make_model(data)
    CAVI(max_steps=3, tol=0).run(model, data)
    assert capsys.readouterr().err == ""  # no terminal, no bar
    history = CAVI(max_steps=3, tol=0).run(model, data, progress=True, callback=None)
    assert len(history) == 3


def test_a_progress_bar_has_a_name_and_ends_full(data, monkeypatch):
    bars = []

    def made(total, what, progress):
        bars.append(tqdm(total=total, desc=what, file=io.StringIO()))
        return bars[-1]

    monkeypatch.setattr("gpflow_bsvm.inference.history.progress_bar", made)
    assert CAVI().run(make_model(data), data).converged
    assert bars[0].desc.startswith("q (CAVI)") and bars[0].total == bars[0].n < CAVI.max_steps


def test_fit_chooses_coordinate_ascent_for_small_data(data):
    one, two = make_model(data), make_model(data)
    history = gb.fit(one, data, sample_weight=np.full(60, 2.0))
    CAVI().run(two, data, sample_weight=np.full(60, 2.0))
    assert history.converged
    assert_same_state(state(one), state(two), 1e-12)


@pytest.mark.slow
def test_fit_chooses_minibatches_for_big_data(data, monkeypatch):
    monkeypatch.setattr(sys.modules["gpflow_bsvm.inference.fit"], "_SWEEP_LIMIT", 10)
    model = make_model(data)
    start = model.elbo(data)
    history = gb.fit(model, data)
    assert history.step[-1] == 1000 and not history.converged
    assert model.elbo(data) > start


@pytest.mark.slow
def test_fit_takes_a_dataset(data, monkeypatch):
    monkeypatch.setattr(sys.modules["gpflow_bsvm.inference.fit"], "_STEPS", (30, 30))
    model = make_model(data, num_data=60)
    start = model.elbo(data)
    assert gb.fit(model, tf.data.Dataset.from_tensor_slices(data).batch(20)).step[-1] == 30
    assert model.elbo(data) > start


@pytest.mark.parametrize("options", [{}, {"max_steps": 3}, {"tol": 1e-4}])
@pytest.mark.parametrize("seen", [False, True])
def test_sweeps_in_one_call_are_those_one_by_one(options, seen, monkeypatch):
    """Line search included: steps overshoot. Chunks are summed up, and steps halved, by Python."""
    big_passes(monkeypatch, "float32" if "tol" in options else "float64")
    data, calls, some = make_data(100, 6), [], cavi.Sweeps._some

    def counted(self, ascent, most):
        calls.append(most)
        return some(self, ascent, most)

    def run(source, **how):
        kernel, likelihood = k.SquaredExponential(30.0, 2.0), Hinge(8.0, bound="exact")
        model = make_model(data, kernel=kernel, likelihood=likelihood, num_inducing=50)
        return CAVI(**options).run_on(model, source, **how), state(model)

    expected, there = run(source_of(data, chunk_rows=13))
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
