"""Levels for a number of rows."""

import numpy as np
import pytest
from scipy.special import logit

from gpflow_bsvm.estimators.specification import LEVEL_SPACING, levels_for


@pytest.mark.parametrize("num_rows", [1, 100, 719, 721, 1957, 1959, 1e9])
def test_levels_reach_as_far_as_rows_can_tell(num_rows):
    levels = levels_for(num_rows)
    places = logit(levels.t)
    np.testing.assert_allclose(np.diff(places), LEVEL_SPACING, rtol=1e-10)
    np.testing.assert_allclose(places, -places[::-1], rtol=1e-10)
    expected = {719: 4, 721: 5, 1957: 5, 1959: 6, 1e9: 6}.get(num_rows, 4)
    assert places[-1] == pytest.approx(expected, rel=1e-10)
