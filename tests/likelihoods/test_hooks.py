"""What is asked of a likelihood, bounds as objects, and labels of a wrong shape."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import in_a_graph
from scipy.stats import norm

import gpflow_bsvm as gb
from gpflow_bsvm.engine.shared_graph import Compiled
from gpflow_bsvm.likelihoods import (
    CrammerSinger,
    Hinge,
    LevelHinge,
    Logistic,
    OneVsRest,
    Probit,
    Sites,
    location_spread,
    sites,
)
from gpflow_bsvm.likelihoods.base import Hooks, check_closed_form, check_hook, has_hook
from gpflow_bsvm.likelihoods.labels import (
    check_labels,
    check_one_label,
    num_latents,
    with_both_classes,
)
from gpflow_bsvm.papers.gold2003 import SquaredHinge
from gpflow_bsvm.papers.seeger2000 import NormalizedHinge

ONE_LABEL = [Hinge(), SquaredHinge(), NormalizedHinge(), Logistic(), Probit()]
CLASSES = [CrammerSinger(3), OneVsRest(3)]
NAMES = {name for name in vars(Hooks) if not name.startswith("_")} - {"lacking"}
NAMES -= set(vars(gpflow.likelihoods.Likelihood))
DRAWN = "moments local_sites draw_sites"
# All of the package have these two, and answer what is only used where it is there.
OURS = "check_labels check_learnable link_parameters"
HINGES = f"{OURS} sites sites_are_slopes point_sites {DRAWN}"


def rows(likelihood, num_rows=5):
    """:return: X, Fmu, Fvar, Y."""
    L = num_latents(likelihood)
    random = np.random.default_rng(0)
    Y = random.integers(0, max(L, 2), (num_rows, 1)).astype(float)
    X, Fmu = random.normal(size=(num_rows, 2)), random.normal(size=(num_rows, L))
    return X, Fmu, np.exp(random.normal(size=Fmu.shape)), Y


# --- hooks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood, hooks",
    [
        (gpflow.likelihoods.Bernoulli(), ""),
        (Probit(), "check_labels link_parameters"),
        (Hinge(), HINGES),
        (Hinge(bound="augmented"), HINGES),
        (NormalizedHinge(), "check_labels link_parameters"),
        (
            Logistic(),
            "sites sites_are_slopes point_sites check_labels link_parameters",
        ),
        (CrammerSinger(3), f"{OURS} sites sites_are_slopes moments shift_invariant"),
        (
            CrammerSinger(3, bound="augmented"),
            f"{OURS} sites moments shift_invariant",
        ),
        (LevelHinge(), f"{OURS} sites sites_are_slopes moments point_sites"),
        (
            LevelHinge(bound="augmented", levels=location_spread(5, 0.0)),
            HINGES,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_who_has_which_hook(likelihood, hooks):
    assert {name for name in NAMES if has_hook(likelihood, name)} == set(hooks.split())


def test_a_hook_that_is_not_there_raises_one_clear_error():
    X, Fmu, Fvar, Y = rows(LevelHinge())
    for likelihood, hook, of_hook in [
        (Probit(), "sites", (X, Fmu, Fvar, Y)),
        (Probit(), "moments", (Fmu, Fvar, Y)),
        (LevelHinge(), "draw_sites", (Fmu, Y, (1, 2))),
        (LevelHinge(), "local_sites", (np.ones((5, 9)), Y)),
    ]:
        message = (
            rf"^{type(likelihood).__name__}( with these options)? has no .* \(`{hook}`\); use Hinge"
        )
        with pytest.raises(ValueError, match=message):
            getattr(likelihood, hook)(*of_hook)


def test_a_parameter_of_that_name_is_no_hook():
    likelihood = gpflow.likelihoods.Poisson()
    likelihood.moments = gpflow.Parameter(2.0)
    assert not has_hook(likelihood, "moments")


def test_the_missing_hook_is_named_with_who_has_it():
    check_hook(CrammerSinger(3), "link_parameters")
    check_hook(Hinge(), "point_sites")
    message = (
        r"^CrammerSinger has no sites at a point \(`point_sites`\); use Hinge, "
        r"OneVsRest or EpsilonInsensitive, or CAVI, which accepts any$"
    )
    with pytest.raises(ValueError, match=message):
        check_hook(CrammerSinger(3), "point_sites", "CAVI, which accepts any")


def test_what_is_optional_is_asked_through_functions():
    with pytest.raises(ValueError, match="binary labels must be in"):
        check_labels(Hinge(), np.array([[3.0]]))
    check_labels(Hinge(), np.ones((2, 1)), minibatch=True)
    check_labels(gpflow.likelihoods.Gaussian(), np.array([[3.0]]))
    hinge = Hinge()
    gpflow.set_trainable(hinge.penalty, True)
    with pytest.raises(ValueError, match="goes to 0"):
        hinge.check_learnable()
    assert NormalizedHinge().check_learnable() is None
    assert has_hook(CrammerSinger(3), "shift_invariant")
    assert not has_hook(OneVsRest(3), "shift_invariant")


def test_one_spelling_of_counts_and_classes():
    likelihoods = (Hinge(), CrammerSinger(3), gpflow.likelihoods.MultiClass(4))
    assert [num_latents(likelihood) for likelihood in likelihoods] == [1, 3, 4]
    assert num_latents(Hinge(), 2) == 2
    np.testing.assert_array_equal(with_both_classes(np.array([[0.25]])), [[0.75, 0.25]])
    np.testing.assert_array_equal(with_both_classes(np.eye(3)), np.eye(3))
    check_one_label(CrammerSinger(3), 3)
    with pytest.raises(ValueError, match="each row has 3 binary labels"):
        check_one_label(Hinge(), 3)


# --- bounds --------------------------------------------------------------------------------------


def test_equal_bounds_share_a_graph_and_others_do_not():
    expectation = Compiled(lambda likelihood, *f: likelihood.variational_expectations(*f))
    traces = []
    for bound in ("exact", "exact", "augmented"):
        likelihood = Hinge(1.0 + len(traces), bound)
        X, Fmu, Fvar, Y = rows(likelihood)
        np.testing.assert_allclose(
            expectation.bind(likelihood)(X, Fmu, Fvar, Y),
            likelihood.variational_expectations(X, Fmu, Fvar, Y),
            rtol=1e-13,
        )
        traces.append(expectation.num_traces)
    assert traces == [1, 1, 2]


# --- labels and options --------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [*ONE_LABEL, *CLASSES], ids=lambda one: type(one).__name__)
def test_labels_of_another_shape_are_refused_everywhere(likelihood):
    X, Fmu, Fvar, Y = rows(likelihood)
    methods = [
        lambda Y: likelihood.log_prob(X, Fmu, Y),
        lambda Y: likelihood.variational_expectations(X, Fmu, Fvar, Y),
        lambda Y: likelihood.predict_log_density(X, Fmu, Fvar, Y),
        lambda Y: sites(likelihood, X, Fmu, Fvar, Y),
    ]
    one_hot = (np.arange(3) == Y).astype(float)
    for method in methods:
        with pytest.raises(ValueError, match=r"got shape \(5, 3\)"):
            method(one_hot)
        of_any_length = in_a_graph(method, input_signature=[tf.TensorSpec([None], tf.float64)])
        if likelihood in CLASSES:  # numbers [N], as GPflow's MultiClass takes them
            for found in (method(Y[:, 0]), of_any_length(tf.constant(Y[:, 0]))):
                tf.nest.map_structure(np.testing.assert_allclose, found, method(Y))
            with pytest.raises(ValueError, match="X has 5 rows and Y has 4"):
                method(Y[:4, 0])
        else:
            method(Y)
            with pytest.raises(ValueError, match=r"got shape \(5,\); use Y\[:, None\]"):
                method(Y[:, 0])
            with pytest.raises(ValueError, match=r"got shape \(None,\); use Y"):
                of_any_length(tf.constant(Y[:, 0]))


@pytest.mark.parametrize("likelihood", [*ONE_LABEL, *CLASSES], ids=lambda one: type(one).__name__)
def test_an_empty_batch(likelihood):
    X, Fmu, Fvar, Y = rows(likelihood, 0)
    assert likelihood.variational_expectations(X, Fmu, Fvar, Y).shape == [0]
    found = sites(likelihood, X, Fmu, Fvar, Y)
    assert isinstance(found, Sites) and found.w.shape == found.r.shape == Fmu.shape
    assert likelihood.predict_mean_and_var(X, Fmu, Fvar)[0].shape == Fmu.shape


@pytest.mark.parametrize("penalty", ["2", None, True, [2.0], 0, -1.0, np.inf, np.nan])
def test_a_penalty_is_a_number(penalty):
    for make in (Hinge, SquaredHinge, NormalizedHinge):
        with pytest.raises(ValueError, match="penalty must be a positive, finite number"):
            make(penalty)
    for two in (2, np.float32(2), np.array(2.0), tf.constant(2.0)):
        assert Hinge(two).penalty.numpy() == 2 and Hinge(two).penalty.dtype == tf.float64


@pytest.mark.parametrize("num_classes", [2.5, 3.0, "3", None, 1, True])
def test_a_number_of_classes_is_an_integer(num_classes):
    for make in (CrammerSinger, OneVsRest):
        with pytest.raises(ValueError, match=r"num_classes must be (at least 2|a whole number)"):
            make(num_classes)
    assert CrammerSinger(np.int64(3)).num_classes == 3


@pytest.mark.parametrize("bound", ["tight", 3, None, ["exact"], "wistuba2018"])
def test_bounds_are_named_in_the_error(bound):
    with pytest.raises(ValueError, match=r"bound must be one of 'exact', 'augmented', got"):
        Hinge(bound=bound)


# --- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [*ONE_LABEL, *CLASSES], ids=lambda one: type(one).__name__)
def test_a_new_link_is_the_neutral_one(likelihood):
    values = {name: float(p.numpy()) for name, p in likelihood.link_parameters.items()}
    assert values == pytest.approx(likelihood.neutral_link, rel=1e-12)


def test_one_vs_rest_has_its_penalty_and_one_link():
    likelihood = OneVsRest(3, 1.5)
    assert float(likelihood.penalty.numpy()) == 1.5
    assert set(gpflow.utilities.parameter_dict(likelihood)) == {".penalty", ".scale"}


def test_the_conditional_mean_is_p_given_f():
    likelihood, F = Hinge(), np.linspace(-2, 2, 5)[:, None]
    likelihood.scale.assign(1.7)
    likelihood.offset.assign(0.3)
    z = 1.7 * F + 0.3
    np.testing.assert_allclose(likelihood.conditional_mean(None, F), norm.cdf(z), rtol=1e-12)


def test_what_one_vs_rest_predicts_is_no_mean_over_f():
    """Its docstring says by how much at most it was seen to differ."""
    likelihood = OneVsRest(3)
    Fmu, Fvar = np.array([[2.0, -1.0, -2.0]]), np.array([[9.0, 9.0, 9.0]])
    F = Fmu + 3 * np.random.default_rng(0).normal(size=(100_000, 3))
    mean = likelihood.conditional_mean(None, F).numpy().mean(axis=0)
    p = likelihood.predict_mean_and_var(None, Fmu, Fvar)[0].numpy()[0]
    assert 0.005 < np.abs(mean - p).max() < 0.08


class Costly(Hinge):
    def terms(self, y):
        return gb.likelihoods.Terms(0.3, 1.0, y)


class Other(Hinge):
    """Its losses are not those of its terms."""

    def losses(self, Y, F):
        return 0.3 * super().losses(Y, F)


def test_changes_that_closed_forms_would_ignore_are_refused():
    """Fits would end at the optimum of `Hinge`, and report that they have converged."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    data = X, (X[:, :1] > 0) * 1.0
    for kind in (Costly, Hinge, gb.likelihoods.Probit):
        check_closed_form(kind())
    check_closed_form(gpflow.likelihoods.Bernoulli())
    model = gb.models.BSVM(gpflow.kernels.SquaredExponential(), Other(), X[:5].copy())
    for ask in (lambda: gb.fit(model, data), lambda: model.natgrad_step(data, 0.5)):
        with pytest.raises(ValueError, match="Other overrides losses, but inherits closed forms"):
            ask()
