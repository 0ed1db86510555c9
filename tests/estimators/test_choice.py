"""The choice of loss, penalty and scale by held-out rows."""

import gpflow
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from scored import of_nats

from gpflow_bsvm.estimators import choice
from gpflow_bsvm.estimators.candidates import HINGES, Candidate, candidates, first_of
from gpflow_bsvm.estimators.specification import Specification, make_model
from gpflow_bsvm.estimators.training import InitialModel, initial_model, train
from gpflow_bsvm.inference import SVI
from gpflow_bsvm.model_selection import held_out
from gpflow_bsvm.model_selection.densities import HeldOut
from gpflow_bsvm.model_selection.held_out import held_out_density


@pytest.fixture(scope="module")
def stripes():
    """Classes that alternate faster than a lengthscale of 1 can tell."""
    X = np.random.default_rng(0).uniform(-2, 2, size=(150, 2))
    Y = (np.sin(7 * X[:, :1]) > 0).astype(float)
    return X, Y, np.ones(len(X))


@pytest.fixture(scope="module")
def spec():
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=[1.0, 2.0])
    kernel += gpflow.kernels.Constant(0.5)
    return Specification(2, "levels", 2.0, kernel=kernel, num_inducing=40)


@pytest.mark.parametrize("best", [0.3, 1.0, 1.7, 6.5])
def test_the_scale_is_the_weighted_geometric_mean(best):
    nats = {factor: -40 * np.log(factor / best) ** 2 for factor in choice.SCALES}
    asked = []

    def score(factor):
        asked.append(factor)
        return HeldOut(np.full(10, nats[factor] / 5), np.full(10, 0.5))

    weights = softmax(list(nats.values()))
    expected = np.exp(weights @ np.log(list(nats)))
    # What was not asked for has a weight below exp(-5).
    np.testing.assert_allclose(choice._mean_scale(score), expected, rtol=0.01)
    assert len(set(asked)) == len(asked) < len(nats)


@pytest.mark.parametrize(("rise", "longest"), [(0.0, 2.0), (-0.1, 2.0), (0.1, 8.0)])
def test_much_longer_scales_are_tried_only_while_the_density_rises(rise, longest):
    asked = []

    def score(factor):
        asked.append(factor)
        return HeldOut(np.array([rise * np.log(factor)]), np.ones(1))

    scale = choice._mean_scale(score)
    assert max(asked) == longest
    np.testing.assert_allclose(np.log(scale), softmax(rise * np.log(asked)) @ np.log(asked))


@pytest.mark.slow
def test_all_lengthscales_move_together_to_what_held_out_rows_say(stripes, spec):
    model = initial_model(spec._replace(learn_kernel=False), stripes).model
    choice.choose_scale(spec, model, stripes)
    exponential, constant = model.kernel.kernels
    factors = exponential.lengthscales.numpy() / [1.0, 2.0]
    np.testing.assert_allclose(factors, factors[0], rtol=1e-12)
    assert (exponential.variance.numpy(), constant.variance.numpy()) == (4.0, 0.5)

    def nats(factor):
        kernel = gpflow.utilities.deepcopy(spec.kernel)
        kernel.kernels[0].lengthscales.assign([factor, 2 * factor])
        fixed = spec._replace(kernel=kernel, learn_kernel=False, Z=model.inducing_variable.Z)
        X, Y, weight = stripes
        fit = lambda *part: train(fixed, part)[0]  # noqa: E731
        return len(X) * held_out_density(fit, (X, Y), sample_weight=weight)

    scales = np.array(choice.SCALES)
    expected = np.exp(softmax([nats(factor) for factor in scales]) @ np.log(scales))
    assert expected < 0.6
    # There each fit begins at the prior, and a fit ends where the bound rises by less than 1e-5.
    np.testing.assert_allclose(factors[0], expected, rtol=0.01)


def test_a_kernel_that_is_not_learned_keeps_its_scale(stripes, spec):
    fixed = spec._replace(learn_kernel=False)
    _, begun = choice.choose(fixed, [Candidate("levels", 2.0)], stripes)
    lengthscales = begun.model.kernel.kernels[0].lengthscales
    np.testing.assert_array_equal(lengthscales, [1.0, 2.0])


def with_best(place, spec, rows, monkeypatch):
    """:return: the result of `choose` if this candidate is the best; the second learns first."""
    monkeypatch.setattr(choice, "best_of", lambda _, among, first: among[: place + 1][-1])
    among = candidates("auto", "auto", False)
    assert first_of(among) == among[1] == Candidate(spec.loss, spec.penalty)
    return choice.choose(spec, among, rows)


@pytest.mark.filterwarnings("ignore:the fit has learned next to nothing")
def test_the_kernel_is_that_of_the_first_candidate(stripes, spec, monkeypatch):
    """Only its lengthscales are multiplied by a common factor."""
    monkeypatch.setattr(choice, "SCALES", (1.0, 0.7))
    expected = initial_model(spec, stripes)
    other, begun = with_best(2, spec, stripes, monkeypatch)
    assert (other.penalty, begun.model.likelihood.penalty.numpy()) == (8.0, 8.0)
    assert begun.history.elbo == expected.history.elbo
    for one, kernel in zip(begun.model.kernel.kernels, expected.model.kernel.kernels):
        np.testing.assert_array_equal(one.variance, kernel.variance)
    exponentials = [kernel.kernels[0] for kernel in (begun.model.kernel, expected.model.kernel)]
    factors = np.divide(*(one.lengthscales.numpy() for one in exponentials))
    np.testing.assert_allclose(factors, factors[0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:the fit has learned next to nothing")
@pytest.mark.parametrize(("place", "few"), [(4, 2_000), (2, 149)])
def test_the_kernel_is_learned_again_with_another_loss_or_many_rows(
    stripes, spec, monkeypatch, place, few
):
    monkeypatch.setattr(choice, "choose_scale", lambda *about: None)
    monkeypatch.setattr(choice, "KEPT_ROWS", few)
    monkeypatch.setattr(HeldOut, "is_worth", lambda *about: True)
    start = initial_model(spec, stripes).model
    best = candidates("auto", "auto", False)[place]
    other = spec._replace(loss=best.loss, penalty=best.penalty, Z=start.inducing_variable.Z.numpy())
    expected = initial_model(other, stripes, start)
    found, begun = with_best(place, spec, stripes, monkeypatch)
    assert (found.loss, found.penalty) == best[:2]
    assert begun.history.elbo == expected.history.elbo


def test_another_loss_must_be_worth_it_with_its_own_kernel(stripes, spec, monkeypatch):
    def initial(spec, *about):
        found = without_learning(spec, about)
        if spec.loss == "hinge" and spec.learn_kernel:  # as if learned
            found.model.kernel.kernels[0].lengthscales.assign([0.3, 2.0])
        return found

    seen = []
    monkeypatch.setattr(choice, "choose_scale", lambda *about: None)
    monkeypatch.setattr(choice, "initial_model", initial)
    monkeypatch.setattr(HeldOut, "is_worth", lambda *both: seen.extend(both))
    found, begun = with_best(4, spec, stripes, monkeypatch)
    link = begun.model.likelihood
    assert (found.loss, found.penalty, link.penalty.numpy()) == ("levels", 32.0, 32.0)
    np.testing.assert_array_equal(begun.model.kernel.kernels[0].lengthscales, [1.0, 2.0])
    hinge = spec._replace(loss="hinge", penalty=16.0, Z=begun.model.inducing_variable.Z.numpy())
    learned = initial(hinge, stripes, begun.model).model
    refits = choice._refits(begun.model, stripes, stripes)
    expected = [refits(model, model is learned).mean for model in (learned, begun.model)]
    # All fits to folds have converged to 3e-5 of the bound.
    np.testing.assert_allclose([one.mean for one in seen], expected, atol=1e-3)
    assert abs(expected[0] - expected[1]) > 0.05
    trials = choice._Trials(hinge, begun.model, stripes, stripes)
    assert trials(HINGES[0]) is trials(HINGES[0])


def scored_by(score, monkeypatch):
    """:return: pairs of M and a candidate, scored by `score(M)` in place of fits to folds."""
    seen = []

    def scored(self, candidate):
        self.models[candidate.loss, candidate.learned] = None
        seen.append((len(self._spec.Z), candidate))
        return score(len(self._spec.Z))(candidate)

    perfect = HeldOut(np.zeros(9), np.ones(9))  # with its own kernel, each loss is worth it
    monkeypatch.setattr(held_out.Refits, "__call__", lambda *about: perfect)
    monkeypatch.setattr(choice._Trials, "__call__", scored)
    monkeypatch.setattr(choice, "choose_scale", lambda *about: None)
    return seen


@pytest.mark.parametrize(
    ("hinge", "few", "more", "learned"),
    [
        (-1.0, -9.0, -1.1, False),  # it may be two standard errors worse, with 40 points
        (-1.0, -1.0, -9.0, True),
        (-6.0, -3.5, -9.0, False),  # with 20, where levels are better than the hinge
        (-6.0, -4.1, -9.0, True),  # levels have no advantage: it must be better
        (-6.0, -9.0, -3.5, True),
    ],
)
def test_a_kernel_that_is_not_learned_is_at_the_medians_of_its_priors(
    stripes, monkeypatch, hinge, few, more, learned
):
    scores = {
        M: of_nats(-9.0, -8.0, -5.0, -4.0, hinge, last) for M, last in ((20, few), (40, more))
    }
    seen = scored_by(scores.get, monkeypatch)
    spec = Specification(2, "levels", 2.0, num_inducing=20, grow=True)
    found, begun = choice.choose(spec, candidates("auto", "auto", False), stripes)
    denser = [candidate.learned for number, candidate in seen if number == 40]
    assert denser == ([True, False] if hinge > -4 else [])
    loss = "levels" if learned and hinge < -4 else "hinge"
    assert (found.loss, begun.history is None) == (loss, not learned)
    exponential, constant = begun.model.kernel.kernels
    median = np.allclose(exponential.lengthscales, 2**0.5, rtol=1e-12)
    assert (median and constant.variance.numpy() == 1.0) != learned


@pytest.mark.parametrize("given", [{"kernel": gpflow.kernels.Matern32()}, {"learn_kernel": False}])
def test_a_users_kernel_is_learned_or_not_as_asked(stripes, given, monkeypatch):
    score = of_nats(-9.0, -8.0, -5.0, -4.0, -1.0, -1.0)
    seen = scored_by(lambda number: score, monkeypatch)
    spec = Specification(2, "levels", 2.0, num_inducing=20, grow=True, **given)
    choice.choose(spec, candidates("auto", "auto", False), stripes)
    assert len({*seen}) == 4 and all(candidate.learned for _, candidate in seen)


@pytest.mark.parametrize(
    ("loss", "penalty", "chosen", "steeper"),
    [
        ("auto", "auto", ("hinge", 16.0), True),
        ("hinge", "auto", ("hinge", 16.0), True),
        ("hinge", "auto", ("hinge", 8.0), False),
        ("auto", "auto", ("levels", 16.0), False),
        ("auto", 16.0, ("hinge", 16.0), False),
        ("hinge", 16.0, ("hinge", 16.0), False),
    ],
)
def test_a_steeper_hinge_is_tried_after_the_steepest_of_several(
    stripes, spec, loss, penalty, chosen, steeper, monkeypatch
):
    named = spec._replace(loss=chosen[0], penalty=chosen[1])
    begun = InitialModel(make_model(named, stripes[0]), None)
    monkeypatch.setattr(choice, "choose", lambda *about: (named, begun))
    found, _ = choice.chosen_model(spec, candidates(loss, penalty, False), stripes)
    assert (found.loss, found.penalty, found.steeper) == (*chosen, steeper)
    other = spec._replace(inference=SVI())
    found, _ = choice.chosen_model(other, candidates(loss, penalty, False), stripes)
    assert not found.steeper


def test_the_link_of_a_chosen_hinge_is_not_that_of_a_fold(stripes, spec, monkeypatch):
    monkeypatch.setattr(choice, "choose_scale", lambda *about: None)
    fixed = spec._replace(loss="hinge", learn_kernel=False)
    _, begun = choice.choose(fixed, HINGES, stripes)
    link = begun.model.likelihood
    assert (link.scale.numpy(), link.offset.numpy()) == (1.0, 0.0)


def test_the_scale_is_chosen_at_as_many_points_as_the_rows_let_m_grow(stripes, spec, monkeypatch):
    seen = []
    monkeypatch.setattr(choice, "_mean_scale", lambda score: 1.0)
    begun = lambda spec, *about: seen.append(len(spec.Z)) or initial_model(spec, *about)  # noqa: E731
    model = initial_model(spec._replace(learn_kernel=False), stripes).model
    monkeypatch.setattr(choice, "initial_model", begun)
    for num_rows in (None, 1_000_000, 10_000_000):
        plain = spec._replace(grow=True, num_rows=num_rows, calibrate=False)
        choice.choose_scale(plain, model, stripes)
    assert seen == [80, 50, 40]  # twice as many, then as sweeps of 5e9 allow


def chosen(spec, rows, **options):
    """:return: a model whose scale was chosen at a penalty of 8."""
    spec = spec._replace(penalty=8.0, **options)
    model = initial_model(spec._replace(learn_kernel=False), rows).model
    choice.choose_scale(spec, model, rows)
    return model


def without_learning(spec, about):
    return initial_model(spec._replace(learn_kernel=False, learned=()), *about)


def few_of(rows):
    return tuple(part[:40] for part in rows)


@pytest.mark.parametrize(
    ("num_classes", "loss", "calibrate"),
    [
        (3, "levels", False),
        pytest.param(3, "hinge", "auto", marks=pytest.mark.slow),
        pytest.param(2, "levels", "auto", marks=pytest.mark.slow),
    ],
)
def test_others_are_not_tempered(stripes, spec, monkeypatch, num_classes, loss, calibrate):
    """A hinge's scale is fitted to left-out rows at the end."""
    monkeypatch.setattr(choice, "SCALES", (1.0, 0.7))
    X, Y, weight = few_of(stripes)
    rows = X, Y if num_classes == 2 else Y + (X[:, 1:] > 0), weight
    options = {"num_classes": num_classes, "loss": loss, "calibrate": calibrate, "num_inducing": 5}
    assert chosen(spec, rows, **options).likelihood.scale.numpy() == 1


@pytest.mark.slow
def test_held_out_rows_temper_levels_of_several_classes(stripes, spec, monkeypatch):
    """The power of the best scale, by SciPy, that the number of rows allows."""
    monkeypatch.setattr(choice, "SCALES", (1.0, 0.7))
    X, Y, weight = stripes
    Y = Y + (X[:, 1:] > 0)
    spec = spec._replace(num_classes=3, penalty=8.0)
    model = chosen(spec, (X, Y, weight))
    scale = model.likelihood.scale.numpy()
    kernel, Z = model.kernel, model.inducing_variable.Z.numpy()

    own = gpflow.utilities.deepcopy(kernel)
    own.kernels[0].lengthscales.assign([1.0, 2.0])  # the better of the two, not looked at last
    fixed = spec._replace(kernel=own, learn_kernel=False, Z=Z)

    f = np.empty((2, 150, 6))

    def fit(*part):
        found = train(fixed, part)[0]
        others = ~np.isin(X[:, 0], part[0][:, 0])
        f[:, others] = found.predict_f(X[others])
        return found

    held_out_density(fit, (X, Y), sample_weight=weight)
    labels = np.eye(3)[Y[:, 0].astype(int)]

    def loss_of(power):
        """As if one more row, anywhere, had another label."""
        model.likelihood.scale.assign(np.exp(power))
        log_p = np.log(model.likelihood.probabilities(*f))
        return -np.sum((labels + (1 - labels) / 150 / 2) * log_p)

    found = minimize_scalar(loss_of, bounds=(-2, 2), method="bounded")
    assert abs(found.x) > 0.05
    # Both fits have converged to 1e-5 of the bound.
    np.testing.assert_allclose(np.log(scale), found.x * 150 / 250, atol=5e-3)


@pytest.mark.parametrize(("multi_class", "enough"), [("crammer_singer", 30), ("ordinal", 1000)])
def test_many_rows_and_ordered_classes_are_not_tempered(
    stripes, spec, monkeypatch, multi_class, enough
):
    monkeypatch.setattr(held_out, "ENOUGH_ROWS", enough)
    monkeypatch.setattr(choice, "SCALES", (2.0, 1.0))
    X, Y, weight = few_of(stripes)
    rows = X, Y + (X[:, 1:] > 0), weight
    model = chosen(spec, rows, num_classes=3, multi_class=multi_class, num_inducing=5)
    assert model.likelihood.scale.numpy() == 1


@pytest.mark.parametrize(("lead", "link"), [(2.9, "stationary"), (3.1, "integral")])
def test_the_stationary_link_stays_unless_it_is_three_nats_behind(
    stripes, spec, monkeypatch, lead, link
):
    monkeypatch.setattr(choice, "SCALES", (1.0,))
    nats = {"stationary": 0.0, "integral": lead}
    monkeypatch.setattr(held_out.Refits, "density", lambda _, levels: nats[levels.link])
    given = {"num_inducing": 5, "link": "stationary"}
    assert chosen(spec, few_of(stripes), **given).likelihood.link == link
    kept = chosen(spec, few_of(stripes), **given, calibrate=False)
    assert kept.likelihood.link == "stationary"
    monkeypatch.setattr(choice, "initial_model", lambda spec, *about: without_learning(spec, about))
    among = candidates("levels", 2.0, False)
    found, begun = choice.chosen_model(spec._replace(**given), among, few_of(stripes))
    assert found.link == begun.model.likelihood.link == link


def test_the_link_is_chosen_before_the_loss_and_again_before_the_temperature(
    stripes, spec, monkeypatch
):
    """The integral leads by 2 nats, then by 4."""
    leads = iter([0.0, 2.0, 0.0, 4.0])  # of the stationary link, of the integral
    monkeypatch.setattr(choice, "SCALES", (1.0,))
    monkeypatch.setattr(held_out.Refits, "density", lambda *about: next(leads))
    monkeypatch.setattr(choice, "initial_model", lambda spec, *about: without_learning(spec, about))
    seen = []
    monkeypatch.setattr(held_out.Refits, "temper", lambda _, levels: seen.append(levels.link))

    def choose(spec, among, begun, *about):
        seen.append((spec.link, begun.model.likelihood.link))
        return spec, begun

    monkeypatch.setattr(choice, "_choose_candidate", choose)
    X, Y, weight = few_of(stripes)
    rows = X, Y + (X[:, 1:] > 0), weight
    spec = spec._replace(num_classes=3, link="stationary", num_inducing=5)
    choice.choose(spec, candidates("levels", "auto", False), rows)
    assert seen == [("stationary", "stationary"), "integral"]
    leads = iter([0.0, 4.0])
    choice.choose(spec, candidates("levels", "auto", False), rows)
    assert seen[2:] == [("integral", "integral"), "integral"]
