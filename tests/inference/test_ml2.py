"""Hyperparameters on minibatches: optimisers of Keras beside natural gradients, in one loop."""

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from helpers import assert_same_state, make_data, make_model, randomise, state

import gpflow_bsvm as gb
from gpflow_bsvm.inference import ML2, SVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, Probit


@pytest.fixture(scope="module")
def data():
    return make_data()


# A block of another length is another graph: most tests take 2 or 4 steps at a time.
def fresh(data, likelihood=None, **kwargs):
    model = make_model(data, likelihood=likelihood or Hinge(bound="exact"), **kwargs)
    prior = tfp.distributions.LogNormal(np.float64(0.3), np.float64(0.5))
    model.kernel.lengthscales.prior = prior
    return model


def parameters(model):
    return {name: np.array(p) for name, p in gpflow.utilities.parameter_dict(model).items()}


def batches_of(data, batch_size, seed):
    """Batches as `ML2` draws them."""
    for epoch in itertools.count(0, batch_size):  # as many epochs at once: all are multiples
        order = [
            np.random.default_rng([seed, epoch + n]).permutation(len(data[0]))
            for n in range(batch_size)
        ]
        for rows in np.concatenate(order).reshape(-1, batch_size):
            yield tuple(column[rows] for column in data)


OPTIMIZERS = gpflow.keras.tf_keras.optimizers
ADAM = OPTIMIZERS.Adam(0.05, epsilon=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mean, rate, optimizer",
    [
        (None, 0.05, ADAM),
        pytest.param(
            *(gpflow.functions.Linear(np.ones((2, 1)), [0.1]), 0.05, ADAM),
            marks=pytest.mark.drill,
        ),
        pytest.param(
            *(None, OPTIMIZERS.SGD(1e-3, momentum=0.9), OPTIMIZERS.SGD(1e-3, momentum=0.9)),
            marks=pytest.mark.drill,
        ),
    ],
)
def test_steps_are_those_of_gpflow(data, mean, rate, optimizer):
    """natgrad_step, and Keras' optimisers on GPflow's own training loss at the q before it."""
    how = {"num_data": len(data[0])}
    one, two = (fresh(data, mean_function=gpflow.utilities.deepcopy(mean), **how) for _ in range(2))
    ML2(
        batch_size=7,
        max_steps=12,
        every=3,
        learning_rate=0.2,
        optimizer=rate,
        seed=3,
    ).run(one, data)
    batches = batches_of(data, 7, 3)
    optimizer = optimizer.from_config(optimizer.get_config())
    variables = [
        v for v in two.trainable_variables
        if v is not two.q_mu.unconstrained_variable and v is not two.q_sqrt.unconstrained_variable
    ]  # fmt: skip
    for step in range(12):
        batch = next(batches)
        with tf.GradientTape() as tape:
            loss = two.training_loss(batch)
        gradients = tape.gradient(loss, variables)
        two.natgrad_step(batch, 0.2)
        if step % 3 == 2:
            optimizer.apply_gradients(zip(gradients, variables))
    expected = parameters(two)
    for name, value in parameters(one).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-8, atol=1e-8, err_msg=name)


def gradient_a3(model, X, y):
    """
    Wenzel et al. (2017), A.3, in variance and lengthscale, with the paper's q(u) = N(mu, zeta),
    alpha at its best and penalty 2: as printed, in NumPy.
    """
    variance, lengthscale = (
        float(p.numpy()) for p in (model.kernel.variance, model.kernel.lengthscales)
    )
    Z, (mu, zeta) = model.inducing_variable.Z.numpy(), state(model)
    mu, zeta = mu[:, 0], zeta[0]

    def derivatives(one, two):
        squares = np.square(one[:, None] - two[None]).sum(axis=-1)
        K = variance * np.exp(-squares / (2 * lengthscale**2))
        return K, {"variance": K / variance, "lengthscale": K * squares / lengthscale**3}

    (Kmm, J_mm), (Knm, J_nm) = derivatives(Z, Z), derivatives(X, Z)
    inverse = np.linalg.inv(Kmm + 1e-6 * np.eye(len(Z)))
    kappa, moment = Knm @ inverse, np.outer(mu, mu) + zeta
    residual = variance - np.sum(kappa * Knm, axis=1)
    spread = np.einsum("nm,mk,nk->n", kappa, zeta, kappa)
    root = 1 / np.sqrt((1 - y * (kappa @ mu)) ** 2 + spread + residual)
    found = {}
    for name, J_nn in (("variance", 1.0), ("lengthscale", 0.0)):
        J = J_mm[name]
        iota = (J_nm[name] - kappa @ J) @ inverse
        diagonal = np.sum(kappa * (iota @ moment - J_nm[name]), axis=1)
        diagonal += np.sum(iota * (kappa @ moment - Knm), axis=1) + J_nn
        trace = np.trace(inverse @ J @ (np.eye(len(Z)) - inverse @ zeta))
        linear = (mu @ inverse @ J @ inverse + 2 * ((1 + root) * y) @ iota) @ mu
        found[name] = -(trace - linear + root @ diagonal) / 2
    return found


def test_the_gradient_at_fixed_u_is_the_papers(data):
    """A.3 is the slope of GPflow's bound where the model stores q(u) itself."""
    likelihood = Hinge(bound="augmented")
    model = make_model(data, likelihood=likelihood, whiten=False, num_data=len(data[0]))
    randomise(model)
    kernel = {"variance": model.kernel.variance, "lengthscale": model.kernel.lengthscales}
    expected = gradient_a3(model, data[0], 2 * data[1][:, 0] - 1)
    variables = [parameter.unconstrained_variable for parameter in kernel.values()]
    with tf.GradientTape() as tape:
        bound = model.elbo(data)
    for (name, parameter), found in zip(kernel.items(), tape.gradient(bound, variables)):
        at = parameter.unconstrained_variable.numpy()
        slope = np.exp(parameter.transform.forward_log_det_jacobian(at, 0))
        np.testing.assert_allclose(found, expected[name] * slope, rtol=1e-8)


@pytest.mark.slow
def test_before_the_first_step_of_adam_it_is_svi(data):
    one, two = (fresh(data) for _ in range(2))
    ML2(batch_size=7, max_steps=4, every=5, seed=1).run(one, data)
    SVI(batch_size=7, max_steps=4, seed=1).run(two, data)
    assert_same_state(state(one), state(two), 1e-9)


@pytest.mark.drill
@pytest.mark.slow
def test_blocks_change_nothing(data):
    one, two = (fresh(data) for _ in range(2))
    history = ML2(batch_size=7, max_steps=6, every=3, record_every=4).run(one, data)
    ML2(batch_size=7, max_steps=6, every=3, record_every=2).run(two, data)
    assert history.step == [4, 6]
    for name, value in parameters(one).items():
        np.testing.assert_allclose(value, parameters(two)[name], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_only_what_is_trainable_moves(data):
    model = fresh(data)
    gpflow.set_trainable(model.inducing_variable, False)
    gpflow.set_trainable(model.kernel.variance, False)
    before = parameters(model)
    history = ML2(batch_size=7, max_steps=4, every=2).run(model, data)
    after = parameters(model)
    moved = {name for name in after if not np.array_equal(before[name], after[name])}
    assert moved == {".kernel.lengthscales", ".q_mu", ".q_sqrt"}
    assert set(history.hyperparameters) == {".kernel.lengthscales"}


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(Probit(), marks=pytest.mark.slow),
        Hinge(),
        pytest.param(CrammerSinger(3), marks=pytest.mark.slow),
    ],
)
def test_the_bound_rises(data, likelihood):
    X, Y = data
    if isinstance(likelihood, CrammerSinger):
        Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    model = fresh((X, Y), likelihood, num_latent_gps=likelihood.latent_dim or 1)
    gb.fit(model, (X, Y))
    before = model.elbo((X, Y)) + model.log_prior_density()
    size = len(X)  # all rows: no noise
    options = {"learning_rate": 0.5, "optimizer": 0.01, "every": 1}
    history = ML2(batch_size=size, max_steps=60, record_every=20, **options).run(model, (X, Y))
    after = model.elbo((X, Y)) + model.log_prior_density()
    np.testing.assert_allclose(history.elbo[-1], after, rtol=1e-9)
    assert before < history.elbo[0] < history.elbo[1] < history.elbo[2]


@pytest.mark.slow
def test_a_single_inducing_point(data):
    model = fresh(data, num_inducing=1)
    history = ML2(batch_size=7, max_steps=6).run(model, data)
    assert np.isfinite(history.elbo).all()


@pytest.mark.slow
def test_datasets(data):
    model = fresh(data, num_data=len(data[0]))
    batches = tf.data.Dataset.from_tensor_slices(data).batch(7, drop_remainder=True)
    history = ML2(max_steps=8, every=3, record_every=4).run(model, batches)
    assert history.step == [4, 8] and np.isfinite(history.elbo).all()


@pytest.mark.slow
def test_a_block_without_finite_q_is_undone(data):
    """Steps are halved until they are small enough."""
    model = fresh(data)
    history = ML2(batch_size=7, max_steps=8, every=1, optimizer=1e8, record_every=4).run(
        model, data
    )
    assert history.step == [4, 8] and np.isfinite(history.elbo).all()
    assert all(np.isfinite(value).all() for value in parameters(model).values())


@pytest.mark.slow
def test_interrupts_leave_the_latest_record(data):
    model = fresh(data)
    seen = {}

    def stop(step, history):
        seen.update(parameters(model))
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ML2(batch_size=7, max_steps=8, every=2, record_every=2).run(model, data, callback=stop)
    for name, value in parameters(model).items():
        np.testing.assert_allclose(value, seen[name], rtol=1e-12, err_msg=name)


@pytest.mark.slow
def test_warm_up_moves_q_alone(data):
    one, two = (fresh(data) for _ in range(2))
    ML2(batch_size=7, max_steps=4, every=1, warm_up=4, seed=1).run(one, data)
    SVI(batch_size=7, max_steps=4, seed=1).run(two, data)
    assert_same_state(state(one), state(two), 1e-9)


@pytest.mark.slow
def test_bare_variables_are_learned_too(data):
    model = fresh(data)
    model.mean_function = gpflow.functions.Constant(0.0)
    model.mean_function.layer = tf.Variable(1.0, dtype=tf.float64)
    history = ML2(batch_size=7, max_steps=4, every=1).run(model, data)
    assert ".mean_function.layer" in history.hyperparameters


def test_bad_input(data):
    for bad, message in (
        ({"every": 0}, "every must be at least 1, got 0"),
        (
            {"optimizer": 0.0},
            "optimizer must be a positive number, the rate of Adam, or a Keras opti",
        ),
        (
            {"network_optimizer": OPTIMIZERS.Adam(use_ema=True)},
            "network_optimizer has use_ema=True",
        ),
        ({"network_optimizer": "adam"}, "network_optimizer must be a positive number"),
        ({"optimizer": OPTIMIZERS.Adam}, "optimizer must be a positive number"),
        ({"optimizer": OPTIMIZERS.legacy.Adam()}, "optimizer must be a positive number"),
        ({"warm_up": -1}, "warm_up must be at least 0"),
        ({"learning_rate": 2.0}, r"rate must be in \(0, 1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            ML2(**bad)


def test_with_nothing_to_learn_it_is_svi(data):
    one, two = fresh(data), fresh(data)
    for model in (one, two):
        gpflow.set_trainable(model.kernel, False)
        gpflow.set_trainable(model.inducing_variable, False)
    how = {"batch_size": 7, "max_steps": 4, "seed": 1, "learning_rate": 0.5}
    assert not ML2(**how).run(one, data).hyperparameters
    SVI(**how).run(two, data)
    assert_same_state(state(one), state(two), 0)
