"""Predictive densities of held-out rows, and how to compare them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray

#: The assumed probability of another label than expected is at least this: the left-out rows are
#: too few to verify a smaller probability.
SUREST = 1e-4


class HeldOut(NamedTuple):
    """Predictive densities of held-out rows."""

    log_density: AnyNDArray  #: [n], log p(y_n | rows of the other folds)
    weight: AnyNDArray  #: [n]

    @property
    def mean(self) -> float:
        """:return: nats per row (of weight 1); greater is better."""
        return float(self.weight @ self.log_density / self.weight.sum())

    def lead(self, other: HeldOut, errors: float = 1.0) -> float:
        """
        Few rows without an error do not prove that there are no errors: after n rows without an
        event, its probability is about 1 / n (rule of succession).

        :param other: densities of the same rows.
        :param errors: the number of additional rows with another label than expected.
        :return: the difference of the sums of log densities, in standard errors.
        """
        difference = self.log_density - other.log_density
        gain = self.weight @ difference
        mean = gain / self.weight.sum()
        error = np.sqrt(np.square(self.weight * (difference - mean)).sum())
        gain += errors * (self._if_wrong() - other._if_wrong())
        return float(gain / error) if error > 0 else float(np.sign(gain)) * np.inf

    def is_worth(self, other: HeldOut) -> bool:
        """
        :param other: densities of the same rows, of a loss that is not as steep.
        :return: True if the sum of these log densities is larger, even with two more rows with an
            unexpected label (see `lead`): their number has mean and deviation 1.
        """
        return self.lead(other, errors=2.0) > 0

    def _if_wrong(self) -> float:
        """:return: the mean over rows of log (1 - p_n), where 1 - p_n is at least `SUREST`."""
        others = np.maximum(-np.expm1(self.log_density), SUREST)
        return float(self.weight @ np.log(others) / self.weight.sum())
