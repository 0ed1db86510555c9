"""Variational EM with fixed sites: q and the hyperparameters in turn, and the bound never falls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.config import default_float
from gpflow.optimizers import Scipy

from ..checks import check_fit
from .bound import SiteBound, Sites, compiled_gaussian
from .cavi import CAVI
from .damping import grown, halved
from .history import Callback, History, Recorder
from .lbfgs import maximise
from .solve import Natural, compiled_solve
from .statistics import compiled_localise, compiled_sum_sites
from .view import EngineModel, View, shares_shifts


@dataclass(frozen=True)
class VEM:
    """
    Variational EM with fixed sites (`gpflow_bsvm.inference.bound`): learns the trainable
    parameters of kernel, inducing variable, mean function and likelihood together with q, without
    a learning rate. A round is

        E  some damped updates of the sites at fixed hyperparameters, as sweeps of `CAVI`;
        M  some iterations of L-BFGS on the bound F as a function of the hyperparameters, q
           following them at fixed sites.

    Neither lets F, the ELBO plus the log prior density of the hyperparameters, fall. GPflow's
    priors and `trainable` flags are honoured; where nothing is trainable, `CAVI` does the work.

    :ivar max_rounds: most rounds.
    :ivar sweeps: updates of the sites in a round.
    :ivar iterations: of L-BFGS in a round.
    :ivar tol: stop when a round raises F by less than `tol` times its absolute value.
    """

    max_rounds: int = 50
    sweeps: int = 3
    iterations: int = 8
    tol: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("max_rounds", "sweeps", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.tol >= 0:
            raise ValueError(f"tol must be at least 0, got {self.tol}")

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
        Fit q and the hyperparameters; the model holds those of the latest record at the end, also
        after an interrupt. The history's `elbo` is F, with the log prior.

        Arguments and errors as in `CAVI.run`; a record is a round, and holds the hyperparameters.

        :raise ValueError: also if a hyperparameter or the density of its prior is not finite.
        """
        X, Y, weight = check_fit(model, data, sample_weight)
        bound = SiteBound(model, X, Y, weight)
        if not bound.variables:
            return CAVI().run(
                model,
                data,
                sample_weight=sample_weight,
                callback=callback,
                monitor=monitor,
                progress=progress,
            )
        bound.check_start()
        with Recorder(model, self.max_rounds, callback, monitor, progress) as recorder:
            latest = [variable.numpy() for variable in bound.variables]
            sites: Sites | None = None
            try:
                for number in range(1, self.max_rounds + 1):
                    if sites is not None:
                        here = partial(bound.value_and_gradient, sites, _jitter(model))
                        maximise(here, bound.variables, self.iterations)
                    ascent = _SiteAscent(model, View(model, X, Y, weight), sites)
                    rho = ascent.climb(self.sweeps)
                    sites = ascent.sites
                    elbo = ascent.elbo + float(bound.log_prior())
                    recorder.record(number, elbo, rho, ascent.natural, bound.values())
                    latest = [variable.numpy() for variable in bound.variables]
                    if _settled(recorder.history.elbo, self.tol):
                        recorder.history.converged = True
                        break
            except BaseException:
                Scipy.assign_tensors(bound.variables, latest)
                raise
        return recorder.history


def _settled(elbo: list[float], tol: float) -> bool:
    return len(elbo) > 1 and elbo[-1] - elbo[-2] <= tol * abs(elbo[-1])


def _jitter(model: EngineModel) -> tf.Tensor:
    return tf.constant(model.jitter, default_float())


class _SiteAscent:
    """q by damped updates of the sites, at fixed hyperparameters."""

    def __init__(self, model: EngineModel, view: View, sites: Sites | None) -> None:
        """
        :param sites: where to start; None: those of the model's q, or none at all if these are
            better.
        """
        self._localise = compiled_localise.bind(model.likelihood)
        self._view = view
        self._dtype = tf.as_dtype(default_float())
        self._share = tf.constant(float(shares_shifts(model)), self._dtype)
        starts = [sites] if sites is not None else self._first_guesses(model)
        points = [self._at(guess) for guess in starts]
        best = max(points, key=lambda point: point[1] if math.isfinite(point[1]) else -math.inf)
        self.sites, self.elbo, self.natural, self._fresh = best

    def _first_guesses(self, model: EngineModel) -> list[Sites]:
        nothing = tf.zeros([len(self._view), model.num_features[0]], self._dtype)
        q = compiled_solve(*model.natural())
        return [Sites(nothing, nothing), self._look(q.R, q.c)[0]]

    def climb(self, sweeps: int) -> float:
        """
        Update the sites, each time by rho = 1 or, where F would fall, by less.

        :return: the last rho, 0 if none was found that does not lower F.
        """
        rho, taken = 1.0, 0.0
        for _ in range(sweeps):
            taken, point = halved(self._towards_fresh, self.elbo, rho, self._dtype)
            if point is None:
                break
            self.sites, self.elbo, self.natural, self._fresh = point
            rho = grown(taken)
        return taken

    def _towards_fresh(self, rho: float) -> tuple[Sites, float, Natural, Sites]:
        pairs = zip(self.sites, self._fresh)
        return self._at(Sites(*((1 - rho) * old + rho * new for old, new in pairs)))

    def _at(self, sites: Sites) -> tuple[Sites, float, Natural, Sites]:
        """:return: `sites`, their ELBO, their q, and the sites seen from there."""
        start, sums = 0, []
        for rows in self._view.chunks(self._dtype):
            end = start + len(rows.X)
            sums.append(compiled_sum_sites(*(part[start:end] for part in sites), *rows))
            start = end
        h, P = (tf.add_n(column) for column in zip(*sums))
        natural, q = compiled_gaussian(h, P, self._share)
        fresh, expectation = self._look(q.R, q.c)
        return sites, float(expectation - q.kl), natural, fresh

    def _look(self, R: tf.Tensor, c: tf.Tensor) -> tuple[Sites, tf.Tensor]:
        """:return: the sites of all rows at q(s) = N(R^T c, R^T R), and the expectation."""
        seen = [self._localise(R, c, *rows) for rows in self._view.chunks(self._dtype)]
        w, r, expectations = zip(*seen)
        return Sites(tf.concat(w, 0), tf.concat(r, 0)), tf.add_n(expectations)
