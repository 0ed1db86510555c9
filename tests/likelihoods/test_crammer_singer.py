"""The multi-class hinge: its integrals against quadrature, sampling and the binary model."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import in_a_graph
from multiclass import above, draw, integral, three_blobs
from scipy import stats
from scipy.special import ndtr

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, sites_by_autodiff

BOUNDS = ["exact", "augmented", "wistuba2018"]


def brute_force(mean, variance, y):
    """
    E max(0, 1 + max_{t != y} f_t - f_y) of three classes: over two latents on a square, piece by
    piece between the kinks of the inner maximum, the third by hand, E max(0, N(m, v)).
    """
    scale = np.sqrt(variance)
    one, two = (t for t in range(3) if t != y)

    def expected_loss(rival):
        m = 1 + rival - mean[y]
        return m * ndtr(m / scale[y]) + scale[y] * stats.norm.pdf(m / scale[y])

    def density(x, t):
        return stats.norm.pdf(x, mean[t], scale[t])

    def inner(x):
        """Over the second rival, for the first at x: below x it does not matter, above it does."""
        high = np.maximum(x, mean[two] + 9 * scale[two])
        higher = integral(x, high, lambda v: expected_loss(v) * density(v, two))
        return expected_loss(x) * stats.norm.cdf(x, mean[two], scale[two]) + higher

    low, high = mean[one] - 9 * scale[one], mean[one] + 9 * scale[one]
    return integral(low, high, lambda x: inner(x) * density(x, one))


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_exact_expectation_by_brute_force(spread):
    X, Fmu, Fvar, Y = draw(3, num_rows=6, spread=spread)
    closed = CrammerSinger(3).variational_expectations(X, Fmu, Fvar, Y)
    expected = [-2 * brute_force(*row, int(y[0])) for *row, y in zip(Fmu, Fvar, Y)]
    np.testing.assert_allclose(closed, expected, atol=1e-8)


def hinge_of_the_maximum(mean, variance, y):
    """
    E max(0, 1 + max_{t != y} f_t - f_y) = g(low) + int_low^high g' (1 - F) with F the distribution
    function of the maximum and g(u) = E max(0, 1 + u - f_y), so that g' = P(f_y < 1 + u).
    """
    scale = np.sqrt(variance)
    others = np.delete(mean, y), np.delete(scale, y)
    low, high = ((others[0] + k * others[1]).max() for k in (-9, 9))
    z = (1 + low - mean[y]) / scale[y]
    at_low = scale[y] * (z * ndtr(z) + stats.norm.pdf(z))
    slope = lambda u: ndtr((1 + u - mean[y]) / scale[y]) * above(u, *others)  # noqa: E731
    return at_low + integral(low, high, slope)


def second_best(num_classes, num_rows, variance):
    """As `draw`; labels for which the loss is neither 0 nor linear."""
    X, Fmu, Fvar, _ = draw(num_classes, num_rows, spread=1.5)
    return X, Fmu, variance * Fvar, np.argsort(Fmu, axis=1)[:, -2:-1].astype(float)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("variance", [0.01, 1.0, 30.0])
def test_exact_expectation_by_one_integral(num_classes, variance):
    X, Fmu, Fvar, Y = second_best(num_classes, 2, variance)
    closed = CrammerSinger(num_classes).variational_expectations(X, Fmu, Fvar, Y)
    expected = [-2 * hinge_of_the_maximum(*row, int(y[0])) for *row, y in zip(Fmu, Fvar, Y)]
    np.testing.assert_allclose(closed, expected, atol=1e-8)


@pytest.mark.parametrize("num_classes", [3, 100])
def test_exact_expectation_by_sampling(num_classes):
    """Coarse, but with no formula in common with the integrals."""
    X, Fmu, Fvar, Y = second_best(num_classes, 1, 1.0)
    f = Fmu + np.sqrt(Fvar) * np.random.default_rng(1).normal(size=(50_000, num_classes))
    label = f[:, int(Y[0, 0])].copy()
    f[:, int(Y[0, 0])] = -np.inf
    losses = -2 * np.maximum(0, 1 + f.max(axis=1) - label)
    error = losses.std() / np.sqrt(len(losses))
    closed = CrammerSinger(num_classes).variational_expectations(X, Fmu, Fvar, Y)
    assert abs(losses.mean() - closed[0]) < 4 * error


@pytest.mark.parametrize("bound", ["exact", "augmented"])
@pytest.mark.parametrize("penalty", [0.7, 2.0])
def test_two_classes_are_the_binary_hinge(bound, penalty):
    X, Fmu, Fvar, Y = draw(2, spread=2.0)
    ours = CrammerSinger(2, penalty, bound).variational_expectations(X, Fmu, Fvar, Y)
    gap, variance = Fmu[:, 1:] - Fmu[:, :1], Fvar.sum(axis=1, keepdims=True)
    binary = Hinge(penalty, bound).variational_expectations(X, gap, variance, Y)
    np.testing.assert_allclose(ours, binary, atol=1e-8)
    p, _ = CrammerSinger(2).predict_mean_and_var(X, Fmu, Fvar)
    q, _ = Hinge().predict_mean_and_var(X, gap, variance)
    np.testing.assert_allclose(p[:, 1:], q, atol=1e-9)


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("bound", BOUNDS)
def test_sites_are_those_of_the_bound(num_classes, bound):
    X, Fmu, Fvar, Y = draw(num_classes, spread=3.0)
    likelihood = CrammerSinger(num_classes, bound=bound)
    w, r = likelihood.sites(X, Fmu, Fvar, Y)
    derived = sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)
    np.testing.assert_allclose(w, derived[0], atol=1e-8)
    np.testing.assert_allclose(r, derived[1], atol=1e-8)
    assert (w.numpy() >= 0).all()


def test_published_sites_are_the_papers():
    X, Fmu, Fvar, Y = draw(4)
    w, r = CrammerSinger(4, bound="wistuba2018").sites(X, Fmu, Fvar, Y)
    for n, y in enumerate(Y[:, 0].astype(int)):
        t = max((c for c in range(4) if c != y), key=lambda c: Fmu[n, c])
        omega = 1 / np.sqrt((1 + Fmu[n, t] - Fmu[n, y]) ** 2 + Fvar[n, t] + Fvar[n, y])
        expected_w, expected_r = np.zeros(4), np.zeros(4)
        expected_w[[y, t]] = omega
        expected_r[y], expected_r[t] = 1 + omega * (1 + Fmu[n, t]), -1 - omega * (1 - Fmu[n, y])
        np.testing.assert_allclose(w[n], expected_w, atol=1e-12)
        np.testing.assert_allclose(r[n], expected_r, atol=1e-12)


def test_the_published_objective_is_no_bound_and_the_augmented_one_is():
    X, Y = np.zeros((200, 1)), np.zeros((200, 1))
    random = np.random.default_rng(0)
    Fmu, Fvar = random.normal(size=(200, 5)), random.uniform(0.1, 3, size=(200, 5))
    values = {
        bound: CrammerSinger(5, bound=bound).variational_expectations(X, Fmu, Fvar, Y).numpy()
        for bound in BOUNDS
    }
    assert (values["augmented"] <= values["exact"] + 1e-10).all()
    assert (values["wistuba2018"] > values["exact"] + 0.1).mean() > 0.1


def test_no_variance_and_far_apart():
    X, Fmu, _, Y = draw(6)
    likelihood = CrammerSinger(6)
    expected = likelihood.log_prob(X, Fmu, Y)
    certain = likelihood.variational_expectations(X, Fmu, 1e-14 * np.ones_like(Fmu), Y)
    np.testing.assert_allclose(certain, expected, atol=1e-6)  # standard deviation 1e-7
    far = likelihood.variational_expectations(X, 1e6 * Fmu, np.ones_like(Fmu), Y)
    np.testing.assert_allclose(far, likelihood.log_prob(X, 1e6 * Fmu, Y), rtol=1e-9)
    w, r = likelihood.sites(X, 1e6 * Fmu, np.ones_like(Fmu), Y)
    assert np.isfinite(w).all() and np.isfinite(r).all()


def test_permuting_the_classes_permutes_everything():
    X, Fmu, Fvar, Y = draw(7, spread=2.0)
    order = np.random.default_rng(3).permutation(7)
    renamed = np.argsort(order)[Y.astype(int)].astype(float)
    for bound in BOUNDS:
        likelihood = CrammerSinger(7, bound=bound)
        np.testing.assert_allclose(
            likelihood.variational_expectations(X, Fmu[:, order], Fvar[:, order], renamed),
            likelihood.variational_expectations(X, Fmu, Fvar, Y),
            atol=1e-10,
        )
        for one, other in zip(
            likelihood.sites(X, Fmu[:, order], Fvar[:, order], renamed),
            likelihood.sites(X, Fmu, Fvar, Y),
        ):
            np.testing.assert_allclose(one, other.numpy()[:, order], atol=1e-10)


def test_prediction_is_a_distribution():
    X, Fmu, Fvar, Y = draw(4, num_rows=6, spread=3.0)
    likelihood = CrammerSinger(4)
    p, variance = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    np.testing.assert_allclose(tf.reduce_sum(p, axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose(variance, p - p**2)
    rows = np.arange(6), Y[:, 0].astype(int)
    log_density = likelihood.predict_log_density(X, Fmu, Fvar, Y)
    np.testing.assert_allclose(log_density, np.log(p.numpy()[rows]), atol=1e-10)
    random = np.random.default_rng(0)
    noisy = Fmu[0] + np.sqrt(Fvar[0] + 0.5) * random.normal(size=(400_000, 4))
    shares = np.bincount(noisy.argmax(axis=1), minlength=4) / len(noisy)
    np.testing.assert_allclose(p[0], shares, atol=4 * np.sqrt(0.25 / len(noisy)))
    certain = likelihood.conditional_mean(X, Fmu)
    np.testing.assert_allclose(
        certain, likelihood.predict_mean_and_var(X, Fmu, np.zeros_like(Fmu))[0], atol=1e-12
    )


def make(model_class, bound, num_data=90):
    X, _ = three_blobs()
    return model_class(
        gpflow.kernels.SquaredExponential(4.0, lengthscales=2.0),
        CrammerSinger(3, bound=bound),
        X[:10].copy(),
        num_latent_gps=3,
        num_data=num_data,
    )


# Not for the augmented bound, which is not concave: negative precisions are set to 0 here only.
@pytest.mark.parametrize("bound", ["exact", "wistuba2018"])
def test_a_step_is_gpflows(bound):
    data = three_blobs()
    ours, theirs = make(gb.models.BSVM, bound), make(gpflow.models.SVGP, bound)
    for rho in (0.5, 0.3):
        ours.natgrad_step(data, rho)
        gpflow.optimizers.NaturalGradient(rho).minimize(
            theirs.training_loss_closure(data, compile=False), [(theirs.q_mu, theirs.q_sqrt)]
        )
    np.testing.assert_allclose(ours.q_mu, theirs.q_mu, atol=1e-8)
    np.testing.assert_allclose(ours.q_sqrt, theirs.q_sqrt, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["exact", "augmented"])
def test_cavi_climbs_and_separates(bound):
    X, Y = three_blobs()
    model = make(gb.models.BSVM, bound)
    history = gb.inference.CAVI(tol=1e-7, max_steps=1000).run(model, (X, Y))
    assert history.converged
    assert (np.diff(history.elbo) >= -1e-9 * abs(history.elbo[-1])).all()
    np.testing.assert_allclose(history.elbo[-1], model.elbo((X, Y)), rtol=1e-10)
    X_new, Y_new = three_blobs(seed=1)
    p = model.predict_y(X_new)[0].numpy()
    assert np.mean(p.argmax(axis=1) != Y_new[:, 0]) < 0.15


@pytest.mark.slow
def test_svi_takes_batches_without_some_class():
    X, Y = three_blobs()
    order = np.argsort(Y[:, 0], kind="stable")  # every batch of 10 is of one class
    data = tf.data.Dataset.from_tensor_slices((X[order], Y[order])).batch(10)
    model = make(gb.models.BSVM, "exact")
    gb.inference.SVI(max_steps=50, learning_rate=0.1).run(model, data)
    assert np.isfinite(model.elbo((X, Y)))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_labels_of_any_dtype(dtype):
    X, Fmu, Fvar, Y = draw(3)
    likelihood = CrammerSinger(3)
    np.testing.assert_array_equal(
        likelihood.variational_expectations(X, Fmu, Fvar, Y.astype(dtype)),
        likelihood.variational_expectations(X, Fmu, Fvar, Y),
    )


@pytest.mark.parametrize("label", [-1.0, 3.0, 0.5, np.nan])
def test_a_wrong_label_in_a_graph_is_nan(label):
    X, Fmu, Fvar, Y = draw(3, num_rows=2)
    Y[1] = label
    for bound in BOUNDS:
        expectation = CrammerSinger(3, bound=bound).variational_expectations
        values = in_a_graph(expectation)(X, Fmu, Fvar, Y)
        assert np.isfinite(values[0]) and np.isnan(values[1])
        with pytest.raises(ValueError, match=rf"integers in 0\.\.2, got {label}"):
            expectation(X, Fmu, Fvar, Y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0], [1], [3]], r"integers in 0\.\.2, got 3"),
        ([[0], [1], [-1]], r"integers in 0\.\.2, got -1"),
        ([[0], [1], [0.5]], r"integers in 0\.\.2, got 0.5"),
        ([[0], [2], [2]], r"no row of class 1"),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], r"form one column of integers, got shape \(3, 3\)"),
    ],
)
def test_bad_labels(labels, message):
    X, _ = three_blobs()
    with pytest.raises(ValueError, match=message):
        gb.fit(make(gb.models.BSVM, "exact"), (X[:3], np.array(labels)))


def test_bad_options():
    with pytest.raises(ValueError, match=r"num_classes must be (at least 2|a whole number)"):
        CrammerSinger(1)
    with pytest.raises(ValueError, match="bound must be one of"):
        CrammerSinger(3, bound="tight")
    with pytest.raises(ValueError, match="penalty must be a positive"):
        CrammerSinger(3, penalty=0.0)
    with pytest.raises(ValueError, match="Singer needs a model with num_latent_gps=3, got 1"):
        kernel, Z = gpflow.kernels.SquaredExponential(), np.zeros((1, 2))
        gb.models.BSVM(kernel, CrammerSinger(3), Z, num_latent_gps=1)


def test_a_model_of_another_number_of_latents_is_refused():
    data = three_blobs()
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(), CrammerSinger(3), data[0][:5], num_latent_gps=2
    )
    with pytest.raises(ValueError, match=r"CrammerSinger needs a model with num_latent_gps=3"):
        model.elbo(data)


@pytest.mark.slow
def test_a_class_with_a_single_row_is_learned():
    X, Y = three_blobs()
    X, Y = X[Y[:, 0] != 2], Y[Y[:, 0] != 2]
    X, Y = np.vstack([X, [[-6.0, -6.0]]]), np.vstack([Y, [[2.0]]])
    model = make(gb.models.BSVM, "exact", num_data=None)
    model.inducing_variable.Z.assign(X[-10:])
    gb.fit(model, (X, Y))
    assert model.predict_y(X)[0].numpy()[-1].argmax() == 2
