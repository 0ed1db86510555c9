"""Scales of columns with two values."""

import gpflow
import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators import inputs


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
    scaler = inputs.make_scaler(form(X), np.ones(len(X)))
    expected = scaler.scale_.copy()
    expected[[1, 2]] = [0.5, 2.0]
    if form is np.asarray:
        expected[7] = 0.5
    inputs.scale_two_values(scaler, form(X))
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
