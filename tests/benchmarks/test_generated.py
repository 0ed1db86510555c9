"""Data whose class probabilities are known."""

import importlib
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def generated(monkeypatch):
    """The module, with small blocks."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    module = importlib.import_module("generated")
    monkeypatch.setattr(module, "BLOCK_ROWS", 500)
    return module


@pytest.fixture
def SusyLike(generated):
    return generated.SusyLike


def test_rows_depend_on_seed_and_number_only(SusyLike, generated):
    X, Y = SusyLike(1300).arrays()
    assert X.shape == (1300, len(generated.SUSY_FEATURES)) and Y.shape == (1300, 1)
    for start, number in ((0, 700), (500, 500), (499, 2), (700, 600)):
        source = SusyLike(number, start=start)
        for _ in range(2):  # the same each time
            part, labels = source.arrays()
            np.testing.assert_array_equal(part, X[start : start + number])
            np.testing.assert_array_equal(labels, Y[start : start + number])
    assert np.abs(SusyLike(10, seed=1).arrays()[0] - X[:10]).min() > 0


def test_labels_follow_the_known_probabilities(SusyLike):
    X, Y = SusyLike(20_000).arrays()
    p = SusyLike.probability(X)
    groups = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    for group in range(10):
        here = groups == group
        z = (Y[here, 0] - p[here]).sum() / np.sqrt((p * (1 - p))[here].sum())
        assert abs(z) < 4  # standard errors
    assert np.isfinite(X).all() and set(np.unique(Y)) == {0.0, 1.0}
    np.testing.assert_allclose(np.minimum(p, 1 - p).mean(), 0.206, atol=0.005)  # as documented


def test_features_are_made_of_the_first_eight(SusyLike):
    X, _ = SusyLike(50).arrays()
    a, b = (
        np.array([p * np.cos(phi), p * np.sin(phi)])
        for p, phi in X[:, [0, 2, 3, 5]].reshape(50, 2, 2).transpose(1, 2, 0)
    )
    np.testing.assert_allclose(X[:, 9], np.linalg.norm(a + b, axis=0), rtol=1e-10)
