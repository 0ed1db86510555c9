"""A classifier's fit and predictions: weights, labels, orders of rows, pipelines, threads."""

import enum
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import gpflow
import numpy as np
import pandas as pd
import pytest
from helpers import fixed_classifier as fixed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import gpflow_bsvm as gb
from gpflow_bsvm.estimators.scaling import make_scaler
from gpflow_bsvm.prediction import predict_log_density


def test_string_labels_and_data_frames(moons, fitted):
    X, y = moons
    frame = pd.DataFrame(X, columns=["north", "east"])
    labels = np.where(y == 1, "a yes", "the no")  # sorted: "a yes" comes first
    named = fixed(num_inducing=15, random_state=0).fit(frame, labels)
    assert list(named.classes_) == ["a yes", "the no"]
    assert list(named.feature_names_in_) == ["north", "east"]
    expected = fitted.predict_proba(X)
    # The hinge is symmetric, so exchanging the labels exchanges the columns.
    np.testing.assert_allclose(named.predict_proba(frame), expected[:, ::-1], atol=1e-8)
    assert set(named.predict(frame)) <= set(labels)


@pytest.mark.parametrize("names", [[("a", "x"), ("a", "y")], [2020, 2010]])
def test_names_that_are_not_strings_are_compared(moons, names):
    X, y = moons
    frame = pd.DataFrame(X).set_axis(pd.Index(names), axis=1)
    classifier = fixed(num_inducing=15).fit(frame, y)
    assert classifier.feature_names_in_.tolist() == [*map(str, names)]
    with pytest.raises(ValueError, match="same order"):
        classifier.predict(frame[frame.columns[::-1]])
    classifier.fit(pd.DataFrame(X)[[1, 0]], y)
    with pytest.raises(ValueError, match="same order"):
        classifier.predict(pd.DataFrame(X))
    assert not hasattr(classifier.fit(pd.DataFrame(X), y), "feature_names_in_")  # places


def test_predict_is_the_argmax_of_predict_proba(fitted):
    X = np.random.default_rng(0).uniform(-3, 4, size=(500, 2))
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[p.argmax(axis=1)])
    order = np.argsort(fitted.decision_function(X))
    assert (np.diff(p[order, 1]) >= 0).all()
    np.testing.assert_array_equal(fitted.decision_function(X) > 0, p[:, 1] > 0.5)


def test_decisions_agree_with_predictions_far_from_all_rows(fitted):
    """There the probability rounds to 1/2; as in SVC, the sign of the decision is left."""
    X = np.stack([np.linspace(-60, 60, 500), np.linspace(30, -30, 500)], axis=1)
    scores = fitted.decision_function(X)
    assert ((scores > 0) & (fitted.predict_proba(X)[:, 1] == 0.5)).any()
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[(scores > 0).astype(int)])


def test_probabilities_are_those_of_the_model(moons, fitted):
    X = fitted.scaler_.transform(moons[0])
    p, _ = fitted.model_.predict_y(X)
    np.testing.assert_allclose(fitted.predict_proba(moons[0])[:, 1], p[:, 0], atol=1e-10)


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_chunks_do_not_change_predictions(moons, fitted, chunk_rows):
    other = pickle.loads(pickle.dumps(fitted)).set_params(chunk_rows=chunk_rows)
    np.testing.assert_allclose(
        other.decision_function(moons[0]), fitted.decision_function(moons[0]), atol=1e-12
    )


def test_pickle_and_clone(moons, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(moons[0]), fitted.predict_proba(moons[0]))
    twin = clone(fitted).fit(*moons)
    np.testing.assert_array_equal(twin.predict_proba(moons[0]), fitted.predict_proba(moons[0]))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_integer_weights_are_repeated_rows(moons, class_weight):
    X, y = moons
    weight = np.random.default_rng(1).integers(0, 4, len(y)) * (1 + (y == 1))
    make = lambda: fixed(  # noqa: E731
        num_inducing=15,
        random_state=0,
        inference=gb.inference.CAVI(tol=1e-12),
        class_weight=class_weight,
    )
    weighted = make().fit(X, y, sample_weight=weight)
    repeated = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # The scaler's means and the sums over rows come in another order: rounding, amplified by Kuu.
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-7
    )


def test_class_weight_is_sample_weight(moons):
    X, y = moons
    classes = fixed(num_inducing=15, random_state=0, class_weight={0: 1, 1: 3})
    samples = fixed(num_inducing=15, random_state=0)
    samples.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(
        classes.fit(X, y).decision_function(X), samples.decision_function(X), atol=1e-12
    )
    balanced = fixed(num_inducing=15, random_state=0, class_weight="balanced")
    few = np.flatnonzero((y == 0) | (np.arange(len(y)) < 30))
    plain = clone(samples).fit(X[few], y[few])
    assert balanced.fit(X[few], y[few]).predict(X).mean() > plain.predict(X).mean()


def test_order_of_rows_does_not_matter(moons, fitted):
    X, y = moons
    order = np.random.default_rng(2).permutation(len(y))
    other = fixed(num_inducing=15, random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(
        other.decision_function(X), fitted.decision_function(X), atol=1e-7
    )  # summation order


@pytest.mark.slow
def test_in_a_pipeline_and_a_grid_search(moons):
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), fixed(num_inducing=15)),
        {"bsvmclassifier__penalty": [1.0, 2.0]},
        scoring="neg_log_loss",
        cv=2,
    ).fit(*moons)
    assert search.best_score_ > -0.6


def test_constant_columns_do_no_harm_and_are_not_worth_a_warning(moons):
    X, y = moons
    frame = pd.DataFrame(X, columns=["north", "east"]).assign(height=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = fixed(num_inducing=15).fit(frame, y)
    assert np.isfinite(classifier.predict_proba(frame)).all()


def test_progress_only_when_verbose(moons, capsys):
    fixed(num_inducing=15).fit(*moons)
    assert capsys.readouterr() == ("", "")


def test_logarithms_of_probabilities(moons, fitted):
    p = fitted.predict_proba(moons[0])
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(moons[0])), p, atol=1e-12)
    far = clone(fitted).set_params(penalty=100.0).fit(*moons)
    far.model_.q_mu.assign(1e3 * far.model_.q_mu)
    assert far.predict_proba(moons[0]).min() == 0
    assert np.isfinite(far.predict_log_proba(moons[0])).all()


@pytest.mark.slow
def test_fits_in_threads(moons):
    X, y = moons
    make = lambda: fixed(num_inducing=7, random_state=0)  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        fits = list(pool.map(lambda _: make().fit(X, y).decision_function(X), range(8)))
    for scores in fits[1:]:
        np.testing.assert_allclose(scores, fits[0], atol=1e-12)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e5), (np.float64, 1e14)])
def test_columns_whose_values_are_rounded_are_told(dtype, offset):
    """With float32, X + 1e9 was fitted as three constants, without a word."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    weight = np.ones(40, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_scaler((X + offset / 1e3).astype(dtype), weight)
    far = (X + [0, offset, 1e3 * offset]).astype(dtype)
    match = f"far from 0 in column 1, 2 that {np.dtype(dtype).name} has fewer than 1000 values"
    with pytest.warns(UserWarning, match=match):
        make_scaler(far, weight)


def test_few_values_that_determine_a_scale_are_told():
    """A wrong value makes one point of all other rows; rare events and pixels do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 1] = np.where(rng.random(200) < 0.02, X[:, 1], 0)
    X[:, 2] = np.where(rng.random(200) < 0.03, 1e4 * X[:, 2], X[:, 2])
    y = X[:, 0] > 0
    classifier = gb.BSVMClassifier(learn_kernel=False, loss="levels", penalty=2.0, num_inducing=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.fit(X, y)
    X[7, 0] = 1e7  # a smaller one is far only until the column is transformed
    with pytest.warns(UserWarning, match="few values determine the scale of column 0 of X, such"):
        classifier.fit(X, y)
    with pytest.warns(UserWarning, match="few values determine the scale of column age of X"):
        classifier.fit(pd.DataFrame(X, columns=["age", "b", "c"]), y)
    with pytest.warns(UserWarning, match="few values determine the scale of column 0 of X, such"):
        classifier.fit(X[:60], y[:60])  # one value is few, in a small table too


@pytest.mark.parametrize("kind", [float, object])
def test_a_single_column_is_scikit_learns_error(kind):
    with pytest.raises(ValueError, match=r"Expected a 2-dimensional container but got .*Series"):
        gb.BSVMClassifier().fit(pd.Series([1.0, 2.0, 3.0], dtype=kind), [0, 1, 0])


@pytest.mark.parametrize("impute", [False, True])
def test_the_place_of_an_infinity_is_told(impute):
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, np.inf, 3.0]})
    with pytest.raises(ValueError, match=r"contains infinity .* Correct row 1, column 1, or drop"):
        gb.BSVMClassifier(impute=impute).fit(X, [0, 1, 0])
    X["b"] = [1.0, 1e39, None]  # infinity in single precision
    single = gpflow.config.as_context(gpflow.config.Config(float=np.float32))
    with single, pytest.raises(ValueError, match=r"contains infinity .* Correct row 1, column 1"):
        gb.BSVMClassifier(impute=True).fit(X.astype("Float64"), [0, 1, 0])


class Answer(str, enum.Enum):
    """NumPy makes strings of the members in a list, cut to the length of their values: "Answ"."""

    YES = "yes"
    NO = "no"


@pytest.mark.parametrize("names", [[Answer.YES, Answer.NO], ["yes", "yes\0"]])
def test_a_list_of_labels_is_not_what_numpy_makes_of_it(moons, names):
    X, y = moons
    labels = [names[one] for one in y]
    classifier = fixed(num_inducing=10).fit(X, labels)
    assert classifier.classes_.tolist() == sorted(names)
    expected = fixed(num_inducing=10).fit(X, y)
    assert classifier.score(X, labels) == expected.score(X, y)
    density = predict_log_density(classifier, (X, labels))
    np.testing.assert_allclose(density, predict_log_density(expected, (X, y)), rtol=1e-9)


def test_a_score_does_not_merge_large_nullable_integers(moons):
    X, y = moons
    large = pd.Series(2**53 + y, dtype="Int64")
    classifier = fixed(num_inducing=10).fit(X, large)
    assert classifier.score(X, large) == (classifier.predict(X) == 2**53 + y).mean() < 1


@pytest.mark.parametrize("rare", [0, 1])
def test_a_rare_class_has_its_frequency_where_x_says_nothing(rng, rare):
    """The integral over levels had a sixth of it: hardly a level was below it."""
    y = np.where(np.arange(1000) < 20, rare, 1 - rare)
    X = rng.permutation(np.linspace(-2, 2, len(y)))[:, None]
    found = fixed(loss="levels", num_inducing=10).fit(X, y)
    # Not exactly, because f also has a prior.
    assert found.predict_proba(X)[:, rare].mean() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize(
    ("number", "options", "link"),
    [(8, {}, "stationary"), (16, {}, "integral"), (8, {"class_weight": "balanced"}, "integral")],
)
def test_the_link_is_stationary_if_a_class_has_less_than_12_percent(rng, number, options, link):
    X = rng.normal(size=(100, 2))
    found = fixed(loss="levels", num_inducing=5, **options).fit(X, np.arange(100) < number)
    assert found.model_.likelihood.link == link
