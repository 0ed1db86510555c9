"""Each metric against its formula by hand, for two classes and for three, and its orientation."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from gpflow_bsvm.metrics import CLIP, ECE_BINS, METRICS, evaluate

Y = np.array([1, 1, 1, 0, 0, 0])
GOOD = np.array([0.95, 0.95, 0.95, 0.05, 0.05, 0.05])
BAD = np.array([0.95, 0.3, 0.6, 0.7, 0.05, 0.4])

Y3 = np.array([0, 0, 1, 1, 2, 2])
P3 = np.array(
    [
        [0.7, 0.2, 0.1],
        [0.3, 0.4, 0.3],
        [0.1, 0.8, 0.1],
        [0.5, 0.4, 0.1],
        [0.2, 0.2, 0.6],
        [0.4, 0.2, 0.4],
    ]
)


def two(p):
    """:return: [N, 2] of p(y = 1)."""
    return np.stack([1 - p, p], axis=1)


def test_all_metrics_are_there():
    assert set(METRICS) == {"error", "brier", "nll", "ece", "auc"}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("labels", "P", "message"),
    [
        (np.array(["a", "b", "b", "a", "a", "a"]), two(BAD), r"integers in 0..1, got 'a'"),
        (2 * Y - 1, two(BAD), r"integers in 0..1, got -1"),
        (Y[:, None], two(BAD), r"expected y \[N\]"),
        (Y, BAD[:, None], r"expected y \[N\]"),
        (Y, 2 * two(BAD), r"must be probabilities"),
        (Y, np.nan * two(BAD), r"must be probabilities"),
    ],
    ids=["words", "signs", "column", "column of P", "no probabilities", "NaN"],
)
def test_other_labels_and_numbers_have_no_score(name, labels, P, message):
    with pytest.raises(ValueError, match=message):
        METRICS[name].function(labels, P)


@pytest.mark.parametrize("name", METRICS)
def test_orientation(name):
    metric = METRICS[name]
    sign = 1 if metric.greater_is_better else -1
    assert sign * metric.function(Y, two(GOOD)) > sign * metric.function(Y, two(BAD))
    assert sign * metric.function(Y3, np.eye(3)[Y3]) > sign * metric.function(Y3, P3)


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
    np.testing.assert_allclose(METRICS[name].function(Y, two(BAD)), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("error", 3 / 6),  # in the last row the first of two equal classes counts
        ("brier", np.mean([0.14, 0.74, 0.06, 0.62, 0.24, 0.56]) / 2),
        ("nll", -np.mean(np.log([0.7, 0.3, 0.8, 0.4, 0.6, 0.4]))),
        # of 8 pairs per class: one of class 0 is beaten twice; one of class 1 ties once; none of 2
        ("auc", np.mean([6 / 8, 7.5 / 8, 8 / 8])),
    ],
)
def test_value_of_three_classes_by_hand(name, expected):
    np.testing.assert_allclose(METRICS[name].function(Y3, P3), expected, rtol=1e-12)


@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_scikit_learn_agrees(num_classes):
    random = np.random.default_rng(num_classes)
    P = random.dirichlet(np.ones(num_classes), size=200)
    y = np.array([random.choice(num_classes, p=p) for p in P])
    values = evaluate(y, P)
    half = brier_score_loss(np.eye(num_classes)[y].ravel(), P.ravel()) * num_classes / 2
    areas = [roc_auc_score(y == c, P[:, c]) for c in range(num_classes)]
    for name, expected in {"brier": half, "nll": log_loss(y, P), "auc": np.mean(areas)}.items():
        np.testing.assert_allclose(values[name], expected, rtol=1e-12)


@pytest.mark.parametrize("p", [GOOD, BAD, np.full(6, 0.5)])
def test_two_columns_are_one(p):
    assert evaluate(Y, two(p)) == evaluate(Y, p)


def test_half_counts_as_class_0():
    assert METRICS["error"].function(np.array([0, 0, 0, 1]), np.full((4, 2), 0.5)) == 0.25


@pytest.mark.parametrize("num_classes", [2, 4])
def test_ece_by_hand(num_classes):
    random = np.random.default_rng(0)
    P = random.dirichlet(np.ones(num_classes), size=500)
    y = np.where(random.uniform(size=500) < P.max(1) ** 2, P.argmax(1), P.argmin(1))
    confidence, correct = P.max(1), P.argmax(1) == y
    bin_of = np.floor(confidence * ECE_BINS)
    expected = sum(
        abs(correct[bin_of == b].sum() - confidence[bin_of == b].sum()) for b in range(ECE_BINS)
    )
    # TensorFlow Probability bins in single precision
    np.testing.assert_allclose(METRICS["ece"].function(y, P), expected / 500, atol=1e-5)


def test_certain_and_wrong_costs_a_finite_amount():
    nll = METRICS["nll"].function(np.array([1, 0]), two(np.array([0.0, 0.0])))
    np.testing.assert_allclose(nll, -np.log(CLIP) / 2, rtol=1e-6)
    nll = METRICS["nll"].function(np.array([2, 0]), np.eye(3)[[1, 0]])
    np.testing.assert_allclose(nll, -np.log(CLIP) / 2, rtol=1e-6)
    assert np.isfinite(METRICS["ece"].function(np.array([1, 0]), two(np.array([0.0, 1.0]))))


@pytest.mark.parametrize("y, P", [(Y[:3], two(BAD[:3])), (Y3[:4], P3[:4])])
def test_auc_without_a_class_is_nan(y, P):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = evaluate(y, P)
    assert np.isnan(values.pop("auc"))
    assert np.isfinite(list(values.values())).all()


def test_evaluate_gives_all():
    assert evaluate(Y3, P3) == {name: metric.function(Y3, P3) for name, metric in METRICS.items()}


@pytest.mark.parametrize("p", [GOOD + 0.2, GOOD - 0.2, np.full(6, np.nan), np.full((6, 3), np.nan)])
def test_evaluate_refuses_what_are_no_probabilities(p):
    with pytest.raises(ValueError, match="probabilities"):
        evaluate(Y, p)


def test_evaluate_refuses_rows_that_do_not_sum_to_1():
    with pytest.raises(ValueError, match=r"sum to 1; one is off by 0\.0"):
        evaluate(Y3, P3 * [0.99, 1, 1])
    assert evaluate(Y3, P3 * [1 + 1e-8, 1, 1])["error"] == 0.5


@pytest.mark.parametrize("wrong", [-1, 3, 0.5, np.nan, "b"])
def test_evaluate_refuses_labels_that_are_no_classes(wrong):
    with pytest.raises(ValueError, match=r"integers in 0\.\.2, got"):
        evaluate(np.array([*Y3[:5].tolist(), wrong]), P3)


@pytest.mark.parametrize(
    "y, p",
    [
        (Y, GOOD[:3]),
        (Y, GOOD[:, None]),
        (Y[:, None], GOOD[:, None]),
        (Y[:, None], two(GOOD)),
        (Y3[:5], P3),
        (Y[:0], GOOD[:0]),
    ],
)
def test_evaluate_refuses_wrong_shapes(y, p):
    with pytest.raises(ValueError, match=r"expected y \[N\] and p \[N\] or \[N, C\]"):
        evaluate(y, p)


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_takes_the_same_as_all_together(name):
    assert METRICS[name].function((Y == 1).tolist(), BAD.tolist()) == evaluate(Y, BAD)[name]
