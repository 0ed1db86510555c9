"""Estimates of the leave-one-out error: Gold & Sollich (2003)."""

import gpflow
import numpy as np
import pytest
from helpers import kernel_with_offset as make_kernel
from helpers import make_data

from gpflow_bsvm.papers.gold2003 import (
    GACV,
    HingeSpan,
    LeaveOneOut,
    SmoothedSpan,
    Span,
    mode_of_gram,
    svm_mode,
)


@pytest.fixture(scope="module")
def data():
    return make_data(40)


SLACKS = ("linear", "quadratic")


def some_modes(data, slack):
    return [svm_mode(make_kernel(), data, penalty, slack=slack) for penalty in (0.3, 2.0, 50.0)]


def left_out_margins(mode):
    return LeaveOneOut(mode.slack).left_out_margins(mode)


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
    np.testing.assert_allclose(SmoothedSpan(eta=np.inf).of_mode(mode), expected, rtol=1e-12)


def test_smoothed_span_is_continuous_where_a_support_vector_ends(data):
    gram = svm_mode(make_kernel(), data, 1.0).gram

    def solve(penalty):
        return mode_of_gram(gram, data[1], penalty, slack="quadratic")

    low, high = 2.0, 4.0
    num = len(solve(low).support)
    assert num != len(solve(high).support)
    while high - low > 1e-9:  # to where the first one ends
        middle = (low + high) / 2
        low, high = (middle, high) if len(solve(middle).support) == num else (low, middle)
    values = [SmoothedSpan().of_mode(solve(penalty)) for penalty in (low, high)]
    np.testing.assert_allclose(*values, atol=1e-7)  # sigmoid(-5) of a row would be 1.7e-4
    plain = [SmoothedSpan(eta=0.0).of_mode(solve(penalty)) for penalty in (low, high)]
    assert abs(plain[0] - plain[1]) > 1e-5  # eta does it


def test_gacv_by_hand():
    gram = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 3.0]])
    mode = mode_of_gram(gram, [[1], [0], [0]], 0.4)
    z = mode.y * (gram @ (mode.alpha * mode.y))
    assert (mode.alpha > 0).all() and (np.abs(z) < 1 + 1e-9).all()
    expected = (np.maximum(1 - z, 0) + mode.alpha * [2.0, 1.0, 3.0]).mean()
    np.testing.assert_allclose(GACV().of_mode(mode), expected, rtol=1e-12)


def test_gacv_counts_rows_far_on_the_wrong_side_twice():
    X = np.array([[1.0], [1.1], [1.2], [-1.0], [-1.1], [3.0]])
    Y = np.array([[1.0], [1.0], [1.0], [0.0], [0.0], [0.0]])
    mode = svm_mode(gpflow.kernels.Linear(1.0), (X, Y), 5.0)
    z = mode.y * mode.latent
    assert z[5] < -1 and (z[:5] > -1).all()
    expected = (np.maximum(1 - z, 0) + mode.alpha * np.square(X[:, 0]) * [1, 1, 1, 1, 1, 2]).mean()
    np.testing.assert_allclose(GACV().of_mode(mode), expected, rtol=1e-12)


def test_gacv_is_never_less_than_the_loss_of_rows_left_out(data):
    for mode in some_modes(data, "linear"):
        loss = np.maximum(1 - left_out_margins(mode), 0).mean()
        assert loss <= GACV().of_mode(mode)


def test_gacv_is_exact_where_no_other_row_is_on_the_margin(data):
    mode = svm_mode(make_kernel(), data, 0.02)
    assert len(mode.bounded) == 40 and (mode.y * mode.latent > -1).all()
    loss = np.maximum(1 - left_out_margins(mode), 0).mean()
    np.testing.assert_allclose(GACV().of_mode(mode), loss, rtol=1e-12)
    np.testing.assert_allclose(HingeSpan().of_mode(mode), loss, rtol=1e-12)


def test_gacv_is_exact_where_rows_tell_nothing_of_each_other():
    mode = mode_of_gram(np.diag([0.4, 2.0, 5.0, 3.0]), [[1], [0], [0], [1]], 0.9)
    assert len(mode.marginal) == 3 and len(mode.bounded) == 1
    assert np.isclose(GACV().of_mode(mode), 1)  # f is 0 without the row: a loss of 1 each


def test_gacv_overstates_by_what_the_margin_holds(data):
    for mode in some_modes(data, "linear"):
        z = mode.y * mode.latent
        held = z - HingeSpan().left_out_margins(mode)
        excess = mode.alpha * mode.gram.diagonal() - held
        assert (z > -1).all() and (excess > -1e-9).all()
        span = np.maximum(1 - z, 0) + held  # no row at the margin or beyond it is clipped
        np.testing.assert_allclose(GACV().of_mode(mode), (span + excess).mean(), rtol=1e-12)


def held_by_refits(mode):
    """Rows left out whose absence changes no other row's set, and their margins."""
    rows = []
    for n in mode.support:
        part, rest = mode.without(n), np.delete(np.arange(len(mode.y)), n)
        sets = [np.isin(rest, old) for old in (mode.marginal, mode.bounded)]
        now = [np.isin(np.arange(len(rest)), new) for new in (part.marginal, part.bounded)]
        if all((a == b).all() for a, b in zip(sets, now)):
            rows.append(n)
    return np.array(rows, int), left_out_margins(mode)


def test_hinge_span_is_exact_for_rows_that_change_no_others(data):
    seen = 0
    for mode in [*some_modes(data, "linear"), svm_mode(make_kernel(), data, 0.1)]:
        rows, margins = held_by_refits(mode)
        seen += np.isin(rows, mode.marginal).sum() * np.isin(rows, mode.bounded).sum()
        found = HingeSpan().left_out_margins(mode)
        np.testing.assert_allclose(found[rows], margins[rows], atol=1e-6)  # the jitter
        others = np.setdiff1d(np.arange(40), mode.support)
        np.testing.assert_allclose(found[others], margins[others], atol=1e-12)
    assert seen > 0  # of both sets


def test_hinge_span_bears_equal_rows_on_the_margin():
    X = np.array([[-1.0], [-1.0], [1.0], [1.0], [2.0]])
    mode = svm_mode(gpflow.kernels.Linear(1.0), (X, (X > 0).astype(float)), 100.0)
    assert len(mode.marginal) > 1
    np.testing.assert_allclose(HingeSpan().of_mode(mode), 0, atol=1e-6)


@pytest.mark.parametrize("slack", SLACKS)
def test_a_machine_without_a_row_is_that_of_the_others(data, slack):
    mode = svm_mode(make_kernel(), data, 3.0, slack=slack)
    for n in (0, 7, 23):
        rest = np.delete(np.arange(40), n)
        anew = mode._replace(gram=mode.gram[np.ix_(rest, rest)], y=mode.y[rest]).solved()
        found = mode.without(n)
        np.testing.assert_allclose(found.latent, anew.latent, atol=1e-10)
        np.testing.assert_allclose(found.alpha, anew.alpha, atol=1e-9)


def test_estimates_look_at_the_product_only(data):
    for criterion in (GACV(), HingeSpan(), Span(), SmoothedSpan(), LeaveOneOut()):
        assert not criterion.looks_at_penalty
        one = criterion(gpflow.kernels.SquaredExponential(2.0), data, 3.0)
        two = criterion(gpflow.kernels.SquaredExponential(6.0), data, 1.0)
        np.testing.assert_allclose(one, two, rtol=1e-10)
