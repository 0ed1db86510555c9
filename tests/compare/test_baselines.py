"""How the models of a comparison are trained."""

import functools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import minimise
from scipy import stats
from sklearn.datasets import make_moons

from gpflow_bsvm import BSVMClassifier, inference, prediction
from gpflow_bsvm.compare import baselines, gp_baselines, regression
from gpflow_bsvm.compare.baselines import KernelSettings, Skipped
from gpflow_bsvm.compare.gp_baselines import make_baseline
from gpflow_bsvm.compare.registry import BASELINES

KERNEL = KernelSettings(lengthscale=1.0, variance=4.0)


def fold(seed, num_rows=60):
    X, y = make_moons(num_rows, noise=0.2, random_state=seed)
    return X, y, X[:10].copy()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("settings", [(), (True,), (True, 2.0)])
@pytest.mark.parametrize("name", ["bsvm", "svgp-probit"])
def test_a_refit_forgets_the_last_one(name, settings, monkeypatch):
    monkeypatch.setattr(gp_baselines, "KERNEL_ROUNDS", 5)
    kernel = KernelSettings(1.0, 4.0, *settings)
    model, X = make_baseline(name, 2), fold(0)[0]
    answers = []
    for seed, num_rows in [(0, 60), (1, 50), (0, 60)]:
        model.fit(*fold(seed, num_rows), kernel, 0)
        answers.append(model.predict_proba(X))
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)
    assert abs(answers[0] - answers[1]).max() > 1e-3


@pytest.mark.slow
def test_a_refit_with_other_points_forgets_the_noise_variance_of_the_last_one(monkeypatch):
    monkeypatch.setattr(gp_baselines, "KERNEL_ROUNDS", 3)
    X, _, Z = fold(0)
    y = np.sin(2 * X[:, 0])
    again, fresh = (make_baseline("svgp", 0) for _ in range(2))
    again.fit(X, y, Z, LEARN, 0)
    for one in (again, fresh):
        one.fit(X, y, Z[:9], LEARN, 0)
    np.testing.assert_array_equal(again.predict_numbers(X, y), fresh.predict_numbers(X, y))


def test_an_offset_is_a_constant_in_the_kernel():
    X = fold(0)[0]
    plain, offset = (
        gp_baselines.make_kernel(KernelSettings(1.0, 4.0, True, c), 2) for c in (0.0, 2.0)
    )
    np.testing.assert_allclose(offset(X), plain(X) + 2.0)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bsvm", "bsvm-augmented", "svgp"])
def test_learning_the_kernel_raises_the_elbo(name, monkeypatch):
    monkeypatch.setattr(gp_baselines, "KERNEL_ROUNDS", 40)
    X, y, Z = fold(0)
    ends = []
    for learn in (False, True):
        model = make_baseline(name, 2)
        model.fit(X, y, Z, KernelSettings(1.0, 4.0, learn), 0)
        ends.append(float(model.model.elbo((X, y[:, None].astype(float)))))
        assert (float(model.model.kernel.variance.numpy()) == 4.0) == (not learn)
        assert model.model.kernel.lengthscales.shape == ((2,) if learn else ())
        np.testing.assert_array_equal(model.model.inducing_variable.Z, Z)
    assert ends[1] > ends[0] + 0.1


LEARN = KernelSettings(1.0, 4.0, True)


@functools.cache
def learned(name, num_classes):
    """A baseline that has learned a little, to be looked at only."""
    X, y, Z = fold(0)
    baseline = make_baseline(name, num_classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gp_baselines, "KERNEL_ROUNDS", 2)
        baseline.fit(X, y if num_classes else np.sin(2 * X[:, 0]), Z, LEARN, 0)
    return baseline


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 0], ids=["Bernoulli", "Gaussian"])
def test_svgp_ends_where_l_bfgs_does(num_classes):
    """Both at the bound and priors of one model: what the stopping rule leaves is within it."""
    X, y, Z = fold(0)
    y = y if num_classes else np.sin(X[:, 0]) + 0.1 * X[:, 1]
    svgp = make_baseline("svgp", num_classes)
    svgp.fit(X, y, Z, LEARN, 0)
    data = X, y[:, None].astype(float)
    loss = svgp.model.training_loss_closure(data, compile=False)
    ended = -loss().numpy()
    assert svgp.note == "" and abs(svgp.last_gain) <= gp_baselines.KERNEL_TOLERANCE
    assert gpflow.utilities.parameter_dict(svgp.model.inducing_variable)[".Z"].trainable
    gpflow.set_trainable(svgp.model.inducing_variable, False)
    best = minimise(loss, svgp.model.trainable_variables, maxiter=1000)
    assert -best.fun - ended < 10 * gp_baselines.KERNEL_TOLERANCE * abs(best.fun)
    assert -best.fun - ended > -1e-6 * abs(best.fun)


def test_the_rules_are_those_that_the_notes_tell():
    assert gp_baselines.KERNEL_TOLERANCE == inference.VEM().tol == 1e-4
    rounds = gp_baselines.NaturalGradientSteps().rounds, gp_baselines.MONTE_CARLO.rounds
    assert rounds == (20, 100)
    ours, theirs = (BASELINES[name].description for name in ("bsvm", "svgp"))
    assert "two successive rounds raise its bound by less than 0.01 %" in ours
    assert "mean ELBO of 20 rounds (100 for Softmax" in theirs


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 0])
def test_ours_and_svgp_are_like_for_like(num_classes):
    both = [learned(name, num_classes) for name in ("bsvm", "svgp")]
    ours, theirs = (one.model for one in both)
    np.testing.assert_array_equal(ours.inducing_variable.Z, theirs.inducing_variable.Z)
    kernels = [gpflow.utilities.parameter_dict(one.kernel) for one in (ours, theirs)]
    assert kernels[0].keys() == kernels[1].keys() == {".variance", ".lengthscales"}
    for name, first in kernels[0].items():
        second, at = kernels[1][name], np.linspace(0.1, 5, 7)
        np.testing.assert_array_equal(first.prior.log_prob(at), second.prior.log_prob(at))
        assert first.shape == second.shape and first.trainable and second.trainable


@pytest.mark.slow
@pytest.mark.parametrize("learn", [False, True])
def test_a_learned_model_of_ours_is_calibrated(learn):
    X, y, Z = fold(0)
    ours = make_baseline("bsvm", 2)
    for rows in (slice(30), slice(None)):  # nothing is left of the fit before
        ours.fit(X[rows], y[rows], Z, KernelSettings(1.0, 4.0, learn), 0)
    found = {name: float(p.numpy()) for name, p in ours.model.likelihood.link_parameters.items()}
    if learn:
        expected = prediction.calibrate(ours.model, (X, y[:, None] * 1.0))
        assert found == pytest.approx(expected, rel=1e-3) and found["scale"] != 1
    else:
        assert found == {"scale": 1.0, "offset": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bsvm", "svgp"])
def test_distributions_of_numbers_are_those_of_the_model(name):
    X = fold(0)[0]
    y = np.sin(2 * X[:, 0])
    one = learned(name, 0)
    P, (mean, variance) = one.predict_numbers(X, y), one.model.predict_y(X)
    np.testing.assert_allclose(P[:, 0], mean[:, 0], rtol=1e-9)
    log_p = one.model.predict_log_density((X, y[:, None]))
    np.testing.assert_allclose(P[:, 1], log_p, rtol=1e-9)
    likelihood = one.model.likelihood
    if name == "svgp":
        expected = stats.norm.ppf(regression.LEVELS, mean, np.sqrt(variance))
    else:
        f = one.model.predict_f(X)
        expected = likelihood.predict_quantiles(*f, regression.LEVELS)[:, 0]
    np.testing.assert_allclose(P[:, 2:], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["svr", "boosting", "BSVMRegressor"])
def test_regressors_know_their_errors(name):
    X, _, Z = fold(0, num_rows=120)
    y = np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=120)
    one = make_baseline(name, 0)
    one.fit(X[:70], y[:70], Z, LEARN, 0)
    found = regression.evaluate(y[70:], one.predict_numbers(X[70:], y[70:]))
    assert found["mse"] < 0.3 * y.var() and 0.7 < found["coverage"] <= 1
    assert -0.5 < found["nll"] < 0.7  # of the truth: -0.19


def test_predictions_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="predictions must be finite"):
        regression.evaluate(np.zeros(2), np.full((2, 12), np.nan))


@pytest.mark.slow
def test_a_step_that_fails_is_followed_by_a_smaller_one(monkeypatch):
    steps, train = [], gp_baselines.SVGPBaseline._train

    def fails_at_1(svgp, task, gamma):
        steps.append(gamma)
        if gamma == 1.0:
            svgp.model.q_mu.assign(np.full((10, 1), 1e3))
            raise FloatingPointError
        return train(svgp, task, gamma)

    monkeypatch.setattr(gp_baselines.SVGPBaseline, "_train", fails_at_1)
    X, y, Z = fold(0)
    model = make_baseline("svgp", 2)
    model.fit(X, y, Z, KERNEL, 0)
    assert steps == [1.0, 0.1]
    assert model.note == "step size 1.0 failed, 0.1 used"
    assert np.mean(model.predict_proba(X).argmax(1) == y) > 0.9


@pytest.mark.slow
def test_what_is_not_finite_is_one_plain_error():
    X, _, Z = fold(0)
    with pytest.raises(FloatingPointError, match="no finite q after step 1"):
        make_baseline("svgp-probit", 2).fit(X, np.full(60, np.nan), Z, KERNEL, 0)


def three_blobs():
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = random.normal(size=(60, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y]
    return X, y, X[:9].copy()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bsvm", "one-vs-rest", "svgp", "svgp-robustmax"])
def test_a_refit_on_three_classes_forgets_the_last_one(name, monkeypatch):
    monkeypatch.setattr(gp_baselines, "KERNEL_ROUNDS", 20)
    (X, y, Z), model = three_blobs(), make_baseline(name, 3)
    answers = []
    for learn in (False, True, False):
        tf.random.set_seed(0)  # of the draws of Softmax
        model.fit(X, y, Z, KernelSettings(1.0, 4.0, learn), 0)
        answers.append(model.predict_proba(X))
        assert model.model.q_sqrt.shape == (3, 9, 9)
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)
    assert abs(answers[0] - answers[1]).max() > 1e-3


def test_a_noisy_elbo_settles_within_its_noise():
    noise = np.random.default_rng(0).normal(size=60)
    rise = -1000 * np.exp(-np.arange(60))
    elbos = list(rise + noise - 500)
    steps = [t for t in range(1, 61) if gp_baselines._settled(elbos[:t], 5, 1e-5)]
    assert 10 < steps[0] < 20  # the last 10 steps are flat but for noise
    assert not any(gp_baselines._settled(list(np.arange(t) - 1e4), 5, 1e-5) for t in range(1, 60))


def test_an_exact_elbo_settles_by_its_last_change():
    assert gp_baselines._settled([-900.0, -100.0, -99.9995], 1, 1e-5)
    assert gp_baselines._settled([-100.0, -100.0005], 1, 1e-5)
    assert not gp_baselines._settled([-100.0, -99.99], 1, 1e-5)
    assert gp_baselines._settled([-100.0, -99.99], 1, 1e-3)
    assert not gp_baselines._settled([-100.0], 1, 1e-5)


@pytest.mark.slow
def test_robustmax_starts_with_small_steps(monkeypatch):
    sizes = []

    class Step(gp_baselines.SVGPBaseline):
        def _make(self, *args):
            super()._make(*args)
            self._natural_step = self._spied(self._natural_step)

        def _spied(self, step):
            return lambda *data: sizes.append(float(self._gamma)) or step(*data)

    monkeypatch.setattr(gp_baselines, "SVGPBaseline", Step)
    model = make_baseline("svgp-robustmax", 3)
    model.fit(*three_blobs(), KERNEL, 0)
    np.testing.assert_allclose(sizes[:3], [1 / 60, 1.2 / 60, 1.44 / 60])
    assert max(sizes) == 0.5
    assert "failed" not in model.note


def test_the_classifier_learns_its_kernel():
    with pytest.raises(Skipped, match="learns its kernel, which is fixed here"):
        make_baseline("BSVMClassifier", 2).fit(*fold(0), KERNEL, 0)


def test_what_our_own_method_chose_is_told():
    ours = BSVMClassifier(loss="levels", penalty=2, learn_kernel=False, num_inducing=5)
    baseline = baselines.Estimator(lambda task: ours.fit(task.X, task.y))
    baseline.fit(*fold(0), KERNEL, 0)
    assert baseline.note == "chose levels, penalty 2, 5 inducing points"
