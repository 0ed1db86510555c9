"""`BSVMRegressor`, `OneClassBSVM` and ordered classes: units, sources, scikit-learn's contract."""

import warnings
from unittest import SkipTest

import gpflow
import numpy as np
import pandas as pd
import pytest
from helpers import make_data
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import gpflow_bsvm as gb
from gpflow_bsvm import BSVMClassifier, BSVMRegressor, OneClassBSVM
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators.specification import DEFAULT_VARIANCE
from gpflow_bsvm.estimators.training import first_thresholds
from gpflow_bsvm.likelihoods import EpsilonInsensitive, OneClass, Ordinal

FIXED = {"learn_kernel": False, "penalty": 2.0, "epsilon": 0.1, "num_inducing": 10}
EACH = [BSVMRegressor(**FIXED), OneClassBSVM(num_inducing=10)]


@pytest.mark.drill  # a minute: each learns a kernel, as some checks ask for a good score
@pytest.mark.slow
@parametrize_with_checks([BSVMRegressor(num_inducing=10), EACH[1]])
def test_sklearn_checks(estimator, check):
    """None is skipped, but for that which needs an environment variable."""
    try:
        check(estimator)
    except SkipTest as reason:
        assert "SCIPY_ARRAY_API" in str(reason)
        raise


@pytest.mark.parametrize("estimator", EACH)
def test_number_of_sklearn_checks(estimator):
    assert len(list(estimator_checks_generator(estimator))) >= 50


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(120, 5, noise=0.5, random_state=0)
    return X, y


def blocks(X, y=None, size=50):
    parts = range(0, len(X), size)
    return Blocks(
        [(X[n : n + size], (X[:, :1] if y is None else y[:, None])[n : n + size]) for n in parts]
    )


def test_it_is_a_model_of_standardised_numbers(friedman):
    X, y = friedman
    regressor = BSVMRegressor(**FIXED).fit(X, y)
    centre, scale = np.median(y), regressor.y_scale_
    low, high = np.quantile(y, [0.05, 0.95], method="averaged_inverted_cdf")
    np.testing.assert_allclose(regressor.y_center_, centre)
    np.testing.assert_allclose(scale, (high - low) / 3.2897072539029435)  # of a Gaussian
    penalty, epsilon = 2.0 * scale, 0.1 / scale
    likelihood = regressor.model_.likelihood
    assert isinstance(likelihood, EpsilonInsensitive)
    np.testing.assert_allclose(likelihood.penalty, penalty)
    np.testing.assert_allclose(likelihood.epsilon, epsilon)
    Xs, ys = (X - X.mean(0)) / X.std(0), (y - centre) / scale
    for mine, theirs in zip(regressor.as_model_sees((X, y), labelled=True), (Xs, ys[:, None])):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    with pytest.raises(ValueError, match=r"a pair .*: set labelled=True"):
        regressor.as_model_sees((X, y))
    mean, variance = regressor.model_.predict_y(Xs)
    found = regressor.predict(X, return_std=True)
    np.testing.assert_allclose(found[0], mean[:, 0] * scale + centre, rtol=1e-10)
    np.testing.assert_allclose(found[1], np.sqrt(variance[:, 0]) * scale, rtol=1e-10)
    q = regressor.predict_quantiles(X, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(q[:, 1], found[0], rtol=1e-8)  # a symmetric distribution
    assert (np.diff(q) > 0).all()


def test_the_center_needs_no_noise(friedman, monkeypatch):
    regressor = BSVMRegressor(**FIXED).fit(*friedman)
    center, _ = regressor.predict(friedman[0], return_std=True)
    monkeypatch.delattr(EpsilonInsensitive, "noise_variance")
    np.testing.assert_array_equal(regressor.predict(friedman[0]), center)


@pytest.mark.slow
def test_units_of_y_do_not_matter(friedman):
    X, y = friedman
    one = BSVMRegressor(num_inducing=10).fit(X, y)
    two = BSVMRegressor(num_inducing=10).fit(X, 1e3 * y - 7)
    np.testing.assert_allclose(two.predict(X), 1e3 * one.predict(X) - 7, rtol=1e-6)
    np.testing.assert_allclose(two.penalty_, one.penalty_ / 1e3, rtol=1e-5)
    np.testing.assert_allclose(two.epsilon_, one.epsilon_ * 1e3, rtol=1e-5)


@pytest.mark.parametrize("num_rows", [40, 41])
def test_the_sign_of_y_does_not_matter(friedman, num_rows):
    X, y = (part[:num_rows] for part in friedman)
    one, two = (BSVMRegressor(**FIXED).fit(X, sign * y) for sign in (1, -1))
    np.testing.assert_allclose(two.predict(X), -one.predict(X), rtol=1e-9)
    assert two.y_scale_ == one.y_scale_


@pytest.mark.slow
@pytest.mark.parametrize(
    "to, given, part",
    [
        pytest.param(30.0, {}, 0.125, marks=pytest.mark.drill),
        (1e8, {}, 0.2),
        pytest.param(1e8, {"penalty": 2.0, "epsilon": 0.1}, 0.125, marks=pytest.mark.drill),
    ],
)
def test_an_outlier_matters_little(friedman, to, given, part):
    """However far out."""
    X, y = friedman
    moved, some = y.copy(), np.arange(120) != 7
    moved[7] = to
    near = BSVMRegressor(num_inducing=30, **given).fit(X[some], y[some]).predict(X)
    far = BSVMRegressor(num_inducing=30, **given).fit(X, moved).predict(X)
    # One slope of 120 is there for good: an eighth of a deviation.
    assert np.abs(far - near).max() < part * y.std()


@pytest.mark.slow
def test_labels_that_are_nearly_all_equal(friedman):
    X, some = friedman[0], np.arange(120) != 7
    with pytest.warns(UserWarning, match="predictions are nearly the same for all rows"):
        flat = BSVMRegressor(num_inducing=5).fit(X[:40], np.where(some, 2.0, 3.0)[:40])
    np.testing.assert_allclose(flat.predict(X), 2, atol=0.1)


def test_one_number_in_all_rows_is_said():
    with pytest.warns(UserWarning, match="all rows have y = 5: predictions equal it"):
        model = BSVMRegressor(num_inducing=4).fit(np.arange(6.0)[:, None], np.full(6, 5.0))
    np.testing.assert_allclose(model.predict([[9.0]]), 5)


def test_two_ordered_classes_are_two_classes(friedman):
    X, y = friedman[0], (friedman[1] > 14).astype(int)
    how = {"penalty": 2.0, "loss": "levels", "learn_kernel": False, "num_inducing": 10}
    one, two = (BSVMClassifier(multi_class=m, **how).fit(X, y) for m in ("ordinal", "ovr"))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.slow
def test_what_is_given_is_not_learned(friedman):
    X, y = friedman
    given = BSVMRegressor(penalty=3.0, learn_kernel=False, num_inducing=10).fit(X, y)
    np.testing.assert_allclose(given.penalty_, 3.0)
    assert given.epsilon_ != pytest.approx(0.1 * given.y_scale_)  # where learning starts
    fixed = BSVMRegressor(gpflow.kernels.Matern32(0.7), **FIXED).fit(X, y)
    assert fixed.model_.kernel.variance.numpy() == pytest.approx(0.7)
    assert fixed.epsilon_ == pytest.approx(0.1)


def test_a_weight_is_a_repetition(friedman):
    X, y = friedman
    weight = np.arange(len(y)) % 3
    one = BSVMRegressor(**FIXED).fit(X, y, weight)
    two = BSVMRegressor(**FIXED).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    "make", [lambda: BSVMRegressor(**FIXED), lambda: OneClassBSVM(num_inducing=10)]
)
def test_rows_that_are_read_are_those_in_memory(friedman, make):
    """All of them are the sample, so that only the order of sums differs."""
    X, y = friedman
    memory, read = make().fit(X, y), make().fit(blocks(X, y))
    np.testing.assert_allclose(memory.model_.inducing_variable.Z, read.model_.inducing_variable.Z)
    one, two = (each.model_.predict_f(X)[0] for each in (memory, read))
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)  # CAVI stops at 1e-5 of its bound
    np.testing.assert_array_equal(memory.predict(X), memory.predict(blocks(X)))


def test_more_rows(friedman):
    X, y = friedman
    regressor = BSVMRegressor(**FIXED).partial_fit(X[:80], y[:80])
    before = regressor.score(X[80:], y[80:])
    regressor.partial_fit(X[80:], y[80:])
    assert regressor.score(X[80:], y[80:]) > before
    regressor.partial_fit(blocks(X, y))


@pytest.mark.parametrize("estimator", EACH)
def test_saved_and_loaded(friedman, tmp_path, estimator):
    X, y = friedman
    estimator = clone(estimator).fit(X, y)
    gb.save(estimator, tmp_path / "model")
    again = gb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    assert again.penalty_ == estimator.penalty_


@pytest.mark.parametrize("learn_kernel", [pytest.param(True, marks=pytest.mark.slow), False])
def test_checkpoints_of_what_was_learned(friedman, tmp_path, learn_kernel):
    X, y = friedman
    how = {"num_inducing": 10, "random_state": 0, "learn_kernel": learn_kernel}
    one, two = (BSVMRegressor(**how).fit(X, y, checkpoint=tmp_path) for _ in range(2))
    assert one.history_.elbo == two.history_.elbo and one.history_.hyperparameters
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert (one.penalty_, one.epsilon_) == (two.penalty_, two.epsilon_)


def test_one_class():
    X, _ = make_data(150)
    detector = OneClassBSVM(nu=0.2, num_inducing=20).fit(X)
    assert isinstance(detector.model_.likelihood, OneClass)
    assert np.mean(detector.predict(X) == -1) == pytest.approx(0.2, abs=0.01)
    assert (detector.predict(X + 20) == -1).all()
    score, std = detector.score_samples(X, return_std=True)
    np.testing.assert_allclose(detector.decision_function(X), score - detector.offset_)
    far = detector.score_samples(X + 20, return_std=True)
    np.testing.assert_allclose(far[0], 0, atol=1e-9)
    assert far[1].min() > std.max()  # of nothing seen, its prior
    both, y = np.concatenate([X, X + 3]), np.repeat([1, -1], 150)
    gb.prediction.calibrate(detector, (both, y), held_out=True)
    P = detector.predict_proba(both)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert P[:150, 1].mean() > 0.5 > P[150:, 1].mean()


def test_labels_of_a_source_calibrate_too():
    """Rows of a fit are all of one class, those that come later say which."""
    X, _ = make_data(100)
    both, y = np.concatenate([X, X + 3]), np.repeat([1.0, -1.0], 100)
    one, two = (OneClassBSVM(num_inducing=10).fit(X) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # more rows than in the fit are no mistake here
        found = gb.prediction.calibrate(one, (both, y), held_out=True)
    again = gb.prediction.calibrate(two, blocks(both, y), held_out=True)
    np.testing.assert_allclose([*again.values()], [*found.values()], rtol=1e-4)


def test_weights_of_one_class_are_repetitions():
    X, _ = make_data(60)
    weight = np.arange(60) % 3
    one = OneClassBSVM(num_inducing=10, nu=0.2).fit(X, sample_weight=weight)
    two = OneClassBSVM(num_inducing=10, nu=0.2).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.offset_, two.offset_, rtol=1e-6)
    np.testing.assert_allclose(one.penalty_, two.penalty_, rtol=1e-5)


def test_a_kernel_that_sets_nothing_apart():
    X = np.concatenate([make_data(20)[0], -make_data(20)[0]])
    with pytest.raises(ValueError, match="Linear does not separate these rows from 0"):
        OneClassBSVM(gpflow.kernels.Linear(), nu=0.5).fit(X)


def test_sparse_rows_are_not_imputed(friedman):
    with pytest.raises(TypeError, match="dense data is required"):
        BSVMRegressor("linear", impute=True).fit(csr_array(friedman[0]), friedman[1])


@pytest.mark.slow
def test_ordered_classes(friedman):
    X, y = friedman
    names = np.array(["a low", "b mid", "c high"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    classifier = BSVMClassifier(multi_class="ordinal", penalty=2.0, num_inducing=10)
    classifier.fit(X, pd.Categorical(names, ordered=True))
    likelihood = classifier.model_.likelihood
    assert isinstance(likelihood, Ordinal) and (np.diff(likelihood.thresholds) > 0).all()
    _, numbers = np.unique(names, return_inverse=True)
    begin = first_thresholds((X, numbers[:, None], np.ones(len(X))))
    assert np.abs(likelihood.thresholds - begin).max() > 0.01  # they were learned
    P = classifier.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    assert classifier.score(X, names) > 0.6  # chance is .4
    # Where y rises, the lowest class never becomes more probable than both others suggest.
    assert P[y < np.quantile(y, 0.3), 0].mean() > 0.5 > P[y > np.quantile(y, 0.7), 0].mean()


@pytest.mark.parametrize(
    "estimator, y, message",
    [
        (BSVMRegressor(epsilon=0.0), 1.0, "epsilon must be a positive number or"),
        (BSVMRegressor(penalty=-1.0), 1.0, "penalty must be a positive number or"),
        (BSVMRegressor(), np.nan, "NaN"),
        (BSVMRegressor(), np.inf, "infinity"),
        (BSVMRegressor(), "a", "y must be numbers, got"),
        (BSVMRegressor(penalty="best"), 1.0, "or 'auto', got 'best'"),
        (OneClassBSVM(nu=0.0), 1.0, r"nu must be a number in \(0, 1\), got 0.0"),
    ],
)
def test_bad_input(friedman, estimator, y, message):
    X, numbers = friedman
    labels = numbers.astype(object)
    labels[3] = y
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, labels)


def test_an_order_has_levels(friedman):
    X, y = friedman
    with pytest.raises(ValueError, match='leave loss at "auto", got "hinge"'):
        BSVMClassifier(multi_class="ordinal", loss="hinge").fit(X, y > 14)


def test_numbers_are_no_classes(friedman):
    X, y = friedman
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        BSVMClassifier().fit(X, y)


@pytest.mark.parametrize("estimator", EACH)
def test_missing_values_are_imputed_with_marks(friedman, estimator, tmp_path):
    X, y = friedman[0].copy(), (friedman[1] > 14).astype(float)
    X[::7, 1], X[3::11, 4] = np.nan, np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(X, y)
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    expected = clone(estimator).fit(imputer.fit_transform(X), y)
    found = clone(estimator).set_params(impute=True).fit(X, y)
    some = X[20:60] * 1.01
    np.testing.assert_allclose(found.predict(some), expected.predict(imputer.transform(some)))
    gb.save(found, tmp_path / "model")
    np.testing.assert_array_equal(gb.load(tmp_path / "model").predict(X), found.predict(X))


def test_thresholds_begin_where_classes_are_as_frequent_as_seen():
    share = np.array([0.1, 0.2, 0.4, 0.3])
    Y = np.repeat(np.arange(4.0), (share * 100).astype(int))[:, None]
    theta = first_thresholds((np.zeros((100, 1)), Y, np.ones(100)))
    f = stats.norm.ppf((np.arange(2000) + 0.5) / 2000, scale=DEFAULT_VARIANCE**0.5)
    above = expit(f[:, None] - theta).mean(axis=0)
    # MacKay's formula is an approximation.
    np.testing.assert_allclose(above, 1 - np.cumsum(share)[:-1], atol=0.02)


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_labels_with_too_many_digits_are_said(friedman, form):
    X, y = friedman
    y = form([2**60 + int(one) for one in y])
    regressor = BSVMRegressor(learn_kernel=False, penalty=2.0, epsilon=0.1, num_inducing=5)
    with pytest.warns(UserWarning, match="y holds a whole number of size 11529.*subtract a const"):
        regressor.fit(X, y)


def test_classes_and_sparse_rows_are_refused_with_what_works(friedman):
    X, y = friedman
    with pytest.raises(ValueError, match="y must be numbers, got 'red': classes need BSVMClass"):
        BSVMRegressor().fit(X[:4], ["red", "blue", "red", "blue"])
    for estimator in (BSVMRegressor(), OneClassBSVM()):
        with pytest.raises(TypeError, match="dense data is required"):
            estimator.fit(csr_array(X), y)


def test_numbers_of_classes_are_not_regressed(friedman):
    """With classes=..., a source of the labels 3 and 5 has 0 and 1 instead."""
    X, y = friedman
    rows = blocks(X, (y > 15).astype(float))
    fitted = BSVMRegressor(**FIXED).fit(rows)
    rows.classes = [3, 5]
    for ask in (BSVMRegressor(**FIXED).fit, fitted.partial_fit):
        with pytest.raises(ValueError, match=r"must be numbers, got the classes 3, 5: leave out c"):
            ask(rows)


def test_numbers_of_words_are_no_signs_of_outliers(friedman):
    """Before, the first class was taken for outliers, whatever its name."""
    rows = blocks(friedman[0], np.arange(120) % 2.0)
    model = OneClassBSVM(num_inducing=5).fit(rows)
    rows.classes = ["normal", "odd"]
    with pytest.raises(ValueError, match="y must be numbers, got 'normal'"):
        gb.prediction.calibrate(model, rows)
    rows.classes = [-1, 1]
    assert model.as_model_sees(rows, labelled=True).num_rows == 120
