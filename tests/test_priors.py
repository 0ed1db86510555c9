"""Default priors: where they are put, and what the penalty does to them."""

import gpflow
import numpy as np
import pytest
from helpers import make_data
from scipy import stats

import gpflow_bsvm as gb
from gpflow_bsvm.priors import ard_kernel, default_kernel, log_normal, set_default_priors


def test_the_ard_kernel_starts_at_its_medians():
    kernel = ard_kernel(9)
    np.testing.assert_allclose(kernel.lengthscales, np.full(9, 3.0))
    np.testing.assert_allclose(kernel.variance, 4.0)
    expected = stats.lognorm(0.4, scale=3.0).logpdf(3.0) * 9 + stats.lognorm(1.0, scale=4.0).logpdf(
        4
    )
    total = kernel.lengthscales.log_prior_density() + kernel.variance.log_prior_density()
    np.testing.assert_allclose(total, expected)


def test_the_penalty_multiplies_the_exponent():
    one, four = (log_normal(2.0, 0.4 / np.sqrt(penalty)) for penalty in (1.0, 4.0))
    x = np.array([0.5, 1.0, 2.0, 5.0])
    exponent = lambda p: p.log_prob(x) - p.log_prob(2.0) + np.log(x / 2)  # noqa: E731
    np.testing.assert_allclose(exponent(four), 4 * exponent(one))
    kernel = ard_kernel(4, penalty=4.0)
    np.testing.assert_allclose(kernel.lengthscales.prior.log_prob(x), four.log_prob(x))


@pytest.mark.parametrize("penalty", [1.0, 4.0])
def test_medians_are_not_where_the_density_peaks(penalty):
    """The log prior of a parameter has -log x, which the penalty does not multiply."""
    prior = ard_kernel(4, penalty=penalty).variance.prior
    np.testing.assert_allclose(prior.cdf(4.0), 0.5)
    np.testing.assert_allclose(prior.mode(), 4.0 * np.exp(-1 / penalty))
    expected = penalty * np.log(4.0) ** 2 / 2 - np.log(4.0)
    np.testing.assert_allclose(prior.log_prob(4.0) - prior.log_prob(1.0), expected)


def test_every_part_of_a_kernel_gets_its_own():
    mine = log_normal(1.0, 0.1)
    parts = [
        gpflow.kernels.Matern32(active_dims=[0, 2, 3]),
        gpflow.kernels.SquaredExponential(active_dims=slice(0, 2)),
        gpflow.kernels.Linear(),
        gpflow.kernels.White(),
        gpflow.kernels.Matern12(),
    ]
    parts[4].lengthscales.prior = mine
    set_default_priors(parts[0] * parts[1] + parts[2] + parts[3] + parts[4], 5)
    medians = [float(np.exp(part.lengthscales.prior.loc)) for part in parts[:2]]
    np.testing.assert_allclose(medians, np.sqrt([3, 2]))
    assert parts[4].lengthscales.prior is mine
    for part in parts:
        np.testing.assert_allclose(np.exp(part.variance.prior.loc), 4.0)


def test_the_default_kernel_is_the_ard_one_and_an_offset_of_its_own_prior():
    kernel = default_kernel(9, penalty=4.0)
    smooth, offset = kernel.kernels
    x = np.array([0.5, 1.0, 20.0])
    np.testing.assert_allclose(offset.variance, 1.0)
    np.testing.assert_allclose(
        offset.variance.prior.log_prob(x), stats.lognorm(1.5, scale=1.0).logpdf(x)
    )
    X = np.random.default_rng(0).normal(size=(3, 9))
    np.testing.assert_allclose(kernel(X), ard_kernel(9)(X) + 1.0)
    plain = ard_kernel(9, penalty=4.0)
    for mine, theirs in zip(smooth.parameters, plain.parameters, strict=True):
        np.testing.assert_array_equal(mine.prior.log_prob(x), theirs.prior.log_prob(x))


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_the_estimator_learns_and_calibrates(classes):
    X, y = make_data(80, 4)
    y = y[:, 0] if classes == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    plain = gb.BSVMClassifier(
        num_inducing=10, random_state=0, learn_kernel=False, calibrate=False, penalty=2.0
    ).fit(X, y)
    full = gb.BSVMClassifier(
        num_inducing=10, random_state=0, learn_kernel=True, calibrate=True, penalty=1.0
    ).fit(X, y)
    kernel = full.model_.kernel.kernels[0]
    data = full.scaler_.transform(X), y[:, None].astype(float)
    assert kernel.lengthscales.shape == (4,)
    assert kernel.lengthscales.numpy()[0] < kernel.lengthscales.numpy()[1:3].min()
    assert float(full.model_.likelihood.scale.numpy()) != 1.0
    density = gb.prediction.leave_one_out_density
    assert density(full.model_, data) > density(plain.model_, data)
    p, _ = full.model_.predict_y(data[0])
    expected = np.asarray(p) if classes == 3 else np.hstack([1 - p, p])
    np.testing.assert_allclose(full.predict_proba(X), expected, atol=1e-8)


@pytest.mark.drill
@pytest.mark.slow
def test_many_rows_are_learned_from_some(monkeypatch):
    monkeypatch.setattr("gpflow_bsvm.estimators.training.LEARN_ROWS", 60)
    monkeypatch.setattr("gpflow_bsvm.estimators.training.FEWEST_LEARN_ROWS", 60)
    X, y = make_data(150, 4)  # four columns: the graphs of the test before
    make = lambda: gb.BSVMClassifier(num_inducing=10, random_state=0, penalty=1.0)  # noqa: E731
    few = make().fit(X, y[:, 0])
    assert few.history_.converged
    again = make().fit(X, y[:, 0])
    np.testing.assert_array_equal(few.predict_proba(X), again.predict_proba(X))


@pytest.mark.drill
@pytest.mark.slow
def test_a_users_kernel_is_learned_without_our_priors():
    X, y = make_data(100)
    kernel = gpflow.kernels.Matern32(lengthscales=5.0)
    gpflow.set_trainable(kernel.variance, False)
    fitted = gb.BSVMClassifier(kernel, num_inducing=10, penalty=1.0).fit(X, y[:, 0])
    learned = fitted.model_.kernel
    assert learned.lengthscales.prior is None
    assert abs(float(learned.lengthscales.numpy()) - 5) > 0.1
    np.testing.assert_allclose(learned.variance, 1.0)
    np.testing.assert_allclose(kernel.lengthscales, 5.0)


@pytest.mark.parametrize("penalty", [-1.0, 0.0, np.inf])
def test_a_penalty_that_is_none(penalty):
    X, y = make_data(40)
    with pytest.raises(ValueError, match="penalty must be a positive, finite number"):
        ard_kernel(2, penalty=penalty)
    with pytest.raises(ValueError, match="penalty must be a positive number or"):
        gb.BSVMClassifier(penalty=penalty, learn_kernel=True).fit(X, y[:, 0])


def test_no_columns_have_no_priors():
    with pytest.raises(ValueError, match="num_features must be at least 1, got 0"):
        set_default_priors(gpflow.kernels.Linear(), 0)


def test_a_penalty_that_is_no_number():
    with pytest.raises(ValueError, match="a positive, finite number, got '2'"):
        default_kernel(2, penalty="2")
