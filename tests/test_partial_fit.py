"""`BSVMClassifier.partial_fit`: more rows without the earlier ones."""

import gpflow
import numpy as np
import pytest
from conftest import make_data, state

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.inference import Streaming


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(80)
    return X, np.where(Y[:, 0] == Y.max(), "yes", "no")


def make(**options):
    kernel = gpflow.kernels.SquaredExponential(2.0)
    fixed = {"learn_kernel": False, "num_inducing": 8, "loss": "levels", "penalty": 2.0}
    return BSVMClassifier(kernel, random_state=0, **(fixed | options))


def test_the_first_call_is_fit(data):
    X, y = data
    found = make().partial_fit(X, y, classes=["yes", "no"]).predict_proba(X)
    np.testing.assert_array_equal(found, make().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("rest", [slice(50, None), "no"])
def test_later_calls_are_streaming(data, rest):
    """Also with rows of a single class."""
    X, y = data
    rest = np.flatnonzero(y == rest)[-10:] if isinstance(rest, str) else rest
    model = make().fit(X[:50], y[:50])
    expected = gpflow.utilities.deepcopy(model.model_)
    scaled = model.scaler_.transform(X[rest])
    history = Streaming(forget=0.9).run(expected, (scaled, (y[rest] == "yes")[:, None] * 1.0))
    model.partial_fit(X[rest], y[rest], forget=0.9)
    for found, wanted in zip(state(model.model_), state(expected)):
        np.testing.assert_array_equal(found, wanted)
    assert model.history_.elbo == history.elbo
    assert model.model_.num_data == 50 + len(y[rest])


def test_weights_of_new_rows_are_repetitions(data):
    X, y = data
    one, two = (make().fit(X[:50], y[:50]) for _ in range(2))
    one.partial_fit(X[50:], y[50:], sample_weight=np.full(30, 2.0))
    two.partial_fit(np.repeat(X[50:], 2, axis=0), np.repeat(y[50:], 2))
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)


def bad_calls(X, y):
    return {
        "the first part must hold rows of every class, and has none of": (
            make(),
            X,
            y,
            {"classes": ["yes", "no", "maybe"]},
        ),
        r"y holds \['no'\], which are not among classes": (make(), X, y, {"classes": ["yes"]}),
        'class_weight="balanced" needs all rows': (make(class_weight="balanced"), X, y, {}),
        "forget must be in": (make().fit(X, y), X, y, {"forget": 1.5}),
        "previously unseen labels": (make().fit(X, y), X, np.full(len(X), "else"), {}),
        "X has 1 features, but BSVMClassifier is expecting 2": (make().fit(X, y), X[:, :1], y, {}),
    }


def test_bad_calls_change_nothing(data):
    X, y = data
    for message, (model, inputs, labels, options) in bad_calls(X, y).items():
        before = dict(vars(model))
        with pytest.raises(ValueError, match=message):
            model.partial_fit(inputs, labels, **options)
        assert vars(model) == before


@pytest.mark.slow
def test_several_classes_and_a_linear_model(data):
    X, _ = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for options in ({}, {"loss": "hinge", "calibrate": False}):
        p = make(**options).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    linear = BSVMClassifier("linear", penalty=1.0, calibrate=False)
    before = linear.fit(X[:50], y[:50] > 0).predict_proba(X)
    after = linear.partial_fit(X[50:], y[50:] > 0).predict_proba(X)
    assert np.abs(after - before).max() > 0.01
