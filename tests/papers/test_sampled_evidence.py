"""The evidence by sampling (Gold & Sollich 2003, 3.3): against integration and itself."""

import dataclasses

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import kernel_with_offset, make_data
from reference import log_evidence
from scipy.stats import sem

from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import BatchBSVM
from gpflow_bsvm.papers.gold2003 import (
    SampledEvidence,
    mode_of_gram,
    optimise,
)
from gpflow_bsvm.papers.gold2003.sampled import in_parts
from gpflow_bsvm.papers.gold2003.squared_hinge import log_kappa
from gpflow_bsvm.sampling import HMC, Gibbs, Samples

TINY = {
    2: (np.array([[0.0], [0.8]]), np.array([[1.0], [0.0]])),
    3: (np.array([[0.0], [0.8], [2.0]]), np.array([[1.0], [0.0], [0.0]])),
}
#: Means agree within so many standard errors, which are themselves known to some 15 %.
ERRORS = 4


@pytest.fixture(scope="module")
def data():
    return make_data(50)


def agree(one, two, error, atol=0.0):
    np.testing.assert_array_less(np.abs(one - two), ERRORS * np.asarray(error) + atol + 1e-12)


def tiny_kernel():
    smooth = gpflow.kernels.SquaredExponential(2.0, lengthscales=1.5)
    return smooth + gpflow.kernels.Constant(0.3)


def exact(kernel, size, penalty, slack):
    """Eq. 14 per row with kappa, by numerical integration."""
    X, Y = TINY[size]
    mode = mode_of_gram(kernel(X).numpy(), Y, penalty, slack=slack)
    return log_evidence(mode) + float(log_kappa(slack, tf.constant(penalty, tf.float64)))


def differences(function, kernel, h=1e-4):
    """Central differences by every parameter of the kernel, all of them scalars."""
    slopes = {}
    for name, parameter in gpflow.utilities.parameter_dict(kernel).items():
        value, ends = parameter.numpy(), []
        for sign in (1, -1):
            parameter.assign(value + sign * h)
            ends.append(function())
        parameter.assign(value)
        slopes[name] = (ends[0] - ends[1]) / (2 * h)
    return slopes


# --- the sampler ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_theta_is_what_f_is_made_of(data):
    kernel = kernel_with_offset() + gpflow.kernels.White(0.1)
    draws = SampledEvidence(sampler=Normal()).posterior(kernel, data, 2.0)
    K = draws.root @ draws.root.T
    np.testing.assert_allclose(K, kernel(data[0]).numpy(), atol=3e-6)  # the jitter
    np.testing.assert_allclose(draws.theta @ K, draws.f, atol=1e-9)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.0, 30.0])
def test_steps_adapt_to_the_penalty(penalty):
    criterion = SampledEvidence(sampler=HMC(100, 150))
    samples = criterion.posterior(kernel_with_offset(), make_data(12), penalty).samples
    assert (samples.rhat() < 1.2).all() and samples.effective_draws().min() > 100


def test_what_never_moves_has_no_effective_draws(data):
    model = BatchBSVM(data, kernel_with_offset(), Hinge(1.0))
    samples = Samples(np.arange(2.0)[:, None, None, None] + np.zeros((2, 8, 1, 50)), model)
    assert np.isinf(samples.rhat()).all() and (samples.effective_draws() == 0).all()
    with pytest.raises(ValueError, match="R-hat needs 4 draws per chain, got 3"):
        Samples(samples.s[:, :3], model).rhat()
    assert np.isinf(Samples(np.zeros((2, 8, 1, 3)), model).rhat()).all()  # 0 / 0


class Fixed(HMC):
    """Draws that are given."""

    def run(self, model, data=None, **options):
        s = np.random.default_rng(1).normal(size=(3, 14, 1, model.q_shape[1]))
        return Samples(self.change(s), model)


class WithoutSlack(Fixed):
    def change(self, s):
        return 1e6 * np.abs(s)


class Apart(Fixed):
    def change(self, s):
        return s + 5 * np.arange(3)[:, None, None, None]


class Normal(Fixed):
    def change(self, s):
        return s


@pytest.mark.slow
def test_draws_without_slack_are_told_and_defined():
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.1)  # f = s
    X, Y = np.eye(4), np.array([[1.0], [1.0], [1.0], [0.0]])

    class OnTheRightSide(WithoutSlack):
        def change(self, s):
            return super().change(s) * [1, 1, 1, -1]

    with pytest.warns(UserWarning, match="no draw has slack") as told:
        found = SampledEvidence(sampler=OnTheRightSide()).gradient(kernel, (X, Y), 1.0)
    assert len(told) == 1
    assert found.kernel[".variance"] == 0 and np.isinf(found.error.kernel[".variance"])
    np.testing.assert_allclose(found.penalty, 2 / (np.exp(2.0) + 1))  # d log kappa / dC
    assert np.isinf(found.error.penalty)


@pytest.mark.slow
def test_chains_that_disagree_are_told_once(data):
    kernel, match = gpflow.kernels.SquaredExponential(1.0), r"do not agree yet \(R-hat is [2-9]"
    criterion, small = SampledEvidence(sampler=Apart()), tuple(part[:6] for part in data)
    with pytest.warns(UserWarning, match=match) as told:
        found = criterion.gradient(kernel, small, 1.0)
    assert len(told) == 1 and np.isfinite(found.error.penalty)
    rungs = dataclasses.replace(criterion, rungs=3)
    with pytest.warns(UserWarning, match="^the chains " + match) as told:
        rungs.estimate(kernel, small, 1.0)
    assert len(told) == 1
    with pytest.warns(UserWarning, match=match) as told:
        found = optimise(rungs, kernel, small, 1.0, max_evaluations=3)
    assert len(told) == 1 and found.best.evaluations == 3


# --- gradients -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_gradients_by_the_papers_formulas(slack):
    """Eq. 18 and 20 term by term, of given draws."""
    X, Y = make_data(6)
    kernel = kernel_with_offset()
    criterion, C, y = SampledEvidence(slack, Normal()), 1.7, 2 * Y[:, 0] - 1
    draws = criterion.posterior(kernel, (X, Y), C)
    inverse = np.linalg.inv(draws.root @ draws.root.T)
    by_variance = kernel.kernels[0](X).numpy() / 2.0
    expected, terms = 0.0, []
    for f in draws.f.reshape(-1, 6):
        z = y * f
        slope = -1.0 * (z < 1) if slack == "linear" else -np.maximum(1 - z, 0)
        expected += -C / 12 * (slope * y) @ by_variance @ inverse @ f / 42
        terms.append(np.mean(np.maximum(1 - z, 0) ** (1 if slack == "linear" else 2)))
    found = criterion.gradient(kernel, (X, Y), C)  # of the same draws
    assert np.isnan(found.value) and found.kernel.keys() == found.error.kernel.keys()
    assert found.kernel[".kernels[0].lengthscales"].shape == (2,)
    one = found.kernel[".kernels[0].variance"]
    np.testing.assert_allclose(one, expected, rtol=1e-7)  # K has a jitter of 1e-6
    mean_loss = np.mean(terms) * (1 if slack == "linear" else 0.5)
    h = 1e-5
    kappa = [float(log_kappa(slack, tf.constant(C + sign * h, tf.float64))) for sign in (1, -1)]
    expected = (kappa[0] - kappa[1]) / (2 * h) - mean_loss
    np.testing.assert_allclose(found.penalty, expected, rtol=1e-7)  # of the differences


@pytest.mark.slow
def test_errors_are_those_of_means():
    """Of independent draws: the standard deviation by the root of their number."""
    values = np.random.default_rng(0).normal(size=(3, 1000, 2))
    parts = in_parts(values)
    assert parts.shape == (21, 142, 2)  # 7 of each chain, as 20 / 3 is rounded up
    np.testing.assert_array_equal(parts[7], values[1, 6 : 6 + 142])
    assert in_parts(values[:, :4]).shape == (12, 1, 2)
    means = parts.mean(axis=1)
    # the scatter of 21 parts is known to 1 / sqrt(40) = 16 %
    np.testing.assert_allclose(sem(means), 1 / np.sqrt(21 * 142), rtol=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "slack"),
    [
        (2, "linear"),
        pytest.param(2, "quadratic", marks=pytest.mark.drill),
        pytest.param(3, "linear", marks=pytest.mark.drill),
        pytest.param(3, "quadratic", marks=pytest.mark.drill),
    ],
)
def test_gradients_are_those_of_numerical_integration(size, slack):
    kernel, penalty = tiny_kernel(), 1.5
    expected = differences(lambda: exact(kernel, size, penalty, slack), kernel)
    ends = [exact(kernel, size, penalty + sign * 1e-4, slack) for sign in (1, -1)]
    criterion = SampledEvidence(slack, HMC(600, 150, num_chains=16))
    found = criterion.gradient(kernel, TINY[size], penalty)
    agree(found.penalty, (ends[0] - ends[1]) / 2e-4, found.error.penalty)
    assert found.error.penalty < 1e-2
    for name, slope in expected.items():
        agree(found.kernel[name], slope, found.error.kernel[name])
        assert found.error.kernel[name] < 1e-2


@pytest.mark.drill
@pytest.mark.slow
def test_gibbs_and_hmc_agree(data):
    kernel = kernel_with_offset()
    samplers = (HMC(300, 150, num_chains=16), Gibbs(1500, 100))
    one, two = (SampledEvidence(sampler=s).gradient(kernel, data, 2.0) for s in samplers)
    assert one.error.penalty < 1e-3
    agree(one.penalty, two.penalty, np.hypot(one.error.penalty, two.error.penalty))
    for name in one.kernel:
        error = np.hypot(one.error.kernel[name], two.error.kernel[name])
        agree(one.kernel[name], two.kernel[name], error)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("slack", ["linear", pytest.param("quadratic", marks=pytest.mark.drill)])
def test_values_are_those_of_numerical_integration(slack):
    kernel, penalty = tiny_kernel(), 1.5
    criterion = SampledEvidence(slack, HMC(200, 100, num_chains=16), rungs=5)
    found = criterion.estimate(kernel, TINY[2], penalty)
    # Gauss and Legendre's rule of five places leaves less than 1e-3 here
    agree(found.value, exact(kernel, 2, penalty, slack), found.error, atol=1e-3)
    assert found.error < 3e-2  # of squares, quadratic slack has the larger
    assert criterion(kernel, TINY[2], penalty) == found.value


@pytest.mark.drill
@pytest.mark.slow
def test_values_have_the_gradients():
    """Integrals of eq. 18 along C, against eq. 20, by the lengthscale, beyond the best one."""
    data, h = make_data(15), 0.5
    kernel = gpflow.kernels.SquaredExponential(3.0, lengthscales=2.5)
    gpflow.set_trainable(kernel.variance, False)
    criterion = SampledEvidence(sampler=HMC(400, 150, num_chains=16), rungs=6)
    gradient = criterion.gradient(kernel, data, 2.0)
    ends = []
    for sign in (1, -1):
        kernel.lengthscales.assign(2.5 + sign * h)
        ends.append(criterion.estimate(kernel, data, 2.0))
    slope = (ends[0].value - ends[1].value) / (2 * h)
    both = np.hypot(
        np.hypot(ends[0].error, ends[1].error) / (2 * h), gradient.error.kernel[".lengthscales"]
    )
    assert both < 7e-3 < abs(slope) / 15
    # the rest is h^2 / 6 of the third derivative, 5e-4, and what six rungs leave
    agree(gradient.kernel[".lengthscales"], slope, both, atol=2e-3)


# --- as a criterion ------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_rungs_it_can_be_climbed(data):
    data, kernel = tuple(part[:8] for part in data), gpflow.kernels.SquaredExponential(1.0)
    criterion = SampledEvidence(sampler=Gibbs(100, 30), rungs=2)
    start = criterion.gradient(kernel, data, 1.0)
    assert start.value == criterion(kernel, data, 1.0)
    found = optimise(criterion, kernel, data, 1.0, method="L-BFGS-B", max_evaluations=2)
    assert found.best.value == criterion(kernel, data, found.penalty) > start.value


def test_what_it_has_not_is_told(data):
    criterion, kernel = SampledEvidence(), kernel_with_offset()
    for method in ("Nelder-Mead", "L-BFGS-B"):
        with pytest.raises(ValueError, match=r"no value: SampledEvidence\(rungs=12\)"):
            optimise(criterion, kernel, data, 1.0, method=method)
    with pytest.raises(ValueError, match="penalty must be a positive, finite number"):
        criterion.gradient(kernel, data, -1.0)
    with pytest.raises(ValueError, match="one class only"):
        criterion.gradient(kernel, (data[0], np.ones((50, 1))), 1.0)
    with pytest.raises(ValueError, match="no augmentation to draw from"):
        SampledEvidence("quadratic", Gibbs()).gradient(kernel, data, 1.0)
    for options, match in (
        ({"slack": "cubic"}, "slack must be one of"),
        ({"rungs": -1}, "rungs must be at least 0"),
        ({"sampler": HMC}, "sampler must be HMC or Gibbs"),
        ({"sampler": HMC(3)}, "num_draws must be at least 4, got 3"),
    ):
        with pytest.raises(ValueError, match=match):
            SampledEvidence(**options)
