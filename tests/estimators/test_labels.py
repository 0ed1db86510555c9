"""Labels of a user: missing ones, ordered ones, classes without rows, and numbers that are none."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from helpers import fixed_classifier as fixed
from sklearn.datasets import make_moons
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

from gpflow_bsvm import BSVMClassifier, BSVMRegressor, OneClassBSVM
from gpflow_bsvm.data import Blocks


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


def as_series(y):
    return pd.Series(y)


def as_frame(y):
    return pd.DataFrame({"grade": y})


# --- pandas' nullable types ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    ["Int64", "UInt64", "int64[pyarrow]", "boolean", "bool[pyarrow]", "bool of categories"],
)
@pytest.mark.parametrize("form", [as_series, as_frame], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_integers_and_truth_values_come_back_as_such(moons, kind, form):
    X, y = moons
    labels = np.array([False, True]) if "bool" in kind else np.array([2**60, 2**60 + 1])
    of_categories = {"bool of categories": pd.CategoricalDtype(labels)}
    classifier = fixed().fit(X, form(labels[y]).astype(of_categories.get(kind, kind)))
    assert classifier.classes_.dtype.kind == ("b" if "bool" in kind else kind.lower()[0])
    assert classifier.classes_.tolist() == labels.tolist()
    expected = fixed().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(classifier.predict_proba(X), expected, rtol=1e-12)


# --- missing labels ------------------------------------------------------------------------------


def holes():
    numbers, words = [0.0, 1.0, 1.0] * 4, ["a", "b", "b"] * 4
    times = np.array(["2020-01-05"] * 12, "datetime64[s]")
    return {
        "None": ([*words[:5], None, *words[6:]], None),
        "NA": ([*words[:5], pd.NA, *words[6:]], None),
        "NaN": (numbers, np.nan),
        "NaN of words": ([*words[:5], np.nan, *words[6:]], None),
        "NaT": (times, np.datetime64("NaT")),
        "nullable": (pd.Series([*numbers[:5], None, *numbers[6:]], dtype="Float64"), None),
        "category": (pd.Categorical([*words[:5], None, *words[6:]]), None),
        "masked": (np.ma.masked_array(numbers, mask=np.arange(12) == 5), None),
    }


@pytest.mark.parametrize("name", holes())
@pytest.mark.parametrize("estimator", [fixed(), BSVMRegressor()], ids=("classifier", "regressor"))
def test_a_missing_label_is_named_by_its_row(estimator, name):
    y, hole = holes()[name]
    if hole is not None:
        y = np.array(y)
        y[5] = hole
    with pytest.raises(ValueError, match=r"y has no label .* in row 5: leave out such rows"):
        estimator.fit(np.arange(24.0).reshape(12, 2), y)


def test_many_missing_labels_are_counted(moons):
    y = np.where(np.arange(120) % 10, moons[1], np.nan)
    with pytest.raises(ValueError, match=r"in rows 0, 10, 20, .* \(12 in all\):"):
        fixed().fit(moons[0], y)


def test_a_one_class_estimator_looks_at_no_label(moons):
    OneClassBSVM(num_inducing=5).fit(moons[0], np.full(120, None))


def test_labels_for_a_fitted_classifier_may_not_be_missing_either(moons):
    X, y = moons
    with pytest.raises(ValueError, match=r"y has no label .* in row 0"):
        fixed().fit(X, y).as_model_sees((X, [None, *y[1:]]), labelled=True)
    for rows in (X, X.tolist(), (X, None)):
        with pytest.raises(ValueError, match=r"give a pair \(X, y\)"):
            fixed().fit(X, y).as_model_sees(rows, labelled=True)


def as_masked(objects):
    return np.ma.masked_array(
        np.where(pd.isna(objects), 1e6, objects).astype(float), pd.isna(objects)
    )


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, as_masked])
def test_missing_values_in_columns_of_objects(moons, form):
    X = moons[0].copy()
    X[::7, 0] = np.nan
    objects = X.astype(object)
    objects[::7, 0] = pd.NA
    found, expected = (
        fixed(num_inducing=10, impute=True).fit(form(one), moons[1]) for one in (objects, X)
    )
    np.testing.assert_array_equal(
        found.predict_proba(form(objects)), expected.predict_proba(form(X))
    )
    with pytest.raises(ValueError, match="contains NaN"):
        fixed().fit(form(objects), moons[1])


# --- weights, and classes without rows -----------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    X = np.random.default_rng(1).normal(size=(60, 2)) + 3 * np.eye(3)[np.arange(60) % 3, :2]
    return X, np.array(["a", "b", "c"])[np.arange(60) % 3]


@pytest.mark.parametrize("loss", ["levels", pytest.param("hinge", marks=pytest.mark.slow)])
def test_a_class_of_weight_0_is_trained_without(three, loss):
    X, y = three
    kept = fixed(loss=loss, calibrate="auto", num_inducing=10)
    kept.fit(X, y, sample_weight=(y != "c") * 1.0)
    assert kept.classes_.tolist() == ["a", "b", "c"]
    p, seen = kept.predict_proba(X), y != "c"
    assert p.shape == (60, 3) and p[seen, 2].max() < 1 / 3
    assert (kept.predict(X[seen]) == y[seen]).mean() > 0.9


def test_a_single_class_that_is_left_is_predicted_everywhere(moons):
    X, y = moons
    with pytest.warns(UserWarning, match="positive weight are of class 1: kernel") as warned:
        found = BSVMClassifier(num_inducing=10).fit(X, y, sample_weight=y)
    assert warned[0].filename == __file__
    assert (found.predict(X) == 1).all() and found.classes_.tolist() == [0, 1]


@pytest.mark.slow
def test_bootstraps_may_lack_a_class(moons):
    X, y = moons
    rare = np.where(np.arange(120) == 7, 2, y)
    make = fixed(num_inducing=5)
    bags = BaggingClassifier(make, n_estimators=4, random_state=0).fit(X, rare)
    assert bags.predict_proba(X).shape == (120, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = BaggingClassifier(make, n_estimators=6, max_samples=3, random_state=0).fit(X, y)
    assert small.score(X, y) > 0.6


def test_weights_that_sum_to_1_are_shares_of_all_rows(moons):
    X, y = moons
    weight = np.random.default_rng(0).integers(0, 3, 120) * 1.0
    shares = fixed(num_inducing=10).fit(X, y, sample_weight=weight / weight.sum())
    mean_1 = weight / weight.sum() * np.count_nonzero(weight)
    expected = fixed(num_inducing=10).fit(X, y, sample_weight=mean_1)
    np.testing.assert_allclose(shares.predict_proba(X), expected.predict_proba(X), atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boosted = AdaBoostClassifier(fixed(num_inducing=10), n_estimators=3).fit(X, y)
    assert boosted.score(X, y) > 0.85


def test_a_bad_class_weight_is_shown_as_the_user_gives_it(three):
    X, y = three
    with pytest.raises(ValueError, match=r"class_weight must be .* got \{'a': nan, 'b': 1.0, 'c'"):
        fixed(class_weight={"a": np.nan}).fit(X, y)
    with pytest.raises(ValueError, match=r"class_weight must be from 0 to 1e\+15, got .*1e\+300"):
        fixed(class_weight={"a": 1e300}).fit(X, y)
    for wrong in ("much", [2.0, 3.0], np.array([1.0])):
        with pytest.raises(ValueError, match=r"class_weight must give a number for each class"):
            fixed(class_weight=dict.fromkeys("abc", wrong)).fit(X, y)


@pytest.mark.parametrize("names", [["01", "1"], [False, True]])
def test_class_weights_are_told_by_label(moons, names):
    X, y = moons
    weights = dict(zip(names, [1, 3]))
    named = fixed(num_inducing=10, class_weight=weights).fit(X, np.array(names)[y])
    plain = fixed(num_inducing=10, class_weight={0: 1, 1: 3}).fit(X, y)
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))
    with pytest.raises(ValueError, match=r"class_weight has \['other'\], but the classes are"):
        fixed(class_weight={"other": 2}).fit(X, np.array(names)[y])


# --- partial_fit ---------------------------------------------------------------------------------


def test_the_first_batch_may_hold_one_class(moons):
    X, y = moons
    order = np.argsort(y, kind="stable")
    make = fixed(num_inducing=15)
    with pytest.warns(UserWarning, match="all rows with positive weight are of class 0"):
        make.partial_fit(X[order[:40]], y[order[:40]], classes=[0, 1])
    assert make.classes_.tolist() == [0, 1] and (make.predict(X[order[:40]]) == 0).all()
    make.partial_fit(X[order[40:]], y[order[40:]])
    assert make.score(X, y) > 0.8


# --- numbers -------------------------------------------------------------------------------------


def test_fractions_are_for_the_regressor():
    with pytest.raises(ValueError, match=r"Unknown label type: continuous, .* BSVMRegressor"):
        fixed().fit(np.eye(30), np.linspace(0, 1, 30))


def test_many_numbers_are_warned_of_at_once():
    y = np.arange(60) % 25
    with pytest.warns(UserWarning, match=r"y holds 25 different numbers in 60 rows") as warned:
        fixed(num_inducing=2).fit(np.eye(60)[:, :2], y)
    assert len(warned) == 1 and warned[0].filename == __file__


def test_many_numbers_of_a_source_are_warned_of():
    rows = Blocks([(np.eye(60)[:, :2], np.arange(60)[:, None] % 25.0)])
    with pytest.warns(UserWarning, match=r"y holds 25 different numbers in 60 rows"):
        fixed(num_inducing=2).fit(rows)


@pytest.mark.parametrize("kind", ["array", "frame", "pyarrow"])
def test_dates_are_no_numbers_of_some_unit(kind):
    X = np.arange("2020-01-01", "2020-01-13", dtype="datetime64[D]")[:, None]
    if kind == "frame":
        X = pd.DataFrame({"when": X[:, 0]})
    elif kind == "pyarrow":
        X = pytest.importorskip(kind).table({"when": X[:, 0], "what": np.arange(12.0)})
    for estimator in (BSVMClassifier(), BSVMRegressor()):
        with pytest.raises(ValueError, match=r"X must hold numbers, got dates or times"):
            estimator.fit(X, np.arange(12) % 2)


@pytest.mark.parametrize("kind", [np.array, pd.DataFrame])
def test_words_among_the_columns_get_advice(kind):
    X = kind([[1.0, "red"], [2.0, "blue"]] * 3)
    for estimator in (BSVMClassifier(), BSVMRegressor()):
        with pytest.raises(ValueError, match=r"to float: '\w+' in X: encode words .*OneHotEncoder"):
            estimator.fit(X, np.arange(6) % 2)


@pytest.mark.parametrize("kind", [np.array, pd.DataFrame])
def test_dates_of_python_get_advice(kind):
    X = kind([[1.0, datetime.date(2020, 1, 1)]] * 6)
    for estimator in (BSVMClassifier(), BSVMRegressor()):
        with pytest.raises(TypeError, match=r"not 'datetime.date' in X: encode .* dates as days"):
            estimator.fit(X, np.arange(6) % 2)


def test_class_weights_of_dates(moons):
    X, y = moons
    when = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"]))[y]
    plain = fixed(num_inducing=10, class_weight={0: 1, 1: 3}).fit(X, y).predict_proba(X)
    for date in (np.datetime64, datetime.date.fromisoformat, pd.Timestamp):
        weights = {date("2020-01-01"): 1, date("2021-01-01"): 3}
        found = fixed(num_inducing=10, class_weight=weights).fit(X, when).predict_proba(X)
        np.testing.assert_array_equal(found, plain)


def test_periods_are_no_numbers():
    """Nor are times with a zone: before, a regressor took them for nanoseconds."""
    months = pd.Series(pd.period_range("2020-01", periods=12, freq="M"))
    X = np.arange(12.0)[:, None]
    for estimator in (BSVMClassifier(), BSVMRegressor()):
        with pytest.raises(ValueError, match=r"X must hold numbers, got dates or times"):
            estimator.fit(months.to_frame(), np.arange(12) % 2)
    for y in (months, months.dt.to_timestamp().dt.tz_localize("UTC")):
        with pytest.raises(ValueError, match=r"y must be numbers, got a (Period|Timestamp): give"):
            BSVMRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"got a csr_array: give an array \(times in days\)"):
        BSVMRegressor().fit(X, scipy.sparse.csr_array(X))


def test_large_whole_numbers_are_not_merged():
    rows = Blocks([(np.eye(4)[:, :2], np.array([[0.0], [1], [0], [1]]))])
    rows.classes = [2**63 + 1, 2**63 + 2]
    assert fixed(num_inducing=2).fit(rows).classes_.tolist() == rows.classes
    with pytest.raises(ValueError, match="objects of type int; convert"):
        fixed(num_inducing=2).fit(np.eye(4)[:, :2], [-1, 2**63 + 1, -1, 2**63 + 2])
    rows = Blocks([(np.eye(4)[:, :2], np.array([[1], [10**17], [1], [10**17 + 1]]))])
    with pytest.raises(ValueError, match="label 100000000000000000 has too many digits"):
        fixed(num_inducing=2).fit(rows)


def test_labels_of_mixed_types_are_told():
    X = np.random.default_rng(0).normal(size=(10, 2))
    y = np.array(["a", 1] * 5, dtype=object)
    for form in (y, y.tolist(), pd.Series(y)):
        with pytest.raises(ValueError, match="y holds objects of type int and str; convert"):
            BSVMClassifier().fit(X, form)
    for values, kind in ((pd.Series([0, 1] * 5, dtype=object), "int"), (pd.cut(X[:, 0], 2), "Int")):
        with pytest.raises(ValueError, match=f"y holds objects of type {kind}.*; convert"):
            BSVMClassifier().fit(X, values)
    for nothing in ({0, 1}, {0: 1}, (n for n in "ab")):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            BSVMClassifier().fit(X, nothing)


# --- labels of another type than in the fit ------------------------------------------------------

TYPES = {
    "words": np.array(["no", "yes"]),
    "numbers": np.array([0, 1]),
    "dates": np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
}


@pytest.mark.parametrize("later", TYPES)
@pytest.mark.parametrize("first", TYPES)
def test_labels_of_another_type_are_unseen(moons, first, later):
    X, y = moons
    model = fixed(num_inducing=15).fit(X, TYPES[first][y])
    if first == later:
        model.partial_fit(X, TYPES[later][y])
        return
    for call in (model.partial_fit, lambda X, y: model.as_model_sees((X, y), labelled=True)):
        with pytest.raises(
            ValueError, match=r"y contains previously unseen labels: .*; the classes"
        ):
            call(X, TYPES[later][y])


def test_words_are_no_numbers_to_be_scored(moons):
    X, y = moons
    model = BSVMRegressor(num_inducing=8, learn_kernel=False, penalty=2.0, epsilon=0.1).fit(X, y)
    with pytest.raises(
        ValueError, match="y must be numbers, got 'no': classes need BSVMClassifier"
    ):
        model.score(X, TYPES["words"][y])
    assert model.score(X, pd.Series(y, dtype="Int64")) == model.score(X, y)


def test_rows_and_labels_have_one_length(moons, fitted):
    X, y = moons
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 3\]"):
        fitted.as_model_sees((X, y[:3]), labelled=True)
