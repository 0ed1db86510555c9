"""Classifiers come back to the last bit: labels, parameters, names of columns."""

import copy

import joblib
import numpy as np
import pytest
import tensorflow_probability as tfp
from gpflow import kernels as k
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler
from what_is_saved import (
    LABELS,
    OPTIONS,
    classifier_of,
    exported,
)

import gpflow_bsvm as gb
from gpflow_bsvm.estimators.columns import on_scaled_columns
from gpflow_bsvm.inference import SVI


@pytest.fixture(scope="module")
def classifiers(rows):
    """One for each type of labels, of few traces."""
    return {name: classifier_of(rows[0], labels) for name, labels in LABELS.items()}


@pytest.mark.parametrize("name", LABELS)
def test_classifiers(rows, classifiers, again, name):
    X = rows[0]
    model = classifiers[name]
    other = again(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.classes_.dtype == model.classes_.dtype
    assert other.history_ == model.history_
    assert (other.loss_, other.penalty_) == (model.loss_, model.penalty_)
    assert other.get_params() == model.get_params()


def test_parameters_of_a_classifier(again):
    options = {
        "kernel": k.Matern32(lengthscales=0.7),
        "class_weight": {"no": 1.0, 3: np.float64(2.0), (1, None): 4},
        "random_state": 3,
        "inference": SVI(batch_size=7, learning_rate=gb.inference.RobbinsMonro(30.0)),
    }
    model = gb.BSVMClassifier(**options)
    other = again(model).get_params()
    assert other.keys() == model.get_params().keys()
    assert other.pop("kernel").lengthscales.numpy() == 0.7
    assert other == {name: model.get_params()[name] for name in other}


@pytest.mark.slow
def test_names_of_columns(rows, again):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rows[0], columns=["width", "height"])
    model = gb.BSVMClassifier(**OPTIONS, standardize=False).fit(X, rows[1][:, 0])
    other = again(model)
    assert list(other.feature_names_in_) == ["width", "height"]
    assert other.scaler_ is None
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_linear_classifier_of_sparse_rows(rows, again, tmp_path):
    X = csr_array(np.where(np.abs(rows[0]) > 0.3, rows[0], 0.0))
    model = gb.BSVMClassifier(**OPTIONS | {"kernel": "linear"}).fit(X, rows[1][:, 0])
    p = model.predict_proba(X)
    np.testing.assert_array_equal(again(model).predict_proba(X), p)
    found = exported(model, tmp_path / "out")
    q = found.predict_proba(X.toarray())["probabilities"]
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-10)


def test_joblib_and_copies_work_as_ever(rows, classifiers, tmp_path):
    model = classifiers["strings"]
    joblib.dump(model, tmp_path / "model.joblib")
    for other in (joblib.load(tmp_path / "model.joblib"), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict_proba(rows[0]), model.predict_proba(rows[0]))


def test_priors_in_units_of_scaled_columns(again):
    kernel = k.ChangePoints([k.Matern32(), k.Matern12()], [3.0])
    kernel.locations.prior = tfp.distributions.Normal(np.float64(3.0), np.float64(2.0))
    scaled = on_scaled_columns(kernel, StandardScaler().fit([[5.0], [1.0]]))
    expected = tfp.distributions.Normal(np.float64(0.0), np.float64(1.0)).log_prob(0.0)
    for one in (scaled, again(scaled)):
        np.testing.assert_allclose(one.locations, [0.0], atol=1e-15)
        np.testing.assert_allclose(one.locations.log_prior_density(), expected)
