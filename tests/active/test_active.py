"""Learning by asking: what policies ask about, and the kernel that suits a few labels."""

import itertools

import gpflow
import numpy as np
import pytest
from helpers import assert_same_state, log_normal, make_data, make_model, state
from scipy.special import softmax
from scipy.stats import entropy

import gpflow_bsvm as gb
from gpflow_bsvm import active
from gpflow_bsvm.active import POLICIES, best_kernel
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, EpsilonInsensitive, Hinge
from gpflow_bsvm.papers.wistuba2018 import softmax_entropy
from gpflow_bsvm.prediction import margin

X, Y = make_data(40)
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])


def binary(**kwargs):
    model = make_model((X, Y), likelihood=Hinge(), **kwargs)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def three():
    kernel = gpflow.kernels.SquaredExponential(2.0)
    return gb.models.BSVM(kernel, CrammerSinger(3), X[:8].copy(), num_latent_gps=3)


def known(model, Y, number=10):
    """The model, fitted to some rows of the pool."""
    CAVI().run(model, (X[:number], np.reshape(Y[:number], [-1, 1])))
    return model


# --- what is asked --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return known(binary(), Y)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_scores_of_rows(fitted, name):
    scores = POLICIES[name](fitted, X)
    assert scores.shape == (40,)
    assert np.isfinite(scores).all()


def test_small_margins_are_asked_about(fitted):
    assert POLICIES["margin"](fitted, X).argmax() == margin(fitted, X).argmin()


@pytest.mark.slow
def test_softmax_entropy_knows_means_only():
    model = known(three(), CLASSES)
    mean = model.predict_f(X)[0].numpy()
    expected = entropy(softmax(mean, axis=1), axis=1)
    np.testing.assert_allclose(softmax_entropy(model, X), expected, atol=1e-10)
    model = known(binary(), Y)
    p = 1 / (1 + np.exp(-model.predict_f(X)[0].numpy()[:, 0]))
    expected = entropy(np.stack([p, 1 - p]), axis=0)
    np.testing.assert_allclose(softmax_entropy(model, X), expected, atol=1e-10)


def test_softmax_entropy_takes_what_predictive_entropy_takes(data):
    classifier = gb.BSVMClassifier(
        loss="hinge", penalty=1.0, learn_kernel=False, num_inducing=5, random_state=0
    ).fit(data[0], data[1][:, 0])
    found = softmax_entropy(classifier, data[0])
    seen = classifier.as_model_sees(data[0])
    np.testing.assert_array_equal(found, softmax_entropy(classifier.model_, seen))
    plain = gpflow.models.SVGP(gpflow.kernels.Matern32(), gb.likelihoods.Hinge(), data[0][:4])
    with pytest.raises(TypeError, match="SVGP has no closed-form steps"):
        softmax_entropy(plain, data[0])


def test_softmax_entropy_refuses_numbers(data):
    with pytest.raises(ValueError, match="no class probabilities"):
        softmax_entropy(make_model(data, likelihood=EpsilonInsensitive()), data[0])


def test_softmax_entropy_refuses_ordered_classes():
    ordered = gb.likelihoods.Ordinal(3)
    model = gb.models.BSVM(gpflow.kernels.Matern32(), ordered, X[:2], num_latent_gps=2)
    with pytest.raises(ValueError, match="ordered classes share theirs"):
        softmax_entropy(model, X)


# --- the kernel -----------------------------------------------------------------------------------


def scores_of(candidates, X, Y):
    """Sum of leave-one-out log densities and log prior, of a fit from the prior at each kernel."""
    found = []
    for variance, lengthscale in candidates:
        model = binary()
        model.kernel.variance.assign(variance)
        model.kernel.lengthscales.assign(lengthscale)
        CAVI().run(model, (X, Y))
        density = gb.prediction.leave_one_out_density(model, (X, Y))
        found.append(len(X) * density + float(model.log_prior_density()))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [False, True])
def test_the_kernel_is_the_best_multiple_by_leave_one_out(prior):
    model, start = binary(), binary().kernel
    if prior:
        model.kernel.lengthscales.prior = log_normal(1.0, 0.05)
    best_kernel(model, X[:12], Y[:12])
    grid = [
        (a * start.variance.numpy(), b * start.lengthscales.numpy())
        for a, b in itertools.product(active.VARIANCES, active.LENGTHSCALES)
    ]
    scores = scores_of(grid, X[:12], Y[:12])
    if prior:
        scores += [float(model.kernel.lengthscales.prior.log_prob(b)) for _, b in grid]
    best = grid[int(np.argmax(scores))]
    np.testing.assert_allclose(model.kernel.variance, best[0])
    np.testing.assert_allclose(model.kernel.lengthscales, best[1])
    expected = binary()
    gpflow.utilities.multiple_assign(expected.kernel, gpflow.utilities.read_values(model.kernel))
    CAVI().run(expected, (X[:12], Y[:12]))
    assert_same_state(state(model), state(expected), 1e-8)


def test_one_label_of_each_class_says_nothing_of_the_kernel():
    """Left out, the others do not even know that there is its class."""
    rows = [int(np.flatnonzero(c == CLASSES)[0]) for c in range(3)]
    model, kernel = three(), three().kernel
    best_kernel(model, X[rows], CLASSES[rows, None])
    assert model.kernel.variance.numpy() == kernel.variance.numpy()
    assert model.kernel.lengthscales.numpy() == kernel.lengthscales.numpy()
    assert np.any(model.q_mu)


def test_an_interrupted_choice_keeps_the_best_so_far(monkeypatch):
    model, calls, leave_one_out = binary(), [], active.leave_one_out

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return leave_one_out(*arguments)

    monkeypatch.setattr(active, "leave_one_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        best_kernel(model, X[:12], Y[:12])
    expected = binary()
    CAVI().run(expected, (X[:12], Y[:12]))
    assert_same_state(state(model), state(expected), 1e-10)


@pytest.mark.slow
def test_a_class_may_be_absent_when_the_kernel_is_chosen():
    model, rows = three(), np.flatnonzero(CLASSES == 1)[:3]
    best_kernel(model, X[rows], CLASSES[rows, None])
    assert np.isfinite(model.q_mu).all()


def test_only_the_kernels_that_are_given_are_compared():
    model = binary()
    best_kernel(model, X[:12], Y[:12], [{".kernel.variance": 3.0}])
    assert model.kernel.variance.numpy() in (3.0, binary().kernel.variance.numpy())
    assert model.kernel.lengthscales.numpy() == binary().kernel.lengthscales.numpy()
    with pytest.raises(ValueError, match=r"name '.kernel.scale', but the parameters are .*var"):
        best_kernel(model, X[:12], Y[:12], [{".kernel.scale": 1.0}])


def test_a_candidate_changes_what_it_names_and_only_the_best_is_kept():
    """A penalty is not trainable, and a worse one is not kept; nor is the variance of another."""
    model = binary()
    best_kernel(model, X[:12], Y[:12], [{".likelihood.penalty": 0.3}])
    assert model.likelihood.penalty.numpy() == binary().likelihood.penalty.numpy()
    both = [{".kernel.variance": 0.1}, {".kernel.lengthscales": 1.1}]
    models = binary(), binary()
    for one, candidates in zip(models, (both, both[::-1])):
        best_kernel(one, X[:12], Y[:12], candidates)
    assert_same_state(state(models[0]), state(models[1]), 1e-10)
    assert models[0].kernel.lengthscales.numpy() == models[1].kernel.lengthscales.numpy()


@pytest.mark.parametrize(
    "candidates, text",
    [
        ({".kernel.variance": 2.0}, "candidates must be a list of values by name, such as"),
        ([1], r'such as \[{".kernel.variance": 2.0}\], got \[1\]'),
        (5, "got 5"),
        ([{".kernel.variance": -1.0}], r"variance to -1\.0: it must have shape \(\),"),
        ([{".kernel.variance": "a"}], "variance to 'a'"),
        ([{".kernel.variance": np.nan}], "variance to nan"),
        (
            [{".kernel.lengthscales": [1.0, 2.0, 3.0]}],
            r"lengthscales to \[1.0, 2.0, 3.0\]: it must have shape \(\)",
        ),
    ],
)
def test_candidates_are_checked_before_the_first_fit(candidates, text):
    model = binary()
    with pytest.raises(ValueError, match=text):
        best_kernel(model, X[:12], Y[:12], candidates)
    assert_same_state(state(model), state(binary()), 0)


def test_candidates_may_come_one_by_one():
    models = binary(), binary()
    candidates = [{".kernel.variance": 0.1}, {".kernel.lengthscales": 1.1}]
    for one, given in zip(models, (candidates, iter(candidates))):
        best_kernel(one, X[:12], Y[:12], given)
    assert_same_state(state(models[0]), state(models[1]), 0)
