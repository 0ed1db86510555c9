"""Who is better than whom, and that stars and sentences say the same of it."""

import re

import numpy as np
import pytest
from comparisons import made_up, numbers, three
from scipy import stats

from gpflow_bsvm.compare import report
from gpflow_bsvm.compare.protocol import Comparison

# --- losses and intervals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "done",
    [
        made_up({"a": 1.0}),
        made_up({"a": 1.0}, num_classes=4),
        numbers({"a": 0.5}),
    ],
    ids=["two", "four", "numbers"],
)
def test_losses_of_rows_have_the_metric_as_mean(done):
    for y, P in done.held_out["a"].values():
        for score, loss in done.losses.items():
            expected = done.metrics[score].function(y, P)
            np.testing.assert_allclose(loss(y, P).mean(), expected, rtol=1e-12, atol=1e-15)


def contest(done, score):
    found = {one.score: one for one in report.contests(done)}
    return found.get(score)


def test_a_contest_is_paired_t_tests_at_a_level_for_all_pairs():
    done = three()
    held = contest(done, "nll")
    assert list(held.losses) == ["bsvm", "svgp", "svc"] and held.num_rows == 200
    rows = {
        name: np.concatenate([done.losses["nll"](*fold) for fold in done.held_out[name].values()])
        for name in held.losses
    }
    assert len(held.behind) == 6
    for (one, other), lost in held.behind.items():
        expected = stats.ttest_rel(rows[one], rows[other])
        low, high = expected.confidence_interval(1 - 0.05 / 3)  # 0.95 for three pairs together
        np.testing.assert_allclose(lost, [held.losses[one][0] - held.losses[other][0], low, high])
    low, high = stats.ttest_1samp(rows["svc"], 0).confidence_interval(0.95)
    np.testing.assert_allclose(held.losses["svc"], [rows["svc"].mean(), low, high])
    assert held.verdict("svc", "bsvm") == "worse" and held.verdict("bsvm", "svc") == "better"
    assert held.leaders == ["bsvm"] and held.better("svc") == ["bsvm", "svgp"]
    held = contest(done, "error")
    assert held.verdict("bsvm", "svgp") == held.verdict("svgp", "bsvm") == "level"
    assert held.leaders == ["bsvm", "svgp"]


@pytest.mark.filterwarnings("error")  # Student's t of equal numbers would warn
def test_equal_losses_have_no_spread():
    losses = np.full(7, 0.7)
    assert report._interval(losses, 0.95) == (losses.mean(),) * 3
    assert report._interval(losses[:1], 0.95) == (0.7, 0.7, 0.7)


def test_equal_predictions_tie():
    done = made_up({"a": 1.0, "b": 1.0})
    for held in report.contests(done):
        assert held.leaders == ["a", "b"] and held.behind["a", "b"] == (0, 0, 0)


def test_a_model_without_a_fold_takes_no_part():
    done = three(failing=[("bsvm", 1)])
    assert set(contest(done, "nll").losses) == {"svgp", "svc"}
    all_short = three(failing=[("bsvm", 1), ("svgp", 1), ("svc", 1)])
    assert contest(all_short, "nll").num_rows == 100
    other_folds = made_up({"a": 1.0, "b": 1.0}, failing=[("a", 0), ("b", 1)])
    assert contest(other_folds, "nll") is None  # no row is in common
    assert contest(Comparison(done.dataset, done.settings), "nll") is None


# --- in words ------------------------------------------------------------------------------------


def test_a_sentence_for_each_pair():
    done = made_up({"bsvm": 2.0, "svgp": 2.0, "svc": 0.5})
    assert report.verdicts(done) == [
        "bsvm is level with svgp in error, Brier and NLL; its fit takes 0.52 times as long.",
        "bsvm is better than svc in error, Brier and NLL; its fit takes 0.35 times as long.",
        "svgp is better than svc in error, Brier and NLL; its fit takes 0.68 times as long.",
    ]
    del done.fold_scores[-1]
    assert report.verdicts(done) == []  # never of a part


def test_a_sentence_names_the_other_once():
    means = {"error": "worse", "brier": "level", "nll": "better"}

    class Held:
        def __init__(self, score):
            self.score = score

        def verdict(self, one, other):
            return means[self.score]

    found = report._verdict(
        [Held(score) for score in means], "a", "b", {name: name for name in means}
    )
    assert found == "better than b in nll, worse in error, level in brier"


def said(sentence):
    """:return: who is told to be worse than somebody, in which scores."""
    one, other = re.match(r"(\S+) is \S+ (?:than|with) (\S+) in", sentence).groups()
    for word, loser in (("worse", one), ("better", other)):
        for scores in re.findall(rf"{word}(?: than \S+)? in (.*?)(?:, level|, worse|;)", sentence):
            yield from ((loser, label) for label in re.split(", | and ", scores))


@pytest.mark.parametrize("seed", range(6))
def test_a_star_stands_where_no_sentence_says_worse(seed):
    names = ["bsvm", "svgp", "svc", "BSVMClassifier", "one-vs-rest"]
    certain = dict(zip(names, np.random.default_rng(seed).uniform(0.5, 2.0, 5)))
    done = numbers(certain) if seed == 5 else made_up(certain)
    worse = {found for sentence in report.verdicts(done) for found in said(sentence)}
    stars = set()
    for line in report.table(done).splitlines()[2:7]:
        model, *cells = line.split()
        for (name, metric), cell in zip(done.metrics.items(), cells):
            assert name in done.losses or not cell.endswith("*")
            stars |= {(model, metric.label)} if cell.endswith("*") else set()
    labels = [done.metrics[name].label for name in done.losses]
    assert worse and stars == {(name, label) for name in names for label in labels} - worse


def test_the_best_is_level_with_one_that_another_is_better_than():
    """Then that one has no star, though it is not told apart from the best."""
    done = made_up({"bsvm": 1.0, "svgp": 1.0, "svc": 1.0})
    wild = np.tile([0.01, 0.17], 25)
    for name, losses in {"bsvm": wild, "svgp": wild * 0 + 0.10, "svc": wild * 0 + 0.11}.items():
        p = np.exp(-losses)
        done.held_out[name] = {0: (np.zeros(50, int), np.column_stack([p, 1 - p]))}
    held = contest(done, "nll")
    assert held.verdict("bsvm", "svc") == "level"
    assert held.better("svc") == ["svgp"] and held.leaders == ["bsvm", "svgp"]
