"""Coordinate ascent on all the data, with a step that never lets the bound fall."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData

from ..checks import check_data, check_weights, check_width
from .history import Callback, History, Recorder
from .solve import Gaussian, Natural, compiled_solve, compiled_step
from .statistics import Statistics, compiled_accumulate
from .view import EngineModel, View

#: A step is halved at most this often before the fit counts as converged.
_MAX_HALVINGS = 20
#: From this many feature entries on a pass is worth running in single precision.
_BIG_PASS = 2e7


@dataclass(frozen=True)
class CAVI:
    """
    Coordinate ascent variational inference (Wenzel et al. 2017, section 4.1) for q, at fixed
    hyperparameters: one sweep is a natural-gradient step of size rho on all the data, rho = 1
    unless the ELBO would fall, else halved until it does not. Each sweep costs one pass over the
    data, in chunks, so that memory does not grow with N beyond a fixed cache.

    :ivar max_iter: most sweeps.
    :ivar tol: stop when the ELBO rises by less than `tol` times its absolute value.
    :ivar learning_rate: first rho to try, in (0, 1].
    :ivar products: dtype of the large products, "float64" or "float32"; sums and factorisations
        keep GPflow's default float. None: float32 from 2e7 feature entries (N times M) on.
    """

    max_iter: int = 200
    tol: float = 1e-5
    learning_rate: float = 1.0
    products: str | None = None

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter}")
        if not self.tol >= 0:
            raise ValueError(f"tol must be at least 0, got {self.tol}")
        if not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate must be in (0, 1], got {self.learning_rate}")

    def run(
        self,
        model: EngineModel,
        data: RegressionData,
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
    ) -> History:
        """
        Fit q; the model's `q_mu` and `q_sqrt` are set at the end, also after an interrupt.

        :param data: X [N, D] and Y [N, P], all the data (if the model's `num_data` differs from N,
            the data count as a sample of it, as in `model.elbo`).
        :param sample_weight: [N], powers of the likelihood; ones if None.
        :param callback: called after each sweep with its number and the history.
        :param monitor: a `gpflow.monitor.Monitor`, called after each sweep.
        :param progress: show a progress bar; None: on a terminal only.
        :raise ValueError: for bad data, see `gpflow_bsvm.checks`.
        """
        X, Y = check_data(model.likelihood, *data)
        check_width(model, X, Y)
        weight = check_weights(sample_weight, len(X))
        if model.num_data is not None:
            weight = weight * (float(model.num_data) / len(X))
        with Recorder(model, self.max_iter, callback, monitor, progress) as recorder:
            ascent = _Ascent(model, View(model, X, Y, weight, products=self._dtype(model, X)))
            self._climb(ascent, recorder)
        return recorder.history

    def _dtype(self, model: EngineModel, X: Any) -> tf.DType | None:
        if self.products is not None:
            return tf.as_dtype(self.products)
        entries = len(X) * model.natural().h.shape[-1]
        return tf.float32 if entries >= _BIG_PASS else None

    def _climb(self, ascent: _Ascent, recorder: Recorder) -> None:
        rho = self.learning_rate
        for step in range(1, self.max_iter + 1):
            before = ascent.elbo
            rho = ascent.step(rho)
            if rho == 0:
                recorder.history.converged = True
                return
            recorder.record(step, ascent.elbo, rho, ascent.natural)
            if ascent.elbo - before <= self.tol * abs(ascent.elbo):
                recorder.history.converged = True
                return
            rho = min(1.0, 2 * rho)


class _Ascent:
    """A point of the climb: natural parameters, their ELBO and the target of the next step."""

    def __init__(self, model: EngineModel, view: View) -> None:
        self._accumulate = compiled_accumulate.bind(model.likelihood)
        self._view = view
        self.natural = model.natural()
        self.elbo, self._target = self._pass(compiled_solve(*self.natural))

    def _pass(self, q: Gaussian) -> tuple[float, Statistics]:
        """One pass over the data: the ELBO at q, and the sums that the next step needs."""
        parts = [self._accumulate(q.R, q.c, *rows) for rows in self._view]
        sums = Statistics(*(tf.add_n(part) for part in zip(*parts)))
        return float(sums.expectation - q.kl), sums

    def step(self, rho: float) -> float:
        """
        Move by rho, halved until the ELBO does not fall by more than rounding.

        :return: the rho that was taken, 0 if none was found.
        """
        slack = self._slack()
        for _ in range(_MAX_HALVINGS):
            rate = tf.constant(rho, self.natural.h.dtype)
            natural, q = compiled_step(*self.natural, self._target.h, self._target.P, rate)
            elbo, target = self._pass(q)
            if math.isfinite(elbo) and elbo >= self.elbo - slack:
                self.natural, self.elbo, self._target = natural, elbo, target
                return rho
            rho /= 2
        return 0.0

    def _slack(self) -> float:
        """Rounding of a sum over the data, in units of the ELBO."""
        precision = 1e-12 if self._view.is_double else 1e-6
        return precision * abs(self.elbo)
