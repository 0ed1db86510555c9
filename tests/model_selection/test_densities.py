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
        lead = HeldOut(moved, ones).lead(HeldOut(first, ones))
        assert lead == pytest.approx(shift)
    same = HeldOut(first, ones)
    assert same.lead(same) == 0 or np.isnan(same.lead(same))
    twice = HeldOut(np.r_[second, second], np.r_[ones, ones])
    assert twice.mean == pytest.approx(HeldOut(second, 2 * ones).mean)


def test_a_gain_is_worth_it_if_it_outweighs_one_wrong_row():
    """The sum is larger even with one more row, of log density mean log (1 - p)."""
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, size=9)

    def with_one(p):
        return weight @ np.log(p) + weight @ np.log(1 - p) / weight.sum()

    seen = set()
    for p, q in rng.beta(9, 1, size=(60, 2, 9)):
        one, other = (HeldOut(np.log(probability), weight) for probability in (p, q))
        gains = one.mean > other.mean
        assert one.is_worth(other) == (gains and with_one(p) > with_one(q))
        seen.add((bool(gains), one.is_worth(other)))
    assert seen == {(True, True), (True, False), (False, False)}
    sure = HeldOut(np.zeros(9), weight)  # an error would cost 9.2 nats
    assert not sure.is_worth(HeldOut(np.full(9, -0.5), weight))
    assert sure.is_worth(HeldOut(np.full(9, -1.0), weight))
