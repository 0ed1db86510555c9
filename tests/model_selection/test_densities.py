"""Comparisons of held-out densities."""

import numpy as np
import pytest

from gpflow_bsvm.model_selection.densities import HeldOut


def test_better_by_standard_errors():
    """As SciPy's standard error of the mean of paired differences."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=50)
    second = first + rng.normal(size=50)
    ones = np.ones(50)
    error = np.std(second - first) / np.sqrt(50)
    for shift in (0.9, 1.1):
        moved = second - (second - first).mean() + shift * error
        lead = HeldOut(moved, ones).lead(HeldOut(first, ones), errors=0)
        assert lead == pytest.approx(shift)
    same = HeldOut(first, ones)
    assert same.lead(same) == 0 or np.isnan(same.lead(same))
    twice = HeldOut(np.r_[second, second], np.r_[ones, ones])
    assert twice.mean == pytest.approx(HeldOut(second, 2 * ones).mean)


def test_a_lead_outweighs_wrong_rows():
    """The sum is larger even with more rows, each of log density mean log (1 - p)."""
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, size=9)

    def with_wrong(p, errors):
        return weight @ np.log(p) + errors * weight @ np.log(1 - p) / weight.sum()

    seen = set()
    for p, q in rng.beta(9, 1, size=(60, 2, 9)):
        one, other = (HeldOut(np.log(probability), weight) for probability in (p, q))
        leads = [with_wrong(p, errors) > with_wrong(q, errors) for errors in (0, 1, 2)]
        assert leads == [one.lead(other, errors) > 0 for errors in (0, 1, 2)]
        assert one.lead(other) == one.lead(other, 1)
        assert one.is_worth(other) == leads[2]
        seen.add(tuple(leads))
    assert {(True, True, True), (True, True, False), (True, False, False)} <= seen
    sure = HeldOut(np.zeros(9), weight)  # an error would cost 9.2 nats
    less = HeldOut(np.full(9, -1.0), weight)
    cost = np.log(1 - np.exp(-1)) - np.log(1e-4)  # of an error, in nats
    assert weight.sum() < 2 * cost
    assert not sure.is_worth(less)
    assert HeldOut(np.zeros(9), 2 * weight).is_worth(HeldOut(less.log_density, 2 * weight))
