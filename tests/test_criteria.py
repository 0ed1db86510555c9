"""Choice of kernel and penalty by the support vector machine: Gold & Sollich (2003), plug-in."""

import dataclasses
import itertools
import warnings

import gpflow
import numpy as np
import pytest
from conftest import make_data
from scipy.optimize import lsq_linear, nnls
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.inference import ECM
from gpflow_bsvm.likelihoods import Hinge, NormalizedHinge, PolyaGammaLogistic, SquaredHinge
from gpflow_bsvm.model_selection import (
    GACV,
    Criterion,
    HeldOutDensity,
    LaplaceEvidence,
    LeaveOneOut,
    LeaveOneOutDensity,
    QuadraticLaplaceEvidence,
    SmoothedSpan,
    Span,
    VariationalBound,
    held_out_density,
    leave_one_out_density,
    left_out_margins,
    mode_of_gram,
    mode_of_model,
    optimise,
    plug_in,
    random_starts,
    start_from,
    svm_mode,
)
from gpflow_bsvm.model_selection.laplace import log_kappa_quadratic
from gpflow_bsvm.models import BSVM, BatchBSVM

SLACKS = ("linear", "quadratic")


def make_kernel():
    """With an offset, which is the paper's bias."""
    smooth = gpflow.kernels.SquaredExponential(2.0, lengthscales=[0.7, 1.2])
    return smooth + gpflow.kernels.Constant(0.1)


@pytest.fixture(scope="module")
def data():
    return make_data(40)


def some_modes(data, slack):
    return [svm_mode(make_kernel(), data, penalty, slack=slack) for penalty in (0.3, 2.0, 50.0)]


# --- the machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("free_bias", [False, True])
def test_mode_has_no_duality_gap(data, slack, free_bias):
    for penalty in (1e-3, 0.3, 2.0, 100.0):
        mode = svm_mode(make_kernel(), data, penalty, slack=slack, free_bias=free_bias)
        alpha, weights = mode.alpha, mode.alpha * mode.y
        dual = alpha.sum() - weights @ mode.gram @ weights / 2
        dual -= 0.0 if slack == "linear" else alpha @ alpha / (2 * penalty)
        np.testing.assert_allclose(dual, mode.objective, rtol=1e-11)
        assert mode.violation < 1e-11
        assert (alpha >= 0).all()
        assert alpha.max() <= penalty or slack == "quadratic"
        assert abs(weights.sum()) < 1e-9 or not free_bias


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


def test_mode_with_a_free_bias_is_svc(data):
    mode = svm_mode(make_kernel(), data, 1.5, free_bias=True)
    svc = SVC(kernel="precomputed", C=1.5, tol=1e-9).fit(mode.gram, data[1][:, 0])
    # LibSVM keeps the Gram matrix in single precision
    np.testing.assert_allclose(mode.latent, svc.decision_function(mode.gram), atol=1e-5)
    np.testing.assert_array_equal(mode.support, svc.support_)


def test_an_offset_of_large_variance_is_a_free_bias(data):
    smooth = gpflow.kernels.SquaredExponential(2.0)
    free = svm_mode(smooth, data, 1.5, free_bias=True)
    offset = svm_mode(smooth + gpflow.kernels.Constant(1e4), data, 1.5)
    np.testing.assert_allclose(offset.latent, free.latent, atol=1e-3)  # it costs b^2 / 2e4


def test_only_the_product_of_penalty_and_kernel_counts(data):
    for slack in SLACKS:
        mode = svm_mode(gpflow.kernels.SquaredExponential(2.0), data, 3.0, slack=slack)
        other = svm_mode(gpflow.kernels.SquaredExponential(6.0), data, 1.0, slack=slack)
        np.testing.assert_allclose(mode.latent, other.latent, atol=1e-11)
        np.testing.assert_allclose(mode.alpha, 3 * other.alpha, atol=1e-11)


def test_mode_predicts(data):
    kernel = make_kernel()
    mode = svm_mode(kernel, data, 1.5, free_bias=True)
    np.testing.assert_allclose(mode.predict(kernel, data[0], data[0]), mode.latent, atol=1e-12)


def test_ecm_finds_the_same_mode(data):
    kernel = gpflow.kernels.Matern12(2.0)
    model = BatchBSVM(data, kernel, Hinge(1.5, "augmented"))
    ECM(max_steps=5000, tol=0.0).run(model)
    mode = svm_mode(kernel, data, 1.5)
    f = model.predict_f(data[0])[0].numpy()[:, 0]
    np.testing.assert_allclose(f, mode.latent, atol=1e-5)  # the jitter of 1e-6 times alpha
    of_model = mode_of_model(model)
    np.testing.assert_allclose(of_model.alpha, mode.alpha, atol=1e-10)
    for rows in ("marginal", "bounded", "support"):
        np.testing.assert_array_equal(getattr(of_model, rows), getattr(mode, rows))
    with pytest.raises(ValueError, match="no point"):
        gb.fit(model)
        mode_of_model(model)
    with pytest.raises(TypeError, match="BatchBSVM with likelihood Hinge"):
        mode_of_model(BatchBSVM(data, kernel, NormalizedHinge()))


# --- estimates of the leave-one-out error --------------------------------------------------------


def brute_force(kernel, data, penalty, slack):
    """y_n f(x_n) of machines that have not seen row n, by another path: rows, not Gram matrices."""
    X, Y = data
    margins = []
    for n in range(len(X)):
        rest = np.delete(np.arange(len(X)), n)
        mode = svm_mode(kernel, (X[rest], Y[rest]), penalty, slack=slack)
        margins.append(float(mode.predict(kernel, X[rest], X[n : n + 1])[0] * (2 * Y[n, 0] - 1)))
    return np.array(margins)


@pytest.mark.parametrize("slack", SLACKS)
def test_leave_one_out_is_that(data, slack):
    data = tuple(part[:20] for part in data)
    margins = brute_force(make_kernel(), data, 2.0, slack)
    mode = svm_mode(make_kernel(), data, 2.0, slack=slack)
    np.testing.assert_allclose(left_out_margins(mode), margins, atol=1e-10)
    assert LeaveOneOut(slack)(make_kernel(), data, 2.0) == (margins <= 0).mean() > 0


def test_span_is_exact_where_support_vectors_stay(data):
    mode = svm_mode(make_kernel(), data, 0.1, slack="quadratic")
    assert len(mode.support) == 40  # and none of them can end to be one: all f are small
    left_out = left_out_margins(mode)
    np.testing.assert_allclose(Span().left_out_margins(mode), left_out, atol=1e-10)
    assert Span().of_mode(mode) == (left_out <= 0).mean() > 0


def test_span_is_nearly_exact_where_few_change(data):
    mode = svm_mode(make_kernel(), data, 3.0, slack="quadratic")
    assert 0 < len(mode.support) < 40
    span, left_out = Span().left_out_margins(mode), left_out_margins(mode)
    assert 0 < np.abs(span - left_out).max() < 0.4  # the assumption does not hold for all
    assert abs(Span().of_mode(mode) - (left_out <= 0).mean()) <= 2 / 40


def test_span_is_its_minimisation_problem(data):
    mode = svm_mode(make_kernel(), data, 3.0, slack="quadratic")
    rows = mode.support
    B = mode.gram[np.ix_(rows, rows)] + np.eye(len(rows)) / 3.0
    for n in (0, 3):
        others = np.delete(np.arange(len(rows)), n)  # lambda_n = -1, eq. 11
        best = np.linalg.solve(B[np.ix_(others, others)], B[others, n])
        span = B[n, n] - best @ B[others, n]
        margin = 1 - mode.alpha[rows[n]] * span
        np.testing.assert_allclose(Span().left_out_margins(mode)[rows[n]], margin, atol=1e-12)


def test_smoothed_span_by_the_papers_formula(data):
    mode = svm_mode(make_kernel(), data, 3.0, slack="quadratic")
    rows = mode.support
    alpha = mode.alpha[rows]
    B = mode.gram[np.ix_(rows, rows)] + np.eye(len(rows)) / 3.0
    squares = 1 / np.linalg.inv(B + 0.7 * np.diag(1 / alpha)).diagonal() - 0.7 / alpha
    x = np.append(alpha * squares, np.zeros(40 - len(rows))) - 1
    expected = (1 / (1 + np.exp(-4 * x + 0.3))).mean()
    found = SmoothedSpan(c1=4.0, c2=0.3, eta=0.7).of_mode(mode)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_smoothed_span_has_the_papers_limits(data):
    mode = svm_mode(make_kernel(), data, 3.0, slack="quadratic")
    steep = SmoothedSpan(c1=1e4, eta=0.0).of_mode(mode)
    np.testing.assert_allclose(steep, Span().of_mode(mode), atol=1e-9)
    bound = mode.alpha * (mode.gram.diagonal() + 1 / 3.0)  # Jaakkola and Haussler's
    expected = (1 / (1 + np.exp(-5 * (bound - 1)))).mean()
    # from eta of 1e7 on rounding is larger than what is left of the others
    np.testing.assert_allclose(SmoothedSpan(eta=1e6).of_mode(mode), expected, atol=1e-5)


def test_smoothed_span_is_continuous_where_a_support_vector_ends(data):
    modes = [
        svm_mode(make_kernel(), data, penalty, slack="quadratic")
        for penalty in np.linspace(2.0, 4.0, 400)
    ]
    changes = [a != b for a, b in itertools.pairwise(len(mode.support) for mode in modes)]
    assert sum(changes) > 2
    values = np.array([SmoothedSpan().of_mode(mode) for mode in modes])
    steps = np.abs(np.diff(values))
    assert steps.max() < 5e-5  # one row's sigmoid(-5), missing, would be 1.7e-4


def test_gacv_by_hand():
    gram = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 3.0]])
    mode = mode_of_gram(gram, [[1], [0], [0]], 0.4)
    z = mode.y * (gram @ (mode.alpha * mode.y))
    assert (mode.alpha > 0).all() and (np.abs(z) < 1 + 1e-9).all()
    expected = (np.maximum(1 - z, 0) + mode.alpha * [2.0, 1.0, 3.0]).mean()
    np.testing.assert_allclose(GACV().of_mode(mode), expected, rtol=1e-12)


def test_gacv_counts_rows_far_on_the_wrong_side_twice():
    X = np.array([[0.0], [0.1], [-0.1], [0.05], [2.0]])
    Y = np.array([[1.0], [1.0], [1.0], [0.0], [0.0]])
    mode = svm_mode(gpflow.kernels.SquaredExponential(2.0), (X, Y), 0.5)
    z = mode.y * mode.latent
    assert z[3] < -1 and (z[[0, 1, 2, 4]] > -1).all()
    factor = np.array([1, 1, 1, 2, 1])
    expected = (np.maximum(1 - z, 0) + mode.alpha * 2.0 * factor).mean()
    np.testing.assert_allclose(GACV().of_mode(mode), expected, rtol=1e-12)


def test_gacv_is_never_less_than_the_loss_of_rows_left_out(data):
    for mode in some_modes(data, "linear"):
        loss = np.maximum(1 - left_out_margins(mode), 0).mean()
        assert loss <= GACV().of_mode(mode)
        assert GACV().of_mode(mode) < 5 * loss + 0.5


def test_estimates_look_at_the_product_only(data):
    for criterion in (GACV(), Span(), SmoothedSpan(), LeaveOneOut()):
        assert not criterion.looks_at_penalty
        one = criterion(gpflow.kernels.SquaredExponential(2.0), data, 3.0)
        two = criterion(gpflow.kernels.SquaredExponential(6.0), data, 1.0)
        np.testing.assert_allclose(one, two, rtol=1e-10)


# --- evidence ------------------------------------------------------------------------------------


def log_evidence(gram, y, penalty, slack, num=401, reach=8.0):
    """
    Eq. 14 by the trapezoidal rule about the mode: a wide grid whose planes lie on the kinks.
    """
    mode = mode_of_gram(gram, y[:, None], penalty, slack=slack)
    precision = np.linalg.inv(gram)
    widths = reach * np.sqrt(gram.diagonal())
    if slack == "quadratic":  # curvature narrows it
        widths = reach * np.sqrt(np.linalg.inv(precision + 0 * np.eye(len(y))).diagonal())
    grids = []
    for n, width in enumerate(widths):
        half = np.linspace(0, width, num // 2 + 1)
        grids.append(y[n] + np.concatenate([-half[:0:-1], half]))
    F = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(y))
    lacking = np.maximum(1 - F * y, 0)
    loss = lacking if slack == "linear" else lacking**2 / 2
    exponents = -penalty * loss.sum(axis=1) - np.einsum("fi,ij,fj->f", F, precision, F) / 2
    cell = sum(np.log(grid[1] - grid[0]) for grid in grids)
    log_det = np.linalg.slogdet(2 * np.pi * gram)[1]
    kappa = -np.log1p(np.exp(-2 * penalty))
    if slack == "quadratic":
        kappa = float(log_kappa_quadratic(np.float64(penalty)))
    return mode, (logsumexp(exponents) + cell - log_det / 2) / len(y) + kappa
