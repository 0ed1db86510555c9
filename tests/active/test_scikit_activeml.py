"""Our models as classifiers of scikit-activeml."""

import importlib
import sys

import numpy as np
import pytest
from helpers import assert_same_state, make_data, make_model, state
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb
from gpflow_bsvm.active import POLICIES
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, EpsilonInsensitive, Hinge
from gpflow_bsvm.prediction import draw_probabilities, predict_probabilities

pool = pytest.importorskip("skactiveml.pool", reason="needs the extra `active`")
SklearnClassifier = pytest.importorskip("skactiveml.classifier").SklearnClassifier
scikit_activeml = pytest.importorskip("gpflow_bsvm.active.scikit_activeml")

X, Y = make_data(40)
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])


def binary():
    return make_model((X, Y), likelihood=Hinge())


def three():
    kernel = gb.priors.ard_kernel(2)
    return gb.models.BSVM(kernel, CrammerSinger(3), X[:8].copy(), num_latent_gps=3)


def missing(labels, known):
    y = np.full(len(labels), np.nan)
    y[known] = labels[known]
    return y


def test_a_fit_is_that_of_the_rows_with_a_label():
    y = missing(2 * CLASSES + 1, np.arange(12))  # labels 1, 3 and 5
    clf = scikit_activeml.ModelClassifier(three(), classes=[1, 3, 5]).fit(X, y)
    expected = three()
    CAVI().run(expected, (X[:12], CLASSES[:12, None].astype(float)))
    assert_same_state(state(clf.model_), state(expected), 1e-10)
    p = predict_probabilities(expected, X)
    np.testing.assert_allclose(clf.predict_proba(X), p, atol=1e-10)
    assert (clf.predict(X) == np.array([1, 3, 5])[p.argmax(axis=1)]).all()
    prior = three()
    assert_same_state(state(clf.model), state(prior), 0)  # it was not changed


def test_weights_and_no_labels_at_all():
    weight = np.linspace(0.5, 2, 40)
    clf = scikit_activeml.ModelClassifier(binary(), classes=[0, 1])
    y = missing(Y[:, 0], np.arange(5, 20))
    clf.fit(X, y, sample_weight=weight)
    expected = binary()
    CAVI().run(expected, (X[5:20], Y[5:20]), sample_weight=weight[5:20])
    assert_same_state(state(clf.model_), state(expected), 1e-10)
    np.testing.assert_allclose(clf.fit(X, np.full(40, np.nan)).predict_proba(X), 0.5, atol=1e-12)


def test_classes_must_be_those_of_the_model():
    clf = scikit_activeml.ModelClassifier(three(), classes=[0, 1])
    with pytest.raises(ValueError, match="the model has 3 classes, but 2 are given"):
        clf.fit(X, missing(Y[:, 0], np.arange(5)))
    with pytest.raises(TypeError, match="BSVMClassifier has no closed-form steps: use gpflow_bsvm"):
        scikit_activeml.ModelClassifier(gb.BSVMClassifier(), classes=[0, 1]).fit(X, Y[:, 0])
    numbers = make_model((X, Y), likelihood=EpsilonInsensitive())
    with pytest.raises(ValueError, match="EpsilonInsensitive has no class probabilities"):
        scikit_activeml.ModelClassifier(numbers, classes=[0, 1]).fit(X, Y[:, 0])


def test_copies_share_the_model_which_no_fit_changes():
    clf = scikit_activeml.ModelClassifier(binary(), classes=[0, 1])
    assert clone(clf).model is clf.model
    assert not hasattr(clone(clf.fit(X, Y[:, 0])), "model_")


@pytest.mark.slow
def test_their_strategy_asks_what_our_policy_asks():
    """Least confidence is 1 - max p, which for two classes is ordered as the margin."""
    least = pool.UncertaintySampling(method="least_confident", random_state=0)
    clf = scikit_activeml.ModelClassifier(binary(), classes=[0, 1])
    y = missing(Y[:, 0], np.arange(4))
    for _ in range(3):
        left = np.flatnonzero(np.isnan(y))
        ours = left[POLICIES["margin"](clf.fit(X, y).model_, X[left]).argmax()]
        assert least.query(X=X, y=y, clf=clf).tolist() == [ours]
        y[ours] = Y[ours, 0]


@pytest.mark.slow
def test_a_strategy_with_fits_of_its_own():
    """Expected error reduction fits to labels that might be."""
    model, y = binary(), missing(Y[:12, 0], np.arange(3))
    before = state(model)
    clf = scikit_activeml.ModelClassifier(model, classes=[0, 1])
    asked = pool.MonteCarloEER(random_state=0).query(X=X[:12], y=y, clf=clf)
    assert np.isnan(y[asked]).all()
    assert_same_state(before, state(model), 0)


def test_our_model_in_their_loop():
    clf = scikit_activeml.ModelClassifier(three(), classes=[0, 1, 2])
    query = pool.UncertaintySampling(method="entropy", random_state=0).query
    y = missing(CLASSES, np.arange(3))
    index, utilities = query(X=X, y=y, clf=clf, batch_size=2, return_utilities=True)
    p = clf.fit(X, y).predict_proba(X)
    expected = -(p * np.log(p)).sum(axis=1)
    np.testing.assert_allclose(utilities[0][3:], expected[3:], atol=1e-10)
    assert not set(index) & {0, 1, 2}
    assert clf.sample_proba(X[:4].astype(np.float32)).shape == (100, 4, 3)
    with pytest.raises(NotFittedError):
        scikit_activeml.ModelClassifier(three(), classes=[0, 1, 2]).sample_proba(X)


@pytest.mark.slow
def test_their_batch_bald_draws_our_f():
    """A batch of one has the most mutual information; several are those of their own search."""
    how = {"sample_predictions_method_name": "sample_proba", "random_state": 0}
    draws = {"num_samples": 64, "seed": 1}
    theirs = pool.BatchBALD(sample_predictions_dict=draws, **how)
    clf = scikit_activeml.ModelClassifier(three(), classes=[0, 1, 2])
    y = missing(CLASSES, np.arange(6))
    P = draw_probabilities(clf.fit(X, y).model_, X[6:], **draws)
    information = entropy(P.mean(axis=0), axis=-1) - entropy(P, axis=-1).mean(axis=0)
    ask = lambda number: theirs.query(X=X, y=y, ensemble=clf, batch_size=number)  # noqa: E731
    assert ask(1).tolist() == [6 + information.argmax()]
    assert ask(3)[0] == 6 + information.argmax()
    assert len(set(ask(3))) == 3


@pytest.mark.slow
def test_the_estimator_in_their_loop():
    clf = SklearnClassifier(
        gb.BSVMClassifier(loss="hinge", penalty=1.0, num_inducing=8, random_state=0),
        classes=["a", "b", "c"],
        missing_label="?",
    )
    names = np.where(np.arange(40) < 20, np.where(Y[:, 0] > 0, "b", "a"), "?")
    query = pool.UncertaintySampling(random_state=0, missing_label="?").query
    assert query(X=X, y=names, clf=clf)[0] >= 20


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skactiveml.base", None)
    monkeypatch.delitem(sys.modules, "gpflow_bsvm.active.scikit_activeml")
    with pytest.raises(ImportError, match=r'pip install "gpflow_bsvm\[active\]"'):
        importlib.import_module("gpflow_bsvm.active.scikit_activeml")
