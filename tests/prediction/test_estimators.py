"""The functions of `prediction`, of an estimator in the place of a model."""

import numpy as np
import pytest
from helpers import fixed_classifier as fixed
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    return fixed(num_inducing=15, random_state=0).fit(*moons)


def of_rows():
    """Functions of a model and X, and of a model and (X, Y)."""
    plain = ("variation_ratio", "predictive_entropy", "mutual_information", "margin")
    plain += ("latent_variance", "predict_probabilities", "draw_probabilities", "expected_error")
    labelled = (
        "predict_log_density",
        "leave_one_out_density",
        "augmented_elbo",
        "soft_support_vectors",
    )
    return [*((name, False) for name in plain), *((name, True) for name in labelled)]


@pytest.mark.parametrize(("name", "labelled"), of_rows())
def test_doubt_of_an_estimator_is_that_of_its_model_on_scaled_rows(moons, fitted, name, labelled):
    X, y = moons
    function, seen = getattr(gb.prediction, name), fitted.scaler_.transform(X)
    theirs, ours = ((X, y), (seen, y[:, None].astype(float))) if labelled else (X, seen)
    found, expected = function(fitted, theirs), function(fitted.model_, ours)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_of_dask_are_taken_with_their_labels(moons):
    array = pytest.importorskip("dask.array", reason="needs the extra `dask`")
    X, y = moons
    fitted = fixed(num_inducing=15, class_weight={0: 1.0, 1: 5.0}, random_state=0).fit(X, y)
    rows = array.from_array(X, chunks=(50, 2)), array.from_array(y, chunks=50)
    for name in ("predict_log_density", "leave_one_out_density"):
        function = getattr(gb.prediction, name)
        np.testing.assert_allclose(function(fitted, rows), function(fitted, moons), rtol=1e-12)
    weight = np.linspace(0.5, 2, len(y))
    found = gb.prediction.leave_one_out_density(
        fitted, rows, sample_weight=array.from_array(weight, chunks=50)
    )
    own = gb.prediction.leave_one_out_density(fitted, moons, sample_weight=weight)
    np.testing.assert_allclose(found, own, rtol=1e-12)


def test_labels_of_an_estimators_rows_are_its_users(moons):
    X, y = moons
    named = fixed(num_inducing=15, random_state=0).fit(X, np.where(y == 1, "yes", "no"))
    before = gb.prediction.leave_one_out_density(named, data=(X, np.where(y == 1, "yes", "no")))
    gb.prediction.calibrate(named, (X, np.where(y == 1, "yes", "no")))
    after = gb.prediction.leave_one_out_density(named, (X, np.where(y == 1, "yes", "no")))
    assert after >= before - 1e-9
    with pytest.raises(ValueError, match="previously unseen labels: \\['maybe'\\]"):
        gb.prediction.predict_log_density(named, (X, np.full(len(X), "maybe")))


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 5.0}, "balanced"])
def test_rows_weigh_as_in_the_estimators_fit(moons, class_weight):
    X, y = (part[20:] for part in moons)
    X, y = X[(y == 1) | (X[:, 0] < 0)], y[(y == 1) | (X[:, 0] < 0)]
    fitted = fixed(loss="hinge", calibrate=True, class_weight=class_weight).fit(X, y)
    link = [float(part.numpy()) for part in fitted.model_.likelihood.link_parameters.values()]
    half = len(y) // 2
    pieces = gb.data.Blocks([(X[:half], y[:half, None]), (X[half:], y[half:, None])])
    share = {"sample_weight": np.full(len(y), 1 / len(y))}  # a fit rescales these to 1
    for rows, weight in (((X, y), {}), ((X, y), share), (pieces, {})):
        found = gb.prediction.calibrate(fitted, rows, **weight)
        np.testing.assert_allclose(list(found.values()), link, rtol=1e-4)


def test_a_row_counts_as_in_the_fit_however_many_rows_are_given(moons):
    """Fits merge equal rows and drop rows of weight 0; more rows may be learned, or fewer asked."""
    X, y = moons
    weight = np.repeat([0.0, 1.0, 2.0], 40)
    again = np.repeat(np.arange(120), weight.astype(int))
    fitted = fixed(num_inducing=15, random_state=0).fit(X, y, weight)
    weighted = gb.prediction.augmented_elbo(fitted, (X, y), sample_weight=weight)
    repeated = gb.prediction.augmented_elbo(fitted, (X[again], y[again]))
    np.testing.assert_allclose(repeated, weighted, rtol=1e-9)
    for _ in range(2):
        whole = gb.prediction.leave_one_out(fitted, (X, y), sample_weight=weight)
        part = gb.prediction.leave_one_out(fitted, (X[40:80], y[40:80]))
        for found, expected in zip(part, whole):
            np.testing.assert_allclose(found, expected[40:80], rtol=1e-9)
        fitted.partial_fit(X[:40], y[:40])


def test_what_is_neither_model_nor_estimator_is_refused(moons):
    with pytest.raises(TypeError, match=r"margin needs a model .* or an estimator, got dict"):
        gb.prediction.margin({}, moons[0])
    with pytest.raises(NotFittedError):
        gb.prediction.margin(gb.BSVMClassifier(), moons[0])
