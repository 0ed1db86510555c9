"""A model's prior: its Cholesky factor, and the necessary jitter."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from check_shapes.exceptions import CheckShapesError
from gpflow.base import AnyNDArray
from gpflow.covariances import Kuu
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import parameter_dict

from ..data.checks import duplicate_rows
from ..notices import warn
from .kernel_check import no_covariance, rounded, values_of
from .shared_graph import Compiled

#: Largest jitter to try: a larger one would change the model too much.
MAX_JITTER = 1e-2


class Prior(NamedTuple):
    """The process f and its inducing variable, with hyperparameters but without q."""

    kernel: Kernel
    inducing_variable: InducingVariables
    mean_function: MeanFunction


@check_shapes("jitter: []", "return: [G, M, M]")
def prior_factor(prior: Prior, jitter: tf.Tensor) -> tf.Tensor:
    """:return: Cholesky factor Lz of Kuu + jitter I; G is 1 if latent functions share it."""
    Kuu_ = Kuu(prior.inducing_variable, prior.kernel, jitter=jitter)
    return tf.linalg.cholesky(Kuu_[None] if len(Kuu_.shape) == 2 else Kuu_)


compiled_prior_factor = Compiled(prior_factor)


def safe_prior_factor(prior: Prior, before: float | None) -> tuple[tf.Tensor, float | None]:
    """
    `prior_factor` with GPflow's `default_jitter()`. If that fails, the jitter is raised by factors
    of 10 up to 1e-2, with a warning unless it equals `before`.

    :return: Lz and its jitter (None: GPflow's).
    :raise ValueError: if 1e-2 fails too; the message names the likely cause.
    """
    factor = compiled_prior_factor.bind(prior)
    first = gpflow.config.default_jitter()
    for jitter in _jitters(first):
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            try:
                Lz = factor(tf.constant(jitter, gpflow.config.default_float()))
            except (ValueError, TypeError, CheckShapesError):
                _call_kernel(prior)
                raise
            if np.isfinite(Lz.numpy()).all():
                if jitter not in (first, before):
                    warn(f"Kuu needed a jitter of {jitter:.0e}")
                return Lz, jitter if jitter > first else None
    reason = _why_no_factor(prior, jitter)
    raise ValueError(f"Kuu has no Cholesky factor, even with jitter {jitter:.0e}: {reason}")


def _jitters(first: float) -> list[float]:
    """:return: the first jitter, even 0 or above the limit, then tenfold up to the limit."""
    jitters = [first]
    while jitters[-1] < 0.999 * MAX_JITTER:
        jitters.append(10 * jitters[-1] or 1e-16)
    return jitters


def _call_kernel(prior: Prior) -> None:
    """:raise ValueError: if the kernel also fails outside of graphs; names its part."""
    for Z in plain_points(prior.inducing_variable):
        values_of(prior.kernel, Z[:1])


def _why_no_factor(prior: Prior, jitter: float) -> str:
    """:return: the likely reason why Kuu has no Cholesky factor, and a remedy."""
    _call_kernel(prior)
    for pairs in map(duplicate_rows, plain_points(prior.inducing_variable)):
        if pairs:
            first, again = pairs[0]
            return f"inducing points {first} and {again} are equal: remove duplicates"
    K = np.asarray(Kuu(prior.inducing_variable, prior.kernel))
    show = functools.partial(np.array2string, precision=3, threshold=4)
    values = parameter_dict(prior.kernel).items()
    shown = ", ".join(f"kernel{name} = {show(p.numpy())}" for name, p in values)
    if not np.isfinite(K).all():
        return f"the kernel is not finite at the inducing points, with {shown}: standardise X"
    lost = [*filter(None, map(rounded, plain_points(prior.inducing_variable))), ""][0]
    if wrong := lost or no_covariance(K, np.diagonal(K, axis1=-2, axis2=-1)):
        return f"the kernel {type(prior.kernel).__name__} at the inducing points: {wrong}"
    return (
        f"inducing points are too close for the kernel values {shown}: standardise X, use a "
        f"smaller lengthscale or variance, fewer points, or a jitter above {jitter:.0e}"
    )


def plain_points(inducing_variable: Any) -> list[AnyNDArray]:
    """:return: every Z [M, D] of plain inputs (no patches, no scales)."""
    return [np.asarray(part.Z) for part in plain_parts(inducing_variable)]


def plain_parts(inducing_variable: Any) -> list[InducingPoints]:
    """:return: the inducing variables of `plain_points`."""
    parts = getattr(inducing_variable, "inducing_variables", (inducing_variable,))
    return [part for part in parts if type(part) is InducingPoints]
