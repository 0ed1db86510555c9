"""Who is best, who ties, and how that is put into words."""

from dataclasses import replace

import numpy as np
import pytest
from comparisons import FAILED, made_up, three
from scipy import stats

from gpflow_bsvm import metrics
from gpflow_bsvm.compare import Comparison
from gpflow_bsvm.page import contests, words

# --- who is best, and who ties -------------------------------------------------------------------


@pytest.mark.parametrize("score", contests.ROW_LOSSES)
@pytest.mark.parametrize("num_classes", [2, 4])
def test_row_losses_have_the_metric_as_mean(score, num_classes):
    for y, P in made_up({"a": 1.0}, num_classes=num_classes).held_out["a"]:
        expected = metrics.METRICS[score].function(y, P)
        np.testing.assert_allclose(
            contests.ROW_LOSSES[score](y, P).mean(), expected, rtol=1e-12, atol=1e-15
        )


def test_a_contest_is_a_paired_t_test_at_a_level_for_all():
    done = three()
    held = contests.contest(done, "nll")
    assert list(held.losses) == ["bsvm", "svgp", "svc"] and held.num_rows == 200
    rows = {
        name: np.concatenate([contests.ROW_LOSSES["nll"](*fold) for fold in done.held_out[name]])
        for name in held.losses
    }
    for name, lost in held.behind.items():
        expected = stats.ttest_rel(rows[name], rows["bsvm"])
        low, high = expected.confidence_interval(0.975)  # 0.95 for two of them together
        np.testing.assert_allclose(lost, [held.losses[name][0] - held.losses["bsvm"][0], low, high])
    low, high = stats.ttest_1samp(rows["svc"], 0).confidence_interval(0.95)
    np.testing.assert_allclose(held.losses["svc"], [rows["svc"].mean(), low, high])
    assert not held.behind["svc"].has_zero
    assert "svc" not in held.level


@pytest.mark.filterwarnings("error")  # Student's t of equal numbers would warn
def test_equal_losses_have_no_spread():
    losses = np.full(7, 0.7)
    assert contests._interval(losses, 0.95) == (losses.mean(),) * 3
    assert contests._interval(losses[:1], 0.95) == (0.7, 0.7, 0.7)


def test_equal_predictions_tie():
    done = made_up({"a": 1.0, "b": 1.0})
    for score in contests.ROW_LOSSES:
        held = contests.contest(done, score)
        assert held.level == ["a", "b"] and held.behind["b"] == (0, 0, 0)


def test_a_model_without_a_fold_takes_no_part():
    done = three(failing=[("bsvm", 1)])
    assert set(contests.contest(done, "nll").losses) == {"svgp", "svc"}
    all_short = three(failing=[("bsvm", 1), ("svgp", 1), ("svc", 1)])
    assert contests.contest(all_short, "nll").num_rows == 100
    other_folds = made_up({"a": 1.0, "b": 1.0}, failing=[("a", 0), ("b", 1)])
    assert contests.contest(other_folds, "nll") is None  # no row is in common
    assert contests.contest(Comparison(done.dataset, done.settings), "nll") is None


def test_mean_ranks():
    sets = [three() for _ in range(4)]
    found = contests.mean_ranks(sets, "nll")
    assert found.means == {"bsvm": 1.0, "svgp": 2.0, "svc": 3.0}
    columns = np.array([[1, 2, 3]] * 4).T
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*columns).pvalue)
    q = 2.343  # three models, Table 5 of Demsar (2006), whose last digit is cut off
    assert found.critical_difference == pytest.approx(q * np.sqrt(3 * 4 / (6 * 4)), rel=5e-4)
    assert contests.mean_ranks(sets, "auc").means["svc"] == 3  # where greater is better
    assert contests.mean_ranks(sets[:1], "nll") is None
    assert contests.mean_ranks([*sets, made_up({"bsvm": 1.0, "svgp": 0.5})], "nll") is None
    alike = [made_up({"a": 1.0, "b": 1.0, "c": 1.0})] * 2
    assert contests.mean_ranks(alike, "nll").p_value == 1


# --- in words ------------------------------------------------------------------------------------


def test_a_winner_is_told_with_its_lead():
    done = made_up({"svc": 0.2, "bsvm": 3.0})
    held = contests.contest(done, "nll")
    mean, low, high = held.behind["svc"]
    nll, error = words.outcome(done)
    assert f"bsvm is best with {words.number(held.losses['bsvm'].mean)} (95 % interval " in nll
    assert f"svc is worse by {mean:.3f} (95 % interval {low:.3f} to {high:.3f})." in nll
    assert "a tie" not in nll and "bsvm is best" in error


def test_a_tie_is_told_as_one():
    nll, error = words.outcome(made_up({"a": 1.0, "b": 1.0}))
    for sentence in (nll, error):
        assert "it is a tie: the two cannot be told apart" in sentence and "best" not in sentence
    nll, _ = words.outcome(made_up({"a": 1.0, "b": 1.0, "c": -2.0}))
    assert "a is best" in nll and ", b cannot be told apart from it, and c is worse by" in nll


def test_one_model_is_no_contest():
    nll, _ = words.outcome(made_up({"a": 1.0}))
    assert "a, which nothing is compared with, has" in nll


def test_who_failed_is_told():
    told = words.outcome(three(failing=[("svc", 1)]))
    assert told[-1] == f"svc has no result on 1 of 2 folds ({FAILED})."
    lost = three(failing=[(name, fold) for name in ("bsvm", "svgp", "svc") for fold in (0, 1)])
    assert words.outcome(lost)[0] == "No model could be fitted to moons, so there is no result."
    assert "No model could be fitted" in words.overview([lost])


def test_an_early_end_is_told():
    done = three()
    done.fold_scores = done.fold_scores[:-1]
    del done.held_out["svc"][-1]
    later = Comparison(replace(done.dataset, name="later"), done.settings)
    text = words.overview([done, later])
    assert "The comparison ended early on moons" in text and "It did not come to later." in text


def test_the_overview_counts_sets():
    sets = [three(), three(name="again")]
    text = words.overview(sets)
    assert text.startswith("bsvm, svgp and svc were cross-validated on moons (")
    assert "bsvm has the best mean rank, 1;" in text
    method = words.method(sets[0].settings)
    assert "2 stratified folds" in method and "at most 7 inducing points" in method
    level = [contests.contest(sets[0], score).level for score in words.TOLD]
    found = {name: counts for name, *counts in words.wins(sets)}
    assert found == {
        name: [f"{2 * (name in best)} of 2" for best in level] for name in ("bsvm", "svgp", "svc")
    }


@pytest.mark.parametrize(
    "value, text", [(0.1234, "0.123"), (0.00123, "0.0012"), (0, "0.000"), (-0.5, "-0.500")]
)
def test_numbers(value, text):
    assert words.number(value) == text
