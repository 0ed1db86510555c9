"""The multi-class objective and algorithm as Wistuba & Rawat (2018) print them, and their flaws."""

import gpflow
import numpy as np
import pytest
from conftest import assert_same_state, state
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import CrammerSinger

JITTER = 1e-6


class Algorithm1:
    """
    Appendix C in NumPy, neither whitened nor localised, with P inducing points and all classes
    updated from the same alpha and means. Equations 41 to 45 print 1 + kappa eta_2^-1 eta_1 / 2
    for 1 + kappa mu, a sign that does not agree with eta_2 = -Sigma^-1 / 2; here it does.
    """

    def __init__(self, X, y, Z, *, variance, lengthscale):
        def kernel(one, two):
            squares = np.square(one[:, None] - two[None]).sum(axis=-1)
            return variance * np.exp(-squares / (2 * lengthscale**2))

        self.y, num_classes = y, y.max() + 1
        self.Kpp = kernel(Z, Z) + JITTER * np.eye(len(Z))
        self.kappa = np.linalg.solve(self.Kpp, kernel(Z, X)).T  # rows kappa_n
        self.K_tilde = variance - np.sum(self.kappa * kernel(X, Z), axis=1)
        self.mu = np.zeros((num_classes, len(Z)))
        self.Sigma = np.tile(np.eye(len(Z)), (num_classes, 1, 1))  # where GPflow's SVGP starts

    def iterate(self, rho):
        rows, y = np.arange(len(self.y)), self.y
        f = self.kappa @ self.mu.T
        others = f.copy()
        others[rows, y] = -np.inf
        t = others.argmax(axis=1)
        spread = np.einsum("np,jpq,nq->nj", self.kappa, self.Sigma, self.kappa)
        alpha = 2 * self.K_tilde + (1 + f[rows, t] - f[rows, y]) ** 2
        root = np.sqrt(alpha + spread[rows, y] + spread[rows, t])
        mu, Sigma = self.mu.copy(), self.Sigma.copy()
        for j in range(len(mu)):
            is_y, is_t = y == j, t == j
            first = is_y * ((1 + f[rows, t]) / root + 1) - is_t * ((1 - f[rows, y]) / root + 1)
            weight = (is_y | is_t) / (2 * root)
            target_1 = self.kappa.T @ first  # eq. 45
            target_2 = -np.linalg.inv(self.Kpp) / 2 - self.kappa.T * weight @ self.kappa  # eq. 46
            old_2 = -np.linalg.inv(self.Sigma[j]) / 2
            eta_1 = (1 - rho) * -2 * old_2 @ self.mu[j] + rho * target_1
            eta_2 = (1 - rho) * old_2 + rho * target_2
            Sigma[j] = -np.linalg.inv(eta_2) / 2
            mu[j] = Sigma[j] @ eta_1
        self.mu, self.Sigma = mu, Sigma


def digits(num_rows=200, num_classes=5):
    X, y = load_digits(n_class=num_classes, return_X_y=True)
    X = StandardScaler().fit_transform(X[:num_rows])
    return X, y[:num_rows]


def make(bound, *, variance, lengthscale, whiten=True):
    X, _ = digits()
    kernel = gpflow.kernels.SquaredExponential(variance, lengthscales=lengthscale)
    likelihood = CrammerSinger(5, bound=bound)
    Z = X[::10].copy()
    return gb.models.BSVM(kernel, likelihood, Z, num_latent_gps=5, whiten=whiten)


@pytest.mark.parametrize("rho", [1.0, 0.3])
def test_published_steps_are_algorithm_1(rho):
    X, y = digits()
    kernel = {"variance": 2.0, "lengthscale": 6.0}
    paper = Algorithm1(X, y, X[::10], **kernel)
    model = make("wistuba2018", **kernel, whiten=False)
    for _ in range(4):
        paper.iterate(rho)
        model.natgrad_step((X, y[:, None].astype(float)), rho)
    assert_same_state(state(model), (paper.mu.T, paper.Sigma), 1e-8)


@pytest.mark.slow
def test_the_published_ascent_falls_and_ours_rises():
    X, y = digits()
    data, kernel = (X, y[:, None].astype(float)), {"variance": 4.0, "lengthscale": 8.0}
    published, objective = make("wistuba2018", **kernel), []
    for _ in range(10):
        published.natgrad_step(data, 1.0)
        objective.append(float(published.elbo(data)))
    assert min(np.diff(objective)) < -0.1 * abs(objective[0])
    for bound in ("exact", "wistuba2018"):  # with damping, even that one rises
        elbo = gb.inference.CAVI().run(make(bound, **kernel), data).elbo
        assert (np.diff(elbo) >= -1e-9 * abs(elbo[-1])).all()


def test_a_fit_that_finds_no_step_has_not_converged(monkeypatch):
    X, y = digits()
    model = make("wistuba2018", variance=4.0, lengthscale=8.0)
    before = state(model)
    monkeypatch.setattr(gb.engine.line_search, "backtrack", lambda *_: (0.0, None))
    with pytest.warns(UserWarning, match="no step was found that raises the bound"):
        history = gb.inference.CAVI().run(model, (X, y[:, None].astype(float)))
    assert len(history) == 0 and not history.converged
    assert_same_state(before, state(model), 0)


@pytest.mark.parametrize("num_classes", [3, 10])
def test_the_published_objective_exceeds_what_it_bounds(num_classes):
    """Classes alike: the largest rival is far above the one of largest mean."""
    Fmu, Fvar, Y = np.zeros((1, num_classes)), np.ones((1, num_classes)), np.zeros((1, 1))
    draws = np.random.default_rng(0).normal(size=(200_000, num_classes))
    losses = -2 * np.maximum(0, 1 + draws[:, 1:].max(axis=1) - draws[:, 0])
    error = losses.std() / np.sqrt(len(losses))
    values = {
        bound: float(
            CrammerSinger(num_classes, bound=bound).variational_expectations(Y, Fmu, Fvar, Y)[0]
        )
        for bound in ("exact", "augmented", "wistuba2018")
    }
    assert abs(values["exact"] - losses.mean()) < 4 * error
    assert values["augmented"] < losses.mean() - 4 * error
    assert values["wistuba2018"] > losses.mean() + 4 * error
