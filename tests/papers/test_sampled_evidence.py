"""The evidence by sampling (Gold & Sollich 2003, 3.3, 4.2): against integration and itself."""

import dataclasses

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import kernel_with_offset, make_data
from reference import log_evidence

from gpflow_bsvm.engine.open import open_all
from gpflow_bsvm.engine.projected_data import ProjectedData
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import BatchBSVM, LinearBSVM
from gpflow_bsvm.papers.gold2003 import (
    SampledEvidence,
    SquaredHinge,
    StaticHMC,
    mode_of_gram,
    optimise,
)
from gpflow_bsvm.papers.gold2003.posterior import Posterior
from gpflow_bsvm.papers.gold2003.sampled import _error
from gpflow_bsvm.papers.gold2003.slack import log_kappa
from gpflow_bsvm.papers.wenzel2019 import PolyaGammaLogistic
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


def papers_leapfrog(K, slope, theta, p, step, number):
    """Eq. 22, 23 in theta = K^-1 f, with K alone."""
    p = p + step / 2 * (-theta + slope(K @ theta))
    for left in range(number)[::-1]:
        theta = theta + step * p
        p = p + (step if left else step / 2) * (-theta + slope(K @ theta))
    return theta, p


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [Hinge(3.0), SquaredHinge(1.5)])
def test_trajectories_are_those_of_the_paper(likelihood):
    X, Y = make_data(12)
    Lz, y = np.linalg.cholesky(kernel_with_offset()(X) + 0.1 * np.eye(12)), 2 * Y[:, 0] - 1
    model = LinearBSVM(12, likelihood, bias=False)
    sampler = StaticHMC(1, 0, num_chains=2, leapfrog_steps=5, step_size=0.07)
    rows = ProjectedData(model, open_all(model, (Lz, Y))).everything()
    state, advance = sampler._chains(model, rows)
    start = state[0].numpy()[:, 0]
    after = advance(state, tf.constant(1), 0)[0][1].inner_results
    momenta = [part[0].numpy()[:, 0] for part in after.proposed_results[3:5]]

    def slope(f):
        if isinstance(likelihood, Hinge):
            return 3.0 * y * (y * f < 1)
        return 3.0 * y * np.maximum(1 - y * f, 0)

    for chain in range(2):
        theta, p = (np.linalg.solve(Lz.T, part[chain]) for part in (start, momenta[0]))
        theta, p = papers_leapfrog(Lz @ Lz.T, slope, theta, p, 0.07, 5)
        proposed = after.proposed_state.numpy()[chain, 0]
        np.testing.assert_allclose(Lz.T @ theta, proposed, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(Lz.T @ p, momenta[1][chain], rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_chains_start_at_the_mode_and_theta_is_y_alpha(data):
    how = StaticHMC(1, 0, num_chains=3, leapfrog_steps=1, step_size=1e-7)
    kernel = kernel_with_offset() + gpflow.kernels.White(0.1)
    draws = SampledEvidence(sampler=how).posterior(kernel, data, 2.0)
    np.testing.assert_allclose(draws.f, draws.mode.latent + 0 * draws.f, atol=1e-4)  # the jitter
    weights = draws.mode.alpha * draws.mode.y
    np.testing.assert_allclose(draws.theta, weights + 0 * draws.f, atol=1e-3)
    K = draws.root @ draws.root.T
    np.testing.assert_allclose(K, kernel(data[0]).numpy(), atol=3e-6)
    np.testing.assert_allclose(draws.theta @ K, draws.f, atol=1e-9)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.0, 30.0])
def test_steps_and_their_number_adapt_to_the_penalty(penalty):
    criterion = SampledEvidence(sampler=StaticHMC(50, 100))
    draws = criterion.posterior(kernel_with_offset(), make_data(12), penalty)
    assert ((draws.acceptance > 0.4) & (draws.acceptance < 0.99)).all()
    samples = draws.samples
    assert (samples.rhat() < 1.2).all() and samples.effective_draws().min() > 200


def test_trajectories_are_a_quarter_of_a_period_long():
    how, given = StaticHMC()._how(), StaticHMC(leapfrog_steps=7, step_size=1.0)._how()
    sizes = np.array([1.0, np.pi / 30, 0.1, 0.01, 1e-4, 1e-300])
    expected = [15, 15, 15, 157, 500, 500]
    assert [int(how.number(tf.constant(size, tf.float64))) for size in sizes] == expected
    assert [int(given.number(tf.constant(size, tf.float64))) for size in sizes] == [7] * 6
    np.testing.assert_allclose(given.step_size, np.pi / 14)


@pytest.mark.slow
def test_what_never_moves_is_told(data):
    model = BatchBSVM(data, kernel_with_offset(), Hinge(1e6))
    samples = StaticHMC(8, 0, num_chains=2).run(model, data)

    def of(samples):
        return Posterior(samples, None, np.eye(12))

    np.testing.assert_array_equal(of(samples).acceptance, 0)
    assert np.isinf(samples.rhat()).all() and (samples.effective_draws() == 0).all()
    with pytest.raises(ValueError, match="R-hat needs 4 draws of each chain, there are 3"):
        Samples(samples.s[:, :3], model).rhat()
    assert np.isnan(of(Samples(samples.s[:, :1], model)).acceptance).all()
    assert np.isinf(Samples(np.zeros((2, 8, 1, 3)), model).rhat()).all()  # 0 / 0


class Fixed(StaticHMC):
    """Draws that are given."""

    def run(self, model, data=None, **options):
        s = np.random.default_rng(1).normal(size=(3, 14, 1, model.num_features[1]))
        return Samples(self.change(s), model)


class Stuck(Fixed):
    def change(self, s):
        s[1] = s[1, :1]
        return s


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
def test_a_stuck_chain_and_draws_without_slack_are_told_and_defined():
    X, Y = np.eye(4), np.array([[1.0], [0.0], [1.0], [0.0]])
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.1)  # f = s
    with pytest.warns(UserWarning, match="1 of 3 chains accepted no draw") as told:
        found = SampledEvidence(sampler=Stuck()).gradient(kernel, (X, Y), 1.0)
    assert len(told) == 1
    assert np.isfinite(found.penalty) and found.error.penalty == np.inf
    assert np.isinf(found.error.kernel[".variance"]) and np.isfinite(found.kernel[".variance"])
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
    with pytest.warns(UserWarning, match="^at 3 of 3 rungs the chains " + match) as told:
        rungs.estimate(kernel, small, 1.0)
    assert len(told) == 1
    with pytest.warns(UserWarning, match=match) as told:
        found = optimise(rungs, kernel, small, 1.0, max_evaluations=3)
    assert len(told) == 1 and found.best.evaluations == 3


# --- gradients -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_gradients_by_the_papers_formulas(slack):
    """Eq. 18, 19, 20 term by term, of given draws."""
    X, Y = make_data(6)
    kernel = kernel_with_offset()
    forms = {form: SampledEvidence(slack, Normal(), form) for form in ("likelihood", "prior")}
    draws = forms["prior"].posterior(kernel, (X, Y), 1.7)
    inverse, y, C = np.linalg.inv(draws.root @ draws.root.T), 2 * Y[:, 0] - 1, 1.7
    by_variance = kernel.kernels[0](X).numpy() / 2.0
    expected, terms = dict.fromkeys(forms, 0.0), []
    for f in draws.f.reshape(-1, 6):
        z = y * f
        slope = -1.0 * (z < 1) if slack == "linear" else -np.maximum(1 - z, 0)
        inner = np.eye(6) - np.outer(f, inverse @ f)
        expected["prior"] += -np.trace(by_variance @ inverse @ inner) / 12 / 42
        expected["likelihood"] += -C / 12 * (slope * y) @ by_variance @ inverse @ f / 42
        terms.append(np.mean(np.maximum(1 - z, 0) ** (1 if slack == "linear" else 2)))
    for form, criterion in forms.items():
        found = criterion.gradient_of(draws, kernel, (X, Y))
        assert np.isnan(found.value) and found.kernel.keys() == found.error.kernel.keys()
        assert found.kernel[".kernels[0].lengthscales"].shape == (2,)
        one = found.kernel[".kernels[0].variance"]
        np.testing.assert_allclose(one, expected[form], rtol=1e-7)  # K has a jitter of 1e-6
    mean_loss = np.mean(terms) * (1 if slack == "linear" else 0.5)
    h = 1e-5
    kappa = [float(log_kappa(slack, tf.constant(C + sign * h, tf.float64))) for sign in (1, -1)]
    expected = (kappa[0] - kappa[1]) / (2 * h) - mean_loss
    np.testing.assert_allclose(found.penalty, expected, rtol=1e-7)  # of the differences


@pytest.mark.slow
def test_errors_are_those_of_means():
    """Of independent draws: the standard deviation by the root of their number."""
    X, Y = make_data(6)
    draws = SampledEvidence(sampler=Normal()).posterior(kernel_with_offset(), (X, Y), 1.0)
    values = np.random.default_rng(0).normal(size=(3, 1000, 2))
    parts = draws.parts(values)
    assert parts.shape == (21, 142, 2)  # 7 of each chain, as 20 / 3 is rounded up
    np.testing.assert_array_equal(parts[7], values[1, 6 : 6 + 142])
    assert draws.parts(values[:, :4]).shape == (12, 1, 2)
    means = parts.mean(axis=1)
    # the scatter of 21 parts is known to 1 / sqrt(40) = 16 %
    np.testing.assert_allclose(_error(means, True), 1 / np.sqrt(21 * 142), rtol=0.5)
    assert np.isnan(_error(means[:1], True)).all() and np.isinf(_error(means, False)).all()


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
    criterion = SampledEvidence(slack, StaticHMC(600, 150, leapfrog_steps=8))
    draws = criterion.posterior(kernel, TINY[size], penalty)
    for form in ("likelihood", "prior"):
        part = dataclasses.replace(criterion, form=form)
        found = part.gradient_of(draws, kernel, TINY[size])
        agree(found.penalty, (ends[0] - ends[1]) / 2e-4, found.error.penalty)
        assert found.error.penalty < 1e-2
        for name, slope in expected.items():
            agree(found.kernel[name], slope, found.error.kernel[name])
            assert found.error.kernel[name] < 1e-2


@pytest.mark.drill
@pytest.mark.slow
def test_gibbs_hmc_and_both_forms_agree(data):
    kernel = kernel_with_offset()
    by_hmc = SampledEvidence(sampler=StaticHMC(300, 150))
    draws = by_hmc.posterior(kernel, data, 2.0)
    prior = dataclasses.replace(by_hmc, form="prior")
    found = [by_hmc.gradient_of(draws, kernel, data), prior.gradient_of(draws, kernel, data)]
    found.append(SampledEvidence(sampler=Gibbs(1500, 100)).gradient(kernel, data, 2.0))
    assert found[0].error.penalty < 1e-3
    for other in found[1:]:
        agree(
            found[0].penalty, other.penalty, np.hypot(found[0].error.penalty, other.error.penalty)
        )
        for name in found[0].kernel:
            error = np.hypot(found[0].error.kernel[name], other.error.kernel[name])
            agree(found[0].kernel[name], other.kernel[name], error)
    # Eq. 19 is the noisier where rows tell of each other (section 3.3)
    lengthscales = ".kernels[0].lengthscales"
    assert (found[1].error.kernel[lengthscales] > 2 * found[0].error.kernel[lengthscales]).all()


# --- values --------------------------------------------------------------------------------------


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("slack", ["linear", pytest.param("quadratic", marks=pytest.mark.drill)])
def test_values_are_those_of_numerical_integration(slack):
    kernel, penalty = tiny_kernel(), 1.5
    criterion = SampledEvidence(slack, StaticHMC(200, 100, leapfrog_steps=8), rungs=5)
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
    criterion = SampledEvidence(sampler=StaticHMC(400, 150), rungs=6)
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
    data, kernel = tuple(part[:20] for part in data), gpflow.kernels.SquaredExponential(1.0)
    criterion = SampledEvidence(sampler=StaticHMC(60, 60, leapfrog_steps=8), rungs=4)
    start = criterion.gradient(kernel, data, 1.0)
    assert start.value == criterion(kernel, data, 1.0)
    how = {"method": "L-BFGS-B", "reach": 2.0, "max_evaluations": 3}
    found = optimise(criterion, kernel, data, 1.0, **how)
    assert found.best.value == criterion(kernel, data, found.penalty) > start.value + 0.01


def test_what_it_has_not_is_told(data):
    criterion, kernel = SampledEvidence(), kernel_with_offset()
    for method in ("Nelder-Mead", "L-BFGS-B"):
        with pytest.raises(ValueError, match=r"gradients only: SampledEvidence\(rungs=12\)"):
            optimise(criterion, kernel, data, 1.0, method=method)
    with pytest.raises(ValueError, match="penalty must be positive and finite"):
        criterion.gradient(kernel, data, -1.0)
    with pytest.raises(ValueError, match="one class only"):
        criterion.gradient(kernel, (data[0], np.ones((50, 1))), 1.0)
    with pytest.raises(ValueError, match="no augmentation to draw from"):
        SampledEvidence("quadratic", Gibbs()).gradient(kernel, data, 1.0)
    for options, match in (
        ({"slack": "cubic"}, "slack must be one of"),
        ({"form": "20"}, "form must be one of"),
        ({"rungs": -1}, "rungs must be at least 0"),
        ({"sampler": HMC}, "sampler must be a StaticHMC, HMC or Gibbs"),
    ):
        with pytest.raises(ValueError, match=match):
            SampledEvidence(**options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"leapfrog_steps": 0}, "leapfrog_steps must be at least 1"),
        ({"step_size": 0.0}, "step_size must be at least"),
        ({"burn_in": -1}, "burn_in must be at least 0"),
    ],
)
def test_bad_samplers(options, match):
    with pytest.raises(ValueError, match=match):
        StaticHMC(**options)


@pytest.mark.slow
def test_static_hmc_takes_any_likelihood_and_model_and_starts_at_its_q(data):
    model = BatchBSVM(data, kernel_with_offset(), PolyaGammaLogistic())
    model.q_mu.assign(np.linspace(-1, 1, 50)[:, None])
    model.q_sqrt.assign(1e-3 * np.eye(50)[None])
    samples = StaticHMC(2, 0, num_chains=2, leapfrog_steps=1, step_size=1e-6).run(model, data)
    expected = np.linspace(-1, 1, 50) + np.zeros((2, 2, 1, 1))
    np.testing.assert_allclose(samples.s, expected, atol=6e-3)
