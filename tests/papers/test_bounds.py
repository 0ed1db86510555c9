"""Bounds of the leave-one-out error (Gold & Sollich 2003, 3.1) and the smallest enclosing ball."""

import gpflow
import numpy as np
import pytest
from helpers import kernel_with_offset, make_data
from scipy.optimize import minimize

from gpflow_bsvm.papers.gold2003 import (
    JaakkolaHaussler,
    LeaveOneOut,
    RadiusMargin,
    SmoothedSpan,
    SupportVectorCount,
    svm_mode,
)
from gpflow_bsvm.papers.gold2003 import (
    mode as machines,
)
from gpflow_bsvm.papers.gold2003.error_estimates import enclosing_ball

PENALTIES = (0.1, 2.0, 50.0)


@pytest.fixture(scope="module")
def data():
    return make_data(30)


def gram_of(points):
    return points @ points.T


def square_of(gram):
    """The squared radius of the ball."""
    b = enclosing_ball(gram)
    return b @ gram.diagonal() - b @ gram @ b


# --- the ball ------------------------------------------------------------------------------------


def test_balls_that_are_known():
    triangle = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)], [0.1, 0.2]]) + 3.0
    np.testing.assert_allclose(square_of(gram_of(triangle)), 1.0, rtol=1e-9)
    centre = enclosing_ball(gram_of(triangle)) @ triangle
    np.testing.assert_allclose(centre, [3.0, 3.0], atol=1e-12)
    segment = np.array([[0.0], [1.0], [4.0]])
    np.testing.assert_allclose(square_of(gram_of(segment)), 4.0, rtol=1e-9)
    np.testing.assert_allclose(square_of(np.eye(5)), 0.8, rtol=1e-9)
    assert square_of(np.ones((3, 3))) == 0.0
    assert enclosing_ball(np.array([[2.0]])) == [1.0]


def test_ball_is_the_least_of_all(data):
    """Against a search for the centre itself, in the space of the rows."""
    X = data[0]
    found = minimize(
        lambda c: c[-1],
        np.append(X.mean(axis=0), 10.0),
        constraints={"type": "ineq", "fun": lambda c: c[-1] - np.square(X - c[:2]).sum(axis=1)},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    weights = enclosing_ball(gram_of(X))
    square = square_of(gram_of(X))
    np.testing.assert_allclose(square, found.x[-1], rtol=1e-8)
    np.testing.assert_allclose(weights.sum(), 1)
    assert (weights >= 0).all()
    farthest = np.square(X - weights @ X).sum(axis=1).max()
    np.testing.assert_allclose(farthest, square, rtol=1e-12)


def test_ball_of_a_kernel_does_not_see_its_offset(data):
    smooth = gpflow.kernels.SquaredExponential(2.0)(data[0]).numpy()
    one, two = (square_of(smooth + offset) for offset in (0.0, 7.0))
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert one < 2.0  # k(x, x), by which the paper bounds it


def test_a_ball_that_is_not_found_is_told(data, monkeypatch):
    monkeypatch.setattr(machines, "_MOST_STEPS", 1)
    monkeypatch.setattr(machines, "_CHANGES", 0)
    with pytest.warns(UserWarning, match="not solved: a margin is wrong by"):
        enclosing_ball(gram_of(data[0]))


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_bounds_are_never_less_than_the_leave_one_out_error(data, slack):
    kernel = kernel_with_offset()
    for penalty in PENALTIES:
        error = LeaveOneOut(slack)(kernel, data, penalty)
        tighter = JaakkolaHaussler(slack)(kernel, data, penalty)
        count = SupportVectorCount(slack)(kernel, data, penalty)
        assert error <= tighter <= count
        if slack == "quadratic":
            margin = RadiusMargin(about_origin=True)(kernel, data, penalty)
            assert tighter <= margin
            assert 0 < RadiusMargin()(kernel, data, penalty) <= margin


def test_either_of_the_looser_bounds_may_be_the_larger():
    X, Y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[0.0], [0.0], [1.0], [1.0]])
    count, margin = SupportVectorCount("quadratic"), RadiusMargin(about_origin=True)
    smooth = gpflow.kernels.SquaredExponential()
    assert count(smooth, (X, Y), 1.0) == 1.0
    np.testing.assert_allclose(margin(smooth, (X, Y), 1.0), 0.767, atol=5e-4)
    with_offset = smooth + gpflow.kernels.Constant()
    assert count(with_offset, (X, Y), 1.0) < margin(with_offset, (X, Y), 1.0)


def test_bounds_by_hand(data):
    kernel, N = kernel_with_offset(), 30
    for slack in ("linear", "quadratic"):
        mode = svm_mode(kernel, data, 2.0, slack=slack)
        z, variance = mode.y * mode.latent, 2.1
        assert JaakkolaHaussler(slack).of_mode(mode) == np.sum(mode.alpha * variance >= z) / N
        expected = (np.sum(z <= 0) + np.sum(mode.alpha > 0)) / N
        np.testing.assert_allclose(SupportVectorCount(slack).of_mode(mode), expected)
    spread = square_of(mode.gram + np.eye(N) / 2.0)
    np.testing.assert_allclose(RadiusMargin().of_mode(mode), spread * mode.alpha.mean())
    origin = RadiusMargin(about_origin=True).of_mode(mode)
    np.testing.assert_allclose(origin, (variance + 1 / 2.0) * mode.alpha.mean())
    steep = SmoothedSpan(c1=1e4, eta=1e6).of_mode(mode)  # the paper's limit
    np.testing.assert_allclose(steep, JaakkolaHaussler("quadratic").of_mode(mode), atol=1e-6)


def test_they_look_at_the_product_only(data):
    """Of penalty and kernel (eq. 8: of C k0 and C koff)."""
    for criterion in (JaakkolaHaussler(), SupportVectorCount("quadratic"), RadiusMargin()):
        assert not criterion.looks_at_penalty and not criterion.greater_is_better
        ends = []
        for factor in (1.0, 5.0):
            kernel = kernel_with_offset()
            for part in kernel.kernels:
                part.variance.assign(part.variance * factor)
            ends.append(criterion(kernel, data, 3.0 / factor))
        np.testing.assert_allclose(*ends, rtol=1e-8)


@pytest.mark.parametrize("about_origin", [False, True])
def test_radius_and_margin_have_gradients(data, about_origin):
    criterion, kernel, h = RadiusMargin(about_origin), kernel_with_offset(), 1e-4
    found = criterion.gradient(kernel, data, 2.0)
    np.testing.assert_allclose(found.value, criterion(kernel, data, 2.0), rtol=1e-10)
    ends = [criterion(kernel, data, 2.0 + sign * h) for sign in (1, -1)]
    # of differences: h^2 of the third derivative, and the ball's 1e-10 over h
    np.testing.assert_allclose(found.penalty, (ends[0] - ends[1]) / (2 * h), rtol=1e-4)
    scale = kernel.kernels[0].lengthscales
    ends = []
    for sign in (1, -1):
        scale.assign([0.7, 1.2 + sign * h])
        ends.append(criterion(kernel, data, 2.0))
    slope = found.kernel[".kernels[0].lengthscales"][1]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), rtol=1e-4)


def test_bad_slack():
    for criterion in (JaakkolaHaussler, SupportVectorCount):
        with pytest.raises(ValueError, match="slack must be one of"):
            criterion("cubic")
