"""What docs/lab/misprints.md says of the papers' formulas, each by a computation of its own.

Nothing here is of the package: NumPy, SciPy and the formulas as they are printed.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import reference
from scipy import integrate, special, stats
from scipy.stats import norm

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "lab" / "misprints.md").read_text(encoding="utf-8")


def covariance(number, seed):
    A = np.random.default_rng(seed).normal(size=(number, number + 3))
    return A @ A.T / number


def gradient(function, at, step=1e-5):
    """Central differences."""
    at = np.asarray(at, float)
    return np.array(
        [(function(at + d) - function(at - d)) / (2 * step) for d in step * np.eye(at.size)]
    )


# --- Wenzel et al. 2017, and their paper of 2016 --------------------------------------------------


@pytest.mark.parametrize("mean, variance", [(0.7, 2.0), (-1.5, 0.3)])
def test_the_predictive_probability_has_a_root(mean, variance):
    average = reference.normal_expectation(norm.cdf, mean, variance)
    assert abs(average - norm.cdf(mean / np.sqrt(1 + variance))) < 1e-10
    assert abs(average - norm.cdf(mean / (1 + variance))) > 0.01


def test_the_variance_of_q_is_added():
    """Where q(u) is the prior, f has the prior's variance, 2.5: what is printed is -2.5."""
    Z = np.array([[0.0], [1.0]])
    Kmm, x = reference.kernel(Z, Z, 2.5, 1.0), Z[:1]
    k = np.linalg.solve(Kmm, reference.kernel(Z, x, 2.5, 1.0))[:, 0]  # Kmm^-1 Km*
    known, of_q = k @ Kmm @ k, k @ Kmm @ k  # zeta = Kmm
    np.testing.assert_allclose([2.5 - known + of_q, 2.5 - (known + of_q)], [2.5, -2.5], rtol=1e-10)


def test_the_weights_given_lambda_have_mean_b_z():
    """The mean of a Gaussian is where the gradient of its log density vanishes; X is d x n."""
    random = np.random.default_rng(0)
    X, y, lam = random.normal(size=(3, 7)), np.sign(random.normal(size=7)), random.uniform(1, 2, 7)
    Sigma, Z = covariance(3, 1), X @ np.diag(y)
    B = np.linalg.inv(Z @ np.diag(1 / lam) @ Z.T + np.linalg.inv(Sigma))

    def log_density(beta):
        return (
            -np.sum((1 + lam - y * (X.T @ beta)) ** 2 / lam) / 2
            - beta @ np.linalg.solve(Sigma, beta) / 2
        )

    assert np.abs(gradient(log_density, B @ Z @ (1 / lam + 1))).max() < 1e-7
    with pytest.raises(ValueError, match="mismatch"):
        B @ (1 / lam + 1)  # eq. 4: a vector of n, of which B is no matrix
    with pytest.raises(ValueError, match="mismatch"):
        np.diag(y) @ X  # Z = Y X


def test_function_values_given_lambda_have_a_one_in_their_mean():
    random = np.random.default_rng(0)
    y, lam, K = np.sign(random.normal(size=5)), random.uniform(1, 2, 5), covariance(5, 2)
    C = np.linalg.inv(np.diag(1 / lam) + np.linalg.inv(K))

    def log_density(f):
        return -np.sum((1 + lam - y * f) ** 2 / lam) / 2 - f @ np.linalg.solve(K, f) / 2

    assert np.abs(gradient(log_density, C @ (y * (1 / lam + 1)))).max() < 1e-7
    assert np.abs(gradient(log_density, C @ (y / lam))).max() > 0.5  # 2016, eq. 3


def inverse_moment_and_mean(alpha):
    """E 1 / lambda and E lambda of GIG(1/2, 1, alpha), by quadrature."""
    q = stats.geninvgauss(0.5, np.sqrt(alpha), scale=np.sqrt(alpha))
    return tuple(
        integrate.quad(lambda t, k=k: q.pdf(np.exp(t)) * np.exp((k + 1) * t), -14, 8)[0]
        for k in (-1, 1)
    )


def test_what_is_averaged_are_natural_parameters():
    """Section 4.1: zeta is not the mean of (Lambda^-1 + K^-1)^-1, which is larger."""
    alpha, K = 1.7, 2.0
    q = stats.geninvgauss(0.5, np.sqrt(alpha), scale=np.sqrt(alpha))
    printed = integrate.quad(lambda t: q.pdf(np.exp(t)) * np.exp(t) / (np.exp(-t) + 1 / K), -14, 8)[
        0
    ]
    np.testing.assert_allclose(inverse_moment_and_mean(alpha)[0], alpha**-0.5, rtol=1e-8)
    assert printed > 1.02 / (alpha**-0.5 + 1 / K)


def test_lambda_has_no_square_in_the_expectation():
    """A.1: E_q [(K~ + (1 + lambda - b)^2) / lambda], b of mean m and variance s, c = 2."""
    alpha, residual, m, s = 1.7, 0.4, 0.3, 0.6
    inverse, mean = inverse_moment_and_mean(alpha)
    expected = inverse * (residual + (1 - m) ** 2 + s) + 2 * (1 - m) + mean
    right = (residual + (1 - m) ** 2 + s) / np.sqrt(alpha) + mean - 2 * m + 2
    np.testing.assert_allclose(right, expected, rtol=1e-8)
    for lam in (0.5, 1.0, 2.0):
        assert abs(right + lam**2 / np.sqrt(alpha) - expected) > 0.1


def test_a_minibatch_counts_n_over_s_times():
    """Algorithm 1: the mean of the target over all minibatches is that of all data."""
    random = np.random.default_rng(0)
    kappa, w, prior = random.normal(size=(4, 2)), random.uniform(1, 2, 4), covariance(2, 3)
    full = np.linalg.inv(prior) + (kappa.T * w) @ kappa
    means = [
        np.mean(
            [
                np.linalg.inv(prior) + factor * (kappa[list(S)].T * w[list(S)]) @ kappa[list(S)]
                for S in itertools.combinations(range(4), 2)
            ],
            axis=0,
        )
        for factor in (4 / 2, 1)
    ]
    np.testing.assert_allclose(means[0], full, rtol=1e-12)
    assert np.abs(means[1] - full).max() > 0.5


def test_the_objective_needs_the_determinant_of_the_prior():
    """Eq. 8 with and without -1/2 log |Kmm|, as a function of the lengthscale, and A.3's trace."""
    Z, mu, zeta = np.array([[0.0], [0.7], [1.9]]), np.array([0.3, -0.2, 0.5]), covariance(3, 4)

    def kl(scale):
        K = reference.kernel(Z, Z, 1.0, float(scale))
        p, q = stats.multivariate_normal(np.zeros(3), K), stats.multivariate_normal(mu, zeta)
        expected_log_p = p.logpdf(mu) - np.trace(np.linalg.solve(K, zeta)) / 2
        return -q.entropy() - expected_log_p

    def of_eq_8(scale):
        K = reference.kernel(Z, Z, 1.0, float(scale))
        return np.trace(np.linalg.solve(K, zeta)) / 2 + mu @ np.linalg.solve(K, mu) / 2

    def half_log_det(scale):
        return np.linalg.slogdet(reference.kernel(Z, Z, 1.0, float(scale)))[1] / 2

    slope = [gradient(lambda t, f=f: f(t[0]), [0.9])[0] for f in (kl, of_eq_8, half_log_det)]
    np.testing.assert_allclose(slope[1] + slope[2], slope[0], rtol=1e-6)  # differences
    assert abs(slope[1] - slope[0]) > 0.5
    K, J = reference.kernel(Z, Z, 1.0, 0.9), np.square(Z - Z.T) / 0.9**3
    trace = np.trace(np.linalg.solve(K, K * J)) / 2  # Tr(Kmm^-1 J) / 2 of A.3
    np.testing.assert_allclose(slope[2], trace, rtol=1e-6)


def test_a_lengthscale_scales_with_lengths():
    """Footnote 5: theta is a length only if the norm is squared."""
    x, theta = np.array([0.3, -1.2]), 1.4
    printed, squared = (
        lambda x, theta, p=p: np.exp(-(np.linalg.norm(x) ** p) / theta**2) for p in (1, 2)
    )
    assert squared(10 * x, 10 * theta) == pytest.approx(squared(x, theta), rel=1e-12)
    assert abs(printed(10 * x, 10 * theta) - printed(x, theta)) > 0.1


# --- Wistuba & Rawat 2018 -------------------------------------------------------------------------


@pytest.mark.parametrize("b", [-0.8, 0.6, 2.0])
def test_the_mixture_has_the_factor_2(b):
    """Eq. 8, and with it eq. 5: not exp(-max(b, 0)), of which eq. 2 is the product."""
    assert abs(reference.augmentation_integral(b, 2.0) - np.exp(-2 * max(b, 0))) < 1e-8


def test_the_terms_in_alpha_are_added():
    """Eqs. 12, 14, 32, 33 and 38 as printed rise in alpha for ever; 39 and 40 are of the right."""
    square, alphas = 2.3, np.geomspace(1e-3, 1e3, 400)

    def objective(alpha, sign):
        root = np.sqrt(alpha)
        normaliser = np.log(alpha) / 4 + np.log(special.kv(0.5, root))
        return -(square - alpha) / (2 * root) + sign * normaliser

    assert (np.diff(objective(alphas, -1)) > 0).all()
    mended = objective(alphas, 1)
    assert abs(np.log(alphas[mended.argmax()] / square)) < np.log(alphas[1] / alphas[0])
    for alpha in (0.5, 2.0, 7.0):
        slope = square / (4 * alpha**1.5) - 1 / (4 * np.sqrt(alpha))  # eq. 40
        found = gradient(lambda at: objective(at[0], 1), [alpha])[0]
        np.testing.assert_allclose(found, slope, atol=1e-8)  # differences


class OneDatum:
    """N = 1 datum, label 0 and rival 1 of three classes, P = 2 inducing points."""

    def __init__(self):
        random = np.random.default_rng(0)
        self.Kpp, self.kappa, self.alpha = covariance(2, 5), random.normal(size=2), 1.9
        self.mu = random.normal(size=(3, 2))
        self.Sigma = np.stack([covariance(2, seed) for seed in (6, 7, 8)])
        self.eta_2 = -np.linalg.inv(self.Sigma) / 2
        self.eta_1 = np.einsum("jpq,jq->jp", np.linalg.inv(self.Sigma), self.mu)

    def objective(self, j, mu):
        """Eq. 34 in mu_j: what of the objective depends on it."""
        means = self.mu.copy()
        means[j] = mu
        margin = self.kappa @ (means[1] - means[0])
        expectation = -((1 + margin) ** 2) / (2 * np.sqrt(self.alpha)) - margin
        return expectation - mu @ np.linalg.solve(self.Kpp, mu) / 2

    def target_1(self, j, sign):
        """Eq. 45 without its leading sign, with `sign` 1/2 kappa eta_2^-1 eta_1."""
        half = {i: self.kappa @ np.linalg.solve(self.eta_2[i], self.eta_1[i]) / 2 for i in (0, 1)}
        if j == 1:
            return -self.kappa * ((1 - sign * half[0]) / np.sqrt(self.alpha) + 1)
        return self.kappa * ((1 + sign * half[1]) / np.sqrt(self.alpha) + 1)

    def target_2(self):
        """Eq. 46."""
        outer = np.outer(self.kappa, self.kappa)
        return -np.linalg.inv(self.Kpp) / 2 - outer / (2 * np.sqrt(self.alpha))


def test_the_natural_gradient_of_the_precision():
    """Eq. 41 against eq. 37, of which it is a rewriting; and eq. 46 is where the right one is 0."""
    one = OneDatum()
    Kpp_inverse, outer = np.linalg.inv(one.Kpp), np.outer(one.kappa, one.kappa)
    of_datum = outer / (2 * np.sqrt(one.alpha))
    eq_37 = -of_datum - (-np.linalg.inv(one.Sigma[0]) + Kpp_inverse) / 2
    right, printed = (-(s * 2 * one.eta_2[0] + Kpp_inverse) / 2 - of_datum for s in (1, -1))
    np.testing.assert_allclose(right, eq_37, rtol=1e-10)
    assert np.abs(printed - eq_37).max() > 0.1
    at_46 = -(2 * one.target_2() + Kpp_inverse) / 2 - of_datum
    assert np.abs(at_46).max() < 1e-12


@pytest.mark.parametrize("j", [0, 1])
def test_the_update_of_the_mean(j):
    """Eq. 45: both signs must be turned for the update to be a maximum in mu_j."""
    one = OneDatum()
    S = -np.linalg.inv(one.target_2()) / 2
    slopes = {
        signs: np.abs(gradient(lambda mu: one.objective(j, mu), S @ (lead * one.target_1(j, half))))
        for signs in itertools.product((1, -1), repeat=2)
        for lead, half in [signs]
    }
    assert slopes.pop((1, -1)).max() < 1e-7
    assert min(slope.max() for slope in slopes.values()) > 1e-3  # as printed: (-1, 1)


# --- Seeger 2000, Gold & Sollich 2003, and Wenzel et al.'s appendix ---------------------


def logistic_example():
    """Some rows, their kernel, another row, and what Laplace's method finds with the logistic."""
    X, t, x = np.array([[-1.0], [0.2], [0.9], [1.4]]), np.array([-1, 1, -1, 1]), np.array([[0.5]])
    K, k, k_x = (reference.kernel(a, b, 3.0, 0.8) for a, b in ((X, X), (X, x), (x, x)))
    y = np.zeros(4)
    for _ in range(50):  # Newton steps
        W = np.diag(special.expit(y) * special.expit(-y))
        gradient_of_log = t * special.expit(-t * y) - np.linalg.solve(K, y)
        y = y + np.linalg.solve(np.linalg.inv(K) + W, gradient_of_log)
    return K, k[:, 0], k_x[0, 0], t, y, W


def test_laplace_predicts_with_the_posteriors_spread():
    K, k, k_x, _, _, W = logistic_example()
    weights = np.linalg.solve(K, k)
    given_y, posterior = k_x - k @ weights, np.linalg.inv(np.linalg.inv(K) + W)
    right = given_y + weights @ posterior @ weights  # the law of total variance
    np.testing.assert_allclose(right, k_x - k @ np.linalg.solve(K + np.linalg.inv(W), k))
    assert right > 2 * given_y


def test_laplace_is_the_expansion_at_the_mode():
    """Eq. 7's bound with W at y^: its best mean is the mode, which is y^ if y^ is the mode."""
    K, _, _, t, y, W = logistic_example()

    def cost(mu):
        return np.logaddexp(0, -t * mu).sum() + mu @ np.linalg.solve(K, mu) / 2

    assert np.abs(gradient(cost, y)).max() < 1e-7
    Sigma = np.linalg.inv(np.linalg.inv(K) + W)

    def of_covariance(scale):
        S = scale[0] * Sigma
        return np.trace((W + np.linalg.inv(K)) @ S) / 2 - np.linalg.slogdet(S)[1] / 2

    assert np.abs(gradient(of_covariance, [1.0])).max() < 1e-7


def test_momenta_have_a_density():
    """Below eq. 21: exp(-H) has the momenta's part with a minus, or no integral."""
    K = covariance(2, 0)
    far = np.array([30.0, -40.0])
    assert np.exp(-far @ K @ far / 2) < 1e-30 and far @ K @ far / 2 > 50


def test_a_mean_and_a_least_value_bound_a_deviation():
    """Table 3: 2.5 +- 5.3 of at most 25 values, whose least is 2.2 by Table 4; both rounded."""
    mean, least, number = 2.55, 2.15, 25
    worst = np.full(number, least)
    worst[0] += number * (mean - least)
    np.testing.assert_allclose(worst.mean(), mean)
    assert worst.std(ddof=1) == pytest.approx(2.0)  # the most uneven there is
    assert worst.std(ddof=1) < 5.3 / 2


def test_seegers_counts_are_other_percentages():
    """Errors of rows in 001's Table 1, and what 004's Table 5 prints of them in %."""
    counts = {"wdbc": (269, 11, 8), "pima": (332, 66, 68)}
    found = {name: [100 * e / n for e in errors] for name, (n, *errors) in counts.items()}
    np.testing.assert_allclose(found["wdbc"], [4.1, 3.0], atol=0.05)  # printed 3.7, 3.3
    np.testing.assert_allclose(found["pima"], [19.9, 20.5], atol=0.05)  # printed 19.9, 20.2
    np.testing.assert_allclose(297 / 71, 4.2, atol=0.05)  # twonorm, printed 4.0
    np.testing.assert_allclose(184 / 70, 2.6, atol=0.05)  # ringnorm, printed 3.0


def test_the_slope_in_mu():
    """W17 A.2: of -(1 - y kappa mu)^2 / (2 sqrt(alpha)) + y kappa mu - mu' Kmm^-1 mu / 2."""
    kappa, mu, y, alpha = np.array([0.8, 0.5]), np.array([0.9, 1.3]), -1.0, 1.7
    inverse = np.linalg.inv(covariance(2, 1))

    def objective(mu):
        residual = 1 - y * kappa @ mu
        return -(residual**2) / (2 * alpha**0.5) + y * kappa @ mu - mu @ inverse @ mu / 2

    terms = y * kappa * (1 + alpha**-0.5) - inverse @ mu
    own = kappa * (kappa @ mu) / alpha**0.5
    np.testing.assert_allclose(gradient(objective, mu), terms - own, atol=1e-8)  # the last line
    assert np.abs(terms + own - gradient(objective, mu)).max() > 0.1  # line 3 as printed


@pytest.mark.parametrize("alpha", [0.4, 1.7])
def test_what_is_called_entropy_is_minus_it(alpha):
    """W17 A.1, WR18 eq. 31: E log q of GIG(1/2, 1, alpha)."""
    root = np.sqrt(alpha)
    q = stats.geninvgauss(0.5, root, scale=root)
    mean_log, entropy = q.expect(np.log), -q.expect(q.logpdf)
    printed = -np.log(alpha) / 4 - mean_log / 2 - np.log(2) - np.log(special.kv(0.5, root))
    printed -= (q.mean() + root) / 2
    np.testing.assert_allclose(printed, -entropy, rtol=1e-6)


def test_the_best_alpha_is_the_papers():
    """W17 eq. 11: E (1 - y f)^2, where the bound in alpha is greatest."""
    mean, of_q, rest, y = 0.4, 0.3, 0.2, -1.0
    printed = (1 - y * mean) ** 2 + of_q + rest
    square = reference.normal_expectation(lambda f: (1 - y * f) ** 2, mean, of_q + rest)
    np.testing.assert_allclose(printed, square, rtol=1e-10)

    def bound(alpha):
        root = np.sqrt(alpha[0])
        entropy = np.log(alpha[0]) / 4 + np.log(special.kv(0.5, root))
        return -(square - alpha[0]) / (2 * root) + entropy

    assert abs(gradient(bound, [printed])[0]) < 1e-8
    assert bound([printed]) > max(bound([0.8 * printed]), bound([1.2 * printed]))


# --- the page -------------------------------------------------------------------------------------


def test_the_page_names_tests_that_there_are():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    found = {
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
    }
    files = {path.stem for path in TESTS.rglob("test_*.py")}
    assert named <= found | files, named - found
    here = set(re.findall(r"^def (test_\w+)", Path(__file__).read_text(encoding="utf-8"), re.M))
    assert here - {"test_the_page_names_tests_that_there_are"} <= named
