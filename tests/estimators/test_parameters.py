"""Parameters and training data that a classifier refuses, and what a refused fit leaves."""

import gpflow
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from helpers import fixed_classifier as fixed
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb


def test_weights_that_sum_to_little_are_said(moons):
    with pytest.warns(
        UserWarning, match=r"weights of 120 rows sum to 2: .* by their mean"
    ) as warned:
        fixed(num_inducing=15).fit(*moons, sample_weight=np.full(120, 1 / 60))
    assert warned[0].filename == __file__


def test_sparse_rows_are_refused_with_what_works(moons):
    with pytest.raises(TypeError, match=r'dense data is required: .*kernel="linear"'):
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
        (lambda X, y: (np.where(X > 1.5, np.nan, X), y), "NaN"),
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
        ({"penalty": -1.0}, r"'penalty' .* must be a float in the range \(0.0, inf\)"),
        ({"bound": "tight"}, "bound must be one of"),
        ({"num_inducing": 0}, "'num_inducing' .* in the range \\[1, inf\\)"),
        ({"chunk_rows": 0}, "'chunk_rows' parameter .* must be"),
    ],
)
def test_bad_parameters(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        fixed(**parameters).fit(*moons).predict(moons[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": gpflow.kernels.Matern32}, r"Got <class .*Matern32'> instead"),
        ({"kernel": 3}, r"an instance of .*Kernel', a str among \{'linear'\} or None. Got 3"),
        ({"kernel": np.ones(1)}, r"or None. Got array"),
        ({"penalty": None}, r"a float .* or a str among \{'auto'\}. Got None"),
        ({"multi_class": ["ovr"]}, "a str among .* Got"),
        ({"learn_kernel": "no"}, "'learn_kernel' .* an instance of 'bool' .* Got 'no'"),
        ({"calibrate": 1}, "'bool'.* or a str among .* Got 1"),
        ({"standardize": None}, "'standardize' .* Got None"),
        ({"verbose": "yes"}, "'verbose' .* Got 'yes'"),
        ({"num_inducing": 2.5}, "an int in the range .* Got 2.5"),
        ({"chunk_rows": 2.5}, "an int in the range .* or None. Got 2.5"),
        ({"inference": "CAVI"}, "'inference' .* Got 'CAVI'"),
        ({"inference": gb.inference.CAVI}, "Got <class .*CAVI'> instead"),
    ],
)
def test_parameters_of_another_type(moons, parameters, message):
    with pytest.raises(TypeError, match=message):
        gb.BSVMClassifier(**parameters).fit(*moons)


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
    with pytest.raises(NotFittedError):
        first.predict(X)


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
    with pytest.raises(ValueError, match=r"'multi_class' .* must be a str among"):
        gb.BSVMClassifier(multi_class="ovo").fit(np.eye(6), np.arange(6) % num_classes)
