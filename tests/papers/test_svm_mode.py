"""The support vector machine that criteria look at: against SVC, least squares, ECM."""

import warnings

import gpflow
import numpy as np
import pytest
from helpers import kernel_with_offset as make_kernel
from helpers import make_data
from scipy.optimize import lsq_linear, nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from gpflow_bsvm.inference import ECM
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import BatchBSVM
from gpflow_bsvm.papers.gold2003 import (
    GACV,
    LaplaceEvidence,
    LeaveOneOut,
    mode_of_gram,
    svm_mode,
)
from gpflow_bsvm.papers.gold2003 import (
    mode as machines,
)

SLACKS = ("linear", "quadratic")


def violation(mode):
    """The largest violation of the conditions of optimality, in units of the margin."""
    return mode._dual().violation(mode.alpha)


@pytest.fixture(scope="module")
def data():
    return make_data(40)


@pytest.mark.parametrize("slack", SLACKS)
def test_mode_has_no_duality_gap(data, slack):
    for penalty in (1e-3, 0.3, 2.0, 100.0):
        mode = svm_mode(make_kernel(), data, penalty, slack=slack)
        alpha, weights = mode.alpha, mode.alpha * mode.y
        dual = alpha.sum() - weights @ mode.gram @ weights / 2
        dual -= 0.0 if slack == "linear" else alpha @ alpha / (2 * penalty)
        loss = np.maximum(1 - mode.margins, 0)
        loss = loss if slack == "linear" else loss**2 / 2
        primal = weights @ mode.latent / 2 + penalty * loss.sum()
        np.testing.assert_allclose(dual, primal, rtol=1e-11)
        assert violation(mode) < 1e-11
        assert (alpha >= 0).all()
        assert alpha.max() <= penalty or slack == "quadratic"


def test_mode_of_quadratic_slack_is_a_least_squares_problem(data):
    mode = svm_mode(make_kernel(), data, 2.0, slack="quadratic")
    Q = mode.gram * np.outer(mode.y, mode.y) + np.eye(40) / 2.0
    root = np.linalg.cholesky(Q).T
    alpha, _ = nnls(root, np.linalg.solve(root.T, np.ones(40)))
    np.testing.assert_allclose(mode.alpha, alpha, atol=1e-10)


def test_mode_of_linear_slack_is_a_bounded_least_squares_problem(data):
    kernel = make_kernel() + gpflow.kernels.White(0.01)  # for a Cholesky factor
    mode = svm_mode(kernel, data, 2.0)
    root = np.linalg.cholesky(mode.gram * np.outer(mode.y, mode.y)).T
    target = np.linalg.solve(root.T, np.ones(40))
    alpha = lsq_linear(root, target, bounds=(0, 2.0), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(mode.alpha, alpha, atol=1e-8)  # where BVLS stops
    assert set(mode.bounded) == set(np.flatnonzero(alpha > 2.0 - 1e-6))


def test_sets_are_those_of_the_paper(data):
    mode = svm_mode(make_kernel(), data, 2.0)
    z = mode.y * mode.latent
    np.testing.assert_allclose(z[mode.marginal], 1, atol=1e-12)
    assert (z[mode.bounded] <= 1).all() and (mode.alpha[mode.bounded] == 2.0).all()
    others = np.setdiff1d(np.arange(40), mode.support)
    assert (z[others] >= 1).all()
    assert min(map(len, (mode.marginal, mode.bounded, others))) > 0
    quadratic = svm_mode(make_kernel(), data, 2.0, slack="quadratic")
    z, support = quadratic.y * quadratic.latent, quadratic.support
    np.testing.assert_allclose(z[support], 1 - quadratic.alpha[support] / 2.0, atol=1e-12)
    assert len(quadratic.bounded) == 0


def test_an_offset_of_large_variance_is_the_free_bias_of_svc(data):
    smooth = gpflow.kernels.SquaredExponential(2.0)
    gram = smooth(data[0]).numpy()
    svc = SVC(kernel="precomputed", C=1.5, tol=1e-9).fit(gram, data[1][:, 0])
    offset = svm_mode(smooth + gpflow.kernels.Constant(1e4), data, 1.5)
    # it costs b^2 / 2e4, and LibSVM keeps the Gram matrix in single precision
    np.testing.assert_allclose(offset.latent, svc.decision_function(gram), atol=1e-3)
    np.testing.assert_array_equal(offset.support, np.sort(svc.support_))


def test_only_the_product_of_penalty_and_kernel_counts(data):
    for slack in SLACKS:
        mode = svm_mode(gpflow.kernels.SquaredExponential(2.0), data, 3.0, slack=slack)
        other = svm_mode(gpflow.kernels.SquaredExponential(6.0), data, 1.0, slack=slack)
        np.testing.assert_allclose(mode.latent, other.latent, atol=1e-11)
        np.testing.assert_allclose(mode.alpha, 3 * other.alpha, atol=1e-11)


def test_mode_predicts(data):
    kernel = make_kernel()
    mode = svm_mode(kernel, data, 1.5)
    np.testing.assert_allclose(mode.predict(kernel, data[0], data[0]), mode.latent, atol=1e-12)


@pytest.mark.drill
@pytest.mark.slow
def test_ecm_finds_the_same_mode(data):
    kernel = gpflow.kernels.Matern12(2.0)
    model = BatchBSVM(data, kernel, Hinge(1.5, "augmented"))
    ECM(max_steps=2000, tol=0.0).run(model)
    mode = svm_mode(kernel, data, 1.5)
    f = model.predict_f(data[0])[0].numpy()[:, 0]
    np.testing.assert_allclose(f, mode.latent, atol=1e-5)  # the jitter of 1e-6 times alpha


# --- bad input -----------------------------------------------------------------------------------


def test_bad_gram_matrices():
    Y = np.array([[1], [0], [1]])
    eye = np.eye(3)
    with pytest.raises(ValueError, match=r"of 3 labels must be square, got \(2, 2\)"):
        mode_of_gram(np.eye(2), Y, 1.0)
    skewed = eye + np.array([[0, 0.5, 0], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"K and K\.T differ by 0\.5"):
        mode_of_gram(skewed, Y, 1.0)
    with pytest.raises(ValueError, match="Gram matrix contains NaN"):
        mode_of_gram(eye * np.nan, Y, 1.0)
    with pytest.raises(ValueError, match=r"not positive semidefinite.*eigenvalue is -1"):
        mode_of_gram(-eye, Y, 1.0)


def test_bad_data_and_kernels(data):
    X, Y = data
    with pytest.raises(ValueError, match="slack must be one of"):
        svm_mode(make_kernel(), data, 1.0, slack="cubic")
    with pytest.raises(ValueError, match="one class only"):
        svm_mode(make_kernel(), (X, np.ones((40, 1))), 1.0)
    with pytest.raises(ValueError, match="must be in"):
        svm_mode(make_kernel(), (X, Y + 3), 1.0)
    with pytest.raises(ValueError, match=r"must form a single column, got shape \(40, 2\)"):
        svm_mode(make_kernel(), (X, np.hstack([Y, 1 - Y])), 1.0)
    with pytest.raises(TypeError, match="kernel of one latent function, got str"):
        svm_mode("rbf", data, 1.0)
    with pytest.raises(ValueError, match="X has 40 rows and Y has 3; they must be equal"):
        svm_mode(gpflow.kernels.Matern12(), (X, Y[:3]), 1.0)
    with pytest.raises(TypeError, match="data must be a pair of arrays"):
        svm_mode(gpflow.kernels.Matern12(), (X, Y, Y), 1.0)
    with pytest.raises(ValueError, match=r"Matern12 cannot be called with inputs of . columns"):
        svm_mode(gpflow.kernels.Matern12(active_dims=[9]), data, 1.0)
    with pytest.raises(ValueError, match="overflows"):
        svm_mode(gpflow.kernels.Linear(1e308), (1e10 * X, Y), 1.0)


def test_separable_data_are_a_machine_like_others():
    X = np.array([[-2.0], [-1.5], [1.5], [2.0]])
    Y = np.array([[0.0], [0.0], [1.0], [1.0]])
    kernel = gpflow.kernels.Linear(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mode = svm_mode(kernel, (X, Y), 1e6)
        assert len(mode.bounded) == 0 and len(mode.marginal) > 0
        np.testing.assert_allclose(mode.latent, X[:, 0] / 1.5, atol=1e-9)
        assert np.isfinite(LaplaceEvidence().of_mode(mode))
        assert GACV().of_mode(mode) >= 0
        assert LeaveOneOut()(kernel, (X, Y), 1e6) == 0


def test_equal_rows(data):
    X, Y = (np.concatenate([part, part]) for part in data)
    mode = svm_mode(make_kernel(), (X, Y), 1.0)
    assert violation(mode) < 1e-9
    once = svm_mode(make_kernel(), data, 2.0)
    np.testing.assert_allclose(mode.latent[:40], once.latent, atol=1e-8)
    assert np.isfinite(LaplaceEvidence().of_mode(mode))


def test_a_gram_matrix_of_no_kernel_is_told():
    gram = np.array([[0.1, 2.0], [2.0, 0.1]])
    with pytest.raises(ValueError, match=r"not positive semidefinite.*eigenvalue is -1\.9"):
        mode_of_gram(gram, [[1], [0]], 5.0)


def test_what_is_not_solved_is_told(data, monkeypatch):
    monkeypatch.setattr(machines, "_CHANGES", 0)
    monkeypatch.setattr(machines, "_MOST_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="not solved: a margin is wrong by"):
        svm_mode(make_kernel(), data, 5.0)


@pytest.mark.parametrize("slack", SLACKS)
def test_where_libsvm_stops_early_rows_change_one_by_one(data, slack, monkeypatch):
    expected = svm_mode(make_kernel(), data, 5.0, slack=slack)
    monkeypatch.setattr(machines, "_MOST_STEPS", 1)
    mode = svm_mode(make_kernel(), data, 5.0, slack=slack)
    np.testing.assert_allclose(mode.latent, expected.latent, atol=1e-11)


@pytest.mark.parametrize("equal", [False, True])
def test_a_large_penalty_and_few_dimensions(equal):
    """LibSVM's sets are far off: most of the margin moves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    Y = (X + 0.7 * rng.normal(size=(60, 1)) > 0).astype(float)
    X, Y = (np.concatenate([part, part]) for part in (X, Y)) if equal else (X, Y)
    mode = svm_mode(make_kernel(), (X, Y), 1e4)
    assert violation(mode) < 1e-9 * mode.penalty
