"""Each metric against its formula by hand, and its orientation on two made-up predictions."""

import warnings

import numpy as np
import pytest

from gpflow_bsvm.metrics import CLIP, ECE_BINS, METRICS, evaluate

Y = np.array([1, 1, 1, 0, 0, 0])
GOOD = np.array([0.95, 0.95, 0.95, 0.05, 0.05, 0.05])
BAD = np.array([0.95, 0.3, 0.6, 0.7, 0.05, 0.4])


def test_all_metrics_are_there():
    assert set(METRICS) == {"error", "brier", "nll", "ece", "auc"}


@pytest.mark.parametrize("name", METRICS)
def test_orientation(name):
    metric = METRICS[name]
    sign = 1 if metric.greater_is_better else -1
    assert sign * metric.function(Y, GOOD) > sign * metric.function(Y, BAD)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("error", 2 / 6),
        ("brier", np.mean((BAD - Y) ** 2)),
        ("nll", -np.mean(np.log([0.95, 0.3, 0.6, 0.3, 0.95, 0.6]))),
        ("auc", 6 / 9),  # of 9 pairs (1, 0), (.3, .7), (.3, .4) and (.6, .7) are in wrong order
    ],
)
def test_value_by_hand(name, expected):
    np.testing.assert_allclose(METRICS[name].function(Y, BAD), expected, rtol=1e-12)


def test_half_counts_as_class_0():
    assert METRICS["error"].function(np.array([0, 0, 0, 1]), np.full(4, 0.5)) == 0.25


def test_ece_by_hand():
    random = np.random.default_rng(0)
    p = random.uniform(size=500)
    y = (random.uniform(size=500) < p**2).astype(int)
    confidence, correct = np.maximum(p, 1 - p), (p > 0.5) == y
    bin_of = np.floor(confidence * ECE_BINS)
    expected = sum(
        abs(correct[bin_of == b].sum() - confidence[bin_of == b].sum()) for b in range(ECE_BINS)
    )
    # TensorFlow Probability bins in single precision
    np.testing.assert_allclose(METRICS["ece"].function(y, p), expected / 500, atol=1e-5)


def test_certain_and_wrong_costs_a_finite_amount():
    nll = METRICS["nll"].function(np.array([1, 0]), np.array([0.0, 0.0]))
    np.testing.assert_allclose(nll, -np.log(CLIP) / 2, rtol=1e-6)
    assert np.isfinite(METRICS["ece"].function(np.array([1, 0]), np.array([0.0, 1.0])))


def test_auc_of_a_single_class_is_nan():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(METRICS["auc"].function(np.ones(3), np.array([0.1, 0.2, 0.3])))


def test_evaluate_gives_all():
    assert evaluate(Y, GOOD) == {name: metric.function(Y, GOOD) for name, metric in METRICS.items()}


@pytest.mark.parametrize("p", [GOOD + 0.2, GOOD - 0.2, np.full(6, np.nan)])
def test_evaluate_refuses_what_are_no_probabilities(p):
    with pytest.raises(ValueError, match="probabilities"):
        evaluate(Y, p)


@pytest.mark.parametrize("y, p", [(Y, GOOD[:3]), (Y, GOOD[:, None]), (Y[:, None], GOOD[:, None])])
def test_evaluate_refuses_wrong_shapes(y, p):
    with pytest.raises(ValueError, match="one equal dimension"):
        evaluate(y, p)
