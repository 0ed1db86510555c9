"""Stochastic variational inference: each step, each source of minibatches, each way to end."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import assert_same_state, make_data, make_model, source_of, state

import gpflow_bsvm as gb
from gpflow_bsvm.data.sampling import batch_groups
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, Adaptive, RobbinsMonro
from gpflow_bsvm.likelihoods import Hinge, Probit


def dataset_of(*batches) -> tf.data.Dataset:
    """A dataset that yields just these batches, of any sizes."""
    spec = tuple(tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in batches[0])
    return tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec)


def batches_of(data, sizes):
    ends = np.cumsum(sizes)
    return [tuple(part[end - size : end] for part in data) for size, end in zip(sizes, ends)]


# --- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["augmented", "exact"])
def test_full_batches_at_rate_one_are_sweeps(data, bound):
    one, two = (make_model(data, likelihood=Hinge(bound=bound)) for _ in range(2))
    stochastic = SVI(batch_size=60, max_steps=4, learning_rate=1.0, record_every=1).run(one, data)
    sweeps = CAVI(max_steps=4, tol=0).run(two, data)
    assert sweeps.learning_rate == [1.0] * 4
    np.testing.assert_allclose(stochastic.elbo, sweeps.elbo, rtol=1e-10)
    assert_same_state(state(one), state(two), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(Hinge(bound="augmented"), id="augmented", marks=pytest.mark.drill),
        pytest.param(Hinge(), id="exact"),
        pytest.param(Probit(), id="probit"),
    ],
)
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(3, id="fewer rows than points"),
        pytest.param(15, id="more", marks=pytest.mark.drill),
    ],
)
def test_steps_are_natgrad_steps_on_the_same_batches(data, likelihood, size):
    mean_function = gpflow.functions.Linear([[0.4], [0.2]])
    one, two = (
        make_model(data, likelihood=likelihood, num_data=500, mean_function=mean_function)
        for _ in range(2)
    )
    batches = batches_of(data, [size] * 4)
    schedule = RobbinsMonro(delay=2.0, forgetting=0.7)
    SVI(max_steps=7, learning_rate=schedule, record_every=3).run(one, dataset_of(*batches))
    for step in range(7):
        two.natgrad_step(batches[step % 4], schedule(step))
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.parametrize(
    ("num_steps", "record_every"), [(1, 1), (2, 4), (5, 4), (11, 1), (11, 4), (11, 100)]
)
def test_any_number_of_steps_and_records(data, num_steps, record_every):
    model = make_model(data)
    history = SVI(batch_size=7, max_steps=num_steps, record_every=record_every).run(model, data)
    expected = list(range(record_every, num_steps, record_every)) + [num_steps]
    assert history.step == sorted({min(step, num_steps) for step in expected})
    assert history.learning_rate[-1] == RobbinsMonro()(num_steps - 1)


@pytest.mark.slow
def test_records_do_not_change_the_steps(data):
    states = []
    for record_every in (1, 4, 100):
        model = make_model(data)
        SVI(batch_size=7, max_steps=20, record_every=record_every, seed=3).run(model, data)
        states.append(state(model))
    assert_same_state(states[0], states[1], 1e-12)
    assert_same_state(states[0], states[2], 1e-12)


# --- minibatches ---------------------------------------------------------------------------------


def test_every_epoch_visits_every_row_once(data):
    source = batch_groups(source_of(data), 7, 5, seed=0)
    order = np.concatenate([next(source).index.reshape(-1) for _ in range(12)])  # 7 epochs
    epochs = order.reshape(7, 60)
    np.testing.assert_array_equal(np.sort(epochs), np.tile(np.arange(60), (7, 1)))
    assert (epochs[0] != epochs[1]).any()


@pytest.mark.slow
def test_with_or_without_features_in_memory(small_chunks):
    data = make_data(150)
    weight = np.random.default_rng(0).random(150)
    states = []
    for cached in (None, True, False):
        if cached is not None:
            small_chunks(cached)
        model = make_model(data)
        history = SVI(batch_size=11, max_steps=25, seed=4, record_every=6).run(
            model, data, sample_weight=weight
        )
        states.append((*state(model), np.array(history.elbo)))
    assert_same_state(states[0], states[1], 1e-10)
    # Small chunks also mean more records, from other rows: q is the same.
    assert_same_state(states[0][:2], states[2][:2], 1e-10)


@pytest.mark.parametrize("whiten", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_after_a_point_steps_begin_with_the_priors_covariance(data, whiten):
    """A point's precision of 1e12 was still felt after thousands of steps."""
    point, fresh = (make_model(data, whiten=whiten) for _ in range(2))
    ECM(max_steps=5).run(point, data)
    mean = point.natural().h / 1e12
    fresh.assign_natural(type(point.natural())(mean, tf.eye(8, dtype=mean.dtype)[None]))
    for model in (point, fresh):
        SVI(batch_size=20, max_steps=3).run(model, data)
    assert_same_state(state(point), state(fresh), 1e-8)


def test_the_seed_decides(data):
    states = []
    for seed in (0, 0, 1):
        model = make_model(data)
        SVI(batch_size=7, max_steps=20, seed=seed).run(model, data)
        states.append(state(model))
    assert_same_state(states[0], states[1], 0)
    assert np.abs(states[0][0] - states[2][0]).max() > 1e-6


@pytest.mark.parametrize("sizes", [[25, 25, 10], [10, 25, 25]])
def test_rows_of_a_smaller_batch_count_as_others(data, sizes):
    """It was scaled to all rows by its own size. A shuffled dataset may begin with it."""
    one, two = make_model(data, num_data=60), make_model(data, num_data=60)
    batches = batches_of(data, sizes)
    SVI(max_steps=8, learning_rate=0.3, record_every=5).run(one, dataset_of(*batches))
    for rows in np.resize(np.arange(60), (8, 25)):
        two.natgrad_step(tuple(part[rows] for part in data), 0.3)
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
def test_weights_are_the_third_component_of_a_dataset(data):
    weight = np.random.default_rng(1).random((60, 1))
    weight[20:40] = 0  # a whole batch without weight
    one, two = make_model(data, num_data=60), make_model(data)
    batches = batches_of((*data, weight), [20, 20, 20])
    SVI(max_steps=3, learning_rate=0.5).run(one, dataset_of(*batches))
    flat = make_model(data, num_data=60)
    SVI(max_steps=3, learning_rate=0.5).run(
        flat, dataset_of(*((X, Y, w[:, 0]) for X, Y, w in batches))
    )
    assert_same_state(state(one), state(flat), 1e-13)
    for X, Y, w in batches:
        scaled = CAVI(max_steps=1, learning_rate=0.5)
        if w.any():
            scaled.run(two, (X, Y), sample_weight=3 * w)
        else:
            natural = two.natural()
            prior = np.eye(8)[None]
            two.assign_natural(type(natural)(0.5 * natural.h, 0.5 * natural.P + 0.5 * prior))
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
@pytest.mark.usefixtures("tf_seed")
def test_an_endless_dataset(data):
    model = make_model(data, num_data=60)
    dataset = tf.data.Dataset.from_tensor_slices(data).repeat().shuffle(60, seed=0).batch(13)
    history = SVI(max_steps=30, record_every=10).run(model, dataset)
    assert history.step == [10, 20, 30]
    assert np.isfinite(model.elbo(data))


# --- the answer ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["augmented", "exact"])
def test_it_comes_near_the_optimum_of_coordinate_ascent(bound):
    data = make_data(300)
    best, model = (make_model(data, likelihood=Hinge(bound=bound)) for _ in range(2))
    CAVI(tol=1e-9).run(best, data)
    start = model.elbo(data).numpy()
    SVI(batch_size=30, max_steps=3000).run(model, data)
    optimum = best.elbo(data).numpy()
    gap = optimum - model.elbo(data).numpy()
    # The last rates are some thousandths: a little noise is left.
    assert -1e-9 < gap < 0.002 * (optimum - start)


@pytest.mark.parametrize(
    ("bound", "rate"), [("augmented", 1.0), *(("exact", rate) for rate in (1e-3, 0.1, 0.5, 1.0))]
)
def test_every_rate_stays_finite(data, rate, bound):
    model = make_model(
        data, kernel=gpflow.kernels.SquaredExponential(30.0), likelihood=Hinge(bound=bound)
    )
    history = SVI(batch_size=5, max_steps=150, learning_rate=rate, record_every=50).run(model, data)
    assert np.isfinite(history.elbo).all()
    assert np.isfinite(model.elbo(data))
    assert (np.diagonal(model.q_sqrt.numpy()[0]) > 0).all()


@pytest.mark.slow
def test_the_recorded_elbo_is_an_estimate_of_the_models(data):
    batches = batches_of(data, [60])
    for model in (make_model(data, num_data=60), make_model(data, num_data=180)):
        # Two batches make a block, and both are looked at: the data twice.
        history = SVI(max_steps=2, learning_rate=0.3).run(model, dataset_of(*batches))
        np.testing.assert_allclose(history.elbo, [model.elbo(data).numpy()], rtol=1e-10)


# --- ends ----------------------------------------------------------------------------------------


def test_an_interrupt_keeps_the_latest_record(data):
    one, two = make_model(data), make_model(data)

    def callback(step, history):
        if step == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SVI(batch_size=7, max_steps=100, record_every=10).run(one, data, callback=callback)
    SVI(batch_size=7, max_steps=20, record_every=10).run(two, data)
    assert_same_state(state(one), state(two), 1e-12)


@pytest.mark.slow
def test_an_error_in_the_data_keeps_the_latest_record(data):
    good = batches_of(data, [20, 20, 20])
    bad = (np.full((20, 2), np.nan), data[1][:20])
    one, two = make_model(data, num_data=60), make_model(data, num_data=60)
    with pytest.raises(ValueError, match="X holds nan"):
        SVI(max_steps=10, record_every=2).run(one, dataset_of(*good, good[0], bad))
    SVI(max_steps=4, record_every=2).run(two, dataset_of(*good, good[0]))
    assert_same_state(state(one), state(two), 1e-12)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5, np.nan, np.inf])
def test_a_schedule_of_nonsense_is_an_error(data, rate):
    model = make_model(data)
    before = state(model)
    with pytest.raises(ValueError, match=r"the schedule gave .* at step 2"):
        SVI(learning_rate=lambda step: 0.5 if step < 2 else rate).run(model, data)
    assert_same_state(state(model), before, 1e-12)


@pytest.mark.slow
def test_monitor_is_called_at_every_record(data):
    model, steps = make_model(data), []
    SVI(max_steps=25, record_every=10).run(model, data, monitor=steps.append)
    assert steps == [10, 20, 25]


def test_a_number_is_a_schedule(data):
    one, two = make_model(data), make_model(data)
    SVI(max_steps=10, learning_rate=0.2).run(one, data)
    SVI(max_steps=10, learning_rate=lambda step: 0.2).run(two, data)
    assert_same_state(state(one), state(two), 0)


@pytest.mark.slow
def test_several_latent_functions(data):
    X, Y = data[0], np.hstack([data[1], 1 - data[1]])
    separate = gpflow.kernels.SeparateIndependent(
        [gpflow.kernels.SquaredExponential(), gpflow.kernels.Matern32(2.0)]
    )
    variable = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X[:6].copy())
    )
    one, two = (
        gb.models.BSVM(separate, Hinge(), variable, num_latent_gps=2, num_data=60) for _ in range(2)
    )
    batches = batches_of((X, Y), [4, 4, 4])
    SVI(max_steps=5, learning_rate=0.4).run(one, dataset_of(*batches))
    for step in range(5):
        two.natgrad_step(batches[step % 3], 0.4)
    assert_same_state(state(one), state(two), 1e-10)


# --- precision of the products -------------------------------------------------------------------


def run_with(data):
    model = make_model(data)
    SVI(batch_size=20, max_steps=20, learning_rate=0.3).run(model, data)
    return np.concatenate([part.ravel() for part in map(np.asarray, state(model))])


@pytest.mark.slow
def test_single_precision_products_change_the_steps_by_rounding(data, monkeypatch):
    double = run_with(data)
    monkeypatch.setattr(
        "gpflow_bsvm.inference.minibatches._BIG_BATCH", 20 * make_model(data).q_mu.shape[0]
    )
    assert 1e-10 < abs(run_with(data) - double).max() < 1e-5  # single precision has 6e-8, N = 60
    monkeypatch.setattr("gpflow_bsvm.inference.minibatches._SINGLE_ROWS", 59)
    np.testing.assert_array_equal(run_with(data), double)


# --- adaptive rates and averaging ----------------------------------------------------------------


@pytest.mark.slow
def test_adaptive_rates_are_those_of_the_paper(data):
    """Ranganath et al. (2013), eq. 9, in NumPy beside `natgrad_step`."""
    batches = batches_of(data, [20, 20, 20])
    schedule = Adaptive(warm_up=3, first=0.1)
    one, two = (make_model(data, likelihood=Hinge(bound="exact"), num_data=60) for _ in range(2))
    svi = SVI(max_steps=11, learning_rate=schedule, record_every=1)
    history = svi.run(one, dataset_of(*batches))

    def flat(natural):
        return np.concatenate([np.ravel(part) for part in natural])

    mean, square, tau, rates = 0.0, 0.0, 1.0, []
    for step in range(11):
        before, q = flat(two.natural()), two.natural()
        two.natgrad_step(batches[step % 3], 1.0)
        g = flat(two.natural()) - before
        mean, square = mean + (g - mean) / tau, square + (g @ g - square) / tau
        rho = 0.1 if step < 3 else mean @ mean / square
        tau = tau + 1 if step < 3 else tau * (1 - rho) + 1
        two.assign_natural(q)
        two.natgrad_step(batches[step % 3], rho)
        rates.append(rho)
    np.testing.assert_allclose(history.learning_rate, rates, rtol=1e-8)
    assert_same_state(state(one), state(two), 1e-8)
    assert min(rates) > 0 and max(rates) <= 1


@pytest.mark.slow
def test_adaptive_rates_do_not_depend_on_records(data):
    models = []
    for record_every in (1, 7, 100):
        models.append(make_model(data))
        svi = SVI(
            batch_size=10, max_steps=40, learning_rate=Adaptive(), record_every=record_every, seed=3
        )
        svi.run(models[-1], data)
    for model in models[1:]:
        assert_same_state(state(model), state(models[0]), 1e-10)


@pytest.mark.slow
def test_adaptive_rates_fall_from_signal_to_noise():
    data = make_data(2000)
    model = make_model(data, likelihood=Hinge(bound="exact"))
    svi = SVI(batch_size=50, max_steps=400, learning_rate=Adaptive(), record_every=20)
    rates = svi.run(model, data).learning_rate
    assert rates[2] > 3 * rates[-1]
    best = make_model(data, likelihood=Hinge(bound="exact"))
    assert model.elbo(data) > 1.02 * CAVI().run(best, data).elbo[-1]  # both are negative


@pytest.mark.parametrize("num_inducing", [1, 2])
def test_adaptive_rates_of_few_inducing_points(data, num_inducing):
    """Whose only axis has the length with which TensorFlow broadcasts."""
    one, two = (make_model(data, num_inducing=num_inducing) for _ in range(2))
    SVI(max_steps=5, batch_size=10, learning_rate=Adaptive(warm_up=9, first=0.1)).run(one, data)
    SVI(max_steps=5, batch_size=10, learning_rate=0.1).run(two, data)
    np.testing.assert_allclose(one.q_mu, two.q_mu, rtol=1e-12)


def test_the_adaptive_rate_has_a_name():
    assert SVI(learning_rate="adaptive") == SVI(learning_rate=Adaptive())
    with pytest.raises(ValueError, match=r"learning_rate must be.*adaptive.*got 'adam'"):
        SVI(learning_rate="adam")
    with pytest.raises(ValueError, match="seed must be a whole number, got None"):
        SVI(seed=None)
    for rate in (Adaptive(), "adaptive"):
        with pytest.raises(ValueError, match=r"RobbinsMonro\(\)"):
            ML2(learning_rate=rate)


@pytest.mark.parametrize("options", [{"warm_up": 0}, {"first": 0.0}, {"first": 1.5}])
def test_bad_adaptive_options(options):
    with pytest.raises(ValueError, match="must be"):
        Adaptive(**options)
