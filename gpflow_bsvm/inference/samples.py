"""Draws of s from a posterior, by whatever sampler, and predictions averaged over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray, RegressionData

from ..checks import check_fit, check_inputs, check_width
from ..engine.projected_data import EngineModel, View, chunk_rows
from ..engine.statistics import Rows
from ..prediction.marginals import compiled_mean


@dataclass(frozen=True)
class Draws:
    """
    Draws of the whitened features' weights s, f(x) = Phi(x) s + m(x) + residual.

    :ivar s: [chains, draws, L, M].
    :ivar model: whose features they weigh, at the hyperparameters of the sampling; its own q plays
        no part.
    """

    s: AnyNDArray
    model: Any

    def predict_f(self, X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        """
        :param X: [N, D].
        :return: mean and variance of f(x) over all draws, both [N, L], the residual's included.
        """
        parts = [(f.mean(0), f.var(0) + residual) for _, f, residual in self._chunks(X)]
        mean, variance = zip(*parts)
        return np.concatenate(mean), np.concatenate(variance)

    def predict_y(self, X: Any) -> tuple[AnyNDArray, AnyNDArray]:
        """
        :param X: [N, D].
        :return: mean of y averaged over all draws, and p - p^2, both as `model.predict_y`.
        """
        predict = compiled_mean.bind(self.model.likelihood)
        parts = []
        for chunk, f, residual in self._chunks(X):
            variance = np.maximum(residual, 0) * np.ones_like(f[0])
            parts.append(np.mean([predict(chunk, one, variance) for one in f], axis=0))
        p = np.concatenate(parts)
        return p, p - p**2

    def _chunks(self, X: Any) -> Any:
        """Yield X [n, D], f without residual [chains * draws, n, L] and residual of some rows."""
        X = check_inputs(X)
        check_width(self.model, X)
        project, s = self.model.projector(), self.s.reshape(-1, *self.s.shape[2:])
        size = max(1, chunk_rows(self.model) // 16)  # thousands of draws are more than M features
        for start in range(0, len(X), size):
            chunk = tf.convert_to_tensor(X[start : start + size])
            features, residual, prior_mean = project(chunk)
            f = np.einsum("gnm,sgm->sng" if len(features) > 1 else "gnm,slm->snl", features, s)
            yield chunk, f + prior_mean.numpy(), residual.numpy()

    def to_arviz(self) -> Any:
        """
        :return: an `arviz.InferenceData` with the variable s, for `arviz.summary` (R-hat, effective
            sample sizes), `arviz.plot_trace` and so on.
        :raise ImportError: if ArviZ is not installed.
        """
        try:
            import arviz
        except ImportError:
            raise ImportError(
                "diagnostics need ArviZ: pip install 'gpflow_bsvm[diagnostics]'"
            ) from None
        return arviz.from_dict(posterior={"s": self.s}, dims={"s": ["latent", "feature"]})


def rows_of_all(model: EngineModel, data: RegressionData | None, sample_weight: Any) -> Rows:
    """
    :return: all rows, projected, in memory.
    :raise ValueError: for bad data.
    """
    X, Y, weight = check_fit(model, data, sample_weight)
    return View(model, X, Y, weight).take(np.arange(len(X)))[0]


def blocks_of(total: int, size: int) -> list[int]:
    """:return: `total` cut into parts of at most `size`."""
    return [min(size, total - size * n) for n in range(math.ceil(total / size))]
