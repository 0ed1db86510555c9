"""Draws of s from a posterior, by whatever sampler, and predictions averaged over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import AnyNDArray, RegressionData
from gpflow.config import default_float

from ..checkpoints import Checkpoints, Directory, open_checkpoints
from ..data.passes import map_over
from ..engine.contracts import Model, check_margins, chunk_rows, open_all, open_inputs
from ..engine.projected_data import ProjectedData
from ..engine.projection import Projected
from ..engine.shared_graph import one_fit
from ..likelihoods.hooks import Hook
from ..optional import require
from ..prediction.marginals import compiled_mean
from .algorithm import check_needs
from .history import progress_bar
from .identity import identify


@dataclass(frozen=True)
class Samples:
    """
    Draws of the whitened features' weights s, f(x) = Phi(x) s + m(x) + residual.

    :ivar s: [chains, draws, L, M].
    :ivar model: whose features they weigh, at the hyperparameters of the sampling; its own q plays
        no part.
    """

    s: AnyNDArray
    model: Model

    @property
    def acceptance(self) -> AnyNDArray:
        """
        :return: share of the draws of each chain that are not the draw before, [chains]; with
            `thin` of one it is a sampler's acceptance rate; NaN of one draw.
        """
        moved = (self.s[:, 1:] != self.s[:, :-1]).any(axis=(2, 3))
        return np.mean(moved, axis=1) if moved.size else np.full(len(self.s), np.nan)

    def rhat(self) -> AnyNDArray:
        """
        :return: potential scale reduction of each s, [L, M], chains split in two (Gelman & Rubin;
            `tfp.mcmc.potential_scale_reduction`): 1 where they agree, infinity where none moved.
        :raise ValueError: for less than four draws of each chain.
        """
        if self.s.shape[1] < 4:
            raise ValueError(f"R-hat needs 4 draws of each chain, there are {self.s.shape[1]}")
        draws = np.moveaxis(self.s, 0, 1)
        rhat = tfp.mcmc.potential_scale_reduction(draws, split_chains=True).numpy()
        return np.where(np.isfinite(rhat), rhat, np.inf)

    def effective_draws(self) -> AnyNDArray:
        """
        :return: how many independent draws those of all chains are worth for the mean of each s,
            [L, M] (`tfp.mcmc.effective_sample_size`, summed over chains); 0 for chains that did not
            move.
        """
        draws = np.moveaxis(self.s, 0, 1)
        each = tfp.mcmc.effective_sample_size(draws, filter_beyond_positive_pairs=True).numpy()
        return np.where(np.isfinite(each) & (draws.std(axis=0) > 0), each, 0.0).sum(axis=0)

    def predict_f(self, X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        """
        :param X: [N, D].
        :return: mean and variance of f(x) over all draws, both [N, L], the residual's included.
        """

        def moments(rows: Projected) -> tuple[AnyNDArray, AnyNDArray]:
            f = self._draws_of_f(rows)
            return f.mean(0), f.var(0) + rows.features.residual.numpy()

        mean, variance = self._map(moments, X)
        return mean.numpy(), variance.numpy()

    def predict_y(self, X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: mean of y averaged over all draws, and p - p^2, both as `model.predict_y`."""
        predict = compiled_mean.bind(self.model.likelihood)

        def mean(rows: Projected) -> AnyNDArray:
            f = self._draws_of_f(rows)
            variance = np.maximum(rows.features.residual, 0) * np.ones_like(f[0])
            return np.asarray(np.mean([predict(rows.batch.X, one, variance) for one in f], axis=0))

        p = self._map(mean, X).numpy()
        return p, p - p**2

    def _map(self, function: Callable[[Projected], Any], X: Any) -> Any:
        size = max(1, chunk_rows(self.model) // 16)  # thousands of draws are more than M features
        return map_over(ProjectedData(self.model, open_inputs(self.model, X, size)), function)

    def _draws_of_f(self, rows: Projected) -> AnyNDArray:
        """:return: [chains * draws, N, L], without residual."""
        phi, s = rows.features.phi.numpy(), self.s.reshape(-1, *self.s.shape[2:])
        f = np.einsum("gnm,sgm->sng" if len(phi) > 1 else "gnm,slm->snl", phi, s)
        return np.asarray(f + rows.features.mean.numpy())

    def to_arviz(self) -> Any:
        """
        :return: an `arviz.InferenceData` with the variable s, for `arviz.summary` (R-hat, effective
            sample sizes), `arviz.plot_trace` and so on.
        :raise ImportError: if ArviZ is not installed.
        """
        arviz = require("arviz", extra="diagnostics")
        return arviz.from_dict(posterior={"s": self.s}, dims={"s": ["latent", "feature"]})


class Interrupted(KeyboardInterrupt):
    """
    Ctrl-C during sampling.

    :ivar samples: those that were kept until then; None in the burn-in.
    """

    samples: Samples | None = None


class Sampler(ABC):
    """What `Gibbs`, `HMC` and `StaticHMC` have in common: blocks of draws, bar, interrupt."""

    needs: ClassVar[tuple[Hook, ...]] = ()
    #: As in `Algorithm`.
    learns: ClassVar[bool] = False
    takes_q: ClassVar[bool] = False
    grows: ClassVar[tuple[str, ...]] = ("num_draws",)
    #: Draws between two looks at the progress bar.
    block: ClassVar[int] = 50

    num_draws: int
    burn_in: int
    num_chains: int
    seed: int
    thin: int = 1

    @abstractmethod
    def _begin(self, model: Model, rows: Projected) -> Any:
        """
        :return: the state of all chains, tensors in any structure, and a function `advance` of
            such a state, the number of draws that are to follow, and that of those before, which
            returns the state after them and the draws.
        """

    @one_fit()
    def run(
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
        :param data: X [N, D] and Y [N, P]; None: those that the model holds.
        :param sample_weight: [N], powers of the likelihood; ones if None.
        :param progress: show a progress bar; None: on a terminal only.
        :param checkpoint: and `every`, in blocks of 50 draws: as in `Algorithm.run`; a greater
            `num_draws` goes on longer.
        :return: the draws; the model's q stays as it is.
        :raise ValueError: for bad data, a likelihood that lacks what the sampler needs, or a
            checkpoint of another fit.
        :raise FloatingPointError: for a draw that is not finite, or if float64 holds no margin
            of 1 beside the prior's f.
        :raise Interrupted: (a KeyboardInterrupt) after Ctrl-C; its `samples` are those so far.
        """
        source = open_all(model, data, sample_weight)
        check_needs(self, model)
        rows = ProjectedData(model, source).everything()
        check_margins(model.likelihood, rows.features)
        state, advance = self._begin(model, rows)
        checkpoints = open_checkpoints(checkpoint, every, partial(identify, self, model, source))
        like: AnyNDArray = np.empty([0, self.num_chains, *model.num_features], default_float())
        state, parts = self._resume({"state": state, "draws": like}, checkpoints)
        done, total = sum(map(len, parts)), self.burn_in + self.num_draws * self.thin
        with progress_bar(total, "draws", progress) as bar, checkpoints:
            bar.update(done)
            try:
                while done < total:
                    number = min(self.block, total - done)
                    state, draws = advance(state, tf.constant(number), done)
                    parts.append(_finite(draws.numpy()))
                    done += number
                    checkpoints.offer(done, partial(_content, state, parts, len(parts)))
                    bar.update(number)
            except KeyboardInterrupt as stop:
                raise self._interrupted(parts, model) from stop
        return self._samples(parts, model)

    def _resume(
        self, like: dict[str, Any], checkpoints: Checkpoints
    ) -> tuple[Any, list[AnyNDArray]]:
        """:return: state and draws of the latest checkpoint; without one, those of `like`."""
        saved = checkpoints.latest(like)
        if saved is None:
            return like["state"], []
        done, total = len(saved["draws"]), self.burn_in + self.num_draws * self.thin
        if done > total:
            raise ValueError(
                f"the checkpoint has {done} draws of each chain, and {total} are asked for: give "
                "as many num_draws, or another directory"
            )
        return saved["state"], [saved["draws"]]

    def _samples(self, parts: list[AnyNDArray], model: Model) -> Samples:
        draws = np.concatenate(parts)[self.burn_in :: self.thin]
        return Samples(np.moveaxis(draws, 0, 1), model)

    def _interrupted(self, parts: list[AnyNDArray], model: Model) -> Interrupted:
        if sum(map(len, parts)) <= self.burn_in:
            return Interrupted("interrupted in the burn-in")
        error = Interrupted("interrupted: the draws so far are in this exception's `samples`")
        error.samples = self._samples(parts, model)
        return error


def _finite(draws: AnyNDArray) -> AnyNDArray:
    if not np.isfinite(draws).all():
        raise FloatingPointError(
            "a draw is not finite: the precision of f has no Cholesky factor, as where rows are "
            "equal and variance or penalty huge; use a smaller variance or penalty"
        )
    return draws


def _content(state: Any, parts: list[AnyNDArray], number: int) -> dict[str, Any]:
    """:return: what a checkpoint holds: the state after the first `number` parts."""
    return {"state": state, "draws": np.concatenate(parts[:number])}
