r"""The dual problem of a support vector machine, solved to double precision.

    max_a  sum_n a_n - 1/2 a^T Q a,    0 <= a_n <= upper,    Q_nm = y_n y_m K_nm.

LibSVM finds which a_n are 0, at the bound or in between, but with Q in single precision. From its
result, the classical active-set method goes on in double precision.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

#: Largest number of LibSVM's steps (some microseconds each); it then returns the current point.
_MOST_STEPS = 200_000
_TOL = 1e-8
#: Largest number of changes of the set, per row; relative rounding error of a margin's terms.
_CHANGES = 3
_ROUNDING = 1e-13
#: Warn of larger violations of the optimality conditions than this, in units of the margin.
_VIOLATION = 1e-6


class Dual(NamedTuple):
    """The problem."""

    Q: AnyNDArray  #: [N, N]
    y: AnyNDArray  #: [N], -1 or +1
    upper: float  #: bound of alpha

    def excess(self, alpha: AnyNDArray) -> AnyNDArray:
        """
        :param alpha: within its bounds.
        :return: the violation of the conditions of optimality, [N], in units of the margin: the
            shortfall 1 - y f where alpha may rise, the surplus y f - 1 where alpha may fall.
        """
        lacking = 1 - self.Q @ alpha
        may_move = np.where(lacking > 0, alpha < self.upper, alpha > 0)
        return np.asarray(np.abs(lacking) * may_move)

    def violation(self, alpha: AnyNDArray) -> float:
        """:return: the largest violation."""
        return float(self.excess(alpha).max())

    def is_solved(self, alpha: AnyNDArray) -> bool:
        """:return: True if the violation is within rounding."""
        size = 1 + np.abs(self.Q).max() * np.abs(alpha).sum()
        return bool(self.violation(alpha) <= _ROUNDING * size)

    def solve(self) -> AnyNDArray:
        """
        LibSVM always has a free bias. With every datum given twice, as (x, y) and as (-x, -y), 0 is
        an optimal bias. The two copies of a datum share its alpha, each with half the bound.

        :return: alpha, with a warning if it is not the solution.
        """
        gram = self.Q * np.outer(self.y, self.y)
        svc = SVC(kernel="precomputed", C=self.upper / 2, tol=_TOL, max_iter=_MOST_STEPS)
        with warnings.catch_warnings():  # the violation is checked below
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(np.block([[gram, -gram], [-gram, gram]]), np.append(self.y, -self.y))
        halves = np.zeros(2 * len(self.y))
        halves[svc.support_] = np.abs(svc.dual_coef_[0])
        alpha = self.refine(halves.reshape(2, -1).sum(axis=0))
        violation = self.violation(alpha)
        if not violation <= _VIOLATION:
            warnings.warn(
                f"the support vector machine is not solved: a margin is wrong by {violation:.1e}; "
                "check that the Gram matrix is positive semidefinite, or use a smaller penalty or "
                "variance",
                ConvergenceWarning,
                stacklevel=5,
            )
        return alpha

    def refine(self, start: AnyNDArray) -> AnyNDArray:
        """
        Move alpha until all free rows are on the margin. If an alpha reaches its bound, fix it
        there. Once on the margin, free the row with the largest violation.

        :param start: alpha near the solution.
        :return: alpha.
        """
        alpha = best = np.clip(start, 0, self.upper)
        free = (alpha > 0) & (alpha < self.upper)
        for _ in range(_CHANGES * len(free)):
            step = self._to_margin(alpha, free)
            room = np.full(len(free), np.inf)
            limit = np.where(step > 0, self.upper - alpha, alpha)
            np.divide(limit, np.abs(step), out=room, where=step != 0)
            row = int(room.argmin())
            alpha = np.clip(alpha + min(room[row], 1.0) * step, 0, self.upper)
            if room[row] < 1:
                alpha[row] = self.upper if step[row] > 0 else 0.0
                free[row] = False
                continue
            best = min(best, alpha, key=self.violation)
            wrong = np.where(free, 0, self.excess(alpha))
            if self.is_solved(alpha) or wrong.max() <= 0:
                break
            free[wrong.argmax()] = True
        return best

    def _to_margin(self, alpha: AnyNDArray, free: AnyNDArray) -> AnyNDArray:
        """
        :return: the step of free rows to the margin, [N] (the smallest step if equal rows allow
            several), and 0 for other rows.
        """
        step = np.zeros(len(alpha))
        if not free.any():
            return step
        Q = self.Q[np.ix_(free, free)]
        lacking = (1 - self.Q @ alpha)[free]
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            try:
                step[free] = linalg.solve(Q, lacking, assume_a="sym")
            except (linalg.LinAlgError, linalg.LinAlgWarning):
                step[free] = linalg.lstsq(Q, lacking)[0]
        return step
