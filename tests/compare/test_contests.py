"""Who is best, who ties, and how that is put into words."""

import numpy as np
import pytest
from comparisons import made_up, three
from scipy import stats

from gpflow_bsvm import metrics
from gpflow_bsvm.compare import Comparison, contests, report

# --- who is best, and who ties -------------------------------------------------------------------


@pytest.mark.parametrize("score", contests.ROW_LOSSES)
@pytest.mark.parametrize("num_classes", [2, 4])
def test_row_losses_have_the_metric_as_mean(score, num_classes):
    for y, P in made_up({"a": 1.0}, num_classes=num_classes).held_out["a"].values():
        expected = metrics.METRICS[score].function(y, P)
        np.testing.assert_allclose(
            contests.ROW_LOSSES[score](y, P).mean(), expected, rtol=1e-12, atol=1e-15
        )


def test_a_contest_is_a_paired_t_test_at_a_level_for_all():
    done = three()
    held = contests.contest(done, "nll")
    assert list(held.losses) == ["bsvm", "svgp", "svc"] and held.num_rows == 200
    rows = {
        name: np.concatenate(
            [contests.ROW_LOSSES["nll"](*fold) for fold in done.held_out[name].values()]
        )
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


def test_in_short_it_is_told_who_is_ahead_and_never_of_a_part():
    certain = {"BSVMClassifier": 2.0, "svgp": 2.0, "svc": 0.5}
    done = made_up(certain)
    _, level, better = report.in_short(done)
    assert level.startswith("  beside svgp: NLL level, error level, a fit takes 0.52 times as long")
    assert "svc: NLL better, error better, a fit takes 0.35 times as long" in better
    assert better.endswith("a prediction 1 times")
    ahead = report.in_short(made_up(certain | {"svc": 9.0}))[-1]
    assert ahead.startswith("  beside svc: NLL worse, error worse")
    del done.fold_scores[-1]
    assert report.in_short(done) == report.in_short(three()) == []
