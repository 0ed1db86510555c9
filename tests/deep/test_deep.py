"""Networks in kernels: the same numbers as on their outputs, learned as GPflow and Keras would."""

import warnings

import gpflow
import keras
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from helpers import assert_same_state, state

import gpflow_bsvm as gb
from gpflow_bsvm.deep import DeepKernel, head, hybrid
from gpflow_bsvm.deep.kernel import FeaturePoints
from gpflow_bsvm.inference import CAVI, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge

SE = gpflow.kernels.SquaredExponential
KERAS = {"tf_keras": tf_keras, "keras": keras}
N, D = 40, 4


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X, np.sign(X[:, :1] * X[:, 1:2])


def network(name="tf_keras", *, dropout=0.0, seed=1):
    """In double precision, so that equalities are those of algebra."""
    layers, float64 = KERAS[name].layers, {"dtype": "float64"}
    KERAS[name].utils.set_random_seed(seed)
    first = layers.InputLayer((D,)) if name == "tf_keras" else layers.Input((D,))
    return KERAS[name].Sequential(
        [
            first,
            layers.Dense(5, activation="tanh", kernel_regularizer="l2", **float64),
            layers.BatchNormalization(**float64),
            *([layers.Dropout(dropout, **float64)] if dropout else []),
            layers.Dense(2, **float64),
        ]
    )


def make(rows, name="tf_keras", likelihood=None, **kwargs):
    return hybrid(network(name, **kwargs), likelihood or Hinge(), rows[0], 6, normalize=False)


def weights(model):
    return [variable.numpy() for variable in model.kernel.all_weights()]


def test_a_number_of_columns_is_an_input_shape():
    kernel = DeepKernel(tf_keras.layers.Dense(2), gpflow.kernels.Matern32(), D)
    assert kernel.input_shape == (D,)


# --- the same as on the outputs of the network ---------------------------------------------------


@pytest.mark.parametrize("name", KERAS)
def test_the_kernel_is_that_of_the_outputs(rows, name):
    X, _ = rows
    inner, features = SE(2.0, lengthscales=[0.7, 1.3]), network(name)
    kernel, F = DeepKernel(features, inner), np.asarray(features(X))
    for own, of_features in (
        (kernel(X), inner(F)),
        (kernel(X[:7], X), inner(F[:7], F)),
        (kernel(X, full_cov=False), inner(F, full_cov=False)),
        (DeepKernel(features, inner * inner)(X, full_cov=False), inner(F, full_cov=False) ** 2),
        (kernel(X.reshape(2, N // 2, D)), inner(F.reshape(2, N // 2, 2))),
    ):
        np.testing.assert_allclose(own, of_features, rtol=1e-12)
    np.testing.assert_allclose(kernel.features_of(X), F, rtol=1e-12)


@pytest.mark.slow
def test_a_head_is_the_same_model(rows):
    X, Y = rows
    model = make(rows)
    F = model.kernel.features_of(X)
    CAVI(tol=1e-10).run(head(model), (F, Y))
    np.testing.assert_allclose(model.elbo((X, Y)), head(model).elbo((F, Y)), rtol=1e-10)
    for own, of_head in zip(model.predict_f(X), head(model).predict_f(F)):
        np.testing.assert_allclose(own, of_head, rtol=1e-9, atol=1e-9)
    other = make(rows)
    CAVI(tol=1e-10).run(other, (X, Y))
    assert_same_state(state(model), state(other), 1e-9)


@pytest.mark.slow
def test_points_where_inputs_are(rows):
    """Ordinary inducing points go through the network: where FeaturePoints are their outputs."""
    X, Y = rows
    kernel = DeepKernel(network(), SE())
    one = gb.models.BSVM(kernel, Hinge(), X[:6], num_data=N)
    two = gb.models.BSVM(kernel, Hinge(), FeaturePoints(kernel.features_of(X[:6])), num_data=N)
    for model in (one, two):
        model.natgrad_step((X, Y), 0.5)
    assert_same_state(state(one), state(two), 1e-9)
    # GPflow's own, too.
    svgp = gpflow.models.SVGP(kernel, Hinge(), two.inducing_variable, num_data=N)
    gpflow.optimizers.NaturalGradient(0.5).minimize(
        svgp.training_loss_closure((X, Y), compile=False), [(svgp.q_mu, svgp.q_sqrt)]
    )
    assert_same_state(state(two), state(svgp), 1e-8)


@pytest.mark.parametrize("name", KERAS)
def test_features_can_be_normalised(rows, name):
    X, Y = rows
    features = network(name)
    model = hybrid(features, Hinge(), X, 6)
    F = np.asarray(features(X))
    expected = (F - F.mean(axis=0)) / F.std(axis=0)  # the last layer is in single precision
    np.testing.assert_allclose(model.kernel.features_of(X), expected, rtol=1e-5, atol=1e-6)
    assert len(model.kernel.learned_weights()) == len(features.trainable_variables)
    assert CAVI().run(model, (X, Y)).converged


@pytest.mark.slow
def test_several_outputs_share_a_network(rows):
    X, Y = rows
    kernel = gpflow.kernels.SharedIndependent(DeepKernel(network(), SE()), 2)
    points = gpflow.inducing_variables.SharedIndependentInducingVariables(
        FeaturePoints(gb.inducing_points.kmeans(kernel.kernel.features_of(X), 6))
    )
    model = gb.models.BSVM(kernel, Hinge(), points, num_latent_gps=2)
    assert CAVI().run(model, (X, np.hstack([Y, -Y]))).converged


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", KERAS)
def test_steps_are_those_of_gpflow_and_keras(rows, name):
    """Training loss of GPflow, regularisers and moving averages of Keras, natgrad_step."""
    (one, two), optimizers = (make(rows, name) for _ in range(2)), tf_keras.optimizers
    options = {"batch_size": N, "max_steps": 3, "every": 1, "learning_rate": 0.3}
    options |= {"optimizer": 0.02, "network_optimizer": optimizers.SGD(0.001, momentum=0.9)}
    ML2(**options, seed=3).run(one, rows)
    known = {id(two.q_mu), id(two.q_sqrt)}
    named = {id(p): p for p in gpflow.utilities.parameter_dict(two).values()}
    mine = [
        p.unconstrained_variable
        for key, p in named.items()
        if isinstance(p, gpflow.Parameter) and p.trainable and key not in known
    ]
    of_network = two.kernel.learned_weights()
    adam, sgd = optimizers.Adam(0.02, epsilon=1e-8), optimizers.SGD(0.001, momentum=0.9)
    for _ in range(3):
        two.kernel.training = True
        with tf.GradientTape() as tape:
            loss = two.training_loss(rows) + sum(two.kernel.features.losses)
        gradients = tape.gradient(loss, [*mine, *of_network])
        averages = weights(two)
        two.natgrad_step(rows, 0.3)
        for variable, value in zip(two.kernel.all_weights(), averages):
            variable.assign(value)  # to have looked twice is not to be remembered
        two.kernel.training = False
        adam.apply_gradients(zip(gradients, mine))
        sgd.apply_gradients(zip(gradients[len(mine) :], of_network))
    assert_same_state(state(one), state(two), 1e-7)
    for own, expected in zip(weights(one), weights(two)):
        # Moving averages: of GPflow's loss, which looks at the rows in more than one place.
        np.testing.assert_allclose(own, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["keras"])
def test_dropout_and_moving_averages_are_those_of_training(rows, name):
    model = make(rows, name, dropout=0.5)
    before = weights(model)
    CAVI().run(model, rows)
    for old, new in zip(before, weights(model)):
        np.testing.assert_array_equal(old, new)
    ML2(batch_size=N, max_steps=2, every=1).run(model, rows)
    moved = [not np.array_equal(old, new) for old, new in zip(before, weights(model))]
    assert all(moved)  # a seed of Keras 3 too
    mean, _ = model.predict_y(rows[0])
    np.testing.assert_array_equal(mean, model.predict_y(rows[0])[0])


@pytest.mark.slow
def test_spectral_normalisation_bounds_a_layer(rows):
    layers = keras.layers
    keras.utils.set_random_seed(0)
    wide = layers.Dense(5, kernel_initializer=keras.initializers.RandomNormal(0, 3, seed=0))
    features = keras.Sequential([layers.Input((D,)), layers.SpectralNormalization(wide, 20)])
    model = hybrid(features, Hinge(), rows[0], 6, normalize=False)
    assert np.linalg.norm(wide.kernel.numpy(), 2) > 3
    ML2(batch_size=N, max_steps=4, every=1, network_optimizer=1e-6).run(model, rows)
    # Twenty iterations a step find the largest singular value, from single precision on.
    np.testing.assert_allclose(np.linalg.norm(wide.kernel.numpy(), 2), 1, rtol=1e-3)


@pytest.mark.slow
def test_frozen_layers_stay(rows):
    model = make(rows)
    first, *_, last = model.kernel.features.layers
    first.trainable = False
    before = first.get_weights(), last.get_weights()
    history = ML2(batch_size=N, max_steps=2, every=1).run(model, rows)
    np.testing.assert_array_equal(before[0][0], first.get_weights()[0])
    assert not np.array_equal(before[1][0], last.get_weights()[0])
    assert set(history.hyperparameters) == {
        ".kernel.kernel.lengthscales",
        ".kernel.kernel.variance",
        ".inducing_variable.Z",
    }


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name, dropout", [("keras", 0.3)])
def test_a_fit_goes_on_in_another_process(rows, tmp_path, name, dropout):
    """Another model of the same make, as another process has it; moments, averages and seeds too.

    (Dropout of tf_keras draws from a generator that is no variable: other draws, the same fit.)
    """
    options = {"batch_size": 8, "every": 1, "record_every": 5, "network_optimizer": 0.01}
    whole = make(rows, name, dropout=dropout)
    ML2(max_steps=10, **options).run(whole, rows, checkpoint=tmp_path / "whole")
    for steps in (5, 10):
        part = make(rows, name, dropout=dropout)
        ML2(max_steps=steps, **options).run(part, rows, checkpoint=tmp_path / "part")
    assert_same_state(state(whole), state(part), 0)
    for one, two in zip(weights(whole), weights(part)):
        np.testing.assert_array_equal(one, two)
    changed = make(rows, name, dropout=dropout)
    other = tf_keras.optimizers.Adam(0.02)
    with pytest.raises(ValueError, match=r"option network_optimizer was 0\.01, is Adam"):
        ML2(max_steps=10, **(options | {"network_optimizer": other})).run(
            changed, rows, checkpoint=tmp_path / "part"
        )


@pytest.mark.slow
def test_networks_in_single_precision_and_a_classifier_on_one(rows):
    X, Y = rows
    features = tf_keras.Sequential([tf_keras.layers.InputLayer((D,)), tf_keras.layers.Dense(2)])
    kernel = DeepKernel(features, SE())
    before = features.get_weights()[0]
    options = {"kernel": kernel, "loss": "hinge", "penalty": 1.0, "num_inducing": 6}
    classifier = gb.BSVMClassifier(**options).fit(X, Y[:, 0])
    learned = classifier.model_.kernel.features.get_weights()[0]
    assert not np.array_equal(before, learned)
    np.testing.assert_array_equal(before, features.get_weights()[0])  # a copy was learned
    assert classifier.predict_proba(X).shape == (N, 2)


@pytest.mark.drill
@pytest.mark.slow
def test_other_algorithms_take_it(rows):
    X, _ = rows
    model = make(rows)
    SVI(batch_size=8, max_steps=10).run(model, rows)
    before = model.elbo(rows)
    VEM(max_steps=3).run(model, rows)  # of all weights, by a quasi-Newton method
    assert model.elbo(rows) > before
    gb.prediction.calibrate(model, rows)
    three = make(rows, likelihood=CrammerSinger(3))
    batches = tf.data.Dataset.from_tensor_slices((X, np.digitize(X[:, :1], [-0.5, 0.5]) * 1.0))
    noisy = batches.map(lambda x, y: (x + tf.random.normal(x.shape, 0, 0.01, x.dtype), y))
    history = ML2(max_steps=10, every=1, record_every=5).run(three, noisy.repeat().batch(8))
    assert np.isfinite(history.elbo).all()


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", KERAS)
def test_saved_exported_and_copied(rows, tmp_path, name):
    X, _ = rows
    model = make(rows, name, dropout=0.2)
    CAVI().run(model, rows)
    expected, _ = model.predict_y(X)
    gb.save(model, tmp_path / "model.npz")
    loaded = gb.load(tmp_path / "model.npz", network=network(name, dropout=0.2))
    for again in (loaded, gpflow.utilities.deepcopy(model)):
        np.testing.assert_array_equal(again.predict_y(X)[0], expected)
    gb.export(model, tmp_path / "exported")
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    P = exported.predict_proba(tf.constant(X))["probabilities"]
    np.testing.assert_allclose(P, expected, rtol=1e-12)


@pytest.mark.parametrize("name", KERAS)
def test_weights_come_back_into_the_users_network(rows, tmp_path, name):
    layers, path = KERAS[name].layers, tmp_path / "model.npz"

    def made(units=2):
        shape = layers.InputLayer((D,)) if name == "tf_keras" else layers.Input((D,))
        return KERAS[name].Sequential([shape, layers.Lambda(lambda x: 2 * x), layers.Dense(units)])

    model = hybrid(made(), Hinge(), rows[0], 6)
    gb.save(model, path)
    with pytest.raises(ValueError, match=r"model\.npz.*give the network.*load\(path, network="):
        gb.load(path)
    again = gb.load(path, network=made())
    for one, two in zip(again.predict_f(rows[0]), model.predict_f(rows[0])):
        np.testing.assert_array_equal(one, two)
    told = r"with weights kernel \[4, 2\], bias \[2\], .*but the given network has kernel \[4, 3\]"
    with pytest.raises(ValueError, match=told):
        gb.load(path, network=made(3))


# --- bad input -----------------------------------------------------------------------------------


def images(*layers, shape=(4, 4, 1)):
    return tf_keras.Sequential([tf_keras.layers.InputLayer(shape), *layers])


@pytest.mark.parametrize("name", KERAS)
def test_a_network_in_double_precision_is_run_in_it(rows, name):
    """Its container says float32: features to 1e-15, and gradients as differences of 1e-5 say."""
    Input, Dense = KERAS[name].Input, KERAS[name].layers.Dense
    layers = [Input((D,), dtype="float64"), Dense(3, "tanh", dtype="float64")]
    network = KERAS[name].Sequential(layers)
    model = hybrid(network, gb.likelihoods.Hinge(), rows[0], 8)
    W, b = (np.asarray(weight) for weight in network.weights)
    X = rows[0]
    F = DeepKernel(network, model.kernel.kernel).features_of(X)
    np.testing.assert_allclose(F, np.tanh(X @ W + b), rtol=1e-13, atol=1e-15)
    assert {tf.as_dtype(w.dtype) for w in model.kernel.features.weights} == {tf.float64}
    model.natgrad_step(rows, 0.5)
    at = tf.constant(X[:3])
    with tf.GradientTape() as tape:
        tape.watch(at)
        found = -model.predict_log_density((at, rows[1][:3]))
    found = tape.gradient(found, at)
    step = np.eye(D)[0] * 1e-5
    up, down = (model.predict_log_density((X[:3] + e, rows[1][:3])) for e in (step, -step))
    np.testing.assert_allclose(found[:, 0], -(up - down) / 2e-5, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", KERAS)
def test_a_network_of_two_inputs_is_refused(name):
    Input, layers = KERAS[name].Input, KERAS[name].layers
    inputs = [Input((2,)), Input((2,))]
    network = KERAS[name].Model(inputs, layers.Dense(2)(layers.Concatenate()(inputs)))
    with pytest.raises(ValueError, match="the network has 2 inputs, but DeepKernel passes only X"):
        DeepKernel(network, gpflow.kernels.Matern32())


def test_networks_that_cannot_be_used(rows):
    layers = tf_keras.layers
    flat = images(layers.Flatten(), layers.Dense(2))
    cases = [
        (TypeError, "must be a layer or model of tf_keras or Keras 3, got builtin_", len, {}),
        (ValueError, r"\[N, Q\]; this network gives shape \[1, 3, 3, 2\]: end it with Flatten",
         images(layers.Conv2D(2, 2)), {}),
        (ValueError, "the network declares no input shape: give input_shape", layers.Dense(2),
         {}),
        (ValueError, r"input_shape is \(16,\), but the network takes \(4, 4, 1\)", flat,
         {"input_shape": (16,)}),
    ]  # fmt: skip
    for error, message, features, options in cases:
        with pytest.raises(error, match=message):
            DeepKernel(features, SE(), **options)
    with pytest.raises(TypeError, match=r"single output, got SharedIndependent; .*wrap the DeepK"):
        DeepKernel(flat, gpflow.kernels.SharedIndependent(SE(), 2))
    assert DeepKernel(layers.Dense(2), SE(), (3,)).features_of(np.ones((4, 3))).shape == (4, 2)


def test_rows_that_do_not_fit(rows):
    X, _ = rows
    model = make(rows)
    wrong = r"X has 5 columns, but the network takes \[4\], that is, 4"
    with pytest.raises(ValueError, match=wrong):
        CAVI().run(model, (np.ones((2, 5)), np.array([[1.0], [-1.0]])))
    with pytest.raises(ValueError, match=wrong):
        model.kernel.features_of(np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"shape \(3, 4, 4, 1\); use X\.reshape\(len"):
        hybrid(images(tf_keras.layers.Flatten()), Hinge(), np.ones((3, 4, 4, 1)), 2)
    model.kernel.features.layers[0].kernel.assign(np.full((D, 5), np.nan))
    with pytest.raises(ValueError, match="the network's output holds nan"):
        model.kernel.features_of(X)
    with pytest.raises(TypeError, match="head takes a model with a DeepKernel and FeaturePoints"):
        head(gb.models.BSVM(SE(), Hinge(), X[:3]))


@pytest.mark.slow
def test_a_training_that_diverges_ends_with_what_was_best(rows):
    model = make(rows)
    CAVI().run(model, rows)
    before, expected = weights(model), model.elbo(rows)
    wild = tf_keras.optimizers.SGD(1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(FloatingPointError, match="reduce the rates of the optimizers"):
            ML2(batch_size=8, max_steps=4, every=1, network_optimizer=wild).run(model, rows)
    for old, new in zip(before, weights(model)):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_allclose(model.elbo(rows), expected, rtol=1e-9)
