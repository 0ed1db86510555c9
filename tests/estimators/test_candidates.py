"""Candidates for loss and penalty, and the search for the best one."""

import numpy as np
import pytest
from scored import of_nats

from gpflow_bsvm.estimators.candidates import HINGES, Candidate, best_of, candidates, interpolated
from gpflow_bsvm.model_selection.densities import HeldOut


@pytest.mark.parametrize(
    "nats, best",
    [
        ((-9.0, -8.0, -5.0, -5.1, -1.0), 4),  # levels are best before their steepest
        ((-9.0, -8.0, -5.0, -4.0, -1.0), 4),
        ((-9.0, -8.0, -5.0, -4.0, -6.0), 3),
        ((-9.0, -8.0, -5.0, -9.0, -1.0), 2),  # the hinge is not tried: the steepest are bad
        ((-9.0, -4.0, -5.0, -5.0, -1.0), 1),  # nor where the steepest are not
    ],
)
def test_the_hinge_is_tried_where_steep_levels_are_good(nats, best):
    among = candidates("auto", "auto", False)[:-1]
    assert best_of(of_nats(*nats), among, among[1]) == among[best]


@pytest.mark.parametrize("rows, best", [(25, 3), (26, 4)])
def test_the_hinge_must_gain_what_two_errors_cost(rows, best):
    among = candidates("auto", "auto", False)[:-1]
    p = dict(zip(among, (0.6, 0.7, 0.8, 0.9, 0.95)))  # 2 log(0.1 / 0.05) / log(0.95 / 0.9) = 25.6

    def score(one):
        return HeldOut(np.full(rows, np.log(p[one])), np.ones(rows))

    assert best_of(score, among, among[1]) == among[best]


def test_a_penalty_between_two():
    assert interpolated(HINGES, 1.5) == Candidate("hinge", 8.0)
    assert interpolated(HINGES, 2.0) == HINGES[-1]
