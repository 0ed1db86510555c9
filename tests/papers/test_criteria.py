"""Evidence of kernel and penalty by the support vector machine, and gradients of criteria."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import kernel_with_offset as make_kernel
from helpers import make_data
from reference import axis, log_evidence
from scipy import optimize, special

from gpflow_bsvm.papers.gold2003 import (
    GACV,
    HingeSpan,
    LaplaceEvidence,
    LeaveOneOut,
    SmoothedSpan,
    Span,
    SquaredHinge,
    mode_of_gram,
    svm_mode,
)
from gpflow_bsvm.papers.gold2003.squared_hinge import log_kappa


@pytest.fixture(scope="module")
def data():
    return make_data(40)


# --- evidence ------------------------------------------------------------------------------------


TINY = {
    2: (np.array([[2.0, 0.8], [0.8, 1.5]]), np.array([1.0, -1.0])),
    3: (np.array([[2.0, 0.6, 1.1], [0.6, 1.5, 0.4], [1.1, 0.4, 1.8]]), np.array([1.0, -1.0, -1.0])),
}


def sharpened(size, penalty, slack, times):
    """A posterior to the power of `times`, where Laplace's method becomes exact."""
    gram, y = TINY[size]
    return mode_of_gram(gram / times, y[:, None], times * penalty, slack=slack)


@pytest.mark.parametrize("size", [2, 3])
def test_quadratic_laplace_evidence_is_exact_away_from_the_kink(size):
    mode = sharpened(size, 1.5, "quadratic", 400)
    kappa = float(log_kappa("quadratic", tf.constant(mode.penalty, tf.float64)))
    found = LaplaceEvidence("quadratic", smoothing=0).of_mode(mode) - kappa
    np.testing.assert_allclose(found, log_evidence(mode), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_quadratic_laplace_evidence_is_near(size):
    for penalty in (0.5, 1.5, 5.0):
        mode = sharpened(size, penalty, "quadratic", 1)
        kappa = float(log_kappa("quadratic", tf.constant(penalty, tf.float64)))
        found = LaplaceEvidence("quadratic", smoothing=0).of_mode(mode) - kappa
        # nats per row: what is cut off at the kink has the more weight, the larger the penalty
        assert -0.05 * penalty - 0.02 < found - log_evidence(mode) < 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_laplace_evidence_becomes_exact_as_the_posterior_narrows(size):
    errors = []
    for times in (10, 100, 1000):
        mode = sharpened(size, 4.0, "linear", times)
        assert len(mode.marginal) == size
        found = LaplaceEvidence().of_mode(mode) + np.log1p(np.exp(-2 * mode.penalty))
        errors.append(abs(found - log_evidence(mode)))
    assert errors[2] < 5e-4  # nats per row
    assert errors[2] < errors[1] / 7 < errors[0] / 49  # as 1 / times, from I beside L K


def test_laplace_evidences_are_deceived_by_rows_that_tell_nothing_of_each_other():
    variance, penalty, Y = 1e4, 10.0, np.arange(6)[:, None] % 2
    f, weights = axis(0.0, 1.0, 9 * variance**0.5, num=400)
    density = np.exp(-np.square(f) / (2 * variance)) / (2 * np.pi * variance) ** 0.5
    exact = np.log(np.sum(weights * density * np.exp(-penalty * np.maximum(1 - f, 0))))
    assert abs(exact - np.log(0.5)) < 0.01  # a label is as likely as the other
    linear = mode_of_gram(variance * np.eye(6), Y, penalty)
    assert LaplaceEvidence().of_mode(linear) > -1e-3  # all but certain
    quadratic = mode_of_gram(variance * np.eye(6), Y, penalty, slack="quadratic")
    assert LaplaceEvidence("quadratic").of_mode(quadratic) > -0.1
    assert LaplaceEvidence("quadratic", smoothing=0).of_mode(quadratic) < -5  # and too unlikely


def test_laplace_evidence_by_hand():
    mode = mode_of_gram(*(np.diag([4.0, 0.5]), [[1], [0]]), 1.0)
    np.testing.assert_allclose(mode.alpha, [0.25, 1.0])  # on the margin, and bounded with z = 1/2
    log_q = -(0.25 * 1 + 1.0 * 0.5) / 2 - 0.5
    L = 2 * np.pi * (0.25 * 0.75 / 1.0) ** 2
    expected = (log_q - np.log(1 + L * 4.0) / 2) / 2 - np.log(1 + np.exp(-2.0))
    np.testing.assert_allclose(LaplaceEvidence().of_mode(mode), expected, rtol=1e-12)


def test_quadratic_laplace_evidence_by_hand():
    mode = mode_of_gram(np.diag([4.0, 0.5]), [[1], [0]], 2.0, slack="quadratic")
    alpha = np.array([1 / 4.5, 1 / 1.0])
    np.testing.assert_allclose(mode.alpha, alpha)
    K, z = np.array([4.0, 0.5]), 1 - alpha / 2.0
    M = 2.0 * np.exp(-0.1 / (1 - z))
    log_q = (-alpha * z / 2 - 2.0 * (1 - z) ** 2 / 2).sum()
    kappa = SquaredHinge(1.0, normalizer=True).log_kappa()
    expected = (log_q - np.log(1 + M * K).sum() / 2) / 2 + kappa
    np.testing.assert_allclose(LaplaceEvidence("quadratic").of_mode(mode), expected, atol=1e-6)


@pytest.mark.parametrize("penalty", [0.2, 1.0, 1.1, 3.0, 40.0])
def test_kappa_of_quadratic_slack_is_that_of_the_largest_sum_over_labels(penalty):
    def squares(z):
        return np.square([1 - z, 1 + z]) / 2

    def log_sum(z):
        return special.logsumexp(-penalty * squares(z))

    z = optimize.minimize_scalar(lambda z: -log_sum(z), bounds=(0, 1), options={"xatol": 1e-12}).x
    C = tf.constant(penalty, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(C)
        kappa = log_kappa("quadratic", C)
    np.testing.assert_allclose(kappa, -log_sum(z), atol=1e-13)
    slope = special.softmax(-penalty * squares(z)) @ squares(z)  # at a fixed z: a maximum
    np.testing.assert_allclose(tape.gradient(kappa, C), slope, rtol=1e-6, atol=1e-12)


# --- gradients -----------------------------------------------------------------------------------


def differences(criterion, kernel, data, penalty, h=1e-5):
    """Central differences by every value of every parameter, and by the penalty."""
    found = {}
    for name, parameter in gpflow.utilities.parameter_dict(kernel).items():
        value = parameter.numpy()
        slopes = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            ends = []
            for sign in (1, -1):
                moved = value.copy()
                moved[index] += sign * h
                parameter.assign(moved)
                ends.append(criterion(kernel, data, penalty))
            slopes[index] = (ends[0] - ends[1]) / (2 * h)
        parameter.assign(value)
        found[name] = slopes
    by_penalty = [criterion(kernel, data, penalty + sign * h) for sign in (1, -1)]
    return found, (by_penalty[0] - by_penalty[1]) / (2 * h)


@pytest.mark.parametrize(
    "criterion",
    [LaplaceEvidence(), LaplaceEvidence("quadratic"), SmoothedSpan(), GACV(), HingeSpan()],
    ids=lambda criterion: f"{type(criterion).__name__}-{criterion.slack}",
)
def test_gradients_are_those_of_differences(data, criterion):
    kernel = make_kernel()
    found = criterion.gradient(kernel, data, 2.0)
    np.testing.assert_allclose(found.value, criterion(kernel, data, 2.0), rtol=1e-10)
    expected, by_penalty = differences(criterion, kernel, data, 2.0)
    assert found.kernel.keys() == expected.keys() and len(expected) == 3
    for name, slope in expected.items():  # of differences: h^2 of the third derivative, rounding
        np.testing.assert_allclose(found.kernel[name], slope, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.penalty, by_penalty, rtol=1e-5, atol=1e-8)


def test_gradient_is_by_what_is_trainable(data):
    kernel = make_kernel()
    gpflow.set_trainable(kernel.kernels[1], False)
    found = LaplaceEvidence().gradient(kernel, data, 2.0)
    assert set(found.kernel) == {".kernels[0].variance", ".kernels[0].lengthscales"}


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0, -1.0, np.inf, np.nan, "1"])
def test_bad_penalties(data, penalty):
    for call in (svm_mode, GACV(), LeaveOneOut()):
        with pytest.raises(ValueError, match="penalty must be a positive, finite number"):
            call(make_kernel(), data, penalty)


def test_all_points_at_the_bound_is_told_and_defined(data):
    kernel = make_kernel()
    mode = svm_mode(kernel, data, 1e-4)
    assert len(mode.bounded) == 40 and len(mode.marginal) == 0
    with pytest.warns(UserWarning, match="all support vectors are at the bound") as told:
        value = LaplaceEvidence().of_mode(mode)
    assert len(told) == 1
    of_rows = mode.alpha * mode.margins / 2 + 1e-4 * np.maximum(1 - mode.margins, 0)
    log_q = -of_rows.mean() - np.log1p(np.exp(-2e-4))
    np.testing.assert_allclose(value, log_q, rtol=1e-12)
    with pytest.warns(UserWarning, match="at the bound"):
        found = LaplaceEvidence().gradient(kernel, data, 1e-4)
    assert np.isfinite(found.penalty)
    assert np.isfinite(GACV()(kernel, data, 1e-4))


def test_criteria_refuse_other_modes(data):
    linear = svm_mode(make_kernel(), data, 1.0)
    for criterion in (Span(), LeaveOneOut("quadratic"), LaplaceEvidence("quadratic")):
        with pytest.raises(ValueError, match="is for quadratic slack, got a mode of linear slack"):
            criterion.of_mode(linear)
    with pytest.raises(ValueError, match="Span has no gradient"):
        Span().gradient(make_kernel(), data, 1.0)
    with pytest.raises(ValueError, match="eta must be at least 0"):
        SmoothedSpan(eta=-1)
    with pytest.raises(ValueError, match="slack must be one of 'linear', 'quadratic', got 'cubic'"):
        LaplaceEvidence("cubic")
