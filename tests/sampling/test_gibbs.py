"""Gibbs and HMC draw from the pseudo-posterior: against quadrature, each other, and q."""

import io

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from helpers import make_data, make_model
from scipy.integrate import trapezoid
from scipy.stats import invgauss, kstest
from tqdm import tqdm

import gpflow_bsvm as gb
from gpflow_bsvm.engine.contracts import features_of
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import Hinge, Logistic, OneVsRest
from gpflow_bsvm.models import BSVM, BatchBSVM, LinearBSVM
from gpflow_bsvm.sampling import HMC, Gibbs

SAMPLERS = {"Gibbs": Gibbs(4000, 200), "HMC": HMC(2000, 300)}
#: Four standard errors of a mean of 8000 to 16 000 draws that are worth half as many.
MEAN_TOLERANCE, VARIANCE_TOLERANCE = 0.06, 0.09  # in standard deviations; relative


@pytest.fixture(scope="module")
def data():
    return make_data(40)


def moments_by_quadrature(x, y, variance, penalty=2.0, offset=0.0, weight=1.0):
    """Of the one weight s of f(x) = s sqrt(variance) x + offset."""
    s = np.linspace(-8, 8, 40_001)
    f = np.sqrt(variance) * np.outer(s, x) + offset
    log_p = -(s**2) / 2 - penalty * (weight * np.maximum(0, 1 - y * f)).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= trapezoid(p, s)
    mean = trapezoid(p * s, s)
    return mean, trapezoid(p * (s - mean) ** 2, s)


@pytest.mark.parametrize("sampler", [Gibbs, HMC])
def test_numpy_integers_as_options(data, sampler):
    options = {"num_draws": 200, "burn_in": 100, "num_chains": 2}  # 300 is beyond uint8
    narrow = sampler(**{name: np.uint8(value) for name, value in options.items()})
    one, other = (chains.run(make_model(data), data).s for chains in (narrow, sampler(**options)))
    np.testing.assert_array_equal(one, other)


def test_chains_without_a_finite_density_are_an_error(data):
    model = make_model(data, mean_function=gpflow.functions.Constant(1e308))
    with pytest.raises(ValueError, match="not finite at the start"):
        HMC(10, 5, num_chains=2).run(model, data)


def test_draws_keep_the_features_of_their_model(data):
    """Whitened draws mean nothing under another kernel."""
    model = make_model(data, likelihood=Hinge())
    draws = Gibbs(8, 2, num_chains=1).run(model, data)
    before = draws.predict_y(data[0][:3])
    model.kernel.lengthscales.assign(3.0)
    model.likelihood.scale.assign(2.0)
    np.testing.assert_array_equal(draws.predict_y(data[0][:3]), before)


def agree(s, mean, variance):
    np.testing.assert_allclose(s.mean(), mean, atol=MEAN_TOLERANCE * np.sqrt(variance))
    np.testing.assert_allclose(s.var(), variance, rtol=VARIANCE_TOLERANCE)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_weight_against_quadrature(data, sampler):
    X, Y = data[0][:6, :1], data[1][:6]
    model = LinearBSVM(1, Hinge(2.0), 3.0, bias=False)
    draws = SAMPLERS[sampler].run(model, (X, Y))
    agree(draws.s, *moments_by_quadrature(X[:, 0], 2 * Y[:, 0] - 1, 3.0))


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_mean_function_and_weights(data, sampler):
    X, Y = data[0][:6, :1], data[1][:6]
    weight = np.array([1, 0, 1, 1, 0, 1])
    model = BSVM(
        gpflow.kernels.Linear(3.0),
        Hinge(1.0),
        np.ones((1, 1)),
        mean_function=gpflow.functions.Constant(0.7),
    )
    draws = SAMPLERS[sampler].run(model, (X, Y), sample_weight=weight)
    features = features_of(model, X)[0][0].numpy()[:, 0]
    expected = moments_by_quadrature(features, 2 * Y[:, 0] - 1, 1.0, 1.0, 0.7, weight)
    agree(draws.s, *expected)
    f = draws.predict_f(X)[0][:, 0]
    np.testing.assert_allclose(f, features * draws.s.mean() + 0.7, atol=1e-10)


def test_precisions_have_their_distribution():
    f, a = np.array([-1.5, 0.3, 2.0]), 0.75
    F = np.tile(f[:, None], (4000, 1, 1))
    w, r = Hinge(2 * a).draw_sites(F, np.ones((3, 1)), [0, 1])
    for n, one in enumerate(f):
        mean = a / abs(1 - one)  # SciPy's shape is mean / scale
        law = invgauss(mean / a**2, scale=a**2)
        assert kstest(w.numpy()[:, n, 0], law.cdf).pvalue > 1e-3
    np.testing.assert_allclose(r, a + w, rtol=1e-12)


@pytest.mark.drill
@pytest.mark.slow
def test_samplers_agree_and_q_is_too_narrow(data):
    """The exact bound gives away a tenth of the variance, mean-field between f and lambda half."""
    X, q = data[0][::4], {}
    for bound in ("exact", "augmented"):
        likelihood = Hinge(2.0, bound=bound)
        model = BatchBSVM(data, gpflow.kernels.SquaredExponential(2.0), likelihood)
        CAVI().run(model)
        q[bound] = [part.numpy() for part in model.predict_f(X)]
    by_gibbs, by_hmc = (sampler.run(model).predict_f(X) for sampler in SAMPLERS.values())
    spread = np.sqrt(by_gibbs[1])
    np.testing.assert_array_less(abs(by_gibbs[0] - by_hmc[0]), 2 * MEAN_TOLERANCE * spread)
    np.testing.assert_allclose(by_gibbs[1], by_hmc[1], rtol=2 * VARIANCE_TOLERANCE)
    assert (0.7 * by_gibbs[1] < q["exact"][1]).all() and (q["exact"][1] < by_gibbs[1]).all()
    assert (q["augmented"][1] < 0.8 * q["exact"][1]).all()
    np.testing.assert_array_less(abs(q["exact"][0] - by_gibbs[0]), 0.1 * spread)


@pytest.mark.drill
@pytest.mark.slow
def test_one_vs_rest_is_one_machine_a_class(data):
    X = data[0]
    Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    Z = X[:5]
    kernel = gpflow.kernels.SquaredExponential(2.0)
    all_draws = Gibbs(3000, 200).run(BSVM(kernel, OneVsRest(3), Z, num_latent_gps=3), (X, Y))
    for c in range(3):
        one = Gibbs(3000, 200).run(BSVM(kernel, Hinge(2.0), Z), (X, (c == Y).astype(float)))
        here, there = all_draws.s[:, :, c], one.s[:, :, 0]
        tolerance = 2 * MEAN_TOLERANCE * there.std((0, 1))
        np.testing.assert_array_less(abs(here.mean((0, 1)) - there.mean((0, 1))), tolerance)
        np.testing.assert_allclose(here.var((0, 1)), there.var((0, 1)), rtol=0.2)


@pytest.mark.slow
def test_features_of_their_own_for_every_latent(data):
    """Equal kernels, once shared and once separate: the same draws."""
    X, Y = data
    kernel, Z = gpflow.kernels.SquaredExponential(2.0), X[:5]
    separate = gpflow.kernels.SeparateIndependent([kernel, kernel])
    points = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(Z)
    )
    models = (
        BSVM(kernel, Hinge(), Z, num_latent_gps=2),
        BSVM(separate, Hinge(), points, num_latent_gps=2),
    )
    both = np.hstack([Y, 1 - Y])
    first, second = (Gibbs(20, 0, seed=3).run(model, (X, both)) for model in models)
    np.testing.assert_allclose(first.s, second.s, atol=1e-8)
    for one, two in zip(first.predict_f(X), second.predict_f(X)):
        np.testing.assert_allclose(one, two, atol=1e-8)


def test_chains_and_seeds(data):
    model = make_model(data)
    long = Gibbs(60, 10, num_chains=2, seed=5).run(model, data).s
    assert long.shape == (2, 60, 1, 8)
    short = Gibbs(20, 10, num_chains=2, seed=5).run(model, data).s
    np.testing.assert_array_equal(short, long[:, :20])
    other = Gibbs(60, 10, num_chains=2, seed=6).run(model, data).s
    assert not np.allclose(other, long)


# HMC's graph is one of the number of chains: two here as below.
@pytest.mark.slow
@pytest.mark.parametrize("sampler", [Gibbs(10, 5, num_chains=2), HMC(10, 5, num_chains=2)])
def test_q_stays(data, sampler):
    model = make_model(data)
    before = model.q_mu.numpy().copy()
    assert sampler.run(model, data).s.shape == (2, 10, 1, 8)
    np.testing.assert_array_equal(model.q_mu, before)


@pytest.mark.slow
def test_predictions_are_averages_of_the_model_s(data):
    """A draw is a q without variance."""
    model = make_model(data)
    draws = Gibbs(3, 5, num_chains=2).run(model, data)
    ps, fs = [], []
    for s in draws.s.reshape(6, 8, 1):
        model.q_mu.assign(s)
        model.q_sqrt.assign(1e-9 * np.eye(8)[None])
        ps.append(model.predict_y(data[0])[0].numpy())
        fs.append(model.predict_f(data[0]))
    p, variance = draws.predict_y(data[0])
    np.testing.assert_allclose(p, np.mean(ps, axis=0), atol=1e-10)
    np.testing.assert_allclose(variance, p - p**2)
    mean, variance = draws.predict_f(data[0])
    means = np.array([f[0] for f in fs])
    np.testing.assert_allclose(mean, means.mean(0), atol=1e-10)
    np.testing.assert_allclose(variance, means.var(0) + fs[0][1], atol=1e-10)


@pytest.mark.slow
def test_diagnostics(data):
    arviz = pytest.importorskip("arviz")
    draws = Gibbs(500, 200).run(make_model(data), data)
    table = arviz.summary(arviz.from_dict(posterior={"s": draws.s}), round_to=6)
    assert len(table) == 8
    assert (table["r_hat"] < 1.02).all() and (table["ess_bulk"] > 400).all()
    assert (draws.rhat() < 1.03).all() and (draws.effective_draws() > 400).all()


@pytest.mark.parametrize("number", [33, 64])
def test_effective_draws_are_tfps_without_its_warning(number, caplog):
    """A chain that stands still counts for 0, others as in TFP."""
    s = np.random.default_rng(0).normal(size=(3, number, 1, 2)).cumsum(axis=1)
    s[0, :, 0, 0] = 1.7
    found = gb.sampling.Samples(s, None).effective_draws()
    assert not caplog.records
    draws = np.moveaxis(s, 0, 1)
    each = tfp.mcmc.effective_sample_size(draws, filter_beyond_positive_pairs=True).numpy()
    each[0, 0, 0] = 0
    np.testing.assert_allclose(found, each.sum(axis=0))


@pytest.mark.parametrize("number", [2, 4, 8])
def test_few_draws_are_no_more_than_so_many(data, number):
    samples = Gibbs(number, 0, num_chains=3).run(make_model(data), data)
    effective = samples.effective_draws()
    assert (effective > 0).all() and (effective <= 3 * number * np.log10(number) + 1e-9).all()


@pytest.mark.slow
def test_hmc_shows_its_progress(data, monkeypatch):
    bars = []

    def made(total, what, progress):
        bars.append(tqdm(total=total, desc=what, file=io.StringIO()))  # seen however quick HMC is
        return bars[-1]

    monkeypatch.setattr("gpflow_bsvm.inference.run.progress_bar", made)
    HMC(6, 2, num_chains=2).run(make_model(data), data, progress=True)
    assert "draws" in bars[0].desc and bars[0].n == bars[0].total == 8


@pytest.mark.parametrize(
    "sampler, name, least",
    [
        (Gibbs, "num_draws", 1),
        (Gibbs, "num_chains", 1),
        (HMC, "num_draws", 1),
        (HMC, "num_chains", 2),
    ],
)
def test_chain_of_no_length(sampler, name, least):
    with pytest.raises(ValueError, match=f"{name} must be at least {least}, got 0"):
        sampler(**{name: 0})


def test_bad_options():
    with pytest.raises(ValueError, match="burn_in must be at least 0, got -1"):
        Gibbs(burn_in=-1)


def test_what_does_not_go_together(data):
    with pytest.raises(ValueError, match=r"no augmentation to draw from .*HMC, which accepts any"):
        Gibbs().run(make_model(data, likelihood=Logistic()), data)
    with pytest.raises(ValueError, match="only weights of 0 and 1"):
        Gibbs().run(make_model(data), data, sample_weight=np.full(40, 0.5))
    plain = gpflow.models.SVGP(gpflow.kernels.Linear(), Hinge(), data[0][:3])
    for sampler in (Gibbs(), HMC()):
        with pytest.raises(TypeError, match="SVGP has no closed-form steps"):
            sampler.run(plain, data)
    with pytest.raises(TypeError, match="holds no data"):
        gb.sampling.Gibbs().run(make_model(data))
    with pytest.raises(ValueError, match="X has 1 columns"):
        Gibbs(2, 0).run(make_model(data), data).predict_f(data[0][:, :1])


@pytest.mark.usefixtures("tf_seed")
def test_hmc_of_a_likelihood_that_takes_one_axis_of_rows():
    """GPflow's `Softmax`: chains are rows beside rows."""
    X, Y = make_data(num_rows=20)
    kernel, Z = gpflow.kernels.SquaredExponential(), X[:3]
    model = gb.models.BSVM(kernel, gpflow.likelihoods.Softmax(2), Z, num_latent_gps=2)
    samples = gb.sampling.HMC(num_draws=3, burn_in=2, num_chains=3).run(model, (X, Y))
    assert np.isfinite(samples.predict_y(X)[0]).all()


def test_draws_that_are_not_finite_are_an_error(data, monkeypatch):
    begin = Gibbs._chains

    def broken(self, model, rows):
        state, advance = begin(self, model, rows)
        return state, lambda *a: (state, advance(*a)[1] * np.nan)

    monkeypatch.setattr(Gibbs, "_chains", broken)
    with pytest.raises(FloatingPointError, match="a draw is not finite"):
        Gibbs(num_draws=2, burn_in=0).run(make_model(data), data)
