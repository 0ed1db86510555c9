"""The multi-class objective and algorithm as Wistuba & Rawat (2018) print them, and their flaws."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import assert_same_state, state
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm.inference import cavi
from gpflow_bsvm.likelihoods import CrammerSinger
from gpflow_bsvm.papers import wistuba2018

JITTER = 1e-6


class Algorithm1:
    """
    Appendix C in NumPy, neither whitened nor localised, with P inducing points. Lines 5 to 11 are
    printed `in_turn`, where class j sees the classes before it as they are already; else all are
    updated from the same means. alpha and rivals are those of the sweep's start (lines 3 and 4).
    Equations 41 to 45 print 1 + kappa eta_2^-1 eta_1 / 2 for 1 + kappa mu, a sign that does not
    agree with eta_2 = -Sigma^-1 / 2; here it does.
    """

    def __init__(self, X, y, Z, *, variance, lengthscale, in_turn=False):
        def kernel(one, two):
            squares = np.square(one[:, None] - two[None]).sum(axis=-1)
            return variance * np.exp(-squares / (2 * lengthscale**2))

        self.y, self.in_turn, num_classes = y, in_turn, y.max() + 1
        self.Kpp = kernel(Z, Z) + JITTER * np.eye(len(Z))
        self.kappa = np.linalg.solve(self.Kpp, kernel(Z, X)).T  # rows kappa_n
        self.K_tilde = variance - np.sum(self.kappa * kernel(X, Z), axis=1)
        self.mu = np.zeros((num_classes, len(Z)))
        self.Sigma = np.tile(np.eye(len(Z)), (num_classes, 1, 1))  # where GPflow's SVGP starts

    def means(self):
        return self.kappa @ self.mu.T

    def rivals(self):
        others = self.means()
        others[np.arange(len(self.y)), self.y] = -np.inf
        return others.argmax(axis=1)

    def moments(self, t):
        """:return: of b = 1 + f_t - f_y, mean and mean square: the latter is alpha of line 4."""
        rows, f = np.arange(len(self.y)), self.means()
        spread = np.einsum("np,jpq,nq->nj", self.kappa, self.Sigma, self.kappa)
        mean = 1 + f[rows, t] - f[rows, self.y]
        return mean, mean**2 + 2 * self.K_tilde + spread[rows, t] + spread[rows, self.y]

    def objective(self, t, alpha):
        """Eq. 12 with the sign of its last terms mended, and the constants that it drops."""
        mean, square = self.moments(t)
        bound = -mean - (np.sqrt(alpha) + square / np.sqrt(alpha)) / 2
        kl = 0.0
        for mu, Sigma in zip(self.mu, self.Sigma):
            inverse = np.linalg.inv(self.Kpp)
            log_dets = np.linalg.slogdet(self.Kpp)[1] - np.linalg.slogdet(Sigma)[1]
            kl += (np.trace(inverse @ Sigma) + mu @ inverse @ mu - len(mu) + log_dets) / 2
        return bound.sum() - kl

    def iterate(self, rho):
        rows, y, t = np.arange(len(self.y)), self.y, self.rivals()
        alpha = self.moments(t)[1]
        start, root = self.means(), np.sqrt(alpha)
        values = [self.objective(t, alpha)]
        for j in range(len(self.mu)):
            f = self.means() if self.in_turn else start
            is_y, is_t = y == j, t == j
            first = is_y * ((1 + f[rows, t]) / root + 1) - is_t * ((1 - f[rows, y]) / root + 1)
            weight = (is_y | is_t) / (2 * root)
            target_1 = self.kappa.T @ first  # eq. 45
            target_2 = -np.linalg.inv(self.Kpp) / 2 - self.kappa.T * weight @ self.kappa  # eq. 46
            old_2 = -np.linalg.inv(self.Sigma[j]) / 2
            eta_1 = (1 - rho) * -2 * old_2 @ self.mu[j] + rho * target_1
            eta_2 = (1 - rho) * old_2 + rho * target_2
            self.Sigma[j] = -np.linalg.inv(eta_2) / 2
            self.mu[j] = self.Sigma[j] @ eta_1
            values.append(self.objective(t, alpha))
        return values


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
def test_published_steps_at_once_are_those_of_algorithm_1(rho):
    X, y = digits()
    kernel = {"variance": 2.0, "lengthscale": 6.0}
    paper = Algorithm1(X, y, X[::10], **kernel)
    model = make("wistuba2018", **kernel, whiten=False)
    for _ in range(4):
        paper.iterate(rho)
        model.natgrad_step((X, y[:, None].astype(float)), rho)
    assert_same_state(state(model), (paper.mu.T, paper.Sigma), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [1.0, 0.3])
def test_class_by_class_is_algorithm_1_in_its_printed_order(rho):
    X, y = digits()
    kernel = {"variance": 2.0, "lengthscale": 6.0}
    paper = Algorithm1(X, y, X[::10], **kernel, in_turn=True)
    model = make("wistuba2018", **kernel, whiten=False)
    printed = wistuba2018.ClassByClass(max_steps=4, tol=0, learning_rate=rho)
    history = printed.run(model, (X, y[:, None].astype(float)))
    for value in history.elbo:
        paper.iterate(rho)
        t = paper.rivals()
        np.testing.assert_allclose(value, paper.objective(t, paper.moments(t)[1]), rtol=1e-8)
    assert_same_state(state(model), (paper.mu.T, paper.Sigma), 1e-8)
    assert history.learning_rate == [rho] * 4 and not history.converged


def test_the_printed_order_falls_only_where_rivals_change():
    """At its rivals and alpha the update of a class is a maximum; all at once may overshoot."""
    X, y = digits()
    ends, sweeps = {}, 10
    for in_turn in (True, False):
        paper = Algorithm1(X, y, X[::10], variance=4.0, lengthscale=8.0, in_turn=in_turn)
        falls_within, falls_of_sweeps, before = 0.0, 0.0, -np.inf
        for _ in range(sweeps):
            values = paper.iterate(1.0)
            falls_within = max(falls_within, -np.diff(values).min())
            t = paper.rivals()
            ends[in_turn] = paper.objective(t, paper.moments(t)[1])
            falls_of_sweeps = max(falls_of_sweeps, before - ends[in_turn])
            before = ends[in_turn]
        assert falls_of_sweeps > 50
        assert (falls_within < 1e-9) == in_turn
    assert ends[True] > ends[False] / 2


@pytest.mark.slow
def test_the_papers_objective_at_any_alpha():
    X, y = digits()
    kernel = {"variance": 2.0, "lengthscale": 6.0}
    paper = Algorithm1(X, y, X[::10], **kernel)
    model, data = make("wistuba2018", **kernel, whiten=False), (X, y[:, None].astype(float))
    paper.iterate(0.5)
    model.natgrad_step(data, 0.5)
    t, given = paper.rivals(), np.random.default_rng(0).uniform(0.5, 3, size=len(y))
    np.testing.assert_allclose(
        gb.prediction.local_variables(model, data).alpha[:, 0], paper.moments(t)[1], rtol=1e-8
    )
    found = gb.prediction.augmented_elbo(model, data, given[:, None])
    np.testing.assert_allclose(found, paper.objective(t, given), rtol=1e-8)


@pytest.mark.drill
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


@pytest.mark.slow
def test_class_by_class_goes_on_from_where_it_was(tmp_path):
    X, y = digits()
    data, kernel = (X, y[:, None].astype(float)), {"variance": 2.0, "lengthscale": 6.0}
    one, two = (make("wistuba2018", **kernel) for _ in range(2))
    printed = wistuba2018.ClassByClass
    whole = printed(max_steps=4, tol=0).run(one, data)
    printed(max_steps=2, tol=0).run(two, data, checkpoint=tmp_path)
    again = make("wistuba2018", **kernel)
    parts = printed(max_steps=4, tol=0).run(again, data, checkpoint=tmp_path)
    np.testing.assert_array_equal(whole.elbo, parts.elbo)
    assert_same_state(state(one), state(again), 0)
    # It stops where a sweep changes little, in chunks as well, and a mean function counts.
    for model in (one, two):
        model.mean_function = gpflow.functions.Constant(0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gb.engine.contracts, "CHUNK_ENTRIES", 1)
        history = printed(max_steps=300, tol=0.05).run(one, data)
    assert history.converged
    last = history.elbo[-2:]
    assert abs(last[1] - last[0]) < 0.05 * abs(last[1])
    np.testing.assert_allclose(last[1], one.elbo(data), rtol=1e-10)
    two.q_mu.assign(again.q_mu)
    two.q_sqrt.assign(again.q_sqrt)
    np.testing.assert_allclose(history.elbo, printed(300, 0.05).run(two, data).elbo, rtol=1e-8)


@pytest.mark.slow
def test_class_by_class_with_a_kernel_for_each_class():
    X, y = digits()
    data, likelihood = (X, y[:, None].astype(float)), CrammerSinger(5, bound="wistuba2018")
    shared = make("wistuba2018", variance=2.0, lengthscale=6.0)
    same = [gpflow.kernels.SquaredExponential(2.0, lengthscales=6.0) for _ in range(5)]
    points = gpflow.inducing_variables.InducingPoints(X[::10].copy())
    each = gb.models.BSVM(
        gpflow.kernels.SeparateIndependent(same),
        likelihood,
        gpflow.inducing_variables.SharedIndependentInducingVariables(points),
        num_latent_gps=5,
    )
    for model in (shared, each):
        wistuba2018.ClassByClass(max_steps=2, tol=0).run(model, data)
    assert_same_state(state(shared), state(each), 1e-8)


def test_class_by_class_refuses():
    X, y = digits()
    model = make("exact", variance=1.0, lengthscale=6.0)
    with pytest.raises(ValueError, match=r"no sites for given local.*bound=.wistuba2018.*or CAVI"):
        wistuba2018.ClassByClass().run(model, (X, y[:, None].astype(float)))
    with pytest.raises(ValueError, match=r'hold needs bound="wistuba2018", got bound=\'exact\''):
        model.likelihood.hold(np.zeros((1, 5)), np.ones((1, 5)), np.zeros((1, 1)))
    for bad, message in (
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"tol": -1}, "tol must be at least 0"),
        ({"learning_rate": 0.0}, r"learning_rate must be in \(0, 1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            wistuba2018.ClassByClass(**bad)


def test_a_fit_that_finds_no_step_has_not_converged(monkeypatch):
    X, y = digits()
    model = make("wistuba2018", variance=4.0, lengthscale=8.0)
    before = state(model)
    some = cavi.Sweeps._some

    def stuck(self, ascent, *how):
        if ascent.rho == 0:  # at the start
            return some(self, ascent, *how)
        return ascent._replace(ended=tf.constant(True)), tf.zeros([0, 2])

    monkeypatch.setattr(cavi.Sweeps, "_some", stuck)
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


@pytest.mark.drill
@pytest.mark.slow
def test_where_the_published_objective_ends_depends_on_the_order_of_classes(rng):
    """At the prior all means tie, and the first class is the rival."""
    X = rng.normal(size=(30, 2))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=30), [-0.5, 0.5])

    def end(bound, names):
        likelihood, Y = CrammerSinger(3, bound=bound), np.array(names)[y][:, None].astype(float)
        kernel = gpflow.kernels.SquaredExponential()
        model = gb.models.BSVM(kernel, likelihood, X[::3].copy(), num_latent_gps=3)
        for _ in range(30):
            model.natgrad_step((X, Y), 0.1)
        return float(model.elbo((X, Y)))

    for bound in ("exact", "augmented", "wistuba2018"):
        one, other = end(bound, (0, 1, 2)), end(bound, (2, 0, 1))
        if bound == "wistuba2018":
            assert abs(one - other) > 0.05
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9)
