"""Posterior draws of s from any sampler, and predictions averaged over draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray, RegressionData

from ..checkpoints.directory import Directory
from ..checks import check_whole
from ..data.passes import map_over
from ..data.sources import Source
from ..engine.contracts import Model, chunk_rows, open_inputs
from ..engine.projected_data import ProjectedData
from ..engine.projection import Projected
from ..engine.statistics import compiled_predict
from ..engine.structure import copied
from ..inference.algorithm import Algorithm
from ..inference.outcome import check_margins
from ..inference.run import Reports, Run


@dataclass(frozen=True)
class Samples:
    """
    Draws of the weights s of the whitened features, f(x) = Phi(x) s + m(x) + residual.

    :ivar s: [chains, draws, L, M].
    :ivar model: a copy of the sampled model, which defines the features; its q is ignored.
    """

    s: AnyNDArray
    model: Model

    def rhat(self) -> AnyNDArray:
        """
        :return: potential scale reduction of each s, [L, M], with chains split in two (Gelman &
            Rubin; `tfp.mcmc.potential_scale_reduction`): 1 if chains agree, infinity if none moved.
        :raise ValueError: for fewer than four draws per chain.
        """
        if self.s.shape[1] < 4:
            raise ValueError(f"R-hat needs 4 draws per chain, got {self.s.shape[1]}")
        draws = np.moveaxis(self.s, 0, 1)
        rhat = tfp.mcmc.potential_scale_reduction(draws, split_chains=True).numpy()
        return np.where(np.isfinite(rhat), rhat, np.inf)

    def effective_draws(self) -> AnyNDArray:
        """
        :return: the effective number of independent draws for the mean of each s, [L, M]
            (`tfp.mcmc.effective_sample_size`, summed over chains, each at most S log10 S for S
            draws, as in Stan); 0 for chains that did not move.
        """
        draws = np.moveaxis(self.s, 0, 1)
        logger = tf.get_logger()
        level = logger.level
        logger.setLevel("ERROR")  # every call warns of the complex numbers of its FFT
        each = tfp.mcmc.effective_sample_size(draws, filter_beyond_positive_pairs=True).numpy()
        logger.setLevel(level)
        # The estimate is S / tau. With few draws, tau may be estimated as 0 or negative.
        most = len(draws) * np.log10(len(draws))
        bounded = np.where((each > 0) & (each < most), each, most)
        moved = np.ptp(draws, axis=0) > 0
        return np.where(moved & ~np.isnan(each), bounded, 0.0).sum(axis=0)

    def predict_f(self, X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        """
        :param X: [N, D].
        :return: mean and variance of f(x) over all draws, both [N, L], including the residual
            variance.
        """

        def moments(rows: Projected) -> tuple[AnyNDArray, AnyNDArray]:
            f = self._draws_of_f(rows)
            return f.mean(0), f.var(0) + rows.features.residual.numpy()

        return self._map(moments, X)

    def predict_y(self, X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: mean and variance of y over all draws, as in `model.predict_y`."""
        predict = compiled_predict.bind(self.model.likelihood)

        def moments(rows: Projected) -> tuple[AnyNDArray, AnyNDArray]:
            f = self._draws_of_f(rows)
            residual = np.maximum(rows.features.residual, 0) * np.ones_like(f[0])
            each = np.array([predict(rows.batch.X, one, residual) for one in f])
            return each[:, 0].mean(0), each[:, 0].var(0) + each[:, 1].mean(0)

        return self._map(moments, X)

    def _map(self, moments: Callable[[Projected], Any], X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        size = max(1, chunk_rows(self.model) // 16)  # thousands of draws need more memory
        rows = ProjectedData(self.model, open_inputs(self.model, X, size))
        mean, variance = map_over(rows, moments)
        return mean.numpy(), variance.numpy()

    def _draws_of_f(self, rows: Projected) -> AnyNDArray:
        """:return: [chains * draws, N, L], without residual."""
        phi = rows.features.phi.numpy()
        s = np.concatenate(self.s)
        f = np.einsum("gnm,sgm->sng" if len(phi) > 1 else "gnm,slm->snl", phi, s)
        return np.asarray(f + rows.features.mean.numpy())


class Draws:
    """
    The record of a `Sampler`, with the members of a `History` that a fit in progress needs.

    :ivar parts: draws of all chains so far, [draws, chains, L, M] each.
    """

    converged = False
    elapsed = 0.0

    def __init__(self, *parts: AnyNDArray) -> None:
        self.parts = list(parts)

    @property
    def latest(self) -> int:
        """:return: the number of draws."""
        return sum(map(len, self.parts))

    def add(self, step: AnyNDArray, seconds: float) -> str:
        """
        See `History.add`.

        :raise FloatingPointError: for a draw that is not finite.
        """
        if not np.isfinite(step).all():
            raise FloatingPointError(
                "a draw is not finite: the precision of f has no Cholesky factor, for instance if "
                "rows are equal and variance or penalty is huge; use a smaller variance or penalty"
            )
        self.parts.append(step)
        return ""

    def columns(self, number: int) -> dict[str, Any]:
        """See `History`."""
        return {"draws": np.concatenate(self.parts[:number])}

    @staticmethod
    def from_columns(columns: dict[str, Any]) -> Draws:
        """See `History`."""
        return Draws(columns["draws"])

    def __len__(self) -> int:
        return len(self.parts)


class _Chains(Run[tuple[Any, int], AnyNDArray]):
    """Sampling in progress, one block of draws per step; the state is the chains' state."""

    def __init__(self, sampler: Sampler, state: tuple[Any, ...], draw: Callable[..., Any]) -> None:
        self.max_steps = sampler.burn_in + sampler.num_draws
        self._block = sampler.block
        self._draw = draw
        self.state = (state, 0)

    def advance(self) -> AnyNDArray:
        """:return: a block of draws, [number, chains, L, M]."""
        state, done = self.state
        number = min(self._block, self.max_steps - done)
        state, draws = self._draw(state, tf.constant(number), done)
        self.state = (state, done + number)
        return np.asarray(draws)

    def restore(self) -> None:
        """Leave the model's q unchanged."""


@dataclass(frozen=True)
class Sampler(Algorithm):
    """Base class of `Gibbs` and `HMC`: draws in blocks, and selects the draws to keep."""

    grows = "num_draws"
    instead = "HMC, which accepts any likelihood"
    #: Number of draws between updates of the progress bar.
    block: ClassVar[int] = 50
    _what = "draws"

    num_draws: int = 1000
    burn_in: int = 500
    num_chains: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(1, num_draws=self.num_draws, num_chains=self.num_chains)
        check_whole(0, burn_in=self.burn_in, seed=self.seed)
        for name in ("num_draws", "burn_in", "num_chains", "seed"):  # graphs take no NumPy integers
            object.__setattr__(self, name, int(getattr(self, name)))

    @abstractmethod
    def _chains(self, model: Model, rows: Projected) -> tuple[Any, Callable[..., Any]]:
        """
        :return: the state of all chains (tensors in any structure), and a function that draws. Its
            arguments are a state, the number of further draws and the number of earlier draws;
            it returns the new state and the draws.
        """

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        rows = ProjectedData(model, source).everything()
        check_margins(model.likelihood, rows.features)
        state, draw = self._chains(model, rows)
        return _Chains(self, state, draw)

    def run(  # type: ignore[override]  # draws have no callback
        self,
        model: Model,
        data: RegressionData | None = None,
        *,
        sample_weight: Any = None,
        progress: bool | None = None,
        checkpoint: Directory | None = None,
        every: int = 1,
    ) -> Samples:
        """
        :param data: X [N, D] and Y [N, P]; if None, the data stored in the model.
        :param sample_weight: [N], powers of the likelihood; if None, all are 1.
        :param progress: whether to show a progress bar; if None, only on a terminal.
        :param checkpoint: as in `Algorithm.run`; so is `every`, in blocks of 50 draws. With a
            larger `num_draws`, sampling continues for longer.
        :return: the draws; the model's q does not change.
        :raise ValueError: for bad data, a likelihood that lacks a required hook, or a checkpoint of
            another fit.
        :raise FloatingPointError: for a draw that is not finite, or a prior variance of f so large
            that float64 cannot resolve a margin of 1.
        """
        source = self._open(model, data, sample_weight)
        sampled = copied(model)  # first, since it may fail
        record = Draws()
        reports = Reports(progress=progress, checkpoint=checkpoint, every=every)
        sampler = self
        if checkpoint is not None:  # draws depend on their blocks, which a longer run must continue
            rest = -(self.burn_in + self.num_draws) % self.block
            sampler = replace(self, num_draws=self.num_draws + rest)
        sampler.run_on(model, source, record, reports)
        draws = np.concatenate(record.parts)[self.burn_in :][: self.num_draws]
        return Samples(np.moveaxis(draws, 0, 1), sampled)
