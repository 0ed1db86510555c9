"""What a fit says of columns: coefficients, lengthscales, importances; and what takes them."""

import numpy as np
import pytest
from gpflow.kernels import Constant, Linear, Matern32, SquaredExponential
from helpers import fixed_classifier as fixed
from scipy.sparse import csr_array
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.svm import SVC

from gpflow_bsvm import BSVMClassifier, BSVMRegressor, OneClassBSVM


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
