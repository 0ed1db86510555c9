"""Coordinate ascent on all the data, with a step that never lets the bound fall."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.config import default_float
from gpflow.likelihoods import Likelihood

from ..checks import check_elbo, check_fit, check_least
from ..engine.line_search import grown, halved
from ..engine.natural import Gaussian, Natural, blend, centre, solve
from ..engine.projected_data import EngineModel, View, shares_shifts
from ..engine.shared_graph import Compiled
from ..engine.statistics import Rows, Statistics, accumulate, compiled_accumulate, marginals
from .history import Callback, History, Recorder

#: From this many feature entries (N times L M) on, the first sweeps run in single precision ...
_BIG_PASS = 2e5
#: ... until the ELBO rises by less than this, relatively.
_SINGLE_TOL = 1e-4

PRODUCTS = ("float64", "float32", "mixed")


@dataclass(frozen=True)
class CAVI:
    """
    Coordinate ascent variational inference (Wenzel et al. 2017, section 4.1) for q, at fixed
    hyperparameters: one sweep is a natural-gradient step of size rho on all the data, rho = 1
    unless the ELBO would fall, else halved until it does not. Each sweep costs one pass over the
    data, in chunks, so that memory does not grow with N beyond a fixed cache. Where the likelihood
    is a function of differences between latent functions (`shift_invariant`), a sweep ends by
    taking out of their means what they have in common, for which steps alone need many sweeps.

    :ivar max_iter: most sweeps.
    :ivar tol: stop when the ELBO rises by less than `tol` times its absolute value, if a step had
        to be halved also with half the step.
    :ivar learning_rate: first rho to try, in (0, 1].
    :ivar products: precision of the large products; sums, sites and factorisations are always in
        GPflow's default float. "float64", "float32" or "mixed": float32 far from the fixed point,
        where only the direction matters, float64 for the last sweeps, so that the result is that
        of float64. None: "mixed" from 2e5 feature entries (N times M) on, else "float64".
    """

    max_iter: int = 200
    tol: float = 1e-5
    learning_rate: float = 1.0
    products: str | None = None

    def __post_init__(self) -> None:
        check_least(1, max_iter=self.max_iter)
        check_least(0, tol=self.tol)
        if not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate must be in (0, 1], got {self.learning_rate}")
        if self.products is not None and self.products not in PRODUCTS:
            raise ValueError(f"products must be None or one of {PRODUCTS}, got {self.products!r}")

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
        Fit q; the model's `q_mu` and `q_sqrt` are set at the end, also after an interrupt.

        :param data: X [N, D] and Y [N, P], all the data (if the model's `num_data` differs from N,
            the data count as a sample of it, as in `model.elbo`); None: those that the model holds.
        :param sample_weight: [N], powers of the likelihood; ones if None.
        :param callback: called after each sweep with its number and the history.
        :param monitor: a `gpflow.monitor.Monitor`, called after each sweep.
        :param progress: show a progress bar; None: on a terminal only.
        :raise ValueError: for bad data, see `gpflow_bsvm.checks`.
        """
        X, Y, weight = check_fit(model, data, sample_weight)
        with Recorder(model, self.max_iter, callback, monitor, progress) as recorder:
            view = View(model, X, Y, weight)
            ascent = _Ascent(model, view)
            for dtype, tol in self._phases(len(X) * math.prod(model.num_features)):
                ascent.start(dtype)
                recorder.history.converged = self._climb(ascent, recorder, tol)
            check_elbo(ascent.elbo, "at the start")
        return recorder.history

    def _phases(self, num_entries: int) -> list[tuple[tf.DType, float]]:
        """:return: dtype of the products and tolerance, phase after phase."""
        exact = tf.as_dtype(default_float()).name
        products = self.products or ("mixed" if num_entries >= _BIG_PASS else exact)
        if products == "mixed":
            return [(tf.float32, max(self.tol, _SINGLE_TOL)), (tf.as_dtype(exact), self.tol)]
        return [(tf.as_dtype(products), self.tol)]

    def _climb(self, ascent: _Ascent, recorder: Recorder, tol: float) -> bool:
        """:return: whether the ELBO rose by less than `tol` before the sweeps were used up."""
        rho, settled = self.learning_rate, False
        if not math.isfinite(ascent.elbo):  # single precision may overflow where double does not
            return False
        for step in range(len(recorder.history) + 1, self.max_iter + 1):
            before = ascent.elbo
            rho = ascent.step(rho)
            if rho == 0:
                return True
            recorder.record(step, ascent.elbo, rho, ascent.natural)
            little = ascent.elbo - before <= tol * abs(ascent.elbo)
            # A step that just does not overshoot gains little far from the top: half of it tells.
            if little and (settled or not ascent.overshoots):
                return True
            settled, rho = little, rho / 2 if little else grown(rho)
        return False


@Compiled
def compiled_sweep(
    likelihood: Likelihood,
    h: tf.Tensor,
    P: tf.Tensor,
    target_h: tf.Tensor,
    target_P: tf.Tensor,
    rho: tf.Tensor,
    share: tf.Tensor,
    *rows: tf.Tensor,
) -> tuple[Natural, Gaussian, Statistics]:
    """
    A step of size rho towards the target, then `centre` with `share`, and the statistics of `rows`
    where that arrives.
    """
    natural = blend(Natural(h, P), target_h, target_P, rho)
    natural, q = centre(natural, solve(natural), share)
    seen = Rows(*rows)
    return natural, q, accumulate(likelihood, seen, marginals(seen.features, q.R, q.c))


class _Ascent:
    """A point of the climb: natural parameters, their ELBO and the target of the next step."""

    natural: Natural
    elbo: float
    overshoots: bool = False  #: whether a step had to be halved
    _target: Natural

    def __init__(self, model: EngineModel, view: View) -> None:
        self._sweep = compiled_sweep.bind(model.likelihood)
        self._accumulate = compiled_accumulate.bind(model.likelihood)
        self._view = view
        self.natural = model.natural()
        self._share = tf.constant(float(shares_shifts(model)), self.natural.h.dtype)

    def start(self, dtype: tf.DType) -> None:
        """Look at the present point with products in `dtype`."""
        self._dtype, self._target = dtype, self.natural
        self.natural, elbo, self._target = self._move(0.0)
        self.elbo = elbo if np.isfinite(self._target.h).all() else math.nan

    def step(self, rho: float) -> float:
        """
        Move by rho, halved until the ELBO does not fall by more than rounding.

        :return: the rho that was taken, 0 if none was found.
        """
        taken, point = halved(self._move, self.elbo, rho, self._dtype)
        self.overshoots |= taken < rho
        if point is not None:
            self.natural, self.elbo, self._target = point
        return taken

    def _move(self, rho: float) -> tuple[Natural, float, Natural]:
        """One pass over the data: the point at rho, its ELBO and the target seen from there."""
        chunks = self._view.chunks(self._dtype)
        rate = tf.constant(rho, self.natural.h.dtype)
        natural, q, first = self._sweep(
            *self.natural, *self._target, rate, self._share, *next(chunks)
        )
        rest = (self._accumulate(q.R, q.c, *rows) for rows in chunks)
        sums = functools.reduce(lambda one, two: Statistics(*map(tf.add, one, two)), rest, first)
        return natural, float(sums.expectation - q.kl), Natural(sums.h, sums.P)
