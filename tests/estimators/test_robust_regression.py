"""`BSVMRegressor` where labels are wrong, far out, all equal, without noise, or no numbers."""

import warnings
from decimal import Decimal

import gpflow
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from gpflow_bsvm import BSVMRegressor
from gpflow_bsvm.data import Blocks

CONSTANT = "predictions are nearly the same for all rows"


def told_by(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in caught if one.category is UserWarning]


@pytest.fixture(scope="module")
def diabetes():
    """331 training rows and 111 others, and the R^2 that can be had."""
    X, y = load_diabetes(return_X_y=True)
    parts = train_test_split(X, y, test_size=111, random_state=0)
    return *parts, BSVMRegressor(random_state=0).fit(parts[0], parts[2]).score(parts[1], parts[3])


def with_errors(values, number, seed, factor=1000.0):
    values = values.copy()
    some = np.random.default_rng(seed).choice(values.size, number, replace=False)
    values.flat[some] *= factor
    return values


@pytest.mark.drill  # in CI: `test_an_outlier_matters_little`
@pytest.mark.slow
@pytest.mark.parametrize("kernel, factor", [(None, 1e3), ("linear", 1e8)])
def test_gross_errors_in_y(diabetes, kernel, factor):
    X, X_test, y, y_test, clean = diabetes  # a linear f is no worse
    wrong = BSVMRegressor(kernel, random_state=0).fit(X, with_errors(y, 3, 0, factor))
    assert wrong.score(X_test, y_test) > clean - 0.03
    assert wrong.predict(X_test, return_std=True)[1].max() < 2 * y.std()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gross_errors_in_x(diabetes, seed):
    X, X_test, y, y_test, clean = diabetes
    wrong = BSVMRegressor(random_state=0).fit(with_errors(X, 3, seed), y)
    assert wrong.score(X_test, y_test) > clean - 0.03


def corner(seed):
    """4 % of rows, in a corner of X, have labels near 15 000, the others near 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(475, 4))
    distance = np.abs(X[:, :2] - 0.9).max(axis=1)
    far = np.where(distance <= np.quantile(distance, 0.04), 15_000 + 2_000 * X[:, 2], 0)
    return X, far + 5 * np.sin(4 * X[:, 3]) + rng.normal(size=475)


@pytest.mark.drill
@pytest.mark.slow
def test_few_labels_far_out_that_x_explains():
    X, y = corner(0)
    regressor = BSVMRegressor(random_state=0)
    assert not [one for one in told_by(lambda: regressor.fit(X, y)) if CONSTANT in one]
    assert regressor.score(*corner(1)) > 0.7
    assert regressor.y_scale_ == pytest.approx(y.std(), rel=1e-6)


@pytest.mark.drill
@pytest.mark.slow
def test_gross_errors_beside_sparse_rows():
    rng = np.random.default_rng(0)
    X = rng.random((60, 20)) * (rng.random((60, 20)) < 0.3)
    y = X.sum(axis=1) + 0.1 * rng.normal(size=60)
    wrong = BSVMRegressor("linear").fit(csr_array(X), np.where(np.arange(60) == 7, 1e4, y))
    assert wrong.score(csr_array(X), y) > 0.9


def test_far_labels_of_rows_that_are_read():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) == 7, -999.0, X[:, 0])
    regressor = BSVMRegressor("linear", penalty=1.0, epsilon=0.1, learn_kernel=False)
    expected = clone(regressor).fit(X, y).predict(X)
    read = regressor.fit(Blocks([(X, y[:, None])]))
    np.testing.assert_array_equal(read.predict(X), expected)


@pytest.mark.drill
@pytest.mark.slow
def test_rows_that_are_read_have_the_same_unit():
    X, y = corner(0)
    blocks = Blocks([(X[:200], y[:200, None]), (X[200:], y[200:, None])])
    read = BSVMRegressor(num_inducing=100).fit(blocks)
    assert read.y_scale_ == pytest.approx(y.std(), rel=1e-6)
    assert read.score(*corner(1)) > 0.7


@pytest.mark.slow
def test_a_function_that_is_noise_to_the_first_start():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (300, 1))
    y = np.sin(15 * x[:, 0]) + 0.1 * rng.normal(size=300)
    regressor = BSVMRegressor(random_state=0, num_inducing=60).fit(x[:225], y[:225])
    assert regressor.score(x[225:], y[225:]) > 0.9


@pytest.mark.slow
@pytest.mark.drill
def test_a_product_of_two_columns_among_thirty():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300)
    assert BSVMRegressor(random_state=0).fit(X[:225], y[:225]).score(X[225:], y[225:]) > 0.5


@pytest.mark.slow
def test_a_constant_is_said_to_be_one_unless_y_is():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    tube = BSVMRegressor(epsilon=100.0, penalty=1.0, learn_kernel=False)
    assert [CONSTANT in one for one in told_by(lambda: tube.fit(X, y))] == [True]
    flat = BSVMRegressor(epsilon=0.1, penalty=1.0, learn_kernel=False)
    assert not told_by(lambda: flat.fit(X, np.full(80, 3.0)))
    np.testing.assert_allclose(flat.predict(X), 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("function", [np.exp, pytest.param(np.positive, marks=pytest.mark.drill)])
def test_labels_without_noise(function):
    x = np.random.default_rng(0).normal(size=(80, 1))
    y = function(x[:, 0])
    regressor = BSVMRegressor()
    told = told_by(lambda: regressor.fit(x, y))
    # The noise that is learned has a floor, in deviations of y.
    np.testing.assert_allclose(regressor.predict(x), y, atol=3e-3 * y.std())
    assert told and all("y has almost no noise" in one for one in told)


def test_a_kernel_of_huge_variance_is_a_reason_for_rounded_error_bars():
    x = np.linspace(0, 1e5, 60)[:, None]  # k(x, x) grows to 1e10
    y = np.random.default_rng(0).normal(size=60)
    options = {"standardize": False, "learn_kernel": False, "penalty": 1.0, "num_inducing": 5}
    regressor = BSVMRegressor(gpflow.kernels.Linear() + gpflow.kernels.Constant(), **options)
    told = told_by(lambda: regressor.fit(x, y))
    assert any("the kernel's variance is far larger than the variance of y" in one for one in told)


@pytest.mark.slow
def test_the_middle_of_a_skewed_y_is_its_median():
    """As the docstring says."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y = np.where(rng.random(400) < 0.24, rng.gamma(3, 0.3, 400), 0)
    middle = BSVMRegressor(num_inducing=20).fit(X, y).predict(X)
    assert np.abs(middle - np.median(y)).max() < 0.05 < y.mean() - 0.1


NO_LABEL = "y has no label .* in row 2: leave out such rows"


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "requires y to be passed"),
        (np.array([1.0, 2.0, np.nan, 3.0]), NO_LABEL),
        (pd.Series([1.0, 2.0, None, 3.0], dtype="Float64"), NO_LABEL),
        (np.array([1.0, 2.0, None, 3.0], object), NO_LABEL),
        (pd.Series([1.0, 2.0, pd.NA, 3.0], dtype=object), NO_LABEL),
        (np.array([1.0, 2.0, np.inf, 3.0], object), "Input y contains infinity"),
        (pd.Series(pd.date_range("2020", periods=4)), "y must be numbers, got datetime64"),
        (np.array([1.0, 2.0, -1e300, 3.0]), r"y is up to 1e\+300, .* check the units"),
        (np.array([1.0, 2.0, 4.0, 3.0]) * 1e-310, "its spread .*e-31.* check the units"),
    ],
)
def test_labels_that_are_no_numbers_or_too_large(y, message):
    with pytest.raises(ValueError, match=message):
        BSVMRegressor("linear").fit(np.arange(8.0).reshape(4, 2), y)


@pytest.mark.slow
def test_numbers_of_other_types():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    whole = np.round(10 * X[:, 0]).astype(int)
    linear = BSVMRegressor("linear", penalty=1.0, epsilon=0.1, learn_kernel=False)
    decimals = np.array([Decimal(int(y)) for y in whole])
    fit = [clone(linear).fit(X, y) for y in (whole, whole.astype(float), decimals)]
    for one in fit:
        np.testing.assert_array_equal(one.predict(X), fit[0].predict(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:y has almost no noise")
def test_columns_far_from_zero_that_are_not_scaled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    given = {"penalty": 10.0, "epsilon": 0.1}
    with pytest.raises(FloatingPointError, match="not finite; scale X"):
        BSVMRegressor("linear", standardize=False, **given).fit(X + 1e9, y)
    with pytest.raises(ValueError, match=r"distances are lost in rounding.*subtract its mean"):
        BSVMRegressor(standardize=False, **given).fit(X + 1e9, y)
    assert BSVMRegressor("linear", **given).fit(X + 1e9, y).score(X + 1e9, y) > 0.98


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e6), (np.float64, 1e14)])
def test_labels_that_are_rounded_are_told(dtype, offset):
    y = np.random.default_rng(0).normal(size=40)
    regressor = BSVMRegressor()
    weight = np.ones(40)
    assert told_by(lambda: regressor._learn_labels((y + offset / 1e4).astype(dtype), weight)) == []
    told = told_by(lambda: regressor._learn_labels((y + offset).astype(dtype), weight))
    assert told[0].startswith(f"y is so far from 0 that {np.dtype(dtype).name} has fewer than 1000")
