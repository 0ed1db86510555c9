"""The link from leave-one-out marginals: against refits without a row, and at its optimum."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, make_model
from scipy import stats

import gpflow_bsvm as gb
from gpflow_bsvm.data.sources import ArraySource
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest, Probit
from gpflow_bsvm.prediction import calibrate, calibration, leave_one_out, leave_one_out_density


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def fitted(data):
    model = make_model(data, likelihood=Hinge(bound="exact"), num_inducing=20)
    CAVI(tol=1e-10).run(model, data)
    return model


def three_classes(data, likelihood):
    X, _ = data
    Y = np.digitize(X[:, :1] + 0.5 * np.sin(9 * X[:, 1:]), [-0.5, 0.5]).astype(float)
    kernel = gpflow.kernels.SquaredExponential(2.0)
    model = gb.models.BSVM(kernel, likelihood, X[:15].copy(), num_latent_gps=3)
    CAVI(tol=1e-8).run(model, (X, Y))
    return model, (X, Y)


def gaussian(data, **kwargs):
    mean_function = gpflow.functions.Linear([[0.4], [0.2]])
    likelihood = gpflow.likelihoods.Gaussian(0.3)
    return make_model(data, likelihood=likelihood, mean_function=mean_function, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_sites_are_left_out_exactly(data, weighted):
    """They do not depend on the other data: a refit without the row must agree."""
    X, Y = data
    weight = np.random.default_rng(0).uniform(0.5, 3, size=60) if weighted else np.ones(60)
    model = gaussian(data)
    CAVI().run(model, data, sample_weight=weight)
    mean, variance = leave_one_out(model, data, sample_weight=weight)
    for n in (0, 7, 31):
        others = np.delete(np.arange(60), n)
        refit = gaussian(data)
        refit.inducing_variable.Z.assign(model.inducing_variable.Z)
        CAVI().run(refit, (X[others], Y[others]), sample_weight=weight[others])
        expected = refit.predict_f(X[n : n + 1])
        np.testing.assert_allclose(mean[n], expected[0][0], atol=1e-8)
        np.testing.assert_allclose(variance[n], expected[1][0], atol=1e-8)


def test_refits_of_the_hinge_agree_nearly(data, fitted):
    """Other sites change a little without a datum; far less than the datum itself does."""
    X, Y = data
    mean, variance = leave_one_out(fitted, data)
    full = fitted.predict_f(X)[0].numpy()
    for n in np.argsort(abs(mean - full)[:, 0])[-3:]:
        others = np.delete(np.arange(60), n)
        refit = make_model(data, likelihood=Hinge(bound="exact"), num_inducing=20)
        CAVI(tol=1e-10).run(refit, (X[others], Y[others]))
        expected, spread = (part.numpy()[0, 0] for part in refit.predict_f(X[n : n + 1]))
        assert abs(mean[n, 0] - expected) < 0.35 * abs(full[n, 0] - expected)
        np.testing.assert_allclose(variance[n, 0], spread, rtol=0.2)


@pytest.mark.parametrize("likelihood", [CrammerSinger(3), OneVsRest(3)])
def test_leaving_out_lowers_the_latent_of_the_label(data, likelihood):
    model, data = three_classes(data, likelihood)
    mean, variance = leave_one_out(model, data)
    full, spread = (part.numpy() for part in model.predict_f(data[0]))
    rows = np.arange(60), data[1][:, 0].astype(int)
    assert (mean[rows] <= full[rows] + 1e-8).all()
    assert (variance >= spread - 1e-8).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_criterion_is_the_density_of_the_labels(data, fitted, weighted):
    number = len(data[1])
    weight = np.random.default_rng(0).uniform(0.5, 2, size=number) if weighted else np.ones(number)
    mean, variance = leave_one_out(fitted, data, sample_weight=weight)
    p = stats.norm.cdf(mean / np.sqrt(1 + variance))
    expected = np.log(np.where(data[1] == 1, p, 1 - p))[:, 0]
    rows = ArraySource(*data, weight[:, None], 7)
    found, weights = calibration.left_out_log_densities(fitted, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_array_equal(weights, weight)
    density = leave_one_out_density(fitted, data, sample_weight=weight)
    np.testing.assert_allclose(density, weight @ expected / weight.sum(), rtol=1e-8)


def reset(likelihood):
    for parameter in likelihood.link_parameters.values():
        parameter.assign(1.0 if parameter is likelihood.scale else 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [Hinge(), pytest.param(Hinge(bound="augmented"), marks=pytest.mark.drill), Probit()],
)
def test_calibration_is_a_maximum(data, likelihood):
    model = make_model(data, likelihood=likelihood, num_inducing=20)
    CAVI().run(model, data)
    before = leave_one_out_density(model, data)
    q_mu = model.q_mu.numpy()
    found = calibrate(model, data)
    best = leave_one_out_density(model, data)
    assert best >= before
    assert found == {
        "scale": float(likelihood.scale.numpy()),
        "offset": float(likelihood.offset.numpy()),
    }
    for parameter in (likelihood.scale, likelihood.offset):
        value = float(parameter.numpy())
        for step in (-0.05, 0.05):
            parameter.assign(value + step)
            assert leave_one_out_density(model, data) < best
        parameter.assign(value)
    np.testing.assert_array_equal(model.q_mu, q_mu)
    reset(likelihood)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [CrammerSinger(3), OneVsRest(3)])
def test_a_temperature_for_several_classes(data, likelihood):
    model, data = three_classes(data, likelihood)
    before = leave_one_out_density(model, data)
    assert list(calibrate(model, data)) == ["scale"]
    best = leave_one_out_density(model, data)
    assert best > before
    likelihood.scale.assign(1.1 * likelihood.scale)
    assert leave_one_out_density(model, data) < best


def test_the_link_is_that_of_a_scaled_latent(data, fitted):
    likelihood = fitted.likelihood
    likelihood.scale.assign(1.7)
    likelihood.offset.assign(-0.4)
    mean, variance = (part.numpy() for part in fitted.predict_f(data[0]))
    p = stats.norm.cdf((1.7 * mean - 0.4) / np.sqrt(1 + 1.7**2 * variance))
    np.testing.assert_allclose(fitted.predict_y(data[0])[0], p, atol=1e-10)
    log_p = np.log(np.where(data[1] == 1, p, 1 - p))[:, 0]
    np.testing.assert_allclose(fitted.predict_log_density(data), log_p, atol=1e-8)
    conditional = likelihood.conditional_mean(data[0], mean)
    np.testing.assert_allclose(conditional, stats.norm.cdf(1.7 * mean - 0.4), atol=1e-10)
    reset(likelihood)


def test_the_scale_of_several_classes_scales_all_latents():
    random = np.random.default_rng(0)
    Fmu, Fvar, X = random.normal(size=(5, 4)), random.uniform(0.1, 2, size=(5, 4)), np.zeros((5, 1))
    likelihood = CrammerSinger(4)
    expected = likelihood.predict_mean_and_var(X, 1.7 * Fmu, 1.7**2 * Fvar)[0].numpy()
    conditional = likelihood.conditional_mean(X, 1.7 * Fmu).numpy()
    likelihood.scale.assign(1.7)
    np.testing.assert_allclose(likelihood.predict_mean_and_var(X, Fmu, Fvar)[0], expected)
    np.testing.assert_allclose(likelihood.conditional_mean(X, Fmu), conditional)


def test_chunks_change_nothing(data, fitted, small_chunks):
    expected = leave_one_out(fitted, data)
    small_chunks(False)
    for one, other in zip(leave_one_out(fitted, data), expected):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.slow
def test_a_row_far_from_all_inducing_points_is_its_prior(data):
    """Its features underflow to 0, where mean over variance would be 0 / 0."""
    X, Y = data
    X = np.concatenate([X, [[100.0, 100.0]]])
    Y = np.concatenate([Y, [[1.0]]])
    model = make_model((X[:10], Y), likelihood=Hinge())
    gb.fit(model, (X, Y))
    mean, variance = gb.prediction.leave_one_out(model, (X, Y))
    prior = float(model.kernel(X[-1:], full_cov=False)[0])
    np.testing.assert_allclose([mean[-1, 0], variance[-1, 0]], [0, prior], atol=1e-8)
    assert np.isfinite(gb.prediction.leave_one_out_density(model, (X, Y)))


def test_a_model_that_was_not_fitted_is_refused(data):
    model = make_model(data)
    with pytest.raises(ValueError, match="q is the prior: fit the model before"):
        calibrate(model, data)
    assert {n: p.numpy() for n, p in model.likelihood.link_parameters.items()} == (
        model.likelihood.neutral_link
    )


def test_bad_input(data, fitted):
    with pytest.raises(ValueError, match="Bernoulli has no link to calibrate"):
        calibrate(make_model(data, likelihood=gpflow.likelihoods.Bernoulli()), data)
    with pytest.raises(ValueError, match="X has 3 columns"):
        leave_one_out(fitted, (np.zeros((4, 3)), data[1][:4]))
    with pytest.raises(TypeError, match="SVGP has no closed-form steps"):
        svgp = gpflow.models.SVGP(gpflow.kernels.SquaredExponential(), Hinge(), data[0][:5])
        leave_one_out(svgp, data)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [Hinge(), OneVsRest(3)])
def test_rows_that_were_held_out_are_seen_as_they_are(data, likelihood):
    """The scale of the greatest density of rows that the fit has not seen."""
    if isinstance(likelihood, OneVsRest):
        model, (X, Y) = three_classes(data, likelihood)
    else:
        model, (X, Y) = make_model(data, likelihood=likelihood), data
        CAVI().run(model, (X, Y))
    X_held = X + 0.3 * np.random.default_rng(1).normal(size=X.shape)

    def loss(scale):
        likelihood.scale.assign(scale)
        return -np.mean(model.predict_log_density((X_held, Y)))

    found = calibrate(model, (X_held, Y), held_out=True)
    at = loss(found["scale"])
    for factor in (0.99, 1.01):
        assert at < loss(factor * found["scale"])


def test_held_out_rows_are_to_be_given(data):
    """A model that holds its data would be calibrated on rows that it knows."""
    model = gb.models.BatchBSVM(data, gpflow.kernels.SquaredExponential(), Hinge())
    CAVI(max_steps=1).run(model)
    with pytest.raises(ValueError, match=r"data=None.*give \(X, Y\)"):
        calibrate(model, held_out=True)


def test_of_many_rows_some_are_looked_at(data, fitted, monkeypatch):
    """All of 20 million were in memory, with a gradient of each."""
    from gpflow_bsvm.data import Blocks, sampling
    from gpflow_bsvm.data.sources import ArraySource
    from gpflow_bsvm.engine.contracts import open_all
    from gpflow_bsvm.prediction import calibration

    rows = Blocks([(data[0][n : n + 10], data[1][n : n + 10]) for n in range(0, 60, 10)])
    some = sampling.sample(open_all(fitted, rows), 40, seed=0)
    fitted = gpflow.utilities.deepcopy(fitted)
    expected = calibrate(fitted, some)
    held = []

    class Counted(ArraySource):
        def __init__(self, X, Y, weight, chunk_rows):
            held.append(len(Y))
            super().__init__(X, Y, weight, chunk_rows)

    monkeypatch.setattr(calibration, "ArraySource", Counted)
    monkeypatch.setattr(calibration, "MOST_ROWS", 40)
    found = calibrate(fitted, rows)
    assert held == [40]
    assert found == pytest.approx(expected, rel=1e-3)  # where the optimiser begins: another link


def test_errors_of_every_value_are_not_a_maximum(fitted, data, monkeypatch):
    """The link stayed as it was, for instance under `tf.debugging.enable_check_numerics`."""

    def fails(*arguments):
        raise tf.errors.InvalidArgumentError(None, None, "Detected Infinity or NaN")

    f, Y, weight = calibration._leave_out(fitted, calibration.open_all(fitted, data))
    monkeypatch.setattr(calibration, "sum_over", fails)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Detected Infinity or NaN"):
        calibration.fit_link(gpflow.utilities.deepcopy(fitted.likelihood), f, Y, weight, 60)


def test_a_link_is_fitted_chunk_by_chunk(fitted, data, monkeypatch):
    """Memory for gradients does not grow with the number of rows."""
    f, Y, weight = calibration._leave_out(fitted, calibration.open_all(fitted, data))
    recorded = []
    tape = tf.GradientTape

    def counted(**options):
        recorded.append(options)
        return tape(**options)

    monkeypatch.setattr(tf, "GradientTape", counted)
    found = []
    for chunk_rows in (60, 7):
        link = gpflow.utilities.deepcopy(fitted.likelihood)
        recorded.clear()
        monkeypatch.setattr(calibration, "_ITERATIONS", 1)
        calibration.fit_link(link, f, Y, weight, chunk_rows)
        found.append((len(recorded), link.scale.numpy(), link.offset.numpy()))
    assert found[1][0] == 9 * found[0][0]
    np.testing.assert_allclose(found[0][1:], found[1][1:], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "num_classes"),
    [
        ({"kernel": "linear"}, 2),
        ({"loss": "hinge"}, 5),
        ({"multi_class": "ovr"}, 5),
        pytest.param({"kernel": "linear"}, 5, marks=pytest.mark.drill),
        pytest.param({"loss": "hinge"}, 2, marks=pytest.mark.drill),
        pytest.param({"multi_class": "ovr"}, 2, marks=pytest.mark.drill),
    ],
)
def test_one_row_of_each_class_keeps_its_label(num_classes, options):
    """Of a row that is left out nothing is known of its class: the best scale would be 0."""
    X, y = np.random.default_rng(0).normal(size=(num_classes, 8)), np.arange(num_classes)
    options = {"loss": "hinge", "penalty": 16.0, "learn_kernel": "kernel" in options} | options
    estimator = gb.BSVMClassifier(**options)
    with pytest.warns(UserWarning, match="more than one row each: .* are not calibrated"):
        estimator.fit(X, y)
    assert float(estimator.model_.likelihood.scale.numpy()) == 1
    np.testing.assert_array_equal(estimator.predict(X), y)
    assert estimator.predict_proba(X).max(axis=1).min() > 1.05 / num_classes


def test_rows_of_noise_keep_their_labels():
    """Where the others say nothing of a row, a scale of 0 would be the most probable."""
    X, y = np.random.default_rng(0).normal(size=(6, 100)), np.arange(6) % 2
    with pytest.warns(UserWarning, match="predicted no better than by chance"):
        estimator = gb.BSVMClassifier(loss="hinge", penalty=1.0, learn_kernel=False).fit(X, y)
    np.testing.assert_array_equal(estimator.predict(X), y)


def test_a_class_with_one_row_does_not_spoil_the_others():
    """The scale is that of the rows of the other classes."""
    X, Y = make_data(60)
    model = make_model((X, Y), likelihood=CrammerSinger(3), num_latent_gps=3)
    Y = np.concatenate([Y, [[2.0]]])
    X = np.concatenate([X, X[:1] + 5])
    gb.fit(model, (X, Y))
    weight = np.where(np.arange(61) < 60, 1.0, 0.0)
    with_it = gb.prediction.calibrate(model, (X, Y))["scale"]
    f, *rest = calibration._leave_out(model, calibration.open_all(model, (X, Y)))
    without = calibration.fit_link(model.likelihood, f, rest[0], tf.constant(weight[:, None]), 99)
    assert with_it == pytest.approx(without["scale"], rel=1e-3)


def test_rows_of_weight_0_do_not_count_as_rows_of_their_class():
    X, Y = make_data(60)
    Y = (np.arange(60) < 2).astype(float)[:, None]
    weight = np.where(np.arange(60) == 1, 0.0, 1.0)
    model = make_model((X, Y))
    gb.fit(model, (X, Y), sample_weight=weight)
    with pytest.warns(UserWarning, match="more than one row each: .* are not calibrated"):
        gb.prediction.calibrate(model, (X, Y), sample_weight=weight)
