"""New inducing points during training, when kernel and margin have changed."""

from __future__ import annotations

from typing import Any, Protocol

import gpflow
import tensorflow as tf

from ..data.checks import check_inputs, duplicate_rows
from ..engine.contracts import Model, check_width
from ..engine.natural import whiten


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
