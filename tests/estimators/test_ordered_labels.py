"""Ordered classes: who states the order, and `classes_` and columns, which are always sorted."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import fixed_classifier as fixed
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_score, learning_curve

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators.labels import stated_order
from gpflow_bsvm.estimators.training import first_thresholds
from gpflow_bsvm.files import CSVFiles, ParquetFiles
from gpflow_bsvm.prediction import draw_probabilities, predict_log_density, predict_probabilities

ORDER = ["poor", "fair", "good", "excellent"]
#: The columns of `ORDER` among sorted words.
BACK = np.searchsorted(sorted(ORDER), ORDER)


def ordinal(**options):
    return fixed(multi_class="ordinal", loss="levels", num_inducing=10, **options)


def ordered(words, order=ORDER):
    return pd.Categorical(words, order, ordered=True)


@pytest.fixture(scope="module")
def grades():
    """Words in an order, which rises along the first column, and their numbers."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    numbers = np.digitize(X[:, 0], [-0.7, 0.0, 0.7])
    return X, np.array(ORDER)[numbers], numbers


@pytest.fixture(scope="module")
def numbered(grades):
    """A classifier of the numbers of the grades."""
    return ordinal().fit(grades[0], grades[2])


@pytest.fixture(scope="module")
def named(grades):
    """A classifier of the words."""
    return ordinal().fit(grades[0], ordered(grades[1]))


# --- columns -------------------------------------------------------------------------------------


def test_columns_are_those_of_sorted_words(grades, named, numbered):
    X, words, _ = grades
    assert named.classes_.tolist() == sorted(ORDER) and named.order_.tolist() == ORDER
    assert numbered.classes_.tolist() == numbered.order_.tolist() == [0, 1, 2, 3]
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        found, expected = (getattr(one, method)(X) for one in (named, numbered))
        np.testing.assert_array_equal(found[:, BACK], expected)
    np.testing.assert_array_equal(named.predict(X), np.array(ORDER)[numbered.predict(X)])
    assert named.score(X, words) > 0.7


@pytest.mark.parametrize("scorer", ["neg_log_loss", "roc_auc_ovr_weighted", "roc_auc_ovo"])
def test_scikit_learn_scores_words_as_numbers(grades, named, numbered, scorer):
    """Before, it compared the columns of other classes."""
    X, words, numbers = grades
    score = get_scorer(scorer)
    np.testing.assert_allclose(score(named, X, words), score(numbered, X, numbers), rtol=1e-12)
    own = np.log(named.predict_proba(X)[:, BACK][np.arange(90), numbers]).mean()
    np.testing.assert_allclose(get_scorer("neg_log_loss")(named, X, ordered(words)), own)


@pytest.mark.slow
def test_scikit_learn_validates_words_as_numbers(grades):
    X, words, numbers = grades
    found, expected = (
        cross_val_score(ordinal(), X, y, scoring="neg_log_loss", cv=2)
        for y in (pd.Series(ordered(words)), numbers)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_functions_of_prediction_have_the_same_columns(grades, named, numbered):
    X, words, numbers = grades
    np.testing.assert_array_equal(predict_probabilities(named, X), named.predict_proba(X))
    found, expected = (draw_probabilities(one, X, num_samples=8) for one in (named, numbered))
    np.testing.assert_array_equal(found[..., BACK], expected)
    found = predict_log_density(named, (X, words))
    np.testing.assert_array_equal(found, predict_log_density(numbered, (X, numbers)))


def test_a_file_keeps_the_order(grades, named, tmp_path):
    gb.save(named, tmp_path / "m.npz")
    found = gb.load(tmp_path / "m.npz")
    assert found.classes_.tolist() == sorted(ORDER) and found.order_.tolist() == ORDER
    np.testing.assert_array_equal(found.predict_proba(grades[0]), named.predict_proba(grades[0]))


def test_class_weights_are_those_of_the_words(grades, named):
    X, words, numbers = grades
    weighed = copy.copy(named).set_params(class_weight=dict(zip(ORDER, [1, 2, 3, 4])))
    np.testing.assert_array_equal(weighed.weights_in_fit((X, words)), numbers + 1)


def test_of_two_ordered_classes_the_second_is_the_later_letter(grades):
    X, words, numbers = grades
    few = numbers < 2
    found = ordinal().fit(X[few], ordered(words[few]))
    assert found.classes_.tolist() == ["fair", "poor"] and found.order_.tolist() == ["poor", "fair"]
    expected = ordinal().fit(X[few], words[few])
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    found.partial_fit(X[few], words[few], classes=["poor", "fair"])
    with pytest.raises(ValueError, match=r"differ from .* first call, \['poor', 'fair'\]"):
        found.partial_fit(X[few], words[few], classes=["fair", "poor"])


@pytest.mark.parametrize("number", [2, 3])
def test_a_source_of_classes_in_its_own_order_is_fitted_as_sorted_words(grades, number):
    X, words, numbers = grades
    few = numbers < number
    rows = Blocks([(X[few], numbers[few, None] * 1.0)])
    rows.classes = ORDER[:number]
    weights = {"poor": 1.0, "fair": 2.0, "good": 3.0}
    make = fixed(num_inducing=10, class_weight={name: weights[name] for name in rows.classes})
    expected = make.fit(X[few], words[few]).predict_proba(X)
    found = make.fit(rows)
    assert found.classes_.tolist() == sorted(rows.classes)
    assert found.order_.tolist() == rows.classes
    np.testing.assert_allclose(found.predict_proba(X), expected, atol=1e-9)
    own = np.log(expected[few, np.searchsorted(found.classes_, words[few])])
    np.testing.assert_allclose(predict_log_density(found, rows), own, atol=1e-6)


# --- statements of an order ----------------------------------------------------------------------


def as_series(y):
    return pd.Series(y)


def as_frame(y):
    return pd.DataFrame({"grade": y})


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, as_series, as_frame], ids=lambda f: f.__name__)
def test_the_order_of_an_ordered_categorical_is_that_of_the_classes(grades, numbered, form):
    X, words, _ = grades
    y = pd.Categorical(words, [*ORDER[:2], "unused", *ORDER[2:]], ordered=True)
    y = y if form is np.asarray else form(y)
    frame = pd.DataFrame(X, columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, of a column of labels
        found = ordinal().fit(frame, y)
    assert found.order_.tolist() == ORDER
    p = found.predict_proba(frame)[:, BACK]
    np.testing.assert_allclose(p, numbered.predict_proba(X), atol=1e-12)
    assert (found.predict(frame) == np.array(ORDER)[numbered.predict(X)]).all()


def test_a_polars_enum_states_an_order():
    polars = pytest.importorskip("polars")
    y = polars.Series(["a", "b"], dtype=polars.Enum(["b", "c", "a"]))
    assert stated_order(y).tolist() == ["b", "c", "a"]
    assert stated_order(y.cast(polars.Categorical)) is None


@pytest.mark.parametrize("kind", [list, np.array, pd.Categorical, as_series])
def test_words_without_an_order_are_refused_with_the_way_to_state_one(grades, kind):
    message = r"the classes \['excellent', 'fair', .* are words: .* pandas.Categorical\(y, \["
    with pytest.raises(ValueError, match=message):
        ordinal().fit(grades[0], kind(list(grades[1])))
    two = np.isin(grades[2], (0, 1))  # of which either may be the first
    assert len(ordinal().fit(grades[0][two], kind(list(grades[1][two]))).classes_) == 2


@pytest.mark.slow
def test_the_first_call_of_partial_fit_may_state_the_order(grades):
    X, words, numbers = grades
    low = numbers < 3  # none is excellent yet
    found = ordinal().partial_fit(X[low], words[low], classes=ORDER)
    assert found.order_.tolist() == ORDER and found.classes_.tolist() == sorted(ORDER)
    assert found.predict_proba(X)[:, 0].max() < 0.5
    found.partial_fit(X[~low], words[~low])
    assert found.score(X, words) > 0.6


def test_sorted_classes_of_partial_fit_do_not_undo_the_order_of_the_labels(grades, named):
    """`np.unique(y)` and scikit-learn's learning curves forget the order."""
    X, words, numbers = grades
    y = pd.Series(ordered(words))
    for classes in (np.unique(y), y.unique()):
        found = ordinal().partial_fit(X, y, classes=classes)
        assert found.order_.tolist() == ORDER
        np.testing.assert_array_equal(found.predict_proba(X), named.predict_proba(X))
    found.partial_fit(X, y, classes=np.unique(y))
    assert ordinal().partial_fit(X, words, classes=y.unique()).order_.tolist() == ORDER
    how = {"cv": 2, "train_sizes": [1.0], "exploit_incremental_learning": True}
    curves = [learning_curve(ordinal(), X, labels, **how)[2] for labels in (y, numbers)]
    np.testing.assert_array_equal(*curves)


def test_a_set_states_no_order(grades):
    X, words, _ = grades
    with pytest.raises(ValueError, match="classes must be a list of labels, got the set"):
        ordinal().partial_fit(X, words, classes=set(ORDER))


def test_thresholds_of_classes_without_rows_are_finite():
    Y = np.array([[1.0], [1.0], [2.0]])
    assert np.isfinite(first_thresholds((Y, Y, np.ones(3)), 5)).all()


@pytest.mark.slow
@pytest.mark.parametrize("names", [ORDER, sorted(ORDER)])
def test_the_order_of_a_sources_classes_is_the_one_stated(tmp_path, grades, names):
    X, words, _ = grades
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "grade": words})
    table.to_csv(tmp_path / "r.csv", index=False)
    rows = CSVFiles(tmp_path / "r.csv", target="grade", classes=names)
    found = ordinal().fit(rows)
    assert found.order_.tolist() == names and found.classes_.tolist() == sorted(names)
    assert names != ORDER or found.score(table[["a", "b"]], words) > 0.7
    with pytest.raises(ValueError, match=r"needs an order, .*classes=\[...\]"):
        ordinal().fit(CSVFiles(tmp_path / "r.csv", target="grade", classes="auto"))
    table.grade = pd.Categorical(words, names, ordered=True)
    table.to_parquet(tmp_path / "r.parquet")
    rows = ParquetFiles(tmp_path / "r.parquet", target="grade", classes="auto")
    assert rows.classes == names and rows.classes_in_order
