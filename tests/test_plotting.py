"""Pictures show the numbers that they say they show."""

import numpy as np
import pytest

from gpflow_bsvm import plotting


@pytest.fixture
def ax():
    _, (ax,) = plotting.figure(1, 1)
    return ax


def test_all_names_are_there():
    assert set(plotting.__all__) <= set(dir(plotting))


# --- held-out predictions ------------------------------------------------------------------------


def test_what_are_no_probabilities_of_these_classes(ax):
    y, P = np.array([0, 1, 2] * 5), np.full((15, 3), 1 / 3)
    with pytest.raises(ValueError, match="must be probabilities"):
        plotting.reliability_diagram(ax, y > 1, np.full(15, 3.0))
    with pytest.raises(ValueError, match=r"integers in 0\.\.2, got 3"):
        plotting.reliability_diagram(ax, y + 1, P)
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        plotting.reliability_diagram(ax, y, P, bins=0)
    assert not ax.lines
