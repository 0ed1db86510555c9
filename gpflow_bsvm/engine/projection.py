"""project: models are Gaussian in whitened features, f(x) = Phi(x) s + m(x) + residual.

Also the prior: its Cholesky factor, and trial calls of the kernel on a few rows for clearer errors.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from check_shapes.exceptions import CheckShapesError
from gpflow.base import AnyNDArray, TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import (
    Combination,
    Coregion,
    Kernel,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)
from gpflow.posteriors import (
    IndependentPosteriorMultiOutput,
    IndependentPosteriorSingleOutput,
    get_posterior_class,
)
from gpflow.utilities import parameter_dict

from ..data.batch import Batch, joined, take
from ..data.checks import duplicate_rows
from ..notices import warn
from .shared_graph import Compiled

#: Number of rows to check.
_ROWS = 10
#: Errors of a kernel that wrong `active_dims` or shapes of parameters may cause.
_OF_SHAPES = (ValueError, IndexError, tf.errors.InvalidArgumentError, CheckShapesError)


def check_kernel(kernel: Kernel, X: Any) -> None:
    """
    Call the kernel on a few rows.

    :param X: [N, D], the model's input: an array, or an object whose slices are arrays.
    :raise ValueError: if the kernel, named in the message, rejects the rows or gives no covariance.
    """
    X = np.asarray(X[:: max(1, len(X) // _ROWS)][:_ROWS])
    K, diagonal = values_of(kernel, X)
    if wrong := no_covariance(K, diagonal):
        name = type(kernel).__name__
        raise ValueError(f"the kernel {name} fails at some rows of X: {rounded(X) or wrong}")


def parts_of(kernel: Kernel) -> Iterator[Kernel]:
    """:return: the kernel, then kernels of columns of X that it combines, recursively."""
    yield kernel
    combined = isinstance(kernel, Combination)
    for part in kernel.kernels if combined else getattr(kernel, "latent_kernels", ()):
        yield from parts_of(part)


def check_codes(kernel: Kernel, X: Any) -> None:
    """
    :param X: [N, D].
    :raise ValueError: for a code outside the range of a `Coregion` in the kernel. (TensorFlow would
        fail with an internal error, or read another code on a GPU.)
    """
    for part in parts_of(kernel):
        if isinstance(part, Coregion) and (codes := part.slice(X, None)[0]).shape[-1] == 1:
            codes = np.ravel(codes)
            last = part.output_dim - 1
            wrong = np.flatnonzero((codes < 0) | (codes > last) | (codes != np.round(codes)))
            if len(wrong):
                code = codes[wrong[0]]
                advice = ": construct it with a larger output_dim" if code > last else ""
                raise ValueError(
                    f"row {wrong[0]} of X has code {code:g}, but the kernel Coregion takes whole "
                    f"numbers from 0 to {last} as codes{advice}"
                )


def check_is_kernel(kernel: Any) -> None:
    """:raise TypeError: for anything but a kernel, for example its class or its name."""
    if not isinstance(kernel, Kernel):
        raise TypeError(
            "expected a kernel of GPflow, such as gpflow.kernels.SquaredExponential(), got "
            f"{kernel!r}"
        )


def check_independent(name: str, kernel: Any, variable: InducingVariables) -> None:
    """
    :param name: the model's name in the error.
    :raise TypeError: see `check_is_kernel`.
    :raise ValueError: if kernel and inducing variable mix or correlate latent functions under q,
        if GPflow has no Kuf for them, or if latent functions have different numbers of points.
    """
    check_is_kernel(kernel)
    kinds = type(variable), type(kernel)
    independent = IndependentPosteriorSingleOutput, IndependentPosteriorMultiOutput
    known = Kuf.dispatch(*kinds, tf.Tensor) is not None
    several = [isinstance(part, MultioutputKernel) for part in parts_of(kernel)]
    is_mixed = any(several) and not several[0]  # a sum, which GPflow takes for one output
    if is_mixed or not known or get_posterior_class(kernel, variable) not in independent:
        raise ValueError(
            f"{name} needs independent latent functions with a Kuf in GPflow, got "
            f"{kinds[1].__name__} with {kinds[0].__name__}: use one kernel with InducingPoints(Z) "
            "and num_latent_gps, or SharedIndependent / SeparateIndependent with an inducing "
            "variable such as SharedIndependentInducingVariables(InducingPoints(Z))"
        )
    sizes = [int(part.num_inducing) for part in getattr(variable, "inducing_variable_list", ())]
    if sizes and (len(sizes) != kernel.num_latent_gps or len({*sizes}) > 1):
        raise ValueError(
            f"{kinds[1].__name__} needs inducing variables of equally many points for each of its "
            f"{kernel.num_latent_gps} latent functions, got variables of {sizes} points"
        )


def check_mean(mean_function: MeanFunction, X: Any, num_latents: int) -> None:
    """:raise ValueError: unless the mean function gives one column, or one per latent function."""
    name = type(mean_function).__name__
    try:
        found = mean_function(X[:1]).shape
    except Exception as error:
        raise ValueError(
            f"the mean function {name} cannot be called with inputs of {X.shape[-1]} columns: "
            f"{_said(error)}"
        ) from error
    if found[-1] not in (1, num_latents):
        raise ValueError(
            f"the mean function {name} gives {found[-1]} columns: it must give one, or one for "
            f"each of the {num_latents} latent functions"
        )


def values_of(kernel: Kernel, X: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: K(X) [L, N, N] and K_diag(X) [L, N], where L is the number of latent kernels.
    :raise ValueError: if the kernel rejects X; the message names the innermost failing part.
    """
    latent = getattr(kernel, "latent_kernels", (kernel,))
    try:
        K, diagonal = (np.stack([k(X, full_cov=full) for k in latent]) for full in (True, False))
    except Exception as error:
        for part in getattr(kernel, "kernels", ()):
            values_of(part, X)
        why = f"{type(error).__name__}: {_said(error)}"
        if isinstance(error, _OF_SHAPES):
            why = f"{_said(error)}; check its active_dims and the shapes of its parameters"
        raise ValueError(
            f"the kernel {type(kernel).__name__} cannot be called with inputs of {X.shape[-1]} "
            f"columns: {why}"
        ) from error
    return K, diagonal


def no_covariance(K: AnyNDArray, diagonal: AnyNDArray) -> str:
    """:return: the reason why K [..., N, N] is not a covariance, or ""."""
    if not (np.isfinite(K).all() and np.isfinite(diagonal).all()):
        return ""  # overflow raises another error
    own = np.diagonal(K, axis1=-2, axis2=-1)
    size = max(np.abs(K).max(), np.abs(diagonal).max())
    # Tolerate rounding of distances between rows far from 0.
    most = np.finfo(K.dtype).eps ** 0.2 * size
    off = np.unravel_index(np.argmax(np.abs(own - diagonal)), own.shape)
    if np.abs(own - diagonal)[off] > most:
        return f"K_diag(x) is {diagonal[off]:.3g}, but K(x, x) is {own[off]:.3g}"
    if np.abs(K - np.swapaxes(K, -1, -2)).max() > most:
        return "K(x, x') is not K(x', x)"
    least = np.linalg.eigvalsh(K).min()
    return f"its matrix has the negative eigenvalue {least:.3g}" if least < -most else ""


def rounded(X: AnyNDArray) -> str:
    """:return: a note on a column so far from 0 that distances are lost in rounding, or ""."""
    far = np.abs(X).max(axis=0)
    spread = np.ptp(X, axis=0)
    column = int(np.argmax(far))
    if spread[column] > np.finfo(X.dtype).eps ** 0.4 * far[column]:
        return ""
    return (
        f"distances are lost in rounding, because column {column} is near {far[column]:.3g} and "
        f"varies by {spread[column]:.3g}: subtract its mean (sklearn.preprocessing.StandardScaler)"
    )


def _said(error: Exception) -> str:
    """:return: the text of an error, without the traces of TensorFlow and check_shapes."""
    text = str(error).rpartition("Note:")[2].rpartition("}} ")[2].partition(" [Op:")[0]
    return " ".join(text.split())


class Called(Kernel):
    """A kernel of all columns that calls another kernel, which then selects its `active_dims`."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """:return: K of the selected columns."""
        return self.kernel(X, X2)

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        """:return: K_diag of the selected columns."""
        return self.kernel(X, full_cov=False)


def with_active_dims(kernel: Kernel) -> Kernel:
    """
    :return: an equal kernel that respects the `active_dims` of its latent kernels. GPflow's
        multi-output kernels ignore these, because they use their kernels' `K`.
    """
    if not isinstance(kernel, (SeparateIndependent, SharedIndependent)):
        return kernel
    made = copy.copy(kernel)  # may be of a user's class
    name = "kernels" if isinstance(kernel, SeparateIndependent) else "kernel"
    made.__dict__[name] = tf.nest.map_structure(_called, getattr(kernel, name))
    return made


def _called(kernel: Kernel) -> Kernel:
    dims = [part.active_dims for part in parts_of(kernel)]
    used = any(not isinstance(one, slice) or one != slice(None) for one in dims)
    return Called(kernel) if used else kernel


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
    of 10 up to 1e-2, with a warning unless the last jitter equals `before`.

    :return: Lz and its jitter (None for GPflow's).
    :raise ValueError: if 1e-2 fails too; the message names the likely cause.
    """
    factor = compiled_prior_factor.bind(prior)
    first = gpflow.config.default_jitter()  # tried even if it is 0 or above the limit
    jitters = [first]
    while jitters[-1] < 0.999 * MAX_JITTER:
        jitters.append(10 * jitters[-1] or 1e-16)
    for jitter in jitters:
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            Lz = factor(tf.constant(jitter, gpflow.config.default_float()))
            if np.isfinite(Lz.numpy()).all():
                if jitter not in (first, before):
                    warn(f"Kuu needed a jitter of {jitter:.0e}")
                return Lz, jitter if jitter > first else None
    reason = _why_no_factor(prior, jitter)
    raise ValueError(f"Kuu has no Cholesky factor, even with jitter {jitter:.0e}: {reason}")


def _why_no_factor(prior: Prior, jitter: float) -> str:
    """:return: the likely reason why Kuu has no Cholesky factor, and a remedy."""
    for Z in plain_points(prior.inducing_variable):
        values_of(prior.kernel, Z[:1])
        if pairs := duplicate_rows(Z):
            first, again = pairs[0]
            return f"inducing points {first} and {again} are equal; remove duplicates"
    K = np.asarray(Kuu(prior.inducing_variable, prior.kernel))
    show = functools.partial(np.array2string, precision=3, threshold=4)
    values = parameter_dict(prior.kernel).items()
    shown = ", ".join(f"kernel{name} = {show(p.numpy())}" for name, p in values)
    if not np.isfinite(K).all():
        single = ", or use float64 (ArcCosine rounds to NaN)" if K.dtype == np.float32 else ""
        return (
            f"the kernel is not finite at the inducing points, with {shown}: standardize X{single}"
        )
    lost = [*filter(None, map(rounded, plain_points(prior.inducing_variable))), ""][0]
    if wrong := lost or no_covariance(K, np.diagonal(K, axis1=-2, axis2=-1)):
        return f"at the inducing points, for the kernel {type(prior.kernel).__name__}, {wrong}"
    return (
        f"inducing points are too close for the kernel values {shown}: standardize X, use a "
        f"smaller lengthscale or variance, fewer points, or a jitter above {jitter:.0e}"
    )


def plain_points(inducing_variable: Any) -> list[AnyNDArray]:
    """:return: every Z [M, D] that consists of plain inputs (not patches or scales)."""
    return [np.asarray(part.Z) for part in plain_parts(inducing_variable)]


def plain_parts(inducing_variable: Any) -> list[InducingPoints]:
    """:return: the inducing variables of `plain_points`."""
    parts = getattr(inducing_variable, "inducing_variables", (inducing_variable,))
    return [part for part in parts if type(part) is InducingPoints]


class Floats(NamedTuple):
    """Floating-point options of features."""

    jitter: tf.Tensor  #: [], jitter of Kuu
    #: [], 1 in the dtype of subsequent large products; if None, the dtype of Kuu
    one: tf.Tensor | None = None


class Features(NamedTuple):
    """The features of rows. G is 1 if all latent functions share their features, else L."""

    phi: tf.Tensor  #: [G, N, M], projections on the whitened inducing variables
    residual: tf.Tensor  #: [N, L] or [N, 1], k(x, x) - |phi|^2
    mean: tf.Tensor  #: [N, L] or [N, 1], prior mean


class Projected(NamedTuple):
    """Rows, projected by a model."""

    batch: Batch
    features: Features

    @check_shapes("index: [B]", "return.features.phi: [G, B, M]")
    def take(self, index: tf.Tensor) -> Projected:
        """:return: the rows at these indices, in order."""
        phi = tf.gather(self.features.phi, index, axis=1)
        residual, mean = take((self.features.residual, self.features.mean), index)
        return Projected(take(self.batch, index), Features(phi, residual, mean))

    @check_shapes("return.features.phi: [G, N, M]")
    def in_precision(self, dtype: tf.DType) -> Projected:
        """:return: the rows with phi, and hence the large products, in `dtype`."""
        phi = tf.cast(self.features.phi, dtype)
        return self._replace(features=self.features._replace(phi=phi))

    @staticmethod
    def joined(parts: list[Projected]) -> Projected:
        """:return: the concatenated rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        phi = tf.concat([part.features.phi for part in parts], axis=1)
        columns = [(part.batch, part.features.residual, part.features.mean) for part in parts]
        batch, residual, mean = joined(columns)
        return Projected(batch, Features(phi, residual, mean))


@check_shapes("X: [N, D]", "Lz: [G, M, M]", "return.phi: [G, N, M]", "return.residual: [N, .]")
def project(prior: Prior, X: tf.Tensor, Lz: tf.Tensor) -> Features:
    """:return: phi = (Lz^-1 Kuf)^T, Lz from `prior_factor`, and the residual prior variance."""
    kernel = prior.kernel
    Kuf_ = Kuf(prior.inducing_variable, kernel, X)
    Kuf_ = Kuf_[None] if len(Kuf_.shape) == 2 else Kuf_  # [G, M, N]
    A = tf.linalg.triangular_solve(Lz, Kuf_)
    latent = getattr(kernel, "latent_kernels", (kernel,))
    Kff = tf.stack([k(X, full_cov=False) for k in latent], axis=-1)  # [N, L] or [N, 1]
    explained = tf.linalg.matrix_transpose(tf.reduce_sum(tf.square(A), axis=-2))  # [N, G]
    return Features(tf.linalg.matrix_transpose(A), Kff - explained, prior.mean_function(X))


@check_shapes("batch.X: [N, D]", "how.jitter: []", "return.features.phi: [G, N, M]")
def project_batch(prior: Prior, batch: Batch, how: Floats) -> Projected:
    """:return: rows projected with the current hyperparameters, inside a graph."""
    rows = Projected(batch, project(prior, batch.X, prior_factor(prior, how.jitter)))
    return rows if how.one is None else rows.in_precision(how.one.dtype)


compiled_project = Compiled(project)
