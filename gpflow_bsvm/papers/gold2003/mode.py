r"""Gram matrices, and the support vector machine for a kernel, data and a penalty.

With l(z) = max(0, 1 - z) (linear slack) or max(0, 1 - z)^2 / 2 (quadratic slack) it is the mode of
f ~ GP(0, k) with loss sum_n penalty l(y_n f_n) (Gold & Sollich 2003, eq. 3-5): f = K (alpha * y).
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.utilities import parameter_dict
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.validation import check_array

from ...checks import check_choice
from ...data.checks import check_data, check_inputs
from ...likelihoods import Hinge
from ...likelihoods.base import check_penalty
from ...likelihoods.labels import check_binary_labels, check_columns
from ...model_selection.plug_in import gram_matrix
from ...notices import warn
from .squared_hinge import SLACKS

#: Number of steps (a few microseconds each) after which LibSVM returns the current point.
_MOST_STEPS = 200_000
_TOL = 1e-8
#: Largest number of changes of active sets, per row; relative rounding error of a margin's terms.
_CHANGES = 3
_ROUNDING = 1e-13
#: Warn of larger violations of the optimality conditions than this, in units of the margin.
_VIOLATION = 1e-6


class Dual(NamedTuple):
    """
    The dual problem, solved to double precision:

        max_a  sum_n a_n - 1/2 a^T Q a,    0 <= a_n <= upper,    Q_nm = y_n y_m K_nm.

    LibSVM finds which a_n are 0, at the bound or in between, but with Q in single precision. The
    classical active-set method then continues in double precision.
    """

    Q: AnyNDArray  #: [N, N]
    y: AnyNDArray  #: [N], -1 or +1
    upper: float  #: bound of alpha

    def excess(self, alpha: AnyNDArray) -> AnyNDArray:
        """
        :return: the violation of the conditions of optimality, [N], in units of the margin: the
            shortfall 1 - y f where alpha may rise, the surplus y f - 1 where alpha may fall.
        """
        lacking = 1 - self.Q @ alpha
        may_move = np.where(lacking > 0, alpha < self.upper, alpha > 0)
        return np.asarray(np.abs(lacking) * may_move)

    def violation(self, alpha: AnyNDArray) -> float:
        """:return: the largest excess."""
        return float(self.excess(alpha).max())

    def is_solved(self, alpha: AnyNDArray) -> bool:
        """:return: True if the violation is within rounding."""
        size = 1 + np.abs(self.Q).max() * np.abs(alpha).sum()
        return bool(self.violation(alpha) <= _ROUNDING * size)

    def solve(self) -> AnyNDArray:
        """
        LibSVM always fits a bias. If every datum is given twice, as (x, y) and as (-x, -y), a bias
        of 0 is optimal. The two copies of a datum share its alpha, each with half the bound.

        :return: alpha; a warning is raised if it is not the solution.
        """
        gram = self.Q * np.outer(self.y, self.y)
        # Without a random_state, a fit draws from NumPy's global generator.
        svc = SVC(
            kernel="precomputed", C=self.upper / 2, tol=_TOL, max_iter=_MOST_STEPS, random_state=0
        )
        with warnings.catch_warnings():  # the violation is checked below
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(np.block([[gram, -gram], [-gram, gram]]), np.append(self.y, -self.y))
        halves = np.zeros(2 * len(self.y))
        halves[svc.support_] = np.abs(svc.dual_coef_[0])
        alpha = self.refine(halves.reshape(2, -1).sum(axis=0))
        violation = self.violation(alpha)
        if not violation <= _VIOLATION:
            warn(
                f"the support vector machine is not solved: a margin is wrong by {violation:.1e}; "
                "check that the Gram matrix is positive semidefinite, or use a smaller penalty or "
                "variance",
                ConvergenceWarning,
            )
        return alpha

    def refine(self, start: AnyNDArray) -> AnyNDArray:
        """
        Move alpha until all rows whose alpha is not fixed are on the margin. If an alpha reaches a
        bound, fix it there. When all are on the margin, release the row with the largest violation.

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
        :return: the step that moves free rows to the margin, [N] (the smallest step if equal rows
            allow several); 0 for other rows.
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


class Mode(NamedTuple):
    """
    A support vector machine: f(x) = sum_n alpha_n y_n k(x, x_n).

    A row with alpha = 0 is not a support vector. With linear slack, a row with 0 < alpha < penalty
    is on the margin, y f = 1, and a row with alpha = penalty is bounded, y f <= 1. With quadratic
    slack no row is bounded, and all support vectors have alpha = penalty (1 - y f) > 0.
    """

    gram: AnyNDArray  #: [N, N], k(x_n, x_m)
    y: AnyNDArray  #: [N], -1 or +1
    penalty: float  #: C
    slack: str  #: "linear" or "quadratic"
    alpha: AnyNDArray  #: [N], dual variables
    latent: AnyNDArray  #: [N], f(x_n)
    marginal: AnyNDArray  #: support vectors that are not bounded

    def __repr__(self) -> str:
        """:return: a string with size and options, without arrays."""
        rows = f"{len(self.y)} rows, {len(self.support)} support vectors"
        return f"Mode({rows}, penalty={self.penalty:.6g}, slack={self.slack!r})"

    @property
    def support(self) -> AnyNDArray:
        """:return: rows with alpha > 0."""
        return np.flatnonzero(self.alpha > 0)

    @property
    def bounded(self) -> AnyNDArray:
        """:return: rows at the bound of linear slack."""
        return np.flatnonzero(self.alpha >= self._upper)

    @property
    def margins(self) -> AnyNDArray:
        """:return: z_n = y_n f(x_n), [N]."""
        return self.y * self.latent

    def predict(self, kernel: Kernel, X: Any, Xnew: Any) -> AnyNDArray:
        """
        :param X: the training rows of this machine.
        :return: f(x), [Nnew].
        """
        return np.asarray(gram_matrix(kernel, Xnew, X) @ (self.alpha * self.y))

    def solved(self) -> Mode:
        """:return: the machine for this Gram matrix, y, penalty and slack."""
        return self._at(self._dual().solve())

    def without(self, row: int) -> Mode:
        """:return: the machine without this row."""
        rest = np.delete(np.arange(len(self.y)), row)
        part = self._replace(gram=self.gram[np.ix_(rest, rest)], y=self.y[rest])
        dual = part._dual()
        near = dual.refine(self.alpha[rest])
        return part._at(near) if dual.is_solved(near) else part.solved()

    @property
    def _upper(self) -> float:
        """:return: the bound of alpha; with quadratic slack, no alpha comes near it."""
        if self.slack == "linear":
            return self.penalty
        # f = 0 costs C N / 2, an upper bound of sum_n alpha_n^2 / (2 C): alpha <= C sqrt(N)
        return 2 * self.penalty * math.sqrt(len(self.y))

    def _dual(self) -> Dual:
        Q = self.gram * np.outer(self.y, self.y)
        if self.slack == "quadratic":
            Q += np.eye(len(Q)) / self.penalty
        return Dual(Q, self.y, self._upper)

    def _at(self, alpha: AnyNDArray) -> Mode:
        marginal = np.flatnonzero((alpha > 0) & (alpha < self._upper))
        latent = self.gram @ (alpha * self.y)
        return self._replace(alpha=alpha, latent=latent, marginal=marginal)


def svm_mode(
    kernel: Kernel, data: tuple[Any, Any], penalty: float, *, slack: str = "linear"
) -> Mode:
    """
    Solve a support vector machine with LibSVM (scikit-learn's SVC), to double precision.

    :param kernel: a kernel of one latent function; include a `Constant` for a bias.
    :param data: X [N, D] and Y [N, 1] of two classes, in {0, 1} or {-1, +1}.
    :param penalty: C, positive and finite; for quadratic slack twice the penalty of `SquaredHinge`.
    :param slack: "linear" or "quadratic".
    :return: the machine, with `alpha`, `latent`, `margins`, `support` and `predict`.
    :raise TypeError: for a kernel of several latent functions, no kernel, or no pair of data.
    :raise ValueError: for bad data, an invalid slack or penalty, or a kernel that rejects X or
        overflows.
    """
    X, Y = check_data(Hinge(), data)
    return _solved(check_gram(gram_matrix(kernel, X), len(Y)), Y, penalty, slack)


def mode_of_gram(gram: Any, Y: Any, penalty: float, *, slack: str = "linear") -> Mode:
    """
    Solve a support vector machine as in `svm_mode`, for a given Gram matrix.

    :param gram: [N, N], symmetric and positive semidefinite.
    :raise ValueError: as in `svm_mode`, and for an invalid `gram`.
    """
    gram = check_gram(gram, len(Y))
    root_of(gram)  # raises
    return _solved(gram, Y, penalty, slack)


def _solved(gram: AnyNDArray, Y: Any, penalty: float, slack: str) -> Mode:
    check_choice(SLACKS, slack=slack)
    check_penalty(penalty)
    Y = np.asarray(Y).reshape(len(Y), -1)
    check_columns(Y, 1, "binary labels must form a single column")
    check_binary_labels(Y)
    y = np.where(Y[:, 0] == 1, 1.0, -1.0)
    zeros = np.zeros(len(y))
    return Mode(gram, y, float(penalty), slack, zeros, zeros, np.array([], int)).solved()


def pull_back(kernel: Kernel, X: Any, by_gram: Any) -> dict[str, AnyNDArray]:
    """
    :param by_gram: derivatives with respect to k(X, X), [N, N].
    :return: derivatives with respect to the kernel's (constrained) trainable parameters, under
        GPflow's names.
    """
    named = trainable(kernel)
    variables = [parameter.unconstrained_variable for parameter in named.values()]
    with tf.GradientTape() as tape:
        gram = kernel(check_inputs(X))
    zero = tf.UnconnectedGradients.ZERO
    slopes = tape.gradient(gram, variables, tf.cast(by_gram, gram.dtype), zero)
    found = {}
    for (name, parameter), variable, slope in zip(named.items(), variables, slopes):
        transform: Any = parameter.transform  # at least the identity
        log_scale = transform.forward_log_det_jacobian(tf.convert_to_tensor(variable), 0)
        found[name] = np.asarray(slope * tf.exp(-log_scale))  # by the value itself
    return found


def trainable(kernel: Kernel) -> dict[str, Parameter]:
    """:return: the trainable parameters, under GPflow's names."""
    return {name: p for name, p in parameter_dict(kernel).items() if p.trainable}


def check_gram(gram: Any, num_rows: int) -> AnyNDArray:
    """
    :return: the Gram matrix, [N, N], exactly symmetric.
    :raise ValueError: unless it is square of this size, finite and symmetric (up to rounding).
    """
    K: AnyNDArray = check_array(gram, dtype=np.float64, input_name="the Gram matrix")
    if K.shape != (num_rows, num_rows):
        raise ValueError(f"the Gram matrix of {num_rows} labels must be square, got {K.shape}")
    if (gap := np.abs(K - K.T).max()) > 1e-6 * np.abs(K).max():
        raise ValueError(
            f"the Gram matrix must be symmetric, but K and K.T differ by {gap:.3g}; if that is "
            "rounding, use (K + K.T) / 2"
        )
    return (K + K.T) / 2


def root_of(gram: AnyNDArray) -> AnyNDArray:
    """
    :return: the Cholesky factor [N, N] of the Gram matrix plus GPflow's `default_jitter()` times
        its mean diagonal, with which the factor exists for any kernel.
    :raise ValueError: for a matrix that is not positive semidefinite.
    """
    jitter = gpflow.config.default_jitter() * gram.diagonal().mean() + np.finfo(float).tiny
    try:
        return np.linalg.cholesky(gram + jitter * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(gram)[0]
        raise ValueError(
            f"the Gram matrix is not positive semidefinite, unlike a kernel's: an eigenvalue is "
            f"{least:.3g}"
        ) from None
