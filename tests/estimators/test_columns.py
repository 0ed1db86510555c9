"""What a fit uses and says of columns: codes and misfits of kernels, coefficients, importances."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import (
    ChangePoints,
    Constant,
    Coregion,
    Linear,
    Matern12,
    Matern32,
    Periodic,
    SquaredExponential,
)
from gpflow.kernels.categorical import Categorical
from helpers import fixed_classifier as fixed
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gpflow_bsvm import BSVMClassifier, BSVMRegressor, OneClassBSVM
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators.columns import on_scaled_columns, unscaled_columns
from gpflow_bsvm.estimators.specification import Specification, centres


class Same(gpflow.kernels.Kernel):
    """1 where the rows are equal: a kernel of somebody's own that takes a column for a code."""

    def K(self, X, X2=None):
        X2 = X if X2 is None else X2
        return tf.cast(X[:, None, 0] == X2[None, :, 0], X.dtype)

    def K_diag(self, X):
        return tf.ones_like(X[:, 0])


def grouped():
    return SquaredExponential(active_dims=[0]) * Coregion(output_dim=4, rank=1, active_dims=[1])


def kernels():
    first, second = SquaredExponential(active_dims=[0]), SquaredExponential(active_dims=[1])
    return {
        "Coregion": (grouped(), [1]),
        "Same": (first * Same(active_dims=[1]), [1]),
        "both": (Coregion(4, 1, active_dims=[1]) + first * Same(active_dims=[2]), [1, 2]),
        "Categorical": (Categorical(first, second, 4), [2]),
        "shared": (SquaredExponential() + Same(active_dims=[1]), [1]),
        "product": (SquaredExponential() * (Matern32() + Coregion(4, 1, active_dims=[1])), [1]),
        "short": (Matern32(lengthscales=1e-4) + gpflow.kernels.White(), []),
        "long": (SquaredExponential(lengthscales=1e6) * gpflow.kernels.ArcCosine(), []),
        "linear": (Linear() + gpflow.kernels.Constant(), []),
        "unused": (first, []),
    }


@pytest.fixture(scope="module")
def groups():
    """Two numbers, and a group that decides which sign of the first is which class."""
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-2, 2, 150), rng.integers(0, 4, 150)
    return np.column_stack([x, group]), ((x > 0) ^ (group % 2 == 1)).astype(int)


@pytest.mark.parametrize("name", kernels())
def test_columns_that_are_codes_to_a_kernel(groups, name):
    X = np.column_stack([groups[0], 3 - groups[0][:, 1]])
    kernel, expected = kernels()[name]
    assert unscaled_columns(kernel, X) == expected


def test_a_code_that_the_kernel_lacks_is_named(groups):
    kernel = SquaredExponential() + Coregion(output_dim=3, rank=1, active_dims=[1])
    with pytest.raises(ValueError, match=r"row \d+ of X has code 3, .* 0 to 2 as codes: construct"):
        unscaled_columns(kernel, groups[0])


def changing(scale, location, steepness):
    kernel = ChangePoints([Matern32(lengthscales=scale), Matern12()], [location], steepness)
    kernel.active_dims = [1]
    return kernel + Matern32(lengthscales=3.0, active_dims=[0])


def test_locations_of_change_points_are_in_units_of_X(groups):
    X, y = groups[0] @ [[1, 0], [10, 20]] + [0, 100], groups[1]
    found = fixed(kernel=changing(0.5, 105.0, 0.2), num_inducing=10, penalty=2.0).fit(X, y)
    np.testing.assert_allclose(found.lengthscales_, [3.0, 0.5])
    seen, mean, scale = found.as_model_sees(X), X[:, 1].mean(), X[:, 1].std()
    by_hand = changing(0.5, (105 - mean) / scale, 0.2 * scale)
    model = fixed(kernel=by_hand, num_inducing=10, penalty=2.0, standardize=False).fit(seen, y)
    np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(seen), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*experimental")
def test_bounds_of_hierarchical_kernels_are_in_units_of_X(groups):
    """The sizes count only where the group is 1."""
    hierarchical = pytest.importorskip("gpflow.kernels.hierarchical")
    X, y = np.column_stack([groups[0], 40 + 5 * groups[0][:, 0]]), groups[1]

    def fitted(X, bounds, **options):
        node = hierarchical.HierarchyNode
        size = node("size", [1], bounds, hierarchical.ActivityCondition({0: 1}))
        kernel = hierarchical.ArcHierarchical([size], Matern32(), active_dims=[1, 2])
        return fixed(kernel=kernel + Linear(), num_inducing=20, **options).fit(X, y)

    found = fitted(X, [[30.0, 50.0]])
    seen, mean, scale = found.as_model_sees(X), X[:, 2].mean(), X[:, 2].std()
    by_hand = fitted(seen, [[(30 - mean) / scale, (50 - mean) / scale]], standardize=False)
    np.testing.assert_allclose(found.predict_proba(X), by_hand.predict_proba(seen), rtol=1e-9)


def test_periods_inside_of_other_kernels_are_told(groups):
    change = ChangePoints([Matern32(), Matern12()], [1.0])
    for part in (Periodic(Matern12()), change):
        kernel = Categorical(part, SquaredExponential(), 4)
        match = f"{type(part).__name__} inside of Categorical uses scaled columns"
        with pytest.warns(UserWarning, match=match):
            on_scaled_columns(Constant() + kernel, StandardScaler().fit(groups[0]))


def test_a_period_is_in_units_of_X():
    """A period in deviations of X had given nearly equal predictions for all rows."""
    X = 5 + np.array([3.0, 0.2]) * np.random.default_rng(0).normal(size=(60, 2))

    def fitted(X, period, **options):
        kernel = Periodic(SquaredExponential(), period=period) + Linear()
        options = {"penalty": 5.0, "epsilon": 0.1, "learn_kernel": False} | options
        return BSVMRegressor(kernel, num_inducing=20, **options).fit(X, y)

    y = np.sin(X[:, 0]) + X[:, 1]
    found = fitted(X, 2 * np.pi)
    seen = found.as_model_sees(X)
    by_hand = fitted(seen, 2 * np.pi / X.std(axis=0), standardize=False)
    np.testing.assert_allclose(found.predict(X), by_hand.predict(seen), rtol=1e-9)


def test_the_prior_of_a_period_is_in_units_of_X():
    kernel = Periodic(SquaredExponential(active_dims=[1]), period=24.0)
    kernel.period.prior = tfp.distributions.Gamma(np.float64(5.0), np.float64(0.2))
    twice = kernel + kernel * Linear()
    found = on_scaled_columns(twice, StandardScaler().fit(np.diag([1.0, 40.0]))).kernels[0]
    np.testing.assert_allclose(found.period, [24 / 20])
    expected = tfp.distributions.Gamma(np.float64(5.0), np.float64(0.2 * 20)).log_prob(24 / 20)
    np.testing.assert_allclose(found.period.prior.log_prob(found.period), [expected])
    assert kernel.period.numpy() == 24.0


@pytest.mark.parametrize("options", [{}, {"standardize": False}, {"impute": True}])
def test_codes_stay_as_they_are(groups, options):
    X, y = groups
    found = fixed(kernel=grouped(), num_inducing=40, penalty=100.0, **options).fit(X, y)
    assert found.score(X, y) == 1.0
    Z = found.model_.inducing_variable.Z.numpy()
    assert set(Z[:, 1]) == {0, 1, 2, 3} and len(Z) == 40
    if not options:
        np.testing.assert_allclose(found.scaler_.transform(X)[:, 1], X[:, 1], atol=0)
        np.testing.assert_allclose(found.scaler_.transform(X)[:, 0].std(), 1)


@pytest.mark.slow
def test_codes_of_the_other_estimators(groups):
    X, _ = groups
    curve = np.sin(2 * X[:, 0]) * (X[:, 1] - 1.5) + 0.05 * np.random.default_rng(1).normal(size=150)
    regressor = BSVMRegressor(grouped(), num_inducing=40, learn_kernel=False, penalty=5.0)
    assert regressor.fit(X, curve).score(X, curve) > 0.98
    novelty = OneClassBSVM(grouped(), num_inducing=40).fit(X)
    assert novelty.scaler_.mean_[1] == 0 and novelty.scaler_.scale_[1] == 1


def test_codes_of_rows_that_are_read_piece_by_piece(groups):
    X, y = groups
    rows = Blocks([(X[n : n + 50], y[n : n + 50, None] * 1.0) for n in range(0, 150, 50)])
    found = fixed(kernel=grouped(), num_inducing=40, penalty=100.0).fit(rows)
    expected = fixed(kernel=grouped(), num_inducing=40, penalty=100.0).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=0.05)
    assert found.score(X, y) == 1.0


def test_a_missing_code_is_the_most_frequent_one(groups):
    X, y = groups[0].copy(), groups[1]
    X[X[:, 1] == 1, 1] = 3
    X[:3] = np.nan
    found = fixed(kernel=grouped(), num_inducing=40, impute=True).fit(X, y)
    np.testing.assert_array_equal(found.fill_[0], [np.nanmedian(X[:, 0]), 3.0])


def test_weights_are_repetitions_where_values_are_missing(groups):
    X, y = groups[0].copy(), groups[1]
    X[::7, 0], X[::5, 1] = np.nan, np.nan
    weight = np.where(X[:, 1] == 2, 3, X[:, 0] > 0.2)
    again = np.repeat(np.arange(len(y)), weight)
    model = fixed(kernel=grouped(), num_inducing=10, impute=True)
    found = clone(model).fit(X, y, weight * 1.0)
    expected = clone(model).fit(X[again], y[again])
    np.testing.assert_array_equal(found.fill_, expected.fill_)
    assert found.fill_[0, 0] != model.fit(X, y).fill_[0, 0]
    assert found.fill_[0, 1] == 2


def test_inducing_points_have_codes_that_rows_have():
    """Each group has its share of them, though its rows are among those of the others."""
    X = np.column_stack([np.linspace(0, 60, 90), np.arange(90) % 3.0])
    Z = centres(Specification(codes=(1,)), X, 12)
    codes, counts = np.unique(Z[:, 1], return_counts=True)
    assert codes.tolist() == [0, 1, 2] and counts.min() >= 3 and len(Z) == 12


# --- kernels that do not fit ---------------------------------------------------------------------


def misfits():
    ard = SquaredExponential(lengthscales=[1.0, 1.0, 1.0])
    return {
        "lengthscales": (ard, r"SquaredExponential cannot .* 2 columns: .*\[3\]; check its active"),
        "sum": (ard + Linear(), r"SquaredExponential cannot .* 2 columns: .*; check its active"),
        "active_dims": (Matern32(active_dims=[5]), r"Matern32 cannot .* = 5 is not in \[0, 2\)"),
        "codes": (
            Coregion(2, 1, active_dims=[1]),
            r"row 0 of X has code 2, .* 0 to 1 as codes: construct",
        ),
        "one": (Coregion(4, 1), "Coregion cannot be called with inputs of 2 columns"),
        "no codes": (Coregion(4, 1, active_dims=[5]), r"Coregion cannot .* 5 is not in \[0, 2\)"),
    }


@pytest.mark.parametrize("name", misfits())
@pytest.mark.parametrize("make", [BSVMClassifier, BSVMRegressor, OneClassBSVM])
def test_a_kernel_that_does_not_fit_is_told_by_its_name(groups, make, name):
    kernel, message = misfits()[name]
    with pytest.raises(ValueError, match=message) as raised:
        make(kernel).fit(*groups)
    assert "{{" not in str(raised.value) and "\n" not in str(raised.value)


def test_columns_that_imputing_adds_are_named(groups):
    X = groups[0].copy()
    X[:4, 1] = np.nan
    kernel = SquaredExponential(lengthscales=[1.0, 1.0])
    with pytest.raises(
        ValueError, match=r"of its parameters \(impute=True has .*\[1.* column 2 on"
    ):
        fixed(kernel=kernel, impute=True).fit(X, groups[1])
    kernel = SquaredExponential(lengthscales=[1.0, 1.0], active_dims=range(2))
    fixed(kernel=kernel, impute=True, num_inducing=5).fit(X, groups[1])


@pytest.fixture(scope="module")
def rows():
    """Only the first two of five columns of different units say anything."""
    X = np.random.default_rng(0).normal(size=(120, 5))
    noise = np.random.default_rng(1).normal(size=120)
    units = np.array([10.0, 0.1, 1.0, 5.0, 1.0])
    return 3.0 + units * X, 2 * X[:, 0] - X[:, 1] + 0.3 * noise


def linear_kernels():
    return {"linear": "linear", "Linear": Linear(), "sum": Linear() + Constant()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss", "standardize"),
    [
        ("linear", "levels", False),
        ("Linear", "hinge", False),
        ("sum", "levels", True),
        pytest.param("linear", "hinge", True, marks=pytest.mark.drill),
        pytest.param("Linear", "levels", True, marks=pytest.mark.drill),
        pytest.param("sum", "hinge", False, marks=pytest.mark.drill),
    ],
)
def test_coefficients_of_two_classes_are_as_those_of_svc(rows, name, loss, standardize):
    X, f = rows[0], rows[1]
    how = {"loss": loss, "num_inducing": 20, "calibrate": loss == "hinge"}
    found = fixed(kernel=linear_kernels()[name], standardize=standardize, **how).fit(X, f > 0)
    coef, intercept = found.coef_, found.intercept_
    score = X @ coef.T + intercept
    np.testing.assert_array_equal(score[:, 0] > 0, found.predict(X))
    theirs = SVC(kernel="linear").fit(X, f > 0)
    assert coef.shape == theirs.coef_.shape
    assert intercept.shape == theirs.intercept_.shape
    assert (np.sign(coef[0, :2]) == np.sign(theirs.coef_[0, :2])).all()


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_coefficients_of_several_classes(rows, sparse):
    X, y = rows[0], np.digitize(rows[1], [-1, 1])
    found = fixed(kernel="linear").fit(csr_array(X) if sparse else X, y)
    coef = found.coef_
    score = X @ coef.T + found.intercept_
    assert coef.shape == (3, 5) and (score.argmax(axis=1) == found.predict(X)).mean() > 0.95
    mean, _ = found.model_.predict_f(X / found.scaler_.scale_ if sparse else found.as_model_sees(X))
    np.testing.assert_allclose(score, mean, atol=1e-6)


@pytest.mark.slow
def test_coefficients_with_more_columns_than_rows(rows):
    X = np.random.default_rng(2).normal(size=(20, 40))
    found = fixed(kernel="linear").fit(X, rows[1][:20] > 0)
    score = X @ found.coef_.T + found.intercept_
    np.testing.assert_array_equal(score[:, 0] > 0, found.predict(X))


@pytest.mark.slow
def test_coefficients_of_a_regressor_predict(rows):
    X, y = rows
    X = np.where(np.arange(120)[:, None] % 9 + np.arange(5), X, np.nan)
    given = {"penalty": 1.0, "epsilon": 0.1, "learn_kernel": False}
    found = BSVMRegressor("linear", impute=True, **given).fit(X, y)
    whole = ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(
        X[whole] @ found.coef_[0] + found.intercept_, found.predict(X[whole]), atol=1e-6
    )


@pytest.mark.slow
def test_lengthscales_are_in_the_order_of_the_columns(rows):
    X, f = rows
    kernel = SquaredExponential(lengthscales=[3.0, 1.0], active_dims=[4, 0])
    kernel += Matern32(lengthscales=2.0, active_dims=[0, 2])
    found = fixed(kernel=kernel, num_inducing=10).fit(X, f > 0)
    np.testing.assert_allclose(found.lengthscales_, [1.0, np.inf, 2.0, np.inf, 3.0])
    slopes = np.array([1, 0, 1 / 2, 0, 1 / 3])
    np.testing.assert_allclose(found.feature_importances_, slopes / slopes.sum())
    assert found.num_inducing_ == 10
    kernel = Matern32(lengthscales=2.0)
    assert (OneClassBSVM(kernel, num_inducing=5).fit(X).lengthscales_ == 2).all()


def test_what_there_is_not_is_an_attribute_error(rows):
    X, f = rows
    found = fixed(num_inducing=5).fit(X, f > 0)  # one lengthscale
    names = ("coef_", "intercept_", "feature_importances_")
    assert not any(hasattr(found, name) for name in names) and hasattr(found, "lengthscales_")
    linear = fixed(kernel="linear").fit(X, f > 0)
    assert not any(hasattr(linear, name) for name in ("lengthscales_", "num_inducing_"))
    assert not hasattr(BSVMClassifier(), "coef_")
    constant = BSVMClassifier(Constant(), loss="levels", penalty=2.0, learn_kernel=False)
    np.testing.assert_array_equal(constant.fit(X, f > 0).coef_, np.zeros((1, X.shape[1])))
    kernel = Periodic(SquaredExponential())  # its lengthscale is no distance between rows
    assert not hasattr(fixed(kernel=kernel, num_inducing=5).fit(X, f > 0), "lengthscales_")


@pytest.mark.drill
@pytest.mark.slow
def test_selection_of_features(rows):
    X, y = (rows[0] - 3)[:, :3] / [10.0, 0.1, 1.0], rows[1] > 0
    linear = fixed(kernel="linear")
    chosen = SelectFromModel(linear, threshold="0.5*mean").fit(X, y)
    np.testing.assert_array_equal(chosen.get_support(), [True, True, False])
    search = RFECV(linear, cv=2).fit(X, y)
    assert search.support_[:2].all()


@pytest.mark.slow
def test_importances_of_a_learned_kernel(rows):
    X, f = rows
    found = BSVMClassifier(penalty=2.0, loss="levels", num_inducing=30).fit(X, np.abs(f) > 1.5)
    assert set(np.argsort(found.feature_importances_)[-2:]) == {0, 1}


def test_equal_importances_are_told(rows):
    X, f = rows
    found = BSVMClassifier(penalty=2.0, loss="levels", num_inducing=5).fit(X[:40], f[:40] > 0)
    exponential = found.model_.kernel.kernels[0]
    exponential.lengthscales.assign(np.ones(X.shape[1]))
    number = X.shape[1]
    with pytest.warns(UserWarning, match=rf"is not learned; .*default_kernel\({number}\)"):
        np.testing.assert_allclose(found.feature_importances_, 1 / number)
