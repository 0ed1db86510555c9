"""The best state by held-out rows: kept, restored, and the end of a fit that gains no more."""

import gpflow
import keras
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from helpers import assert_same_state, make_data, make_model, state

from gpflow_bsvm import deep
from gpflow_bsvm.deep import KeepBest
from gpflow_bsvm.inducing_points import exchange
from gpflow_bsvm.inference import CAVI, ML2
from gpflow_bsvm.likelihoods import Hinge

HELD_OUT = make_data(20, seed=1)


def scripted(model, losses, **kwargs):
    """:return: a `KeepBest` that is told these losses, the first at once."""
    values = iter(losses)
    return KeepBest(model, lambda: next(values), **kwargs)


def test_the_best_record_is_kept_and_ends_the_fit(data):
    model, short = make_model(data), make_model(data)
    best = scripted(model, [4.0, 3.0, 1.0, np.nan, 1.0], patience=2)
    history = CAVI(tol=0).run(model, data, callback=best)
    assert history.step == [1, 2, 3, 4] and not history.converged
    assert (best.number, best.loss) == (2, 1.0)
    best.restore()
    CAVI(max_steps=2, tol=0).run(short, data)
    assert_same_state(state(model), state(short), 1e-12)


def test_held_out_rows_may_lack_a_class():
    X, Y = HELD_OUT
    one = Y[:, 0] == 1
    model = make_model(HELD_OUT)
    loss = -model.predict_log_density((X[one], Y[one])).numpy().mean()
    np.testing.assert_allclose(KeepBest(model, (X[one], Y[one])).loss, loss)


def test_without_patience_nothing_ends(data):
    model = make_model(data)
    best = scripted(model, [np.nan, *range(9)])
    assert len(CAVI(max_steps=5, tol=0).run(model, data, callback=best)) == 5
    assert best.number == 1  # what is not a number is no loss


@pytest.mark.parametrize(
    "answer, steps",
    [(True, 2), (np.True_, 2), (tf.constant(True), 2), (1, 4), (np.False_, 4), ([np.True_], 4)],
)
def test_true_and_nothing_else_ends_a_fit(data, answer, steps):
    history = CAVI(max_steps=4, tol=0).run(
        make_model(data), data, callback=lambda step, _: answer if step == 2 else None
    )
    assert len(history) == steps


@pytest.mark.slow
def test_a_fit_that_was_ended_goes_on(data, tmp_path):
    whole, part = make_model(data), make_model(data)
    how = {"checkpoint": tmp_path}
    CAVI(max_steps=6, tol=0).run(part, data, callback=lambda step, _: step == 3, **how)
    assert len(CAVI(max_steps=6, tol=0).run(part, data, **how)) == 6
    CAVI(max_steps=6, tol=0).run(whole, data)
    assert_same_state(state(whole), state(part), 1e-12)


def test_the_loss_is_that_of_held_out_rows(data):
    model = make_model(data)
    best = KeepBest(model, HELD_OUT)
    for look in range(2):
        expected = -np.mean(model.predict_log_density(HELD_OUT))
        np.testing.assert_allclose(best.losses[look], expected, rtol=1e-10)
        CAVI(max_steps=2).run(model, data)
        best()
    assert best.losses[1] < best.losses[0]


def test_what_was_done_for_the_worse_is_taken_back(data):
    model = make_model(data)
    CAVI().run(model, data)
    best, before = KeepBest(model, HELD_OUT), state(model)
    CAVI(max_steps=1).run(model, (data[0], 1 - data[1]))
    assert not best()
    best.restore()
    assert_same_state(state(model), before, 0)


@pytest.mark.slow
@pytest.mark.parametrize("of", [tf_keras, keras])
def test_networks_are_kept_whole(data, of):
    layers = [of.layers.Dense(3), of.layers.BatchNormalization(), of.layers.Dense(2)]
    first = of.layers.InputLayer((2,)) if of is tf_keras else of.layers.Input((2,))
    model = deep.hybrid(of.Sequential([first, *layers]), Hinge(), data[0], 5)
    values = [v.numpy() for v in model.kernel.all_weights()]
    best = scripted(model, [1.0, 2.0])
    for variable in [*model.kernel.all_weights(), *model.trainable_variables]:
        variable.assign(variable + 1)
    assert not best()
    best.restore()
    assert len(values) > 8  # moving averages are among them, of both layers
    for variable, value in zip(model.kernel.all_weights(), values):
        np.testing.assert_array_equal(variable, value)
    np.testing.assert_allclose(model.kernel.kernel.variance.numpy(), 4.0, rtol=1e-12)


def test_a_network_by_itself(data):
    network = tf_keras.Sequential([tf_keras.layers.InputLayer((2,)), tf_keras.layers.Dense(2)])
    best, before = scripted(network, [1.0, 2.0], patience=1), network.get_weights()
    network.set_weights([weight + 1 for weight in before])
    assert best()
    best.restore()
    for one, two in zip(before, network.get_weights()):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_joint_training_ends_with_its_best_epoch(data):
    """Rows whose labels were turned round: whatever is learned is for the worse."""
    X, Y = data
    model = make_model(data, kernel=gpflow.kernels.SquaredExponential())
    best = KeepBest(model, (X, 1 - Y), patience=2)
    before = state(model), model.kernel.lengthscales.numpy()
    ML2(max_steps=50, record_every=5, batch_size=30).run(model, data, callback=best)
    assert len(best.losses) == 3 and best.number == 0
    best.restore()
    assert_same_state(state(model), before[0], 0)
    assert model.kernel.lengthscales.numpy() == before[1]


def test_bad_input(data):
    model, (X, Y) = make_model(data), data
    with pytest.raises(ValueError, match="patience must be at least 1, got 0"):
        KeepBest(model, HELD_OUT, patience=0)
    with pytest.raises(ValueError, match="column"):
        KeepBest(model, (X[:, :1], Y))
    with pytest.raises(ValueError, match="X holds nan"):
        KeepBest(model, (X * np.nan, Y))
    with pytest.raises(ValueError, match="label"):
        KeepBest(model, (X, Y + 5))
    with pytest.raises(ValueError, match=r"got None: give \(X, Y\)"):
        KeepBest(model, None)


def test_a_state_with_other_inducing_points_is_not_restored(data):
    model = make_model(data)
    best = KeepBest(model, data)
    exchange(model, model.inducing_variable.Z.numpy()[:4])
    with pytest.raises(ValueError, match=r"replaced since .*: make a new KeepBest after that"):
        best.restore()
