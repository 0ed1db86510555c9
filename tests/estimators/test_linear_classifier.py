"""`BSVMClassifier(kernel="linear")`: scikit-learn's checks, sparse rows, and the model inside."""

import collections

import gpflow
import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpflow_bsvm as gb
from gpflow_bsvm.estimators import choice, specification
from gpflow_bsvm.estimators.inputs import merge_equal
from gpflow_bsvm.estimators.training import initial_model


@pytest.fixture(scope="module")
def cancer():
    """A quarter of the rows."""
    X, y = load_breast_cancer(return_X_y=True)
    return X[::4], y[::4]


@pytest.fixture(scope="module")
def fitted(cancer):
    return gb.BSVMClassifier(kernel="linear", penalty=1.0).fit(*cancer)


@pytest.mark.drill
@pytest.mark.slow
@parametrize_with_checks([gb.BSVMClassifier(kernel="linear", penalty=1.0, learn_kernel=False)])
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_the_model_is_a_linear_one_with_a_learned_variance(cancer, fitted):
    model = fitted.model_
    assert isinstance(model, gb.models.LinearBSVM)
    assert model.kernel.variance.numpy() != pytest.approx(4 / 31, rel=0.1)
    mean, covariance = model.weights()
    assert mean.shape == (31, 1) and covariance.shape == (1, 31, 31)
    X = np.column_stack([fitted.scaler_.transform(cancer[0]), np.ones(len(cancer[0]))])
    link = model.likelihood
    variance = np.einsum("nd,de,ne->n", X, covariance[0], X)[:, None]
    scores = np.asarray(link.probit_argument(X @ mean, variance))[:, 0]
    np.testing.assert_allclose(fitted.decision_function(cancer[0]), scores, atol=1e-8)


@pytest.mark.drill
@pytest.mark.slow
def test_as_good_as_logistic_regression(cancer):
    peer = make_pipeline(StandardScaler(), LogisticRegression())
    scores = [
        cross_val_score(model, *cancer, cv=2, scoring="neg_log_loss").mean()
        for model in (gb.BSVMClassifier(kernel="linear", penalty=1.0), peer)
    ]
    assert scores[0] > scores[1] - 0.02


@pytest.mark.slow
def test_sparse_rows_are_dense_rows(cancer):
    """Without a shift of the features, everything that follows is the same but for rounding."""
    X, y = cancer[0] / cancer[0].std(axis=0), cancer[1]
    dense, sparse = (
        gb.BSVMClassifier(kernel="linear", standardize=False, random_state=0).fit(rows, y)
        for rows in (X, scipy.sparse.csc_matrix(X))
    )
    penalties = [float(m.model_.likelihood.penalty.numpy()) for m in (dense, sparse)]
    assert penalties[0] == penalties[1]
    # A search for hyperparameters amplifies rounding.
    np.testing.assert_allclose(
        dense.predict_proba(X), sparse.predict_proba(scipy.sparse.coo_matrix(X)), atol=1e-4
    )


@pytest.mark.slow
def test_repeated_sparse_rows_are_weights(cancer):
    X, y = scipy.sparse.csr_matrix(cancer[0][::3]), cancer[1][::3]
    X = X.multiply(X > 0.1).tocsr()
    weight = np.arange(len(y)) % 3
    again = np.random.default_rng(0).permutation(np.repeat(np.arange(len(y)), weight))
    one = gb.BSVMClassifier(kernel="linear", penalty=1.0).fit(X, y, sample_weight=weight)
    two = gb.BSVMClassifier(kernel="linear", penalty=1.0).fit(X[again], y[again])
    # The scaler alone sums in another order.
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


def test_equal_sparse_rows_are_merged():
    """An explicit zero is no entry; another label is another row; any order."""
    X = scipy.sparse.csr_matrix(([1.0, 0.0, 1.0, 2.0, 1.0], ([0, 0, 1, 2, 3], [0, 1, 0, 1, 0])))
    y, weight = np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert X.nnz == 5
    rows, labels, shares = merge_equal((X, y[:, None], weight), np.ones(4))
    found = collections.Counter()
    for row, (label,), share in zip(rows.toarray(), labels, shares):
        found[(*row, label)] += share
    assert found == {(1.0, 0.0, 0.0): 3.0, (0.0, 2.0, 1.0): 3.0, (1.0, 0.0, 1.0): 4.0}
    again, *_ = merge_equal((X[::-1], y[::-1, None], weight), np.ones(4))
    np.testing.assert_array_equal(again.toarray(), rows.toarray())


def test_a_kernel_that_is_not_learned(cancer):
    """The variance of f is 4 at rows of standardised features."""
    classifier = gb.BSVMClassifier(kernel="linear", learn_kernel=False, penalty=1.0).fit(*cancer)
    assert classifier.model_.kernel.variance.numpy() == pytest.approx(4 / 31, rel=1e-12)


@pytest.mark.slow
def test_sparse_rows_are_scaled(cancer):
    X, y = cancer
    model = gb.BSVMClassifier(kernel="linear", penalty=1.0)
    one = model.fit(scipy.sparse.csr_matrix(X), y).predict_proba(scipy.sparse.csr_matrix(X))
    two = model.fit(scipy.sparse.csr_matrix(X * 1e4), y).predict_proba(
        scipy.sparse.csr_matrix(X * 1e4)
    )
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_dense_rows_after_sparse_ones(cancer, fitted):
    """A fit to sparse rows only scales columns, also those of later dense rows."""
    X, y = cancer
    sparse = gb.BSVMClassifier(kernel="linear", penalty=1.0, learn_kernel=False)
    sparse.fit(scipy.sparse.csr_matrix(X), y)
    expected = sparse.predict_proba(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(sparse.predict_proba(X), expected, rtol=1e-9)
    with config_context(transform_output="pandas"):  # which cannot be sparse
        again = sparse.fit(scipy.sparse.csr_matrix(X), y).predict_proba(scipy.sparse.csr_matrix(X))
    np.testing.assert_array_equal(again, expected)
    with pytest.raises(ValueError, match="X is sparse, but was dense in the fit"):
        fitted.predict(scipy.sparse.csr_matrix(X))


@pytest.mark.drill
@pytest.mark.slow
def test_several_classes():
    X, y = load_iris(return_X_y=True)
    for rows, penalty in ((X, "auto"), (scipy.sparse.csr_matrix(X), 16.0)):
        classifier = gb.BSVMClassifier(kernel="linear", penalty=penalty).fit(rows, y)
        p = classifier.predict_proba(rows)
        assert p.shape == (150, 3)
        assert (classifier.predict(rows) == y).mean() > 0.95


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_more_columns_than_rows(classes, monkeypatch):
    """The rows in the place of the weights tell the same f, wherever it is looked at."""
    random = np.random.default_rng(0)
    X, T = random.normal(size=(20, 40)), 2 * random.normal(size=(50, 40))
    y = (X @ random.normal(size=(40, classes))).argmax(axis=1)
    cavi = gb.inference.CAVI(tol=1e-12)
    make = lambda **options: gb.BSVMClassifier(  # noqa: E731
        kernel="linear", penalty=2.0, inference=cavi, **options
    )
    rows = [make(learn_kernel=learn).fit(X, y) for learn in (False, True)]
    sparse = make().fit(scipy.sparse.csr_matrix(X), y)
    monkeypatch.setattr(specification, "_inducing_points", lambda spec, X: None)
    weights = [make(learn_kernel=learn).fit(X, y) for learn in (False, True)]
    for one, two, tolerance in zip(rows, weights, (1e-5, 1e-3)):  # jitter; where learning stops
        assert one.model_.q_shape[1] == 20 and two.model_.q_shape[1] == 41
        for part in (X, T):
            np.testing.assert_allclose(
                one.predict_proba(part), two.predict_proba(part), atol=tolerance
            )
    assert type(sparse.model_) is gb.models.BSVM
    assert sparse.predict_proba(scipy.sparse.csr_matrix(T)).shape == (50, classes)


@pytest.mark.slow
def test_overflow_is_named(cancer):
    X, y = cancer[0][:100], cancer[1][:100]
    linear = gb.BSVMClassifier(kernel="linear", penalty=1.0, learn_kernel=False).fit(X, y)
    for large in (1e150, 1e156, 1e300):
        rows = np.concatenate([X[:2], np.full((1, 30), large)])
        if large == 1e150:
            assert np.isfinite(linear.predict_proba(rows)).all()
            continue
        with pytest.raises(ValueError, match="row 2 of X is so large that f overflows"):
            linear.predict(rows)
    with pytest.raises(ValueError, match="column 0 of X is so large that its variance overflows"):
        linear.fit(scipy.sparse.csr_matrix(X * 1e300), y)


def test_bad_kernels_and_rows(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match=r"None or \"linear\", got 'rbf'"):
        gb.BSVMClassifier(kernel="rbf").fit(X, y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        gb.BSVMClassifier(kernel=gpflow.kernels.Linear()).fit(scipy.sparse.csr_matrix(X), y)
    bad = X.copy()
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        gb.BSVMClassifier(kernel="linear").fit(scipy.sparse.csr_matrix(bad), y)


def test_a_linear_kernel_has_no_scale(cancer):
    X, y = cancer
    rows = X[:30] / X.max(axis=0), y[:30, None] * 1.0, np.ones(30)
    given = {"kernel": gpflow.kernels.Linear(), "num_inducing": 2, "learn_kernel": False}
    spec = specification.Specification(2, "levels", 2.0, **given)
    model = initial_model(spec, rows).model
    before = [variable.numpy() for variable in model.variables]
    choice.choose_scale(spec, model, rows)
    for variable, value in zip(model.variables, before):
        np.testing.assert_array_equal(variable, value)
