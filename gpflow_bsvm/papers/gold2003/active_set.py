r"""The dual problem of a support vector machine, solved to the precision of the numbers.

    max_a  sum_n a_n - 1/2 a^T Q a,    0 <= a_n <= upper,    and y^T a = 0 if the bias is free,

with Q_nm = y_n y_m K_nm. LibSVM finds which a_n are 0, at the bound or between, but keeps Q in
single precision and always has a free bias. Newton steps on those sets, in double precision, do the
rest.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from gpflow.base import AnyNDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

#: Most steps of LibSVM, some microseconds each; it then returns what it has.
_MOST_STEPS = 200_000
_TOL = 1e-8
#: Newton steps; changes of the set row by row, for each row; and the violation, relative to the
#: terms of a margin, that rounding explains.
_ROUNDS = 20
_ROWS = 3
_ROUNDING = 1e-13


class DualPoint(NamedTuple):
    """Dual variables and the bias."""

    alpha: AnyNDArray  #: [N]
    bias: float


class Dual(NamedTuple):
    """The problem."""

    Q: AnyNDArray  #: [N, N]
    y: AnyNDArray  #: [N], -1 or +1
    upper: float  #: of alpha, may be infinite
    limit: float  #: what no alpha of the solution exceeds, finite
    free_bias: bool

    @property
    def scale(self) -> float:
        """:return: the matrix that turns dual variables into margins, roughly."""
        return float(max(self.Q.diagonal().max(), np.finfo(float).tiny))

    def lacking(self, point: DualPoint) -> AnyNDArray:
        """:return: 1 - y f, [N], the distance to the margin."""
        lacking: AnyNDArray = 1 - self.Q @ point.alpha - self.y * point.bias
        return lacking

    def violation(self, point: DualPoint) -> float:
        """:return: largest violation of the conditions of optimality, in units of the margin."""
        alpha, lacking = point.alpha, self.lacking(point)
        inside = np.clip(alpha, 0, self.upper)
        below = np.where(alpha >= self.upper, 0, np.maximum(lacking, 0))
        above = np.where(alpha <= 0, 0, np.maximum(-lacking, 0))
        outside = self.scale * np.abs(alpha - inside).max()
        unequal = abs(self.y @ alpha) * self.scale if self.free_bias else 0.0
        return float(max(below.max(), above.max(), outside, unequal))

    def is_solved(self, point: DualPoint) -> bool:
        """:return: True if rounding explains the violation."""
        size = 1 + np.abs(self.Q).max() * np.abs(point.alpha).sum()
        return bool(self.violation(point) <= _ROUNDING * size)


def solve_dual(dual: Dual) -> DualPoint:
    """:return: the solution; `Dual.violation` tells its accuracy."""
    return refine(dual, _libsvm(dual))


def _libsvm(dual: Dual) -> DualPoint:
    """
    Without a free bias, LibSVM gets every datum twice, as (x, y) and as (-x, -y): 0 is an optimal
    bias of this mirrored problem, and each half holds a part of alpha, with half the bound.
    """
    gram, y, upper = dual.Q * np.outer(dual.y, dual.y), dual.y, dual.limit
    if not dual.free_bias:
        gram = np.block([[gram, -gram], [-gram, gram]])
        y, upper = np.concatenate([y, -y]), upper / 2
    svc = SVC(kernel="precomputed", C=upper, tol=_TOL, max_iter=_MOST_STEPS)
    with warnings.catch_warnings():  # the violation is checked at the end
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(gram, y)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    if dual.free_bias:
        return DualPoint(alpha, float(svc.intercept_[0]))
    return DualPoint(alpha.reshape(2, -1).sum(axis=0), 0.0)


def refine(dual: Dual, start: DualPoint) -> DualPoint:
    """
    :param start: near the solution.
    :return: the solution by some Newton steps on the active set, as a rule one or two; if these
        cycle, by a set that changes row by row.
    """
    point = best = start._replace(alpha=np.clip(start.alpha, 0, dual.upper))
    for _ in range(_ROUNDS):
        if dual.is_solved(best):
            break
        point = _newton(dual, point)
        best = min(best, point, key=dual.violation)
    else:
        best = min(best, _row_by_row(dual, best), key=dual.violation)
    return best._replace(alpha=np.clip(best.alpha, 0, dual.upper))


def _newton(dual: Dual, point: DualPoint) -> DualPoint:
    """:return: the point where all equations hold, with sets as they seem to be now."""
    seem = point.alpha + dual.lacking(point) / dual.scale
    alpha = np.where(seem <= 0, 0, np.where(seem >= dual.upper, dual.upper, point.alpha))
    return _meet(dual, point._replace(alpha=alpha), (seem > 0) & (seem < dual.upper))


def _row_by_row(dual: Dual, point: DualPoint) -> DualPoint:
    """
    The classical active-set method: go towards what `_meet` gives until an alpha reaches its
    bound, where it stops; then the row that violates its condition most is set free.
    """
    point = point._replace(alpha=np.clip(point.alpha, 0, dual.upper))
    free = (point.alpha > 0) & (point.alpha < dual.upper)
    for _ in range(_ROWS * len(free)):
        target = _meet(dual, point, free)
        step = target.alpha - point.alpha
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, dual.upper - point.alpha, point.alpha) / np.abs(step)
        room = np.where(free & (step != 0), room, np.inf)
        if room.min() < 1:
            row = int(room.argmin())
            point = DualPoint(point.alpha + room[row] * step, target.bias)
            point.alpha[row] = dual.upper if step[row] > 0 else 0.0
            free[row] = False
            continue
        point = target
        lacking = np.where(free, 0, dual.lacking(point))
        wrong = np.where(point.alpha > 0, -lacking, lacking)
        if dual.is_solved(point) or wrong.max() <= 0:
            break
        free[wrong.argmax()] = True
    return point


def _meet(dual: Dual, point: DualPoint, free: AnyNDArray) -> DualPoint:
    """:return: alpha of free rows, and a free bias, such that these are on the margin."""
    rows = np.flatnonzero(free)
    if len(rows) == 0:
        return point
    A, b = dual.Q[np.ix_(rows, rows)], dual.lacking(point)[rows]
    if dual.free_bias:
        border = dual.y[rows]
        A = np.block([[A, border[:, None]], [border, np.zeros(1)]])
        b = np.append(b, -dual.y @ point.alpha)
    step, alpha = _solve(A, b), point.alpha.copy()
    alpha[rows] += step[: len(rows)]
    return DualPoint(alpha, point.bias + (float(step[-1]) if dual.free_bias else 0.0))


def _solve(A: AnyNDArray, b: AnyNDArray) -> AnyNDArray:
    """:return: A^-1 b, or the smallest of the solutions where equal rows leave several."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", linalg.LinAlgWarning)
        try:
            return np.asarray(linalg.solve(A, b, assume_a="sym"))
        except (linalg.LinAlgError, linalg.LinAlgWarning):
            return np.asarray(linalg.lstsq(A, b)[0])
