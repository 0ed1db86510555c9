"""Scales of columns with two values, and transforms of skewed columns."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import fixed_classifier as fixed
from scipy.sparse import csr_array, csr_matrix
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm import BSVMClassifier, BSVMRegressor, OneClassBSVM
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators import scaling


def columns():
    """:return: [40, 8], a rare code, and others of two and three values."""
    rng = np.random.default_rng(0)
    rare = (np.arange(40) < 2).astype(float)
    some = (np.arange(40) < 10).astype(float)
    balanced = rng.permutation(np.repeat([0.0, 3.0], 20))
    three = np.where(rare, -1.0, some)
    return np.column_stack(
        [rng.normal(size=40), rare, -4 * some, balanced, three, some + rare, np.ones(40), 2 - some]
    )


def with_stored_zeros(X):
    sparse = csr_matrix(np.where(X == 0, np.inf, X))
    sparse.data[np.isinf(sparse.data)] = 0.0
    return sparse


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, csr_array, with_stored_zeros])
def test_two_values_are_two_apart(form):
    X = columns()
    scaler = scaling.make_scaler(form(X), np.ones(len(X)))
    expected = scaler.scale_.copy()
    expected[[1, 2]] = [0.5, 2.0]
    if form is np.asarray:
        expected[7] = 0.5
    scaling.scale_two_values(scaler, form(X))
    np.testing.assert_allclose(scaler.scale_, expected, rtol=1e-15)
    np.testing.assert_allclose(scaler.scale_[3], X[:, 3].std(), rtol=1e-15)


@pytest.mark.parametrize("pieces", [False, True])
def test_rare_codes_are_scaled_in_every_fit(pieces):
    X = columns()
    y = X[:, 0] > 0
    rows = (Blocks([(X, y[:, None] * 1.0)]),) if pieces else (X, y)
    kernel = gpflow.kernels.SquaredExponential()
    given = {"learn_kernel": False, "penalty": 1.0, "calibrate": False, "num_inducing": 3}
    found = BSVMClassifier(kernel, **given).fit(*rows)
    np.testing.assert_allclose(found.scaler_.scale_[[0, 1]], [X[:, 0].std(), 0.5], rtol=1e-12)
    np.testing.assert_allclose(found.scaler_.transform(X)[:, 1].mean(), 0.0, atol=1e-12)


# --- skewed columns ------------------------------------------------------------------------------


def skewed(N=300):
    """:return: [N, 5], columns of which the first, third and fourth are skewed."""
    rng = np.random.default_rng(0)
    rare = (rng.random(N) < 0.1) * rng.exponential(size=N)
    heavy, light = np.exp(2.5 * rng.normal(size=N)), rng.normal(size=N)
    few = rng.choice(3, N, p=[0.96, 0.03, 0.01])
    return np.column_stack([heavy, light, -rng.gamma(0.1, size=N), rare, few])


def scaler_of(X, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    scaler = scaling.make_scaler(X, weight)
    scaling.scale_two_values(scaler, X)
    scaler.take_logs(X, weight)
    return scaler


def test_logarithms_are_taken_of_skewed_columns():
    X = skewed()
    scaler, plain = scaler_of(X), StandardScaler().fit(X)
    found, ones = scaler.transform(X), np.ones(len(X))
    np.testing.assert_array_equal(scaler.logs_[1] > 0, [True, False, True, True, False])
    np.testing.assert_allclose(found[:, [1, 4]], plain.transform(X)[:, [1, 4]], rtol=1e-13)
    for column in (0, 2, 3):
        q = scaling.symmetric_quantiles(X[:, column], ones, scaling.LEVELS)
        median, distance = np.median(q), np.abs(q - np.median(q)).mean()
        z, of_q = ((values - median) / distance for values in (X[:, column], q))
        log, of_q = (np.sign(values) * np.log1p(np.abs(values)) for values in (z, of_q))
        np.testing.assert_allclose(found[:, column], (log - of_q.mean()) / of_q.std(), atol=1e-10)
    np.testing.assert_allclose(scaler.inverse_transform(found), X, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaling.scale(scaler, X), found, rtol=1e-13, atol=1e-13)


def test_tensors_are_transformed_likewise():
    X = skewed()
    scaler = scaler_of(X)
    X[5] = scaler.mean_  # where z changes its sign
    at, step = tf.constant(X), 1e-6 * scaler.scale_
    with tf.GradientTape() as tape:
        tape.watch(at)
        tensor = scaling.model_input(scaler, at)
    np.testing.assert_allclose(tensor, scaler.transform(X), rtol=1e-12, atol=1e-12)
    slope = (scaler.transform(X + step) - scaler.transform(X - step)) / (2 * step)
    np.testing.assert_allclose(tape.gradient(tensor, at), slope, rtol=1e-5)  # differences
    single = scaling.model_input(scaler, tf.constant(X, tf.float32))
    assert single.dtype == tf.float32


def test_values_of_a_tail_stay_apart():
    """A power below 0 would make them nearly equal, for example in a column with many zeros."""
    rng = np.random.default_rng(0)
    X = np.where(np.arange(400) < 360, 0.0, rng.exponential(size=400))[:, None]
    largest = np.sort(scaler_of(X).transform(X)[:, 0])[-20:]
    assert np.ptp(largest) > 0.5


def test_rows_that_are_far_from_all_others_stay_far():
    """Then the model knows that it has not seen such rows."""
    X = skewed(60)
    found = fixed(num_inducing=5).fit(X, labels(X))
    ways = np.repeat(np.eye(X.shape[1]), 2, axis=0) * np.tile([[1.0], [-1.0]], (X.shape[1], 1))
    far = X.mean(axis=0) + 1e9 * X.std(axis=0) * ways
    np.testing.assert_allclose(found.predict_proba(far), 0.5, atol=1e-6)


def test_a_value_far_beyond_all_others_leaves_them_apart():
    X = np.exp(2.0 * np.random.default_rng(0).normal(size=(200, 1)))
    X[0] = -1e300
    weight = np.where(np.arange(200) == 0, 1e-300, 1.0)
    Z = scaler_of(np.where(X < 0, -1e100, X), weight).transform(X)
    assert np.isfinite(Z).all()
    assert len(np.unique(Z)) == 200
    assert Z[1:].std() > 0.5


def test_a_scaler_that_is_fitted_again_has_no_transforms():
    X = skewed()
    scaler = scaler_of(X).fit(X[:, ::-1])
    np.testing.assert_array_equal(
        scaler.transform(X), StandardScaler().fit(X[:, ::-1]).transform(X)
    )


@pytest.mark.parametrize("factor", [1e-6, 1e6, -1.0])
def test_the_transform_does_not_depend_on_units(factor):
    X = skewed()
    expected = scaler_of(X).transform(X) * np.sign(factor)
    moved = factor * X + 3 * factor
    np.testing.assert_allclose(scaler_of(moved).transform(moved), expected, atol=1e-8)


def test_weights_are_repetitions_of_rows():
    X = skewed()
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    many = np.random.default_rng(2).permutation(np.repeat(X, weight, axis=0))
    expected = scaler_of(many).transform(X)
    np.testing.assert_allclose(scaler_of(X, weight * 1.0).transform(X), expected, atol=1e-10)


def labels(X):
    return np.where(np.log(X[:, 0]) + X[:, 1] > 0, "b", "a")


def test_only_default_kernels_of_classifiers_see_transformed_columns():
    X = skewed(60)
    y, few = labels(X), {"num_inducing": 5}
    kernel = gpflow.kernels.SquaredExponential()
    straight = [
        fixed(kernel=kernel, **few).fit(X, y),
        fixed(standardize=False, **few).fit(X, y),
        fixed(kernel="linear", **few).fit(X, y),
        OneClassBSVM(num_inducing=5).fit(X),
        BSVMRegressor(num_inducing=5, learn_kernel=False).fit(X, X[:, 1]),
    ]
    assert all(getattr(model.scaler_, "logs_", None) is None for model in straight)
    assert fixed(**few).fit(X, y).scaler_.logs_ is not None


def test_the_fit_is_the_fit_to_transformed_columns(tmp_path):
    """Predictions, files, exports and pieces of rows see the same columns."""
    X = skewed(60)
    y, new = labels(X), skewed(80)[60:] * 3
    found = fixed(num_inducing=7).fit(X, y)
    seen = found.scaler_.transform
    direct = fixed(num_inducing=7, standardize=False).fit(seen(X), y)
    expected = found.predict_proba(new)
    np.testing.assert_allclose(direct.predict_proba(seen(new)), expected, atol=1e-8)
    gb.save(found, tmp_path / "model")
    np.testing.assert_array_equal(gb.load(tmp_path / "model").predict_proba(new), expected)
    gb.export(found, tmp_path / "exported")
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    np.testing.assert_allclose(loaded.predict_proba(new)["probabilities"], expected, atol=1e-10)
    pieces = fixed(num_inducing=7).fit(Blocks([(X, (y == "b")[:, None] * 1.0)]))
    np.testing.assert_allclose(pieces.predict_proba(new), expected, atol=1e-8)
