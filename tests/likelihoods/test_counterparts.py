"""Likelihoods against their counterparts in GPflow: members, shapes, and what these mean."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods as theirs
from helpers import in_a_graph, make_data

import gpflow_bsvm as gb
from gpflow_bsvm import likelihoods as ours
from gpflow_bsvm.prediction import predict_log_density, predict_probabilities
from gpflow_bsvm.sampling.samples import Samples

N, C = 5, 3
EDGES = np.array([-1.0, 1.0])
#: GPflow's likelihood, and ours in its place.
PAIRS = {
    "Hinge": (theirs.Bernoulli, ours.Hinge),
    "Probit": (theirs.Bernoulli, ours.Probit),
    "LevelHinge": (theirs.Bernoulli, ours.LevelHinge),
    "CrammerSinger": (lambda: theirs.MultiClass(C), lambda: ours.CrammerSinger(C)),
    "OneVsRest": (lambda: theirs.MultiClass(C), lambda: ours.OneVsRest(C)),
    "OneVsRestLevelHinge": (lambda: theirs.MultiClass(C), lambda: ours.OneVsRestLevelHinge(C)),
    "CrammerSinger for Softmax": (lambda: theirs.Softmax(C), lambda: ours.CrammerSinger(C)),
    "Ordinal": (lambda: theirs.Ordinal(EDGES), lambda: ours.Ordinal(EDGES)),
    "EpsilonInsensitive": (theirs.StudentT, ours.EpsilonInsensitive),
    "EpsilonInsensitive for Gaussian": (theirs.Gaussian, ours.EpsilonInsensitive),
}
#: What ours lack, and why.
LACKING = {
    "LevelHinge": {"quadrature": "closed forms"},
    "CrammerSinger": {"num_gauss_hermite_points": "the nodes of its quadrature follow the data"},
    "OneVsRest": {"num_gauss_hermite_points": "closed forms"},
    "OneVsRestLevelHinge": {"num_gauss_hermite_points": "closed forms"},
    "CrammerSinger for Softmax": {"num_monte_carlo_points": "nothing is drawn"},
    "Ordinal": {"quadrature": "closed forms", "sigma": "the width of a step is 1 / penalty"},
    "EpsilonInsensitive": {
        "df": "tails are exponential",
        "scale": "1 / penalty beyond the tube, whose half width is epsilon",
        "scale_lower_bound": "penalty and epsilon are positive by their transforms",
    },
    "EpsilonInsensitive for Gaussian": {
        "variance": "noise_variance, which follows from penalty and epsilon",
        "variance_at": "the same at all X: conditional_variance",
        "variance_lower_bound": "penalty and epsilon are positive by their transforms",
        "scale": "1 / penalty beyond the tube, whose half width is epsilon",
        "scale_lower_bound": "penalty and epsilon are positive by their transforms",
    },
}
METHODS = {
    "log_prob": ("X", "Fmu", "Y"),
    "variational_expectations": ("X", "Fmu", "Fvar", "Y"),
    "predict_log_density": ("X", "Fmu", "Fvar", "Y"),
    "predict_mean_and_var": ("X", "Fmu", "Fvar"),
    "conditional_mean": ("X", "Fmu"),
    "conditional_variance": ("X", "Fmu"),
    "invlink": ("Fmu",),
}
BINARY = ["Hinge", "Probit"]
CLASSES = ["CrammerSinger", "OneVsRest", "OneVsRestLevelHinge"]


def members(likelihood):
    return {name for name in dir(likelihood) if not name.startswith("_")} - {*dir(tf.Module())}


@pytest.mark.parametrize("name", PAIRS)
def test_every_member_of_gpflows_is_there_or_has_its_reason(name):
    was, now = (make() for make in PAIRS[name])
    assert members(was) - members(now) == {*LACKING.get(name, ())}


def rows(likelihood, classes, batch=(N,), columns=None):
    """:return: X, mean and variance of f, and labels, of a likelihood with its own L."""
    rng = np.random.default_rng(0)
    L = columns or likelihood.latent_dim or 1
    Fmu = rng.normal(size=(*batch, L))
    Y = np.arange(np.prod(batch)).reshape(*batch, 1) % classes * np.ones(columns or 1)
    Y = Y.astype(int if isinstance(likelihood, theirs.Softmax) else float)
    return {"X": np.zeros((*batch, 2)), "Fmu": Fmu, "Fvar": np.exp(Fmu), "Y": Y}


def shapes(likelihood, method, given):
    found = getattr(likelihood, method)(*[given[name] for name in METHODS[method]])
    return [tuple(part.shape) for part in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PAIRS)
def test_shapes_are_those_of_gpflow(name, method):
    was, now = (make() for make in PAIRS[name])
    if not hasattr(was, method):
        return
    classes = 2 if name in (*BINARY, "LevelHinge") else C
    # GPflow's link of several classes looks along axis 1, and its Softmax at column 0.
    for batch in [(N,)] if "MultiClass" in str(was) or "Softmax" in str(was) else [(N,), (2, N)]:
        expected = shapes(was, method, rows(was, classes, batch))
        assert shapes(now, method, rows(now, classes, batch)) == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BINARY)
def test_a_label_for_each_of_several_functions(name, method):
    was, now = (make() for make in PAIRS[name])
    given = rows(now, 2, columns=2)
    assert shapes(now, method, given) == shapes(was, method, given)


@pytest.mark.parametrize("method", ["variational_expectations", "predict_log_density"])
@pytest.mark.parametrize("name", CLASSES)
def test_numbers_of_classes_without_a_column(name, method):
    was, now = (make() for make in PAIRS[name])
    call = lambda one, given: getattr(one, method)(*[given[part] for part in METHODS[method]])  # noqa: E731
    # GPflow checks shapes out of graphs only, and there refuses such labels.
    for one, run in ((was, in_a_graph(call)), (now, call), (now, in_a_graph(call))):
        column = rows(one, C)
        found = run(one, column | {"Y": np.arange(N) % C})
        np.testing.assert_allclose(found, call(one, column), rtol=1e-12)


@pytest.mark.parametrize("call", ["log_prob", "sites"])
@pytest.mark.parametrize("make", [*(PAIRS[name][1] for name in CLASSES), ours.Logistic])
def test_labels_and_draws_of_f(make, call):
    """One column of labels for several values of f, as in GPflow."""
    given = rows(make(), 2)
    X, Fmu, Fvar, Y = (given[part] for part in METHODS["variational_expectations"])
    one = {"log_prob": lambda F: make().log_prob(X, F, Y)}
    one["sites"] = lambda F: ours.sites(make(), X, F, Fvar + np.zeros_like(F), Y).r
    draws = np.stack([Fmu, -Fmu])
    np.testing.assert_allclose(one[call](draws), [*map(one[call], draws)], rtol=1e-12)


# --- the link ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Hinge", "Probit", "LevelHinge", *CLASSES])
def test_the_link_is_the_probability_that_predictions_are_made_of(name):
    likelihood = PAIRS[name][1]()
    likelihood.scale.assign(1.7)
    given = rows(likelihood, 2)
    p = likelihood.invlink(given["Fmu"]).numpy()
    none = np.zeros_like(given["Fmu"])
    np.testing.assert_allclose(likelihood.conditional_mean(None, given["Fmu"]), p, rtol=1e-12)
    for k in range(p.shape[1] if p.shape[1] > 1 else 2):
        Y = np.full((N, 1), float(k))
        found = np.exp(likelihood.predict_log_density(None, given["Fmu"], none, Y))
        expected = p[:, k] if p.shape[1] > 1 else (p[:, 0] if k else 1 - p[:, 0])
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_the_mean_of_the_link_is_the_prediction():
    likelihood = ours.Hinge()
    likelihood.scale.assign(1.3)
    likelihood.offset.assign(0.4)
    mean, variance = np.array([[-1.0], [0.3], [2.0]]), np.array([[0.2], [1.5], [3.0]])
    z, weight = np.polynomial.hermite_e.hermegauss(100)
    p = likelihood.invlink(mean + np.sqrt(variance) * z).numpy() @ weight / np.sqrt(2 * np.pi)
    found = likelihood.predict_mean_and_var(None, mean, variance)[0][:, 0]
    np.testing.assert_allclose(found, p, atol=1e-8)


def test_the_link_takes_draws_of_any_shape():
    F = np.linspace(-2, 2, 24)
    p = ours.Hinge().invlink(F).numpy()
    for shape in ((24, 1), (4, 6), (2, 3, 4)):
        np.testing.assert_array_equal(ours.Hinge().invlink(F.reshape(shape)), p.reshape(shape))
    np.testing.assert_array_equal(ours.Hinge().invlink([0, 1]), ours.Hinge().invlink([0.0, 1.0]))


# --- ordered classes -----------------------------------------------------------------------------


def ordered(likelihood, X, Y):
    model = gb.models.BSVM(gpflow.kernels.Matern32(), likelihood, X[:6].copy())
    gb.fit(model, (X, Y))
    return model


@pytest.fixture(scope="module")
def scale():
    """A model of the edges of four classes, of which one has no row."""
    X = make_data(40)[0]
    Y = np.digitize(X[:, 0], [-0.5, 0.5])[:, None] + (X[:, :1] > 0.5)
    return ordered(ours.Ordinal([-2.0, 0.0, 2.0]), X, Y), X, Y


def test_moments_of_an_ordered_label_are_those_of_its_probabilities(scale):
    model, X, Y = scale
    k = np.arange(4)
    P = predict_probabilities(model, X)
    densities = [predict_log_density(model, (X, np.full_like(Y, one))) for one in k]
    np.testing.assert_allclose(P, np.exp(densities).T, rtol=1e-10, atol=1e-12)
    mean, variance = (part.numpy()[:, 0] for part in model.predict_y(X))
    np.testing.assert_allclose(mean, P @ k, rtol=1e-12)
    np.testing.assert_allclose(variance, P @ k**2 - (P @ k) ** 2, atol=1e-12)
    assert np.corrcoef(mean, Y[:, 0])[0, 1] > 0.8 and P[:, 2].max() < 0.5


def test_uncertainty_of_ordered_labels_looks_at_probabilities(scale):
    model, X, _ = scale
    P = predict_probabilities(model, X)
    entropy = -(P * np.log(P + 1e-300)).sum(axis=1)
    np.testing.assert_allclose(gb.prediction.predictive_entropy(model, X), entropy, atol=1e-10)
    draws = gb.prediction.draw_probabilities(model, X, num_samples=7)
    assert draws.shape == (7, 40, 4)
    np.testing.assert_allclose(draws.sum(axis=2), 1, rtol=1e-12)


def test_bin_edges_are_thresholds(scale):
    edges, number = ours.Ordinal(EDGES), ours.Ordinal(3, thresholds=EDGES)
    np.testing.assert_array_equal(edges.bin_edges, number.thresholds)
    assert edges.num_bins == edges.num_classes == theirs.Ordinal(EDGES).num_bins == 3
    with pytest.raises(ValueError, match="leave out thresholds="):
        ours.Ordinal(EDGES, thresholds=EDGES)
    with pytest.raises(ValueError, match="thresholds must be 2 increasing numbers"):
        ours.Ordinal(EDGES[::-1])


@pytest.mark.parametrize("likelihood", [ours.EpsilonInsensitive(), ours.Ordinal(3), ours.Hinge()])
def test_moments_over_draws_are_those_of_the_mixture(likelihood):
    X = make_data(6)[0]
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), likelihood, X.copy())
    s = np.random.default_rng(0).normal(size=(1, 50, *model.q_shape))
    samples = Samples(s, model)
    mean, variance = samples.predict_y(X)
    predict = likelihood.predict_mean_and_var
    each = [predict(X, f, np.full_like(f, 1e-6)) for f in draws_of(samples, X)]
    m, v = np.array([[part.numpy() for part in one] for one in each]).swapaxes(0, 1)
    np.testing.assert_allclose(mean, m.mean(0), rtol=1e-4)  # the residual is the jitter, some 1e-6
    np.testing.assert_allclose(variance, v.mean(0) + m.var(0), rtol=1e-4)


def draws_of(samples, X):
    """:return: f of each draw, [50, N, L]; Z = X, so that f = Lz s."""
    Lz = samples.model.prior_factor().numpy()[0]
    return np.einsum("nm,slm->snl", Lz, samples.s[0])


# --- labels without a column, in models ----------------------------------------------------------


def numbered():
    X = make_data(45)[0]
    return X, np.digitize(X[:, 0], [-0.5, 0.5])


def several(likelihood, X, **options):
    return gb.models.BSVM(gpflow.kernels.Matern32(), likelihood, X[:8].copy(), **options)


@pytest.mark.parametrize(
    "make",
    [ours.CrammerSinger, theirs.MultiClass],
    ids=["ours", "theirs"],
)
@pytest.mark.slow
def test_models_take_numbers_of_classes_as_they_take_columns(make):
    X, y = numbered()
    found = []
    for Y in (y, y[:, None]):
        model = several(make(3), X, num_data=len(X))
        elbos = [gb.inference.CAVI(max_steps=3).run(model, (X, Y)).elbo[-1]]
        model.natgrad_step((X, Y), 0.5)
        blocks = [(X[:20], Y[:20]), (X[20:], Y[20:])]
        elbos.append(gb.inference.SVI(max_steps=2).run(model, blocks).elbo[-1])
        loss = model.training_loss_closure((X, Y), compile=False)
        elbos += [float(model.elbo((X, Y))), float(in_a_graph(loss)())]
        batch = iter(tf.data.Dataset.from_tensor_slices((X, Y)).batch(45).repeat())
        elbos.append(float(in_a_graph(model.training_loss_closure(batch, compile=False))()))
        found.append([*elbos, predict_log_density(model, (X, Y)).sum()])
    np.testing.assert_array_equal(*found)


def test_a_model_that_holds_its_data_has_a_column():
    X, y = numbered()
    model = gb.models.BatchBSVM((X, y), gpflow.kernels.Matern32(), ours.CrammerSinger(3))
    assert model.data[1].shape == (45, 1) and model.num_latent_gps == 3
    plain = gpflow.models.SVGP(
        gpflow.kernels.Matern32(), ours.CrammerSinger(3), X.copy(), num_latent_gps=3
    )
    np.testing.assert_allclose(plain.elbo((X, y)), plain.elbo((X, y[:, None])), rtol=1e-14)
    np.testing.assert_allclose(plain.elbo((X, y)), model.elbo(), rtol=1e-14)
    with pytest.raises(ValueError, match="X has 45 rows and Y has 44"):
        plain.elbo((X, y[:44]))


@pytest.mark.slow
def test_gpflows_helpers_train_a_model_that_holds_its_data():
    data = make_data(20)
    model = gb.models.BatchBSVM(data, gpflow.kernels.Matern32(), ours.Hinge())
    expected = -model.elbo().numpy()
    for loss in (
        gpflow.models.training_loss_closure(model, data),
        gpflow.models.training_loss_closure(model, data, compile=False),
        model.training_loss_closure(),
        model.training_loss,
        lambda: gpflow.models.training_loss(model, data),
    ):
        np.testing.assert_allclose(loss(), expected, rtol=1e-12)


def test_an_exported_model_gives_probabilities_of_ordered_classes(scale, tmp_path):
    model, X, _ = scale
    gb.export(model, tmp_path / "model")
    exported = tf.saved_model.load(str(tmp_path / "model"))
    found = exported.predict_proba(tf.constant(X))["probabilities"]
    np.testing.assert_allclose(found, predict_probabilities(model, X), atol=1e-12)


@pytest.mark.parametrize("likelihood", [ours.CrammerSinger, ours.OneVsRest])
def test_a_link_of_gpflow_is_ignored_aloud(likelihood):
    """GPflow's notebook on several classes gives `MultiClass` its link."""
    with pytest.warns(UserWarning, match="has its own link, and ignores invlink=<gpflow"):
        found = likelihood(C, invlink=theirs.RobustMax(C))
    F = np.arange(C * 1.0)[None]
    np.testing.assert_array_equal(found.invlink(F), likelihood(C).invlink(F))
