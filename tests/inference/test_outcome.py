"""What a fit says of its end: that q is its prior, that sites were clipped, what was left alone."""

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, make_model, minimise
from sklearn.exceptions import ConvergenceWarning

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, LevelHinge
from gpflow_bsvm.papers import seeger2000, wenzel2017
from gpflow_bsvm.papers.seeger2000 import NestedLoop

NOTHING = "the fit has learned next to nothing"


def few_labels():
    """Six classes, two noisy rows each: evidence prefers a kernel of variance 0."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6.0), 2)[:, None]
    return rng.normal(size=(12, 3)) + 0.3 * y, y


def six_classes(**kernel):
    kernel = gpflow.kernels.SquaredExponential(**({"variance": 4.0} | kernel))
    model = gb.models.BSVM(kernel, CrammerSinger(6), few_labels()[0][:8], num_latent_gps=6)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def test_a_kernel_that_collapses_is_said_to():
    model = six_classes()
    with pytest.warns(UserWarning, match=rf"{NOTHING}.*the kernel has collapsed.*leave_one_out"):
        history = VEM().run(model, few_labels())
    assert model.kernel.variance.numpy() < 1e-3
    assert not history.converged
    assert "not converged" in repr(history)


@pytest.mark.slow
def test_so_on_minibatches():
    with pytest.warns(UserWarning, match=NOTHING):
        ML2(batch_size=6, max_steps=400, optimizer=0.2).run(six_classes(), few_labels())


@pytest.mark.parametrize("likelihood", [Hinge(), LevelHinge()])
def test_a_kernel_that_is_too_small_to_begin_with(data, likelihood):
    how = {"num_latent_gps": 2} if isinstance(likelihood, LevelHinge) else {}
    kernel = gpflow.kernels.SquaredExponential(1e-6)
    model = make_model(data, kernel=kernel, likelihood=likelihood, **how)
    with pytest.warns(UserWarning, match=rf"{NOTHING}.*a kernel of larger variance"):
        history = CAVI().run(model, data)
    assert not history.converged


def test_where_no_row_is_near_an_inducing_point(data):
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(4.0), Hinge(), np.full((1, 2), 1e3))
    with pytest.warns(UserWarning, match=rf"{NOTHING}.*inducing points near the rows"):
        assert not CAVI().run(model, data).converged


@pytest.mark.parametrize("number", [1, 2, 60])
def test_sound_fits_do_not_warn(data, number):
    """One label at a variance of 1 is enough."""
    model = make_model(data, kernel=gpflow.kernels.SquaredExponential(1.0), likelihood=Hinge())
    part = tuple(column[:number] for column in data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gb.inference.Streaming().run(model, part)


def test_small_targets_of_a_regression_are_no_collapse(data):
    """There a mean of f is in the units of Y, and only nats count."""
    X, kernel = data[0], gpflow.kernels.SquaredExponential(1e-3)
    model = make_model(data, kernel=kernel, likelihood=gpflow.likelihoods.Gaussian(1e-5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CAVI().run(model, (X, 1e-2 * np.sin(X[:, :1]))).converged


def test_clipped_sites_are_counted_and_nothing_has_converged(data):
    X, _ = data
    Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    Y[::7] = (Y[::7] + 1) % 3
    model = make_model(data, likelihood=gpflow.likelihoods.MultiClass(3), num_latent_gps=3)
    with pytest.warns(ConvergenceWarning, match="sites.*MultiClass is not log-concave") as told:
        history = CAVI(max_steps=400, tol=1e-4).run(model, (X, Y))
    assert len(told) == 1 and told[0].filename == __file__
    mean, variance = model.predict_f(X)
    with tf.GradientTape() as tape:
        tape.watch(variance)
        total = tf.reduce_sum(model.likelihood.variational_expectations(X, mean, variance, Y))
    precision = -2 * tape.gradient(total, variance).numpy() * variance.numpy()
    assert history.clipped == np.sum(precision < -1e-6) > 0
    assert not history.converged
    assert f"{history.clipped} sites clipped" in repr(history)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [SVI(max_steps=20), ML2(max_steps=20), VEM(max_steps=2)])
def test_so_whatever_the_algorithm_and_what_is_advised_works(data, algorithm):
    X, Y = data[0], np.digitize(data[0][:, :1] + np.cos(9 * data[0][:, 1:]), [-0.5, 0.5])
    model = make_model(data, likelihood=gpflow.likelihoods.MultiClass(3), num_latent_gps=3)
    gpflow.set_trainable(model.inducing_variable, False)
    with pytest.warns(ConvergenceWarning, match="sites.*Scipy") as told:
        history = algorithm.run(model, (X, Y.astype(float)))
    assert len(told) == 1 and history.clipped > 0
    gpflow.set_trainable(model.kernel, False)
    loss = model.training_loss_closure((X, Y), compile=False)
    before = loss()
    minimise(loss, model.trainable_variables)
    assert loss() < before - 0.01 * abs(before)


FITS = {
    "CAVI": lambda model, data: CAVI(max_steps=2).run(model, data),
    "Streaming": lambda model, data: gb.inference.Streaming(max_steps=2).run(model, data),
    "VEM": lambda model, data: VEM(max_steps=2).run(model, data),
    "ECM": lambda model, data: ECM(max_steps=2).run(model, data),
}


@pytest.mark.parametrize("name", FITS)
def test_too_few_steps_are_said_once(data, name):
    with pytest.warns(ConvergenceWarning, match=f"2 steps were too few: give {name} more") as told:
        assert not FITS[name](make_model(data), data).converged
    assert len(told) == 1 and told[0].filename == __file__


def test_a_fit_that_the_user_has_ended_or_that_has_no_rule_does_not_warn(data):
    def ends(step, history):
        return step == 2

    assert not told_by(lambda: CAVI().run(make_model(data), data, callback=ends))
    assert not told_by(lambda: SVI(max_steps=20).run(make_model(data), data))
    assert not told_by(lambda: CAVI().run(make_model(data), data))


@pytest.mark.slow
def test_an_estimator_s_fit_of_its_kernel_is_silent(data, monkeypatch):
    monkeypatch.setattr(VEM, "max_steps", 2)
    monkeypatch.setattr(VEM.__init__, "__defaults__", (2, 3, 8, 1e-4))
    told = told_by(lambda: gb.BSVMClassifier(loss="hinge", penalty=2.0).fit(data[0], data[1][:, 0]))
    assert not any("converged" in one for one in told)


def test_no_site_of_a_concave_likelihood_is_clipped(data):
    model = make_model(data, likelihood=gpflow.likelihoods.Gaussian(0.1))
    history = CAVI().run(model, data)
    assert history.converged and history.clipped == 0


def test_fit_says_that_it_leaves_a_trainable_kernel_alone(data):
    model = make_model(data)
    assert "kernel as given, VEM learns it" in repr(gb.fit(model, data))
    gpflow.set_trainable(model.kernel, False)
    assert "kernel as given" not in repr(gb.fit(model, data))


@pytest.mark.parametrize(("num_data", "steps"), [(60, 1000), (2e5, 2000), (1e9, 5000)])
def test_steps_over_data_without_end_follow_their_number(monkeypatch, num_data, steps):
    X, Y = make_data(60)
    rows = tf.data.Dataset.from_tensor_slices((X, Y)).batch(20).repeat()
    begun = []

    def begin(self, model, source):
        begun.append(self.max_steps)
        raise KeyboardInterrupt

    monkeypatch.setattr(SVI, "_begin", begin)
    with pytest.raises(KeyboardInterrupt):
        gb.fit(make_model((X, Y), num_data=num_data), rows)
    assert begun == [steps]


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_points_that_are_many_lengthscales_apart(scale, offset):
    """As where columns are not scaled: f is learned next to the points, and nowhere else."""
    X, Y = make_data(num_rows=40)
    kernel = gpflow.kernels.SquaredExponential(4.0)
    if offset:
        kernel += gpflow.kernels.Constant(offset)
    model = gb.models.BSVM(kernel, Hinge(), scale * X[:12])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        CAVI().run(model, (scale * X, Y))
    assert any("many lengthscales apart" in str(one.message) for one in told) == (scale > 1)


@pytest.mark.parametrize(
    "kernel",
    [
        gpflow.kernels.Constant(),
        gpflow.kernels.Constant(2.0) + gpflow.kernels.Constant(),
        gpflow.kernels.SquaredExponential(lengthscales=1e6),
        gpflow.kernels.SquaredExponential(active_dims=[2]),
        gpflow.kernels.SharedIndependent(gpflow.kernels.Constant(), 1),
    ],
)
def test_points_that_are_all_the_same_are_not_apart(kernel):
    X = make_data(num_rows=40)[0]
    X = np.hstack([X, np.ones_like(X[:, :1])])
    Z = gpflow.inducing_variables.InducingPoints(X[:12])
    if isinstance(kernel, gpflow.kernels.SharedIndependent):
        Z = gpflow.inducing_variables.SharedIndependentInducingVariables(Z)
    model = gb.models.BSVM(kernel, Hinge(), Z)
    told = told_by(lambda: CAVI().run(model, (X, np.arange(40)[:, None] % 8 > 0)))
    assert len(told) == 1 and "perfectly correlated" in told[0]


def told_by(fit):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in told]


@pytest.mark.slow
def test_inducing_points_that_steps_have_taken_from_the_rows(data):
    """Adam's steps are .05 long, whatever the scale of X."""
    X, Y = data[0] * 1e-6, data[1]
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(4.0, 1e-6), Hinge(), X[:5])
    told = told_by(lambda: ML2(batch_size=20, max_steps=60).run(model, (X, Y)))
    mean, variance = model.predict_f(X)
    assert np.abs(mean / np.sqrt(variance)).max() < 1e-3
    assert any(
        NOTHING in one and "f at the rows is as under the prior; kernel or" in one for one in told
    )


@pytest.mark.slow
def test_a_kernel_of_which_only_white_noise_is_left():
    """Each row is there twice, with either label."""
    X, Y = np.repeat(make_data(2)[0], 2, axis=0)[:2], np.array([[0.0], [1.0]])
    kernel = gpflow.kernels.SquaredExponential() + gpflow.kernels.White(0.1)
    model = seeger2000.FactorVGP((X, Y), kernel, Hinge(1000.0, bound="exact"), rank=2)
    told = told_by(lambda: NestedLoop(max_steps=1, inner_iterations=50).run(model))
    assert any(NOTHING in one and "f at the rows is as under the prior" in one for one in told)


def test_weights_of_columns_that_are_too_small(data):
    X, Y = data[0][:2] * 1e-6, np.array([[0.0], [1.0]])
    model = gb.models.LinearBSVM(X.shape[1], Hinge(0.1), 10.0)
    assert any(NOTHING in one for one in told_by(lambda: CAVI().run(model, (X, Y))))


def test_labels_that_are_all_the_prior_s_mean_are_something_learned(data):
    model = make_model(data, likelihood=gpflow.likelihoods.Gaussian(0.1))
    assert not told_by(lambda: CAVI().run(model, (data[0], np.zeros_like(data[1]))))


@pytest.mark.parametrize("variance", [1e12, 1e40])
def test_a_prior_beside_which_a_margin_is_nothing(data, variance):
    X, Y = data[0] * 1e8, data[1]
    model = gb.models.LinearBSVM(X.shape[1], Hinge(), variance)
    told = told_by(lambda: CAVI(max_steps=50).run(model, (X, Y)))
    assert any("float64 does not hold this q" in one and "scale X" in one for one in told)


def test_a_q_that_is_narrower_than_rounding_of_its_prior():
    X, Y = np.full((131, 20), 1e4), np.arange(131)[:, None] % 2.0
    model = gb.models.LinearBSVM(20, Hinge(1000.0))
    told = told_by(lambda: CAVI(max_steps=50).run(model, (X, Y)))
    assert any("float64 does not hold this q" in one and "scale X" in one for one in told)


def test_so_in_draws_and_sites(data):
    X, Y = data[0] * 1e7, data[1]
    kernel = gpflow.kernels.Polynomial(3, 10.0)
    with pytest.raises(FloatingPointError, match=r"variance of f is .* at a row.*scale X"):
        gb.sampling.HMC(10, 10, 2).run(gb.models.BSVM(kernel, Hinge(), X[:5]), (X, Y))
    with pytest.raises(FloatingPointError, match=r"variance of f is .* at a row.*scale X"):
        wenzel2017.DualBSVM((X, Y), kernel, Hinge(), X[:5]).update_sites()


@pytest.mark.parametrize(
    "likelihood", [gb.likelihoods.EpsilonInsensitive(), gpflow.likelihoods.Gaussian(0.1)]
)
def test_numbers_far_outside_of_their_error_bars_are_said(data, likelihood):
    """As y in its own units is: q cannot reach it, or the noise is far too small for it."""
    Y = np.sin(data[0][:, :1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CAVI().run(make_model(data, likelihood=likelihood), (data[0], Y))
    with pytest.warns(UserWarning, match=r"most y are .* from their .* \(y - mean\) / deviation"):
        CAVI().run(make_model(data, likelihood=likelihood), (data[0], Y + 1000))
