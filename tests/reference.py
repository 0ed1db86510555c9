"""Slow and plain: NumPy and SciPy straight from the formulas, to compare the package with.

Nothing here is clever, and nothing is imported from the package or from GPflow. y is in {-1, +1}.
"""

import functools
import itertools

import numpy as np
from scipy import integrate, optimize, special
from scipy.stats import norm

# --- one datum -----------------------------------------------------------------------------------


def hinge_log(y, f, penalty):
    return -penalty * np.maximum(0, 1 - y * f)


def augmentation_integral(b, penalty):
    """
    int_0^inf a (2 pi lam)^(-1/2) exp(-a b - (a^2 lam + b^2 / lam) / 2) dlam, with lam = t^2.
    """
    a = penalty / 2

    def integrand(t):
        exponent = -a * b - (a**2 * t**2 + b**2 / t**2) / 2
        return a * np.sqrt(2 / np.pi) * np.exp(exponent)

    peak = np.sqrt(abs(b) / a) + 1 / a
    parts = [(1e-300, peak / 4), (peak / 4, peak), (peak, 4 * peak), (4 * peak, 40 * peak)]
    return sum(integrate.quad(integrand, *part, epsabs=0, epsrel=1e-12)[0] for part in parts)


def augmented_bound_by_maximisation(mu, v, y, penalty):
    """
    max over alpha of E_q [log p(y, lam | f) - log q(lam)], q(lam) = GIG(1/2, a^2, alpha), whose
    normaliser is a (2 pi)^(-1/2) exp(a sqrt(alpha)); expectations over lam = t^2 by quadrature.
    """
    a, m = penalty / 2, 1 - y * mu
    second_moment = m**2 + v

    def negative_bound(log_alpha):
        alpha = np.exp(log_alpha)

        def log_q(t):  # of lam = t^2
            return (
                np.log(a)
                - 0.5 * np.log(2 * np.pi * t**2)
                + a * np.sqrt(alpha)
                - (a**2 * t**2 + alpha / t**2) / 2
            )

        def log_joint(t):
            return (
                np.log(a)
                - 0.5 * np.log(2 * np.pi * t**2)
                - a * m
                - (a**2 * t**2 + second_moment / t**2) / 2
            )

        def integrand(t):
            return np.exp(log_q(t)) * 2 * t * (log_joint(t) - log_q(t))

        peak = np.sqrt(np.sqrt(alpha) / a) + 1 / a
        parts = [(1e-8, peak / 4), (peak / 4, peak), (peak, 4 * peak), (4 * peak, 40 * peak)]
        return -sum(integrate.quad(integrand, *part, epsabs=1e-13)[0] for part in parts)

    start = np.log(second_moment)
    found = optimize.minimize_scalar(negative_bound, bracket=(start - 0.5, start + 0.5), tol=1e-10)
    return -found.fun, np.exp(found.x)


#: Nodes and weights; to find them takes longer than to use them.
legendre = functools.cache(np.polynomial.legendre.leggauss)


def normal_expectation(function, mu, v, split=None):
    """E function(f), f ~ N(mu, v), by Gauss-Legendre on 12 standard deviations, cut at a kink."""
    s = np.sqrt(v)
    low, high = mu - 12 * s, mu + 12 * s
    cuts = [low, high] if split is None or not low < split < high else [low, split, high]
    nodes, weights = legendre(200)
    total = 0.0
    for left, right in itertools.pairwise(cuts):
        f = (right - left) / 2 * nodes + (right + left) / 2
        total += (right - left) / 2 * np.sum(weights * norm.pdf(f, mu, s) * function(f))
    return total


def hinge_expectation(mu, v, y, penalty):
    return normal_expectation(lambda f: hinge_log(y, f, penalty), mu, v, split=y)


def augmented_bound(mu, v, y, penalty):
    m = 1 - y * mu
    return -penalty / 2 * (m + np.sqrt(m**2 + v))


def exact_bound(mu, v, y, penalty):
    m, s = 1 - y * mu, np.sqrt(v)
    return -penalty * (m * norm.cdf(m / s) + s * norm.pdf(m / s))


BOUNDS = {"augmented": augmented_bound, "exact": exact_bound}


def hinge_sites(mu, v, y, penalty, bound):
    """Precision w and precision-mean r."""
    m = 1 - y * mu
    if bound == "augmented":
        w = penalty / 2 / np.sqrt(m**2 + v)
        return w, y * (penalty / 2 + w)
    s = np.sqrt(v)
    w = penalty * norm.pdf(m / s) / s
    return w, y * penalty * norm.cdf(m / s) + w * mu


# --- the sparse model, with a squared exponential kernel -----------------------------------------


def kernel(X, Z, variance, lengthscale):
    difference = (X[:, None, :] - Z[None, :, :]) / lengthscale
    return variance * np.exp(-0.5 * np.sum(difference**2, axis=-1))


class SparseModel:
    """f = K_fu K_uu^-1 u + residual, u = L v, q(v) = N(mean, covariance); labels y [N]."""

    def __init__(self, X, y, Z, *, variance, lengthscale, penalty, bound, jitter=1e-6):
        Kuu = kernel(Z, Z, variance, lengthscale) + jitter * np.eye(len(Z))
        L = np.linalg.cholesky(Kuu)
        self.features = kernel(X, Z, variance, lengthscale) @ np.linalg.inv(L).T
        self.residual = variance - np.sum(self.features**2, axis=1)
        self.y, self.penalty, self.bound = y, penalty, bound

    def marginals(self, mean, covariance):
        v = np.einsum("nm,mk,nk->n", self.features, covariance, self.features)
        return self.features @ mean, v + self.residual

    def elbo(self, mean, covariance, weight=1.0):
        mu, v = self.marginals(mean, covariance)
        expectation = BOUNDS[self.bound](mu, v, self.y, self.penalty)
        sign, log_det = np.linalg.slogdet(covariance)
        assert sign > 0
        kl = 0.5 * (np.trace(covariance) + mean @ mean - len(mean) - log_det)
        return np.sum(weight * expectation) - kl

    def step(self, mean, covariance, rho, scale=1.0):
        """A natural-gradient step of size rho: P^-1 = covariance, h = P mean."""
        w, r = hinge_sites(*self.marginals(mean, covariance), self.y, self.penalty, self.bound)
        P_old = np.linalg.inv(covariance)
        A = self.features.T
        P = (1 - rho) * P_old + rho * (np.eye(len(mean)) + scale * (A * w) @ A.T)
        h = (1 - rho) * P_old @ mean + rho * scale * A @ r
        return np.linalg.solve(P, h), np.linalg.inv(P)

    def optimum(self):
        """Brute force: the ELBO over mean and Cholesky factor, by a quasi-Newton method."""
        M = self.features.shape[1]
        lower = np.tril_indices(M)

        def unpack(parameters):
            root = np.zeros((M, M))
            root[lower] = parameters[M:]
            return parameters[:M], root @ root.T

        start = np.concatenate([np.zeros(M), np.eye(M)[lower]])
        found = optimize.minimize(
            lambda parameters: -self.elbo(*unpack(parameters)),
            start,
            method="BFGS",
            options={"gtol": 1e-6, "maxiter": 2000},
        )
        return *unpack(found.x), -found.fun


# --- evidence ------------------------------------------------------------------------------------


def axis(middle, kink, width, num=40):
    """Nodes and weights of Gauss and Legendre between the kink, the mode, and where all ends."""
    ends = {middle - width, middle, middle + width}
    ends |= {kink} if abs(kink - middle) < width else set()
    points, weights = np.polynomial.legendre.leggauss(num)
    pairs = list(itertools.pairwise(sorted(ends)))
    nodes = [(high + low) / 2 + (high - low) / 2 * points for low, high in pairs]
    return np.concatenate(nodes), np.concatenate([(b - a) / 2 * weights for a, b in pairs])


def log_evidence(mode):
    """Eq. 14 per row, by numerical integration over f, without kappa."""
    K, y, C = mode.gram, mode.y, mode.penalty
    widths = 9 * np.sqrt(K.diagonal())
    if mode.slack == "linear":  # it falls exponentially beside a kink
        rate = np.maximum(np.minimum(mode.alpha, C - mode.alpha), 1e-9)
        widths = np.minimum(widths, 40 / rate)
    axes = [axis(*about) for about in zip(mode.latent, y, widths)]
    F, weights = (np.meshgrid(*parts, indexing="ij") for parts in zip(*axes))
    F = np.stack(F, axis=-1).reshape(-1, len(y))
    log_weights = np.sum(np.log(weights), axis=0).reshape(-1)
    lacking = np.maximum(1 - F * y, 0)
    loss = lacking if mode.slack == "linear" else lacking**2 / 2
    exponents = -C * loss.sum(axis=1) - np.einsum("fi,ij,fj->f", F, np.linalg.inv(K), F) / 2
    log_det = np.linalg.slogdet(2 * np.pi * K)[1]
    return (special.logsumexp(exponents + log_weights) - log_det / 2) / len(y)
