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
    assert not ax.lines


def test_attack_curve_shows_its_three_columns(ax):
    epsilon, columns = [0, 0.1, 0.2], ([0.9, 0.5, 0.1], [0.1, 0.4, 0.3], [0.5, 0.8, 0.9])
    plotting.attack_curve(ax, epsilon, *columns, what="entropy")
    for line, values in zip(ax.lines, columns):
        np.testing.assert_array_equal(line.get_xydata(), np.transpose([epsilon, values]))
    assert [text.get_text() for text in ax.get_legend().texts][1] == "entropy"
