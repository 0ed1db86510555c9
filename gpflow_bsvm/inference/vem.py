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

from ..checks import check_fit, check_least
from ..engine.e_step import SiteAscent
from ..engine.m_step import SiteBound
from ..engine.projected_data import EngineModel, View
from ..engine.quasi_newton import QuasiNewton
from .cavi import CAVI
from .history import Callback, History, Recorder

#: An iteration of an M step gains this part of what the last E step did, or is the last one.
_LEAST_GAIN = 0.1


@dataclass(frozen=True)
class VEM:
    """
    Variational EM with fixed sites (`gpflow_bsvm.engine.m_step`): learns the trainable
    parameters of kernel, inducing variable, mean function and likelihood together with q, without
    a learning rate. A round is

        E  some damped updates of the sites at fixed hyperparameters, as sweeps of `CAVI`;
        M  iterations of a quasi-Newton method (L-BFGS, then BFGS with the curvature of the rounds
           before) on the bound F as a function of the hyperparameters, q following them at fixed
           sites; it ends early where an iteration gains less than a tenth of what new sites do.

    Neither lets F, the ELBO plus the log prior density of the hyperparameters, fall. GPflow's
    priors and `trainable` flags are honoured; where nothing is trainable, `CAVI` does the work.

    :ivar max_rounds: most rounds.
    :ivar sweeps: updates of the sites in a round.
    :ivar iterations: most in an M step.
    :ivar tol: stop when two rounds in turn raise F by less than `tol` times its absolute value.
    """

    max_rounds: int = 50
    sweeps: int = 3
    iterations: int = 8
    tol: float = 1e-4

    def __post_init__(self) -> None:
        check_least(1, max_rounds=self.max_rounds, sweeps=self.sweeps, iterations=self.iterations)
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
        bound.hyperparameters.check_start()
        with Recorder(model, self.max_rounds, callback, monitor, progress) as recorder:
            latest = [variable.numpy() for variable in bound.variables]
            optimizer, sites, gain = QuasiNewton(bound.variables), None, -math.inf
            try:
                for number in range(1, self.max_rounds + 1):
                    if sites is not None:
                        here = partial(bound.value_and_gradient, sites, _jitter(model))
                        optimizer.maximise(here, self.iterations, _LEAST_GAIN * gain)
                    ascent = SiteAscent(model, View(model, X, Y, weight), sites)
                    before = math.inf if sites is None else ascent.elbo
                    rho = ascent.climb(self.sweeps)
                    sites, gain = ascent.sites, ascent.elbo - before
                    elbo = ascent.elbo + float(bound.hyperparameters.log_prior())
                    recorder.record(
                        number, elbo, rho, ascent.natural, bound.hyperparameters.values()
                    )
                    latest = [variable.numpy() for variable in bound.variables]
                    if _settled(recorder.history.elbo, self.tol):
                        recorder.history.converged = True
                        break
            except BaseException:
                Scipy.assign_tensors(bound.variables, latest)
                raise
        return recorder.history


def _settled(elbo: list[float], tol: float) -> bool:
    return len(elbo) > 2 and elbo[-1] - elbo[-3] <= tol * abs(elbo[-1])


def _jitter(model: EngineModel) -> tf.Tensor:
    return tf.constant(model.jitter, default_float())
