"""New inducing points during training, when kernel and margin have changed."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_whole
from ..data.batch import take
from ..data.checks import check_inputs, duplicate_rows
from ..data.passes import map_over
from ..data.sampling import random_rows
from ..data.sources import ArraySource
from ..engine.contracts import Model, check_width, chunk_rows
from ..engine.natural import compiled_solve, whiten
from ..engine.open import open_all
from ..engine.projected_data import ProjectedData
from ..engine.statistics import compiled_localise
from .initial import SUBSAMPLE, greedy_variance


class SparseModel(Model, Protocol):
    """A model with q over inducing variables, such as `BSVM`."""

    inducing_variable: Any
    mean_function: Any
    q_mu: Any
    q_sqrt: Any
    whiten: bool


def check_exchangeable(model: SparseModel) -> None:
    """:raise ValueError: unless the inducing variables are plain points, shared by all f."""
    kind = type(model.inducing_variable)
    if kind is not gpflow.inducing_variables.InducingPoints:
        raise ValueError(f"only plain InducingPoints can be exchanged, not {kind.__name__}")


def exchange(model: SparseModel, Z: Any) -> None:
    """
    Replace the inducing points of a `BSVM`; their number may change. The new q(u) is the model's
    prediction at Z, so that predictions at Z do not change; elsewhere they change only if Z cannot
    represent them.

    :param model: a model with plain inducing points shared by all latent functions; changed in
        place.
    :param Z: [M, D].
    :raise ValueError: unless Z is finite, of the right width and without duplicates; and for other
        inducing variables.
    """
    check_exchangeable(model)
    Z = check_inputs(Z)
    check_width(model, Z)
    for first, again in duplicate_rows(Z):
        raise ValueError(f"rows {first} and {again} of Z are equal: remove duplicates")
    mean, covariance = model.predict_f(Z, full_cov=True)  # [M, L], [L, M, M]
    trainable = [p.trainable for p in (model.inducing_variable.Z, model.q_mu, model.q_sqrt)]
    model.inducing_variable = gpflow.inducing_variables.InducingPoints(Z)
    Lz = model.prior_factor()
    mean = tf.transpose(mean - model.mean_function(Z))
    root = tf.linalg.cholesky(covariance + model.jitter * tf.eye(len(Z), dtype=mean.dtype))
    if model.whiten:
        mean, root = whiten(Lz, mean, root)
    model.q_mu = gpflow.Parameter(tf.transpose(mean))
    model.q_sqrt = gpflow.Parameter(root, transform=gpflow.utilities.triangular())
    for part, flag in zip((model.inducing_variable.Z, model.q_mu, model.q_sqrt), trainable):
        gpflow.set_trainable(part, flag)


def reselect(
    model: SparseModel,
    data: tuple[Any, Any],
    max_inducing: int | None = None,
    *,
    sample_weight: Any = None,
    tol: float = 1e-3,
    seed: int | None = 0,
    subsample: int = SUBSAMPLE,
) -> AnyNDArray:
    """
    Choose new inducing points for a `BSVM` by `greedy_variance` with its current kernel and sites,
    and `exchange` the old ones for them. The sites' precisions w_n weight the variances, so that
    points concentrate where classes meet (heteroscedastic greedy variance).

    Continue with `gpflow_bsvm.fit` or `gpflow_bsvm.inference.VEM`; once or twice is enough (Burt et
    al. 2020, section 7.4). The cost is O(N M^2) for the N rows of a random subsample.

    :param model: a model fitted to `data`; changed in place.
    :param max_inducing: the largest M; None: the current M.
    :param sample_weight: [N], as in the fit.
    :param tol: see `greedy_variance`.
    :param subsample: the largest number of rows to choose from.
    :return: Z [M, D].
    :raise ValueError: for bad data, and as in `exchange`.
    """
    check_exchangeable(model)
    number = model.q_shape[1] if max_inducing is None else max_inducing
    check_whole(1, max_inducing=number)
    source = open_all(model, data, sample_weight)
    blocks, places = source.gather(random_rows(source.num_rows, subsample, seed))
    rows = take(blocks, places)
    X = rows.X.numpy()
    q = compiled_solve(model.natural())
    localise = compiled_localise.bind(model.likelihood)
    part = ProjectedData(model, ArraySource(rows.X, rows.Y, rows.weight, chunk_rows(model)))
    sites = map_over(part, partial(localise, q)).sites
    weight = rows.weight.numpy()[:, 0] * np.sum(sites.w, axis=1)
    Z = greedy_variance(X, min(number, len(X)), model.prior.kernel, tol=tol, weight=weight)
    exchange(model, Z)
    return Z
