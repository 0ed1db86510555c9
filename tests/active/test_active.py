"""Learning by asking: what the loop asks, what an answer changes, and what bad input says."""

import itertools

import gpflow
import numpy as np
import pytest
from helpers import assert_same_state, log_normal, make_data, make_model, state
from scipy.special import softmax
from scipy.stats import entropy

import gpflow_bsvm as gb
from gpflow_bsvm.active import POLICIES, ActiveLearner, Request, kernels
from gpflow_bsvm.active.policies import chosen
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge
from gpflow_bsvm.papers.wistuba2018 import softmax_entropy
from gpflow_bsvm.prediction import margin, variation_ratio

X, Y = make_data(40)
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])


def binary(**kwargs):
    model = make_model((X, Y), likelihood=Hinge(), **kwargs)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def three():
    kernel = gpflow.kernels.SquaredExponential(2.0)
    return gb.models.BSVM(kernel, CrammerSinger(3), X[:8].copy(), num_latent_gps=3)


def gaussian():
    """Sites of this likelihood do not depend on q."""
    return make_model((X, Y), likelihood=gpflow.likelihoods.Gaussian(0.3))


def labels(index):
    return Y[index, 0]


def never(model=None, policy="margin", **how):
    return ActiveLearner(binary() if model is None else model, X, policy, relearn=None, **how)


# --- what is asked --------------------------------------------------------------------------------


def test_the_loop_asks_about_the_largest_score_among_rows_without_label():
    learner = never(policy="variation_ratio", batch_size=3)
    learner.run(labels, 6)
    left = learner.unlabelled
    assert set(left) == set(range(40)) - set(learner.labelled)
    score = variation_ratio(learner.model, X[left])
    assert set(learner.ask()) == set(left[np.argsort(-score)[:3]])


def test_small_margins_are_asked_about():
    learner = never(policy="margin")
    learner.run(labels, 5)
    left = learner.unlabelled
    assert learner.ask().tolist() == [left[np.argmin(margin(learner.model, X[left]))]]


@pytest.mark.slow
def test_softmax_entropy_knows_means_only():
    model = three()
    ActiveLearner(model, X, relearn=None).tell(np.arange(10), CLASSES[:10])
    mean = model.predict_f(X)[0].numpy()
    expected = entropy(softmax(mean, axis=1), axis=1)
    np.testing.assert_allclose(softmax_entropy(model, X), expected, atol=1e-10)
    learner = never()
    learner.tell(np.arange(10), labels(np.arange(10)))
    p = 1 / (1 + np.exp(-learner.model.predict_f(X)[0].numpy()[:, 0]))
    expected = entropy(np.stack([p, 1 - p]), axis=0)
    np.testing.assert_allclose(softmax_entropy(learner.model, X), expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_fills_the_budget(policy):
    learner = never(policy=policy, batch_size=2)
    found = learner.run(labels, 5)
    assert len(set(found)) == 5
    assert learner.run(labels, 3).tolist() == learner.labelled[5:].tolist()


def test_a_policy_of_ones_own_sees_what_there_is():
    seen = []

    def largest_first_column(model, rows, request):
        seen.append(request)
        return rows[:, 0]

    learner = never(policy=largest_first_column, batch_size=2)
    learner.run(labels, 4)
    expected = np.argsort(-X[:, 0])[:4]
    assert learner.labelled.tolist() == expected.tolist()
    np.testing.assert_array_equal(seen[1].X, X[expected[:2]])
    np.testing.assert_array_equal(seen[1].Y, Y[expected[:2]])
    assert seen[0].seed != seen[1].seed


def test_of_equal_scores_random_rows_are_taken_by_the_seed():
    ask = lambda seed: never(policy=lambda m, rows, r: np.zeros(len(rows)), seed=seed).ask(5)  # noqa: E731
    assert ask(0).tolist() == ask(0).tolist()
    assert ask(0).tolist() != ask(1).tolist()
    assert set(ask(0)) != set(range(5))


# --- what an answer changes -----------------------------------------------------------------------


def test_new_rows_are_what_a_refit_makes_of_them_where_sites_do_not_depend_on_q():
    learner = never(gaussian(), policy="random", batch_size=3)
    learner.run(labels, 12)
    warm = state(learner.model)
    learner.refit()
    assert_same_state(warm, state(learner.model), 1e-9)
    whole = gaussian()
    CAVI().run(whole, (X[learner.labelled], learner.Y))
    assert_same_state(state(whole), state(learner.model), 1e-9)


def test_an_update_that_sees_all_rows_is_a_refit():
    learner = never(update=CAVI(tol=1e-9))
    learner.run(labels, 10)
    mean, variance = learner.model.predict_f(X)
    learner.refit()
    difference = (learner.model.predict_f(X)[0] - mean) / np.sqrt(variance)
    assert np.abs(difference).max() < 1e-3  # what the refit's own tol leaves


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
    learner = ActiveLearner(model, X, "random", relearn=(11,))
    learner.run(labels, 10)
    rows = learner.ask(2)
    assert learner.tell(rows, labels(rows))
    grid = [
        (a * start.variance.numpy(), b * start.lengthscales.numpy())
        for a, b in itertools.product(kernels.VARIANCES, kernels.LENGTHSCALES)
    ]
    scores = scores_of(grid, X[learner.labelled], learner.Y)
    if prior:
        scores += [float(model.kernel.lengthscales.prior.log_prob(b)) for _, b in grid]
    best = grid[int(np.argmax(scores))]
    np.testing.assert_allclose(model.kernel.variance, best[0])
    np.testing.assert_allclose(model.kernel.lengthscales, best[1])
    expected = binary()
    gpflow.utilities.multiple_assign(expected.kernel, gpflow.utilities.read_values(model.kernel))
    CAVI().run(expected, (X[learner.labelled], learner.Y))
    assert_same_state(state(model), state(expected), 1e-8)


def test_one_label_of_each_class_says_nothing_of_the_kernel():
    """Left out, the others do not even know that there is its class."""
    learner = ActiveLearner(three(), X, relearn=(3,))
    rows = [int(np.flatnonzero(c == CLASSES)[0]) for c in range(3)]
    assert learner.tell(rows, CLASSES[rows])
    kernel = three().kernel
    assert learner.model.kernel.variance.numpy() == kernel.variance.numpy()
    assert learner.model.kernel.lengthscales.numpy() == kernel.lengthscales.numpy()
    assert np.any(learner.model.q_mu)


def test_an_interrupted_choice_keeps_labels_and_the_best_so_far(monkeypatch):
    learner = ActiveLearner(binary(), X, "random", relearn=(12,))
    learner.run(labels, 11)
    calls, leave_one_out = [], kernels.leave_one_out

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return leave_one_out(*arguments)

    monkeypatch.setattr(kernels, "leave_one_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.run(labels, 1)
    assert len(learner.labelled) == len(learner.Y) == 12
    expected = binary()
    CAVI().run(expected, (X[learner.labelled], learner.Y))
    assert_same_state(state(learner.model), state(expected), 1e-10)


@pytest.mark.slow
def test_a_class_may_be_absent_when_the_kernel_is_learned():
    learner = ActiveLearner(three(), X, relearn=(2,))
    rows = np.flatnonzero(CLASSES == 1)[:3]
    assert learner.tell(rows, CLASSES[rows])
    assert np.isfinite(learner.model.q_mu).all()


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pool_smaller_than_what_is_asked():
    with pytest.raises(ValueError, match="batch_size is 41, and the pool has 40 rows"):
        never(batch_size=41)
    learner = never()
    with pytest.raises(ValueError, match="budget is 41, and the pool has 40 rows"):
        learner.run(labels, 41)
    assert len(learner.labelled) == 0
    learner.run(labels, 38)
    with pytest.raises(ValueError, match="batch_size is 3, and the pool has 2 rows"):
        learner.ask(3)


@pytest.mark.parametrize(
    ("model", "label", "message"), [(three, 3.0, "integers in 0..2, got 3"), (binary, 2.0, "2.0")]
)
def test_a_label_that_the_model_does_not_know(model, label, message):
    learner = never(model(), policy="random")
    learner.run(lambda index: np.ones(1), 2)
    before = state(learner.model)
    row = int(learner.unlabelled[0])
    with pytest.raises(ValueError, match=f"label of row {row} of the pool: .*{message}"):
        learner.tell(row, [label])
    assert_same_state(before, state(learner.model), 0)
    assert len(learner.labelled) == 2


def test_labels_before_a_bad_one_are_kept():
    learner = never(batch_size=2)
    answers = iter([[0, 1], [1, 7]])
    with pytest.raises(ValueError, match="label of row"):
        learner.run(lambda index: next(answers), 6)
    assert len(learner.labelled) == len(learner.Y) == 2


def test_labels_outlive_an_update_that_fails():
    class Failing(CAVI):
        def run(self, *arguments, **options):
            raise KeyboardInterrupt

    learner = never(update=Failing())
    with pytest.raises(KeyboardInterrupt):
        learner.tell([3, 4], [0, 1])
    learner.refit()
    expected = binary()
    CAVI().run(expected, (X[[3, 4]], np.array([[0.0], [1.0]])))
    assert_same_state(state(learner.model), state(expected), 1e-12)


def test_bad_policies():
    with pytest.raises(ValueError, match=r"policy must be one of 'variation_ratio', .*'bold'"):
        never(policy="bold")
    with pytest.raises(TypeError, match=r"policy must be one of variation_ratio, .* int"):
        never(policy=3)
    request = Request(2, 0, X[:0], Y[:0])
    for answer in ([1.0, np.nan], [1.0], [0, 0], [0, 2], [0], ["a", "b"], [[0, 1]], [True, False]):
        with pytest.raises(ValueError, match="a policy must return 2 scores"):
            chosen(answer, 2, request)
    assert chosen([1, 0], 2, request).tolist() == [1, 0]


def test_bad_answers():
    learner = never()
    learner.tell(3, 1)
    for index, y, message in (
        (3, 1, "row 3 has a label"),
        (40, 1, "row 40 has a label, is not in the pool"),
        ([1, 1], [0, 1], "there twice"),
        ([1, 2], [1], "a label of each"),
        (1.0, 1, "rows of the pool"),
    ):
        with pytest.raises(ValueError, match=message):
            learner.tell(index, y)
    assert learner.labelled.tolist() == [3]


def test_bad_models_and_pools():
    with pytest.raises(ValueError, match="num_data is 40; it must be None"):
        never(binary(num_data=40))
    known = binary()
    never(known).tell([0, 1], [0, 1])
    for how in ({"relearn": (10, 20)}, {"update": CAVI()}):
        with pytest.raises(ValueError, match="q is not its prior"):
            ActiveLearner(known, X, **how)
    never(known).tell([2], [1])
    for relearn in ((0,), (2.5,)):
        with pytest.raises(ValueError, match="relearn must be"):
            ActiveLearner(binary(), X, relearn=relearn)
    with pytest.raises(TypeError, match="no closed-form steps"):
        never(gpflow.models.SVGP(gpflow.kernels.Linear(), Hinge(), X[:3]))
    with pytest.raises(ValueError, match="X holds nan"):
        ActiveLearner(binary(), np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="X has 1 columns"):
        ActiveLearner(binary(), X[:, :1])
