"""A penalty chosen by held-out folds: density, peak, and what the estimator makes of it."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model
from sklearn.base import clone

import gpflow_bsvm as gb
from gpflow_bsvm.estimators import choice, training
from gpflow_bsvm.estimators.candidates import HINGES, candidates, first_of
from gpflow_bsvm.estimators.specification import Specification, levels_for
from gpflow_bsvm.estimators.specification import make_model as at_prior
from gpflow_bsvm.likelihoods import Hinge, LevelHinge
from gpflow_bsvm.model_selection import held_out as selection
from gpflow_bsvm.prediction.marginals import predict_log_density


@pytest.fixture(scope="module")
def data():
    return make_data()


LEVELS = candidates("levels", "auto", linear=False)


def specify(**options):
    defaults = {
        "num_classes": 2,
        "kernel": gpflow.kernels.SquaredExponential(2.0),
        "learn_kernel": False,
        "calibrate": False,
        "num_inducing": 8,
        "penalty": 2.0,
    }
    return Specification(**(defaults | options))


def fit(X, Y, weight):
    return training.train(specify(), (X, Y, weight))[0]


# --- density -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_density_is_the_mean_over_all_folds(data):
    X, Y = data
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    log_p = np.zeros(len(X))
    for train, test in selection._folds(X, Y, 3, 7):
        model = fit(X[train], Y[train], weight[train])
        log_p[test] = model.predict_log_density((X[test], Y[test]))
    density = selection.held_out_density(fit, data, sample_weight=weight, num_folds=3, seed=7)
    np.testing.assert_allclose(density, np.average(log_p, weights=weight), rtol=1e-10)


@pytest.mark.slow
def test_weights_are_repeated_rows_that_are_left_out_together(data):
    weight = np.where(np.arange(len(data[0])) < 20, 2, 1)
    log_p = []
    for train, test in selection._folds(*data, 3, 0):
        X, Y = (np.repeat(column[train], weight[train], axis=0) for column in data)
        model = fit(X, Y, np.ones(len(X)))
        each = predict_log_density(model, (data[0][test], data[1][test]))
        log_p.append(np.repeat(each, weight[test]))
    one = selection.held_out_density(fit, data, sample_weight=weight)
    # Both fits have converged to 1e-5.
    np.testing.assert_allclose(one, np.concatenate(log_p).mean(), rtol=1e-5)


def test_enough_rows_are_enough(data):
    calls = []

    def counted(*rows):
        calls.append(len(rows[0]))
        return fit(*rows)

    selection.held_out_density(counted, data, num_folds=3, enough_rows=21)
    assert calls == [40, 40]


def test_log_density_of_a_model_is_gpflows(data):
    model = make_model(data, likelihood=Hinge(bound="exact"))
    gb.fit(model, data)
    expected = model.predict_log_density(data)
    np.testing.assert_allclose(predict_log_density(model, data), expected, rtol=1e-9)


# --- peak ----------------------------------------------------------------------------------------


class Lead(float):
    """A score whose standard error is 1."""

    def lead(self, other):
        return self - other


@pytest.mark.parametrize("best", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("start", [1, 3, 5])
def test_the_peak_is_found(best, start):
    seen = []

    def score(value):
        seen.append(value)
        return Lead(-2 * abs(value - best))

    assert selection.find_peak(score, (1, 2, 3, 4, 5), start) == best - 1
    assert len(seen) == len(set(seen))  # nothing is evaluated twice


def test_what_is_found_moves_with_the_scores_and_does_not_jump():
    def place(lead):
        return selection.find_peak(lambda v: Lead(v * lead), (0, 1), 0)

    assert [place(lead) for lead in (-1, 0, 0.25, 0.5, 1, 2)] == [0, 0, 0.25, 0.5, 1, 1]
    down = selection.find_peak(lambda v: Lead(-v * 0.5), (0, 1, 2), 2)
    assert down == 1.5


def test_a_score_that_is_not_a_number_is_no_peak():
    score = lambda v: Lead(np.nan if v > 1 else 0.0)  # noqa: E731
    assert selection.find_peak(score, (1.0, 2.0, 4.0), 1.0) == 0


# --- training ------------------------------------------------------------------------------------


def clean(num_rows=120):
    """Two classes without noise, for which a steep loss is right, and one of labels at random."""
    X = np.random.default_rng(3).normal(size=(num_rows, 2))
    return X, (X[:, :1] + X[:, 1:] > 0).astype(float)


@pytest.mark.slow
def test_clean_labels_get_a_larger_penalty_than_noisy_ones():
    X, Y = clean()
    flipped = np.where(np.random.default_rng(4).uniform(size=Y.shape) < 0.3, 1 - Y, Y)
    ones = np.ones(len(X))
    chosen = [
        choice.choose(specify(calibrate=True), HINGES, (X, labels, ones))[0].penalty
        for labels in (Y, flipped)
    ]
    assert chosen[0] > chosen[1] == 1.0


def test_what_is_looked_at():
    def found(*options):
        return [f"{loss} {penalty:g}" for loss, penalty, _ in candidates(*options)]

    everything = ["levels 1", "levels 2", "levels 8", "levels 32", "hinge 16", "hinge 16"]
    assert found("auto", "auto", False) == everything
    assert found("levels", "auto", True) == everything[:4]
    assert found("auto", "auto", True) == found("hinge", "auto", False)
    assert found("hinge", "auto", False) == ["hinge 1", "hinge 4", "hinge 16"]
    assert found("auto", 3, False) == ["levels 3", "hinge 3"]
    assert found("hinge", 3, False) == ["hinge 3"]
    assert found("levels", "auto", False, 25) == [
        f"levels {p * 25 / 17:.3g}" for p in (1, 2, 8, 32)
    ]
    for among in (LEVELS, candidates("auto", "auto", False), HINGES, candidates("auto", 3, False)):
        start = {"hinge": 4.0, "levels": 2.0 if len(among) > 2 else 3.0}
        assert first_of(among).penalty == start[first_of(among).loss]


def test_further_levels_change_neither_the_others_nor_the_priors():
    """Their penalty is larger in proportion, so that a term of the loss is the same."""
    few, many = (
        LevelHinge(2.0, levels=levels_for(1)),
        LevelHinge(2.0 * 25 / 17, levels=levels_for(1e9)),
    )
    y = np.array([[-1.0], [1.0]])[..., None]
    costs = [hinges.penalty.numpy() * hinges.terms(y).cost for hinges in (few, many)]
    np.testing.assert_allclose(costs[0], costs[1][..., 4:-4], rtol=1e-12)
    specs = [
        specify(loss="levels", penalty=h.penalty.numpy(), levels=h.levels) for h in (few, many)
    ]
    assert specs[0].prior_penalty == pytest.approx(specs[1].prior_penalty, rel=1e-12)
    assert specify(penalty=3.0).prior_penalty == 3.0


def test_a_weight_of_two_is_two_rows_for_levels_too():
    X = np.random.default_rng(0).normal(size=(400, 1))
    y, ones = X[:, 0] > 0, np.ones(400)
    fixed = gb.BSVMClassifier(loss="levels", penalty=2.0, learn_kernel=False, num_inducing=4)
    one, two, both = (
        clone(fixed).fit(X, y, weight).model_.likelihood.levels.t.size
        for X, y, weight in ((X, y, ones), (X, y, 2 * ones), (np.r_[X, X], np.r_[y, y], None))
    )
    assert (one, two, both) == (17, 21, 21)


@pytest.mark.drill
@pytest.mark.slow
def test_all_penalties_see_the_kernel_that_the_first_one_learned(monkeypatch):
    X, Y = clean()
    ones, seen = np.ones(len(X)), []

    def density(model, calibrates):
        assert calibrates == auto.calibrates
        seen.append((float(model.likelihood.penalty.numpy()), model.kernel.lengthscales.numpy()))
        return Lead(2 * len(seen))

    monkeypatch.setattr(selection, "Refits", lambda data, like, are_parts: density)
    monkeypatch.setattr(choice, "choose_scale", lambda *_: None)
    auto = specify(learn_kernel=True)
    choice.choose(auto, HINGES, (X, Y, ones))
    auto = auto._replace(penalty=first_of(HINGES).penalty)
    first = at_prior(auto, X)
    training.learn(auto, first, (X, Y, ones))
    assert len(seen) == 2
    assert abs(first.kernel.lengthscales.numpy() - auto.kernel.lengthscales.numpy()).max() > 0.1
    for candidate, (penalty, lengthscales) in zip(HINGES[1:], seen):
        assert penalty == candidate.penalty
        np.testing.assert_allclose(lengthscales, first.kernel.lengthscales, rtol=1e-8)


def test_few_rows_are_told_apart_too():
    """Of 30 rows without noise and of 30 with labels at random; nothing changes at 100."""
    X, Y = clean(30)
    ones, random = np.ones(30), np.random.default_rng(1).permutation(Y)
    sharp, soft = (
        choice.choose(specify(), LEVELS, (X, labels, ones))[0].penalty for labels in (Y, random)
    )
    assert sharp > 8 and soft <= 2
    few = choice.choose(specify(), HINGES, (X[:9], Y[:9], ones[:9]))  # nothing to choose by
    assert few[0].penalty == 4.0


def test_one_row_of_a_new_class_does_not_switch_the_choice_off():
    X, Y = clean(60)
    X, Y = np.r_[X, [[3.0, -3.0]]], np.r_[Y, [[2.0]]]
    chosen, _ = choice.choose(specify(num_classes=3), LEVELS, (X, Y, np.ones(61)))
    assert chosen.penalty > 8


def test_parts_of_the_data_hold_rows_of_rare_classes():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    Y = (np.arange(1000) < 3).astype(float)[:, None]
    weight = np.arange(1000.0)
    part, labels, weights = training.at_most(50, (X, Y, weight), 0)
    assert part.shape == (50, 2) and labels.sum() == 3
    rows = weights.astype(int)
    assert len(set(rows)) == 50
    np.testing.assert_array_equal(part, X[rows])
    np.testing.assert_array_equal(labels, Y[rows])
    assert training.at_most(1000, (X, Y, weight), 0)[0] is X


def test_a_kernel_is_learned_from_as_many_rows_as_are_affordable(data, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "gpflow_bsvm.estimators.training.VEM.run",
        lambda self, model, rows, **_: seen.append(rows.num_rows),
    )
    X, Y = (np.repeat(column, 40, axis=0) for column in data)  # 2400 rows
    for number, work in ((2000, 1e9), (1000, 1.0), (1500, 1500 * 8**2)):
        monkeypatch.setattr("gpflow_bsvm.estimators.training.LEARN_WORK", work)
        training.train(specify(learn_kernel=True), (X, Y, np.ones(len(X))))
        assert seen[-1] == number


@pytest.mark.slow
def test_several_classes():
    X, _ = clean()
    Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    chosen, _ = choice.choose(specify(num_classes=3), HINGES, (X, Y, np.ones(len(X))))
    assert chosen.penalty > 1.0


@pytest.mark.slow
def test_the_estimator_takes_numbers_or_auto(data):
    X, Y = data
    with pytest.raises(ValueError, match="or 'auto', got 'best'"):
        gb.BSVMClassifier(penalty="best").fit(X, Y[:, 0])
    fixed = gb.BSVMClassifier(penalty=3.0, learn_kernel=False).fit(X, Y[:, 0])
    assert float(fixed.model_.likelihood.penalty.numpy()) == fixed.penalty_ == 3.0


# --- as many inducing points as pay --------------------------------------------------------------


@pytest.mark.slow
def test_inducing_points_grow_while_left_out_rows_gain(monkeypatch):
    """Each size is looked at once; the one before the first that gains little stays."""
    densities, sizes = iter([-0.5, -0.4, -0.399]), []

    def density(model, *_, **__):
        sizes.append(model.q_shape[1])
        return next(densities)

    monkeypatch.setattr(training, "leave_one_out_density", density)
    X, Y = make_data(120)
    spec = specify(grow=True, num_inducing=4)
    model, _ = training.train(spec, (X, Y, np.ones(len(X))))
    assert sizes == [4, 12, 36] and model.q_shape[1] == 12
    alone = at_prior(spec._replace(num_inducing=12), X)
    gb.fit(alone, (X, Y))
    assert alone.elbo((X, Y)) <= model.elbo((X, Y)) + 0.5  # other centres, the same quality


def test_growth_ends_where_rows_or_work_do(data, monkeypatch):
    X, _ = data
    model = at_prior(specify(), X)
    assert training.grown(model, X, len(X)) == 24
    assert training.grown(model, X[:9], 9) < training.LEAST_GROWTH * model.q_shape[1]
    monkeypatch.setattr(training, "GROWTH_WORK", len(X) * 15.0**2)
    assert training.grown(model, X, len(X)) == 15
