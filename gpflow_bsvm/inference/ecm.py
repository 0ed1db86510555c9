"""The mode of the pseudo-posterior by expectation maximisation: the SVM itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_fit, check_least, check_point_sites
from ..engine.line_search import grown, halved
from ..engine.natural import Natural, compiled_solve
from ..engine.projected_data import EngineModel, View
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, localise, sum_sites
from .history import Callback, History, Recorder

#: A point is stored as a Gaussian of this precision (of the whitened features).
POINT_PRECISION = 1e12


@dataclass(frozen=True)
class ECM:
    """
    Expectation conditional maximisation (Henao et al. 2014; for the linear model Polson & Scott
    2011, whose M step it is): the sites of `CAVI` at variance 0, and the mean alone,

        w_n, r_n at f_n,    s <- (I + Phi^T diag(w) Phi)^-1 Phi^T r,

    raise log p(s) + sum_n log L(y_n | f_n) at every step. Its maximum is the support vector
    machine: that of scikit-learn with C = penalty, for the kernel of the model and no bias; a bias
    that costs nothing is a `Constant` kernel of large variance added to the kernel (or a large
    prior variance of the bias of `LinearBSVM`). Where a point comes onto the margin its weight is
    bounded by the variance floor of the likelihoods, 1e-14.

    The residual variance of a sparse model plays no part: f = Phi s + m.

    :ivar max_iter: most steps.
    :ivar tol: stop when a step raises the log posterior by less than `tol` times its absolute
        value.
    """

    max_iter: int = 1000
    tol: float = 1e-9

    def __post_init__(self) -> None:
        check_least(1, max_iter=self.max_iter)
        check_least(0, tol=self.tol)

    def run(
        self,
        model: EngineModel,
        data: RegressionData | None = None,
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
    ) -> History:
        """
        Find the mode. The model's q is then a point there, with a standard deviation of 1e-6:
        predictions know nothing of the uncertainty of s. The history's `elbo` is the log posterior,
        without its constant.

        Arguments and errors as in `CAVI.run`.

        :raise ValueError: also for a likelihood whose sites at a point are no lower bound.
        """
        X, Y, weight = check_fit(model, data, sample_weight)
        check_point_sites(model.likelihood)
        climb = _Climb(model, View(model, X, Y, weight))
        with Recorder(model, self.max_iter, callback, monitor, progress) as recorder:
            rho = 1.0
            for step in range(1, self.max_iter + 1):
                before = climb.value
                rho = climb.step(rho)
                recorder.record(step, climb.value, rho, climb.natural)
                if climb.value - before <= self.tol * abs(climb.value):
                    recorder.history.converged = True
                    break
                rho = grown(rho)
        return recorder.history


@Compiled
def _statistics(likelihood: Likelihood, mean: tf.Tensor, *rows: tf.Tensor) -> Any:
    """:return: h, P and log-likelihood of some rows at s = mean [L, M]."""
    seen = Rows(*rows)
    f = tf.transpose(tf.linalg.matvec(seen.features, mean))
    seen = seen._replace(residual=tf.zeros_like(seen.residual))
    w, r, log_likelihood = localise(likelihood, seen, (f, tf.zeros_like(f)))
    return *sum_sites(seen, w, r), log_likelihood


class _Climb:
    """A point s, its log posterior, and where the next step leads."""

    def __init__(self, model: EngineModel, view: View) -> None:
        self._look = _statistics.bind(model.likelihood)
        self._view, self._dtype = view, tf.as_dtype(default_float())
        self._mean = tf.zeros(model.num_features, self._dtype)
        self.value, self._target = self._at(self._mean)

    @property
    def natural(self) -> Natural:
        """:return: the point as a narrow Gaussian."""
        eye = tf.eye(self._mean.shape[1], batch_shape=[self._mean.shape[0]], dtype=self._dtype)
        return Natural(POINT_PRECISION * self._mean, POINT_PRECISION * eye)

    def step(self, rho: float) -> float:
        """
        Go by rho towards the target, by less where the log posterior would fall.

        :return: the rho that was taken, 0 if none was found.
        """
        start, target = self._mean, self._target

        def move(rate: float) -> tuple[tf.Tensor, float, tf.Tensor]:
            mean = (1 - rate) * start + rate * target
            return mean, *self._at(mean)

        taken, point = halved(move, self.value, rho, self._dtype)
        if point is not None:
            self._mean, self.value, self._target = point
        return taken

    def _at(self, mean: tf.Tensor) -> tuple[float, tf.Tensor]:
        sums = [self._look(mean, *rows) for rows in self._view.chunks(self._dtype)]
        h, P, log_likelihood = (tf.add_n(column) for column in zip(*sums))
        q = compiled_solve(h, P + tf.eye(h.shape[1], dtype=h.dtype))
        value = log_likelihood - 0.5 * tf.reduce_sum(tf.square(mean))
        return float(value), tf.linalg.matvec(q.R, q.c, transpose_a=True)
