"""Data whose class probabilities are known."""

import numpy as np
import pytest

from gpflow_bsvm import generated
from gpflow_bsvm.generated import SusyLike


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(generated, "BLOCK_ROWS", 500)


def test_rows_depend_on_seed_and_number_only():
    X, Y = SusyLike(1300).arrays()
    assert X.shape == (1300, len(generated.SUSY_FEATURES)) and Y.shape == (1300, 1)
    for start, number in ((0, 700), (500, 500), (499, 2), (700, 600)):
        source = SusyLike(number, start=start)
        assert len(list(source)) == len(source)
        for _ in range(2):  # the same each time
            part, labels = source.arrays()
            np.testing.assert_array_equal(part, X[start : start + number])
            np.testing.assert_array_equal(labels, Y[start : start + number])
    assert np.abs(SusyLike(10, seed=1).arrays()[0] - X[:10]).min() > 0


def test_labels_follow_the_known_probabilities():
    X, Y = SusyLike(20_000).arrays()
    p = SusyLike.probability(X)
    groups = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    for group in range(10):
        here = groups == group
        z = (Y[here, 0] - p[here]).sum() / np.sqrt((p * (1 - p))[here].sum())
        assert abs(z) < 4  # standard errors
    assert np.isfinite(X).all() and set(np.unique(Y)) == {0.0, 1.0}
    np.testing.assert_allclose(np.minimum(p, 1 - p).mean(), 0.206, atol=0.005)  # as documented


def test_features_are_made_of_the_first_eight():
    X, _ = SusyLike(50).arrays()
    a, b = (
        np.array([p * np.cos(phi), p * np.sin(phi)])
        for p, phi in X[:, [0, 2, 3, 5]].reshape(50, 2, 2).transpose(1, 2, 0)
    )
    np.testing.assert_allclose(X[:, 9], np.linalg.norm(a + b, axis=0), rtol=1e-10)


@pytest.mark.parametrize("wrong", [{"num_rows": 0}, {"num_rows": 5, "start": -1}])
def test_bad_sizes(wrong):
    with pytest.raises(ValueError, match="must be at least"):
        SusyLike(**wrong)
