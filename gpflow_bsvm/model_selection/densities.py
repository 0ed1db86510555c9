"""Predictive densities of held-out rows, and how to compare them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray

#: If an error is imagined, its probability is at least this: no smaller one can be verified by the
#: number of rows that are left out.
SUREST = 1e-4


class HeldOut(NamedTuple):
    """Predictive densities of held-out rows."""

    log_density: AnyNDArray  #: [n], log p(y_n | rows of the other folds)
    weight: AnyNDArray  #: [n]

    @property
    def mean(self) -> float:
        """:return: nats per row (of weight 1); greater is better."""
        return float(self.weight @ self.log_density / self.weight.sum())

    def lead(self, other: HeldOut) -> float:
        """
        :param other: densities of the same rows.
        :return: the difference of the means, in standard errors.
        """
        difference = self.log_density - other.log_density
        gain = self.weight @ difference / self.weight.sum()
        error = np.sqrt(np.square(self.weight * (difference - gain)).sum()) / self.weight.sum()
        return float(gain / error) if error > 0 else float(np.sign(gain)) * np.inf

    def is_worth(self, other: HeldOut) -> bool:
        """
        :param other: densities of the same rows.
        :return: True if the densities are larger in sum, even if one more row had another label
            than expected. So few rows without an error do not prove that there are no errors: as in
            the rule of succession, n rows without an event suggest its probability 1 / n.
        """
        gain = self.weight @ (self.log_density - other.log_density)
        loss = other._if_wrong() - self._if_wrong()
        return bool(gain > max(loss, 0.0))

    def _if_wrong(self) -> float:
        """:return: the mean over rows of log (1 - p_n), where 1 - p_n is at least `SUREST`."""
        others = np.maximum(-np.expm1(self.log_density), SUREST)
        return float(self.weight @ np.log(others) / self.weight.sum())
