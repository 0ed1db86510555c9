"""Warnings of a fit are in words of the estimators, at the line of their user."""

import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gpflow.kernels import SquaredExponential
from helpers import fixed_classifier as fixed
from helpers import make_data, make_model

import gpflow_bsvm as gb
from gpflow_bsvm import notices
from gpflow_bsvm.engine import projection
from gpflow_bsvm.estimators.words import SAID, in_words_of_estimators
from gpflow_bsvm.inference import cavi, outcome

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
