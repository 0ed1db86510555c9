"""`OneClassBSVM`: how many rows are flagged, sparse rows, and when there are probabilities."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import norm
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb
from gpflow_bsvm import OneClassBSVM
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators import large

HALVES = slice(30), slice(30, None)


def grid(number):
    """Rows of which four or eight each have the same score, but for rounding."""
    steps = np.arange(float(number))
    return np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "nu"), [(8, 0.05), (8, 0.3), (11, 0.1), (16, 0.3)])
def test_at_most_nu_of_the_rows_are_flagged(number, nu):
    X = grid(number)
    detector = OneClassBSVM(nu=nu, num_inducing=20).fit(X)
    assert np.mean(detector.predict(X) == -1) <= nu
    # In other company a score is rounded otherwise.
    assert np.mean([detector.predict(x[None])[0] == -1 for x in X]) <= nu


def test_at_most_nu_of_the_weight_is_flagged():
    X, weight = grid(9), np.arange(81) % 4
    detector = OneClassBSVM(nu=0.15, num_inducing=20).fit(X, sample_weight=weight)
    flagged = weight @ (detector.predict(X) == -1) / weight.sum()
    assert 0 < flagged <= 0.15


@pytest.mark.parametrize(("rows", "flagged"), [(9, 0), (10, 1), (100, 10), (101, 10)])
def test_nothing_else_is_spared(rows, flagged):
    """Without ties nu times the number of rows are flagged, rounded down."""
    X = np.random.default_rng(0).normal(size=(rows, 2))
    assert (OneClassBSVM(nu=0.1).fit(X).predict(X) == -1).sum() == flagged


@pytest.mark.filterwarnings("ignore:the kernel hardly distinguishes rows")
def test_the_penalty_is_that_of_all_rows_of_a_source(monkeypatch):
    """Before, it was that of the sample, and so too large by the ratio of all rows to these."""
    monkeypatch.setattr(large, "SAMPLE_ROWS", 60)
    X = np.zeros((240, 2))
    expected = OneClassBSVM(random_state=0).fit(X)
    found = OneClassBSVM(random_state=0).fit(Blocks([X[:100], X[100:]]))
    np.testing.assert_allclose(found.penalty_, expected.penalty_, rtol=1e-6)
    np.testing.assert_allclose(found.score_samples(X), expected.score_samples(X), rtol=1e-3)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_a_source_of_few_rows_is_fitted_as_in_memory(seed):
    """To the last bit, also if sums of weights depend on their order."""
    X, _ = make_moons(70, noise=0.3, random_state=0)
    X = np.round(X, 1)
    weight = np.random.default_rng(seed).uniform(0.1, 2, 70)
    expected = OneClassBSVM(num_inducing=9).fit(X, sample_weight=weight)
    rows = Blocks([(X[part], np.ones((len(X[part]), 1)), weight[part]) for part in HALVES])
    assert OneClassBSVM(num_inducing=9).fit(rows).penalty_ == expected.penalty_


@pytest.mark.parametrize("form", [csr_array, csr_matrix])
def test_sparse_rows_and_a_linear_kernel(form):
    X = np.random.default_rng(0).random((60, 20)) * (np.random.default_rng(1).random(20) < 0.7)
    how = {"kernel": "linear", "standardize": False}
    dense, sparse = OneClassBSVM(**how).fit(X), OneClassBSVM(**how).fit(form(X))
    np.testing.assert_allclose(sparse.score_samples(form(X)), dense.score_samples(X), rtol=1e-4)
    np.testing.assert_array_equal(sparse.predict(form(X)), dense.predict(X))
    scaled = OneClassBSVM("linear").fit(form(X))  # divided by deviations, 0 stays 0
    assert 0 < np.mean(scaled.predict(form(X)) == -1) <= 0.1


def test_probabilities_need_labels(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    detector = OneClassBSVM(num_inducing=10).fit(X)
    assert not hasattr(detector, "predict_proba")
    with pytest.raises(AttributeError) as error:
        detector.predict_proba(X)
    assert isinstance(error.value.__cause__, NotFittedError)
    assert "gpflow_bsvm.prediction.calibrate(estimator, (X, y)" in str(error.value.__cause__)
    for name in ("predict_probabilities", "variation_ratio", "margin", "expected_error"):
        with pytest.raises(NotFittedError, match="probabilities need labelled rows"):
            getattr(gb.prediction, name)(detector, X)
    both = np.concatenate([X, X + 3]), np.repeat([1, -1], 100)
    gb.prediction.calibrate(detector, both, held_out=True)
    assert gb.prediction.margin(detector, X).shape == (100,)
    gb.save(detector, tmp_path / "model")
    again = gb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), detector.predict_proba(X))


def test_probabilities_follow_the_score():
    """Far from all rows they end at Phi(offset) and not at 1/2, however large the variance of f."""
    rng = np.random.default_rng(0)
    detector = OneClassBSVM(num_inducing=20).fit(rng.normal(size=(100, 2)))
    X = np.concatenate([rng.normal(size=(100, 2)), rng.uniform(-8, 8, (40, 2))])
    gb.prediction.calibrate(detector, (X, np.repeat([1, -1], [100, 40])), held_out=True)
    P, link = detector.predict_proba(X)[:, 1], detector.model_.likelihood
    z = link.scale.numpy() * detector.score_samples(X) + link.offset.numpy()
    np.testing.assert_allclose(P, norm.cdf(z), rtol=1e-10)
    far = detector.predict_proba(np.full((1, 2), 50.0))[0, 1]
    np.testing.assert_allclose(far, norm.cdf(link.offset.numpy()), rtol=1e-10)
    with pytest.raises(ValueError, match="y must be numbers, got 'in'"):
        gb.prediction.calibrate(detector, (X, np.repeat("in", 140)), held_out=True)


def test_numpys_global_generator_is_not_used():
    """LibSVM takes a seed from it, although it draws nothing."""
    generator = np.random.mtrand._rand
    before = str(generator.get_state(legacy=False))
    OneClassBSVM(random_state=0).fit(grid(5))
    assert str(generator.get_state(legacy=False)) == before


def test_a_warning_of_few_inducing_points_says_so():
    X, _ = make_moons(200, noise=0.2, random_state=0)
    with pytest.warns(UserWarning, match="the inducing points are many .* a larger num_inducing"):
        OneClassBSVM(num_inducing=10).fit(X)
