"""The local variables: a scale mixture, its distribution and its moments."""

import gpflow
import numpy as np
import pytest
import reference
from helpers import fixed_classifier, make_data, make_model, randomise, three_classes
from scipy import integrate, stats

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import (
    CrammerSinger,
    EpsilonInsensitive,
    Hinge,
    LevelHinge,
    OneVsRest,
    Ordinal,
    location_spread,
)
from gpflow_bsvm.likelihoods.labels import num_latents
from gpflow_bsvm.prediction import (
    LocalVariables,
    augmented_elbo,
    local_variables,
    predict_f_given,
    soft_support_vectors,
)
from gpflow_bsvm.prediction.local_variables import bound_at

PENALTIES = [0.3, 2.0, 5.0]  # 0.3 is not a float32 number


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_distribution_is_the_generalised_inverse_gaussian(penalty, alpha):
    a = penalty / 2
    ours = LocalVariables(np.array(alpha), penalty).distribution
    # SciPy's geninvgauss(p, b, scale): p = 1/2, b = sqrt(a^2 alpha), scale = sqrt(alpha) / a.
    theirs = stats.geninvgauss(0.5, a * np.sqrt(alpha), scale=np.sqrt(alpha) / a)
    lam = theirs.ppf([0.01, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(ours.log_prob(lam), theirs.logpdf(lam), atol=1e-8)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_moments_by_quadrature(penalty, alpha):
    density = lambda lam: float(  # noqa: E731
        LocalVariables(np.array(alpha), penalty).distribution.prob(lam)
    )
    a = penalty / 2
    scale = np.sqrt(alpha) / a
    # In log(lambda), where the density is smooth and light-tailed.
    mean, inverse = (
        integrate.quad(
            lambda t, k=k: density(scale * np.exp(t)) * (scale * np.exp(t)) ** (k + 1), -12, 12,
            limit=200, epsabs=1e-12,
        )[0]
        for k in (1, -1)
    )  # fmt: skip
    ours = LocalVariables(alpha, penalty)
    expected = (ours.mean, ours.mean_inverse)
    np.testing.assert_allclose(expected, (mean, inverse), rtol=1e-8)


@pytest.mark.usefixtures("tf_seed")
def test_samples_have_the_moments():
    alpha = np.array([0.1, 2.0])
    draws = LocalVariables(alpha, 2.0).distribution.sample(200_000, seed=0).numpy()
    ours = LocalVariables(alpha, 2.0)
    for values, expected in ((draws, ours.mean), (1 / draws, ours.mean_inverse)):
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - expected) < 4 * error).all()


@pytest.fixture(scope="module")
def fit():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2))
    Y = np.sign(X[:, :1] + 0.2 * random.normal(size=(80, 1)))
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(4.0),
        gb.likelihoods.Hinge(bound="augmented"),
        X[:12],
        num_data=80,
    )
    gb.fit(model, (X, Y), progress=False)
    return model, X, Y


def test_alpha_of_a_model(fit):
    model, X, Y = fit
    mean, variance = model.predict_f(X)
    np.testing.assert_allclose(
        local_variables(model, (X, Y)).alpha, (1 - Y * mean) ** 2 + variance, atol=1e-8
    )


def test_soft_support_vectors(fit):
    model, X, Y = fit
    alpha = local_variables(model, (X, Y)).alpha[:, 0]
    assert (np.diff(alpha[soft_support_vectors(model, (X, Y), num=10)]) >= 0).all()
    assert set(soft_support_vectors(model, (X, Y))) == set(np.flatnonzero(alpha < 1))
    # Both label encodings mean the same.
    other = soft_support_vectors(model, (X, (Y + 1) / 2))
    np.testing.assert_array_equal(other, soft_support_vectors(model, (X, Y)))


WITH_LOSSES = {
    "hinge": (Hinge(1.5), 1),
    "levels": (LevelHinge(1.5, levels=location_spread([0.3, 0.5])), 2),
    "one against the rest": (OneVsRest(3), 3),
    "largest rival": (CrammerSinger(3, bound="augmented"), 1),
    "regression": (EpsilonInsensitive(), 2),
    "thresholds": (Ordinal(3), 34),
}


@pytest.mark.usefixtures("tf_seed")
@pytest.mark.parametrize("name", WITH_LOSSES)
def test_every_loss_of_every_row_has_its_local_variable(name):
    """The means of the bound's own sites: penalty / (2 sqrt(alpha)), summed by the chain rule."""
    likelihood, num_losses = WITH_LOSSES[name]
    X, Y = np.random.default_rng(0).normal(size=(7, 2)), np.arange(7)[:, None] % 2.0
    L = num_latents(likelihood)
    model = gb.models.BSVM(gpflow.kernels.Matern32(), likelihood, X[:3], num_latent_gps=L)
    ours = local_variables(model, (X, Y))
    assert ours.alpha.shape == ours.penalty.shape == ours.mean.shape == (7, num_losses)
    _, square, cost = likelihood.moments(*model.predict_f(X), Y)
    np.testing.assert_allclose(ours.mean_inverse, cost / 2 / np.sqrt(square), rtol=1e-10)
    draws = ours.distribution.sample(3, seed=1)
    assert draws.shape == (3, 7, num_losses) and (draws.numpy() > 0).all()


def test_an_estimators_rows_are_its_users(fit):
    _, X, Y = fit
    labels = np.where(Y[:, 0] > 0, "b", "a")
    machine = fixed_classifier(num_inducing=10, kernel=gpflow.kernels.Matern52())
    machine.fit(X, labels)
    ours = local_variables(machine, (X, labels))
    assert ours.alpha.shape[0] == 80 and (ours.alpha > 0).all()


def test_no_local_variables():
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), gb.likelihoods.Probit(), np.eye(2))
    with pytest.raises(ValueError, match="Probit has no local variables"):
        local_variables(model, (np.eye(2), np.array([[0.0], [1.0]])))


# --- several classes -----------------------------------------------------------------------------


def test_two_classes_have_the_local_variables_of_the_difference():
    random = np.random.default_rng(0)
    Fmu, Fvar = random.normal(size=(6, 2)), random.uniform(0.2, 2, size=(6, 2))
    Y = np.arange(6)[:, None] % 2.0
    difference = Fmu[:, 1:] - Fmu[:, :1]
    expected = Hinge().moments(difference, Fvar.sum(axis=1, keepdims=True), Y).square
    for bound in ("exact", "augmented", "wistuba2018"):
        found = CrammerSinger(2, bound=bound).moments(Fmu, Fvar, Y).square
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_alpha_of_several_classes_is_the_mean_square_of_what_the_loss_cuts_off():
    Fmu, Fvar = np.array([[0.3, -0.5, 0.9, 0.1]]), np.array([[0.5, 1.5, 0.2, 1.0]])
    f = Fmu + np.sqrt(Fvar) * np.random.default_rng(0).normal(size=(200_000, 4))
    b = 1 + np.delete(f, 1, axis=1).max(axis=1) - f[:, 1]
    exact = float(CrammerSinger(4).moments(Fmu, Fvar, np.array([[1.0]])).square[0, 0])
    assert abs(exact - np.mean(b**2)) < 4 * (b**2).std() / np.sqrt(len(b))
    paper = CrammerSinger(4, bound="wistuba2018").moments(Fmu, Fvar, np.array([[1.0]])).square
    np.testing.assert_allclose(paper, [[(1 + 0.9 + 0.5) ** 2 + 0.2 + 1.5]], rtol=1e-13)


@pytest.mark.slow
def test_soft_support_vectors_of_several_classes():
    model, data = three_classes(make_data())
    model.likelihood = CrammerSinger(3)
    gb.fit(model, data, progress=False)
    alpha = local_variables(model, data).alpha
    assert alpha.shape == (60, 1)
    rows = soft_support_vectors(model, data, num=10)
    np.testing.assert_array_equal(rows, np.argsort(alpha[:, 0], kind="stable")[:10])
    # A small alpha is nearness to the margin: of the means, up to the variance.
    mean, _ = model.predict_f(data[0])
    label = data[1][:, 0].astype(int)
    others = np.where(np.arange(3) == label[:, None], -np.inf, mean).max(axis=1)
    margin = np.abs(1 + others - mean.numpy()[np.arange(60), label])
    assert margin[rows].mean() < margin.mean() / 2


# --- the objective at any alpha -------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_bound_at_given_alpha_by_quadrature(penalty):
    """E_q [log p(y, lambda | f) - log q(lambda)], with E b and E b^2 in the place of b and b^2."""
    a, mu, v, alpha = penalty / 2, 0.4, 0.7, 2.5
    q = stats.geninvgauss(0.5, a * np.sqrt(alpha), scale=np.sqrt(alpha) / a)
    mean, square = 1 - mu, (1 - mu) ** 2 + v

    def difference(lam):
        root = np.log(a) - np.log(2 * np.pi * lam) / 2
        return root - a * mean - (a**2 * lam + square / lam) / 2 - q.logpdf(lam)

    # In log(lambda), where the density is smooth and light-tailed.
    expected, _ = integrate.quad(
        lambda t: q.pdf(np.exp(t)) * np.exp(t) * difference(np.exp(t)), -14, 8, epsabs=1e-12
    )
    found = bound_at(Hinge(penalty), [[alpha]], [[mu]], [[v]], np.array([[1.0]]))
    np.testing.assert_allclose(found, [expected], rtol=1e-8)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Hinge(1.3, "augmented", normalizer=True),
        lambda: OneVsRest(3, 1.3, "augmented"),
        lambda: CrammerSinger(3, 1.3, "augmented"),
        lambda: CrammerSinger(3, 1.3, "wistuba2018"),
    ],
)
def test_at_the_best_alpha_it_is_the_augmented_bound_and_elsewhere_less(make):
    likelihood, random = make(), np.random.default_rng(0)
    shape = (7, likelihood.latent_dim or 1)
    Fmu, Fvar = random.normal(size=shape), random.uniform(0.1, 2, size=shape)
    Y = np.arange(7)[:, None] % 2.0
    best = likelihood.moments(Fmu, Fvar, Y).square.numpy()
    expected = likelihood.variational_expectations(Y, Fmu, Fvar, Y)
    np.testing.assert_allclose(bound_at(likelihood, best, Fmu, Fvar, Y), expected, rtol=1e-10)
    for factor in (0.5, 0.99, 1.01, 3.0):
        assert (bound_at(likelihood, factor * best, Fmu, Fvar, Y) < expected).numpy().all()


@pytest.mark.slow
def test_the_papers_objective_of_a_model():
    data = make_data()
    model = make_model(data, num_data=180)  # the rows are a sample
    randomise(model)
    alpha = local_variables(model, data).alpha
    np.testing.assert_allclose(augmented_elbo(model, data), model.elbo(data), rtol=1e-10)
    np.testing.assert_allclose(augmented_elbo(model, data, alpha), model.elbo(data), rtol=1e-10)
    given = np.random.default_rng(0).uniform(0.5, 2, size=(60, 1))
    m = 1 - (2 * data[1] - 1) * model.predict_f(data[0])[0]
    rows = -m - (np.sqrt(given) + alpha / np.sqrt(given)) / 2  # eq. 8, penalty 2
    expected = 3 * rows.numpy().sum() - model.prior_kl()
    np.testing.assert_allclose(augmented_elbo(model, data, given), expected, rtol=1e-10)
    weight = np.linspace(0, 2, 60)
    expected = 3 * (weight[:, None] * rows).numpy().sum() - model.prior_kl()
    found = augmented_elbo(model, data, given, sample_weight=weight)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# --- given the local variables --------------------------------------------------------------------


@pytest.mark.slow
def test_prediction_given_lambda_is_the_papers():
    """Eq. 5 in NumPy, for penalty 2."""
    X, Y = make_data(40)
    kernel = gpflow.kernels.SquaredExponential(2.0)
    model = gb.models.BatchBSVM((X, Y), kernel, Hinge())
    lam = np.random.default_rng(0).uniform(0.2, 3, size=(40, 1))
    Xnew = np.random.default_rng(1).normal(size=(9, 2))
    K, k = reference.kernel(X, X, 2.0, 1.0), reference.kernel(X, Xnew, 2.0, 1.0)
    smooth = K @ np.linalg.inv(K + 1e-6 * np.eye(40))  # the model's jitter: f is seen through u
    K, k = smooth @ K, smooth @ k
    inverse = np.linalg.inv(K + np.diag(lam[:, 0]))
    mean, variance = predict_f_given(model, None, lam, Xnew)
    np.testing.assert_allclose(mean, k.T @ inverse @ ((2 * Y - 1) * (1 + lam)), rtol=1e-8)
    expected = 2.0 - np.einsum("np,nm,mp->p", k, inverse, k)
    np.testing.assert_allclose(variance[:, 0], expected, rtol=1e-8)
    p = model.likelihood.predict_mean_and_var(Xnew, mean, variance)[0]  # with the root
    np.testing.assert_allclose(p, stats.norm.cdf(mean / np.sqrt(1 + variance)), rtol=1e-8)


def in_regression(penalty, bound):
    return gb.likelihoods.EpsilonInsensitive(penalty, 0.1, bound)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(Hinge, marks=pytest.mark.slow),
        pytest.param(lambda *how: OneVsRest(3, *how), marks=pytest.mark.slow),
        in_regression,
    ],
)
def test_given_one_over_the_mean_of_one_over_lambda_it_is_a_sweep(make):
    X, _ = make_data()
    likelihood = make(1.5, "augmented")
    L = likelihood.latent_dim or 1
    Y = np.digitize(X[:, :1], [-0.5, 0.5][: max(L - 1, 1)]).astype(float)
    how = {"num_latent_gps": L, "mean_function": gpflow.functions.Constant(0.2)}
    model = gb.models.BSVM(gpflow.kernels.Matern32(2.0), likelihood, X[:8].copy(), **how)
    randomise(model)
    lam = 1 / local_variables(model, (X, Y)).mean_inverse
    found = predict_f_given(model, (X, Y), lam, X)
    twice = np.repeat([1, 2], [40, len(X) - 40])
    weighted = predict_f_given(model, (X, Y), lam, X, sample_weight=twice)
    again = [np.repeat(part, twice, axis=0) for part in (X, Y, lam)]
    repeated = predict_f_given(model, (again[0], again[1]), again[2], X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8, atol=1e-10)
    model.natgrad_step((X, Y), 1.0)
    for one, two in zip(found, model.predict_f(X)):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)


def test_prediction_given_lambda_is_in_units_of_y():
    X, _ = make_data()
    y = 100 + 7 * X[:, 0]
    regressor = gb.BSVMRegressor(learn_kernel=False, num_inducing=8, penalty=0.2, epsilon=0.3)
    regressor.fit(X, y)
    scale, center = regressor.units_of_y
    lam = np.full((len(X), 2), 0.5)
    mean, variance = predict_f_given(regressor, (X, y), lam, X)
    rows = regressor.as_model_sees((X, y), labelled=True)
    wanted = predict_f_given(regressor.model_, rows, lam, rows[0])
    np.testing.assert_allclose(mean, scale * wanted[0] + center)
    np.testing.assert_allclose(variance, scale**2 * wanted[1])


@pytest.mark.slow
def test_bad_local_variables():
    data = make_data()
    model, good = make_model(data), np.ones((60, 1))
    for bad, message in (
        (np.ones(60), r"must have shape \[60, 1\], got \[60\]"),
        (np.ones((59, 1)), r"must have shape \[60, 1\], got \[59, 1\]"),
        (0 * good, "must be positive and finite numbers"),
        (-good, "must be positive"),
        (np.nan * good, "must be positive"),
        (np.full((60, 1), "a"), "must be positive and finite numbers"),
    ):
        with pytest.raises(ValueError, match="alpha " + message):
            augmented_elbo(model, data, bad)
        with pytest.raises(ValueError, match="local_variables " + message):
            predict_f_given(model, data, bad, data[0])
    with pytest.raises(ValueError, match="num must be at least 0, got -1"):
        soft_support_vectors(model, data, -1)
    with pytest.raises(ValueError, match="X has 3 columns"):
        predict_f_given(model, data, good, np.ones((4, 3)))
    classes, labelled = three_classes(data)
    with pytest.raises(ValueError, match=r"no sites for given local variables.*use Hinge or One"):
        predict_f_given(classes, labelled, np.ones((60, 3)), data[0])
    with pytest.raises(ValueError, match="Probit has no local variables"):
        augmented_elbo(make_model(data, likelihood=gb.likelihoods.Probit()), data)


def test_penalties_keep_their_precision():
    ours = LocalVariables(2.0, 0.3)  # in float32, 0.3 is off by 1e-8
    np.testing.assert_allclose(ours.mean, np.sqrt(2) / 0.15 + 1 / 0.15**2, rtol=1e-14)
    np.testing.assert_allclose(ours.mean_inverse, 0.15 / np.sqrt(2), rtol=1e-14)
    q = LocalVariables(np.array(2.0), 0.3).distribution.distribution
    np.testing.assert_allclose(q.loc, 0.15 / np.sqrt(2), rtol=1e-14)
