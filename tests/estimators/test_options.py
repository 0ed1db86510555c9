"""Options and data that a classifier refuses, and warnings in words of the estimators."""

import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor

import gpflow
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from gpflow.kernels import SquaredExponential
from helpers import fixed_classifier as fixed
from helpers import make_data, make_model
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import gpflow_bsvm as gb
from gpflow_bsvm import notices
from gpflow_bsvm.data.checks import warn_of_digits
from gpflow_bsvm.engine import projection
from gpflow_bsvm.estimators.options import SAID, OptionError, check_options, in_words_of_estimators
from gpflow_bsvm.inference import cavi, outcome


def test_weights_that_sum_to_little_are_said(moons):
    with pytest.warns(
        UserWarning, match=r"weights of 120 rows sum to 2: .* by their mean"
    ) as warned:
        fixed(num_inducing=15).fit(*moons, sample_weight=np.full(120, 1 / 60))
    assert warned[0].filename == __file__


def test_weights_with_a_sum_of_at_most_one_are_shares(moons):
    X, y = moons
    weight = np.linspace(0.5, 1.5, 120)
    expected = fixed(num_inducing=15).fit(X, y, weight).predict_proba(X)
    for total in (1.0, 0.6, 1e-300):  # 0.6: a fold of rows whose weights are shares
        found = fixed(num_inducing=15).fit(X, y, weight / 120 * total)
        np.testing.assert_allclose(found.predict_proba(X), expected, rtol=1e-6)


def test_a_row_that_outweighs_all_others_is_said(moons):
    weight = np.ones(120)
    weight[7] = 1e10
    with pytest.warns(UserWarning, match=r"one row has the weight 1e\+10, .* have 119: .* alone"):
        fixed(num_inducing=15).fit(*moons, sample_weight=weight)


@pytest.mark.parametrize("name", ["kernel__variance", "inference__tol"])
def test_parts_of_options_cannot_be_set(moons, name):
    message = rf'{name} cannot be set, .* as one of several in a grid, {{"{name.split("__")[0]}":'
    with pytest.raises(ValueError, match=message):
        GridSearchCV(fixed(kernel=SquaredExponential()), {name: [1.0]}).fit(*moons)
    with pytest.raises(ValueError, match="Invalid parameter 'other'"):
        fixed().set_params(other__variance=1.0)
    kernels = [SquaredExponential(0.01), SquaredExponential(4.0)]
    search = GridSearchCV(fixed(num_inducing=15), {"kernel": kernels}, cv=2).fit(*moons)
    assert search.best_estimator_.kernel.variance.numpy() in (0.01, 4.0)


@pytest.mark.parametrize("kind", ["array", "pandas", "pyarrow", "polars"])
def test_whole_numbers_with_too_many_digits_are_said(kind):
    X = np.array([[2**53 + 1, 1], [2**53, 2]] * 10)
    y = [0, 1] * 10
    frame = None if kind == "array" else pytest.importorskip(kind)
    make = getattr(frame, "table" if kind == "pyarrow" else "DataFrame", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = np.where(X > 2**53, 1, X)
        rows = fine if make is None else make({"key": fine[:, 0], "value": fine[:, 1]})
        fixed(num_inducing=2).fit(rows, y)
    rows = X if make is None else make({"key": X[:, 0], "value": X[:, 1] / 2})
    with pytest.warns(UserWarning, match="9007199254740993, which has too many digits for float64"):
        fixed(num_inducing=2).fit(rows, y)


@pytest.mark.parametrize("kind", ["objects", "object", "Int64", "int64[pyarrow]", "a table"])
def test_whole_numbers_beside_missing_ones_or_others_are_said_too(kind):
    keys = [None, *[2**53 + 1, 2**53] * 10]
    if kind == "objects":
        rows = np.array([[key, 0.5] for key in keys], object)
    elif kind == "a table":
        rows = pytest.importorskip("pyarrow").table({"key": keys, "value": [0.5] * 21})
    else:
        rows = pd.DataFrame({"key": pd.Series(keys, dtype=kind), "value": 0.5})
    with pytest.warns(UserWarning, match="X holds a whole number of size 9007199254740993, which"):
        warn_of_digits(rows, float)


def test_whole_numbers_of_blocks_are_said_too():
    rows = np.array([[2**53 + 1, 1], [2**53, 2]] * 10)
    with pytest.warns(UserWarning, match="X holds a whole number of size 9007199254740993, which"):
        fixed(num_inducing=2).fit(gb.data.Blocks([(rows, rows[:, 1:] - 1)]))


@pytest.mark.parametrize("kind", [fixed, gb.BSVMRegressor])
def test_a_score_without_labels_says_what_it_needs(kind):
    for rows in ((np.ones((3, 1)),), (np.ones((3, 1)), None)):
        with pytest.raises(ValueError, match="score needs y, the labels of X, even if X are"):
            kind().score(*rows)


def test_sparse_rows_are_refused_with_what_works(moons):
    with pytest.raises(TypeError, match="dense data is required"):
        fixed().fit(scipy.sparse.csr_matrix(moons[0]), moons[1])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("rbf", r'None or "linear", got \'rbf\'; for scikit-learn\'s "rbf" use None'),
        ("poly", r'"poly" use gpflow.kernels.Polynomial\(degree=3'),
        ("other", r"got 'other'$"),
    ],
)
def test_names_of_scikit_learns_kernels_are_refused_with_what_works(moons, kernel, message):
    with pytest.raises(ValueError, match=message):
        gb.BSVMClassifier(kernel=kernel).fit(*moons)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.where(X > 1.5, np.nan, X), y), "NaN. Fit dense rows with impute=True"),
        (lambda X, y: (X * [1, 1e-200], y), "column 1 of X is so small that its variance underf"),
        (lambda X, y: (X * [1, 1e-160], y), "column 1 of X is so small that its variance underf"),
        (lambda X, y: (np.where(X > 1.5, np.inf, X), y), "infinity"),
        (lambda X, y: (X, np.zeros_like(y)), "one class"),
        (lambda X, y: (X, y + 0.5 * X[:, 0]), "Unknown label type"),
        (lambda X, y: (X, np.where(y == 1, None, "no")), r"no label .* in rows 1, 2,"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X[:, 0], y), "Expected 2D array"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), r"1d array|should be a 1d"),
    ],
)
def test_bad_training_data(moons, change, message):
    with pytest.raises(ValueError, match=message):
        fixed(num_inducing=15).fit(*change(*moons))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1.0}, "penalty must be a positive number or 'auto', got -1.0"),
        ({"bound": "tight"}, "bound must be one of"),
        (
            {"kernel": gpflow.kernels.SharedIndependent(gpflow.kernels.Matern32(), 2)},
            "kernel must have one output, .* got SharedIndependent",
        ),
        ({"num_inducing": 0}, "num_inducing must be a whole number of at least 1 or 'auto', got 0"),
        ({"class_weight": "balance"}, "class_weight must be dict or 'balanced' or None, got 'bal"),
        ({"chunk_rows": 0}, "chunk_rows must be a whole number of at least 1 or None, got 0"),
    ],
)
def test_bad_parameters(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        fixed(**parameters).fit(*moons).predict(moons[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"kernel": gpflow.kernels.Matern32},
            "must be Kernel or 'linear' or None, got <class .*Matern32'>",
        ),
        ({"kernel": 3}, "must be Kernel or 'linear' or None, got 3"),
        ({"kernel": np.ones(1)}, "or None, got array"),
        ({"penalty": None}, "a positive number or 'auto', got None"),
        ({"multi_class": ["ovr"]}, "multi_class must be 'crammer_singer' or .* got"),
        ({"learn_kernel": "no"}, "learn_kernel must be bool, got 'no'"),
        ({"calibrate": 1}, "bool or 'auto', got 1"),
        ({"standardize": None}, "standardize .* got None"),
        ({"verbose": "yes"}, "verbose .* got 'yes'"),
        ({"num_inducing": 2.5}, "num_inducing must be a whole number .* got 2.5"),
        ({"chunk_rows": 2.5}, "a whole number .* or None, got 2.5"),
        ({"inference": "CAVI"}, "inference .* got 'CAVI'"),
        ({"inference": gb.inference.CAVI}, "must be Algorithm or None, got <class .*CAVI'>"),
    ],
)
def test_parameters_of_another_type(moons, parameters, message):
    with pytest.raises(TypeError, match=message):
        gb.BSVMClassifier(**parameters).fit(*moons)


@pytest.mark.parametrize("verbose", [0, 2, True, np.False_])
def test_how_much_is_told_is_a_number_or_a_flag(verbose):
    check_options(gb.BSVMClassifier(verbose=verbose))


@pytest.mark.parametrize("name", ["penalty", "num_inducing", "chunk_rows"])
@pytest.mark.parametrize("value", [True, np.True_, np.nan, np.inf])
def test_flags_and_what_is_not_finite_are_no_numbers(name, value):
    with pytest.raises(OptionError, match=f"{name} must be"):
        check_options(gb.BSVMClassifier(**{name: value}))


def test_numpys_numbers_are_numbers(moons, fitted):
    other = fixed(
        num_inducing=np.int64(15),
        penalty=np.float32(2.0),
        calibrate=np.False_,
        chunk_rows=np.int32(200),
        random_state=0,
    )
    np.testing.assert_array_equal(
        other.fit(*moons).predict_proba(moons[0]), fitted.predict_proba(moons[0])
    )


class Interrupted(gb.inference.CAVI):
    """An algorithm in the midst of which somebody presses Ctrl-C."""

    def run(self, *_, **__):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_fit_that_fails_leaves_the_one_before(moons, error):
    """Not its scaler, labels or names with another's model."""
    X, y = moons
    frame = pd.DataFrame(X, columns=["north", "east"])
    classifier = fixed(num_inducing=15).fit(frame, y)
    expected, before = classifier.predict_proba(frame), dict(vars(classifier))
    wrong = {"inference": Interrupted()} if error is KeyboardInterrupt else {"bound": "tight"}
    other = pd.DataFrame(100 * X[:, [0, 0, 1]] + 7, columns=list("abc"))
    with pytest.raises(error):
        classifier.set_params(**wrong).fit(other, np.where(y == 1, "yes", "no"))
    assert vars(classifier) == before | wrong
    np.testing.assert_array_equal(classifier.predict_proba(frame), expected)
    again = classifier.set_params(inference=None, bound="exact").fit(100 * X, y)
    assert not hasattr(again, "feature_names_in_")  # it had none
    first = fixed(num_inducing=15, **wrong)
    with pytest.raises(error):
        first.fit(X, y)
    for ask in (first.predict, lambda X: first.weights_in_fit((X, y))):
        with pytest.raises(NotFittedError):
            ask(X)


@pytest.mark.parametrize("labels", [0, 2])
def test_weights_in_a_fit_need_labels(moons, fitted, labels):
    X, y = moons
    rows = (X, *[y] * labels) if labels else X
    with pytest.raises(ValueError, match=r"labels are needed: give a pair \(X, y\)"):
        fitted.weights_in_fit(rows)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.filterwarnings("error")  # none of NumPy's comes first
def test_overflow_is_named(moons, fitted, standardize):
    X, y = moons
    for much in (1e200, 1e308):
        with pytest.raises(ValueError, match="column 1 of X is so large that its variance over"):
            fixed(standardize=standardize).fit(X * [1.0, much], y)
    with pytest.raises(ValueError, match="row 2 of X is so large that f overflows"):
        fitted.predict(np.concatenate([X[:2], [[1.7e308, 0.0]]]))


def test_bad_weights(moons):
    X, y = moons
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        gb.BSVMClassifier().fit(X, y, sample_weight=-np.ones(len(y)))


def test_wrong_number_of_columns_at_prediction(fitted):
    with pytest.raises(ValueError, match="X has 3 features, but BSVMClassifier is expecting 2"):
        fitted.predict(np.zeros((4, 3)))


@pytest.mark.parametrize("num_classes", [2, 3])
def test_multi_class_of_unknown_name(num_classes):
    with pytest.raises(ValueError, match="multi_class must be 'crammer_singer' or"):
        gb.BSVMClassifier(multi_class="ovo").fit(np.eye(6), np.arange(6) % num_classes)


#: What somebody who calls scikit-learn does not know.
OTHERS_WORDS = ("q ", "set_trainable", "Kuu", "nats", "inducing_variable", "float64 does not")


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(60)
    return X, Y[:, 0]


def collapsed(X, y):
    """Rows far from the only inducing point: q stays at its prior."""
    fixed(num_inducing=1, standardize=False, calibrate=True).fit(1e4 * X, y)


def far_apart(X, y):
    fixed(kernel=SquaredExponential(lengthscales=1e-3), num_inducing=30).fit(X, y)


def singular(X, y):
    fixed(kernel=SquaredExponential(lengthscales=1e6), num_inducing=30).fit(X, y)


@pytest.mark.parametrize("fit", [collapsed, far_apart, singular])
def test_warnings_are_in_the_users_words(data, fit):
    with pytest.warns(UserWarning) as warned:
        fit(*data)
    for one in warned:
        assert not any(word in str(one.message) for word in OTHERS_WORDS), str(one.message)
        assert str(one.message) in SAID.values() and one.filename == __file__


def test_each_text_is_one_that_the_core_has():
    texts = "\n".join(inspect.getsource(module) for module in (outcome, cavi, projection))
    for begins in SAID:
        assert f'"{begins}' in texts.replace('f"', '"'), begins
    assert in_words_of_estimators("something else") == "something else"


def test_users_of_gpflow_have_theirs(data):
    model = make_model((data[0], data[1][:, None]), kernel=SquaredExponential(lengthscales=1e-3))
    with pytest.warns(UserWarning, match="learned next to nothing: q is") as warned:
        gb.fit(model, (1e3 * data[0], data[1][:, None]))
    assert warned[0].filename == __file__


def test_words_of_one_thread_are_not_those_of_another():
    with notices.told_by(str.upper), ThreadPoolExecutor(1) as pool:
        assert pool.submit(notices._WORDS.get).result() is str


@pytest.mark.slow
def test_a_line_without_an_inducing_point_near_it_is_no_raw_error(data):
    """It was told that its link, of which it knew nothing, cannot be calibrated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = gb.BSVMClassifier(loss="hinge", num_inducing=1, penalty=1.0, standardize=False)
        p = p.fit(1e6 * np.round(data[0], 2), data[1]).predict_proba(data[0])
    assert np.isfinite(p).all()


def test_values_that_are_missing_only_later_need_another_fit(moons):
    """Before, the error was an overflow of f. A fit forgets that an earlier one did not impute."""
    X, y = moons
    gaps = np.where(X > 1.5, np.nan, X)
    model = fixed(num_inducing=5).fit(X, y).set_params(impute=True)
    for ask in (model.predict, lambda gaps: model.partial_fit(gaps, y)):
        with pytest.raises(ValueError, match=r"contains NaN\. Fit dense rows with impute=True"):
            ask(gaps)
    np.testing.assert_array_equal(
        model.fit(gaps, y).predict(gaps),
        fixed(num_inducing=5, impute=True).fit(gaps, y).predict(gaps),
    )


def test_records_are_refused_with_what_works(moons):
    records = np.rec.fromarrays(moons[0].T, names="a,b")
    for rows in (records, np.array(records.tolist(), [("a", float), ("b", float)])):
        with pytest.raises(TypeError, match=r"give records as pandas\.DataFrame\(X\)"):
            fixed().fit(rows, moons[1])
