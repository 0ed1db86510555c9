"""Explain why a fit has no finite bound: find the row and the quantity that overflows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import NotFinite
from ..data.batch import Batch
from ..data.sources import Source, closed_at_end
from ..engine.contracts import Model
from ..engine.natural import compiled_solve
from ..engine.projection import Features, Projector
from ..engine.statistics import Marginals, compiled_marginals
from ..likelihoods.base import slopes
from ..likelihoods.hooks import has_hook

#: Errors of a fit that non-finite numbers may cause.
NUMERICAL = (NotFinite, FloatingPointError, tf.errors.InvalidArgumentError)


def cause_of(model: Model, source: Source) -> str:
    """:return: an explanation of non-finite numbers at the model's q and the first rows, or ""."""
    with closed_at_end(source.chunks()) as chunks:
        batch = next(chunks)
    features = Projector(model.prior, model.prior_factor())(batch.X)
    q = compiled_solve(model.natural())
    return _of_features(model, batch, features) or _of_likelihood(
        model.likelihood, batch, compiled_marginals(q, features)
    )


def _of_features(model: Model, batch: Batch, features: Features) -> str:
    kernel = f"the kernel {type(model.prior.kernel).__name__}"
    mean = f"the mean function {type(model.prior.mean_function).__name__}"
    phi = tf.transpose(features.phi, [1, 0, 2])
    for what, values in ((kernel, phi), (kernel, features.residual), (mean, features.mean)):
        for row in _rows(values)[:1]:
            x = np.array2string(np.asarray(batch.X[row]), precision=3, threshold=5)
            return f"{what} overflows at row {row}, X = {x}: scale X, and check its parameters"
    return ""


def _of_likelihood(likelihood: Any, batch: Batch, f: Marginals) -> str:
    def look(mean: Any, variance: Any) -> tf.Tensor:
        return likelihood.variational_expectations(batch.X, mean, variance, batch.Y)

    derivatives = () if has_hook(likelihood, "sites") else slopes(look, f.mean, f.variance)
    names = "expected log density", "first derivative", "second derivative"
    density = look(f.mean, f.variance)[:, None]
    for what, values in zip(names, (density, *derivatives)):
        for row in _rows(values)[:1]:
            show = partial(np.array2string, precision=3)
            label, mean, deviation = (
                show(np.asarray(part[row])) for part in (batch.Y, f.mean, tf.sqrt(f.variance))
            )
            return (
                f"the {what} of {type(likelihood).__name__} is not finite at row {row}, for the "
                f"label {label} at f = {mean} with a deviation of {deviation}: compute its log "
                "density so that it does not under- or overflow, or use a likelihood of gpflow_bsvm"
            )
    return ""


def _rows(values: Any) -> AnyNDArray:
    """:return: indices of non-finite rows (first axis)."""
    finite = np.isfinite(np.asarray(values))
    return np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))
