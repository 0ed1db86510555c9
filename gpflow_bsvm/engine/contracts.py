"""The model interface that the engine requires, and checks of data for a model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from ..checks import check_whole
from ..data.batch import Origin
from ..data.checks import check_data, check_inputs, check_size
from ..data.opening import open_source
from ..data.readers import Reader
from ..data.sources import Source
from ..likelihoods.base import check_closed_form, has_hook
from ..likelihoods.labels import check_labels, check_latents, label_columns
from ..notices import warn
from .natural import Natural
from .projection import (
    Features,
    Prior,
    check_codes,
    check_independent,
    check_kernel,
    check_mean,
    compiled_project,
    parts_of,
    plain_parts,
    plain_points,
    values_of,
)
from .shared_graph import first_in_fit
from .structure import look_into, named_parameters

#: Feature entries per chunk: large enough for fast products, small enough for any machine.
CHUNK_ENTRIES = 2**21


class Model(Protocol):
    """
    The interface that algorithms and predictions use. Any model that is Gaussian in whitened
    features can implement it, as the models of `gpflow_bsvm.models` do.

    :ivar likelihood: any likelihood of GPflow or this package, see `gpflow_bsvm.likelihoods.base`.
    :ivar num_data: total number of rows if a fit uses a sample; None if it uses all rows.
    """

    likelihood: Likelihood
    num_data: Any

    @property
    def prior(self) -> Prior:
        """:return: kernel, inducing variable and mean function."""

    @property
    def q_shape(self) -> tuple[int, int]:
        """:return: number of latent functions L, and of features M per function."""

    @property
    def num_feature_groups(self) -> int:
        """:return: 1 if all latent functions share their features, else L."""

    @property
    def jitter(self) -> float:
        """:return: the number added to the diagonal of the prior's covariance."""

    def prior_factor(self) -> tf.Tensor:
        """:return: Lz [G, M, M], Lz Lz^T = Kuu + jitter I, at the current hyperparameters."""

    def natural(self) -> Natural:
        """:return: q in natural parameters."""

    def predict_f(self, Xnew: Any, full_cov: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean of f, [N, L], and variance, [N, L], or covariance, [L, N, N]."""

    def predictor(self, finish: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """:return: a function from X [N, D] to marginals of f, or to `finish` of them."""

    def assign_natural(self, natural: Natural) -> None:
        """Store q."""

    def hyperparameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """:return: trainable parameters besides q, by GPflow's names."""


def check_model(model: Model) -> None:
    """
    :raise TypeError: if the package's algorithms cannot fit `model`, if it is frozen, or if it was
        made in the scope of a `tf.distribute` strategy.
    :raise ValueError: for an invalid `num_data`, and as in `check_closed_form`.
    """
    if not all(hasattr(model, name) for name in ("prior_factor", "natural", "assign_natural")):
        own = "its to_bsvm()" if hasattr(model, "to_bsvm") else "gpflow_bsvm.models.BSVM"
        own = getattr(model, "fitted_by", own)
        raise TypeError(
            f"{type(model).__name__} has no closed-form steps: use {own} in its place, or one of "
            "GPflow's optimizers"
        )
    check_closed_form(model.likelihood)
    check_num_data(model.num_data)
    if isinstance(getattr(model, "q_mu", None), tf.Tensor):
        raise TypeError(
            "the model was frozen (gpflow.utilities.freeze): its parameters are constants, for "
            "predictions only; fit the original model"
        )
    check_floats(model)
    for name, parameter in named_parameters(model).items():
        variable = getattr(parameter, "unconstrained_variable", parameter)
        if isinstance(variable, tf.distribute.DistributedValues):
            raise TypeError(
                f"the model's {name} is a distributed variable, on which gpflow.set_trainable has "
                "no effect: make and fit the model outside of strategy.scope()"
            )


def check_prior(model: Model, num_latents: int) -> None:
    """:raise TypeError: or ValueError, if the parts of a model do not fit each other."""
    prior = model.prior
    check_independent(type(model).__name__, prior.kernel, prior.inducing_variable)
    check_latents(model.likelihood, num_latents, prior.kernel)
    for Z in plain_points(prior.inducing_variable):
        check_active_dims(prior.kernel, Z.shape[-1], "Z")  # a GPU would read 0 there
        values_of(prior.kernel, Z[:1])
        check_mean(prior.mean_function, Z, num_latents)


def check_q(model: Any) -> None:
    """:raise ValueError: for a prior on a parameter of q, which closed-form steps would ignore."""
    for name in ("q_mu", "q_sqrt"):
        if getattr(getattr(model, name, None), "prior", None) is not None:
            raise ValueError(
                f"{name} has a prior, which closed-form steps of q ignore: set it to None, or use "
                "one of GPflow's optimizers"
            )


def check_floats(model: Any) -> None:
    """:raise ValueError: for a parameter whose float type is not GPflow's default."""
    default = tf.as_dtype(gpflow.config.default_float())
    for name, parameter in named_parameters(model).items():
        dtype = parameter.dtype
        if isinstance(parameter, gpflow.Parameter) and dtype.is_floating and dtype != default:
            raise ValueError(
                f"the model's {name} is {dtype.name}, but gpflow.config.default_float() is "
                f"{default.name}: call gpflow.config.set_default_float({dtype.name!r}), or "
                "construct the model and its parts again"
            )


def check_num_data(num_data: Any) -> None:
    """:raise ValueError: unless this is a positive integer or None."""
    with contextlib.suppress(TypeError, ValueError):
        if num_data is None or (float(num_data) > 0 and float(num_data).is_integer()):
            return
    raise ValueError(
        f"the model's num_data must be a positive whole number or None, got {num_data!r}"
    )


@check_shapes("return: []")
def shares_shifts(model: Model) -> tf.Tensor:
    """:return: 1. if adding one function to all latent functions changes only the prior, else 0."""
    shared = has_hook(model.likelihood, "shift_invariant") and model.num_feature_groups == 1
    return tf.constant(float(shared), gpflow.config.default_float())


@check_shapes("return: []")
def jitter_of(model: Model) -> tf.Tensor:
    """:return: the model's jitter as a tensor."""
    return tf.constant(model.jitter, gpflow.config.default_float())


@check_shapes("X: [N, D]", "return.phi: [G, N, M]", "return.residual: [N, .]")
def features_of(model: Model, X: tf.Tensor) -> Features:
    """:return: the features of these rows."""
    return cast(Features, compiled_project.bind(model.prior)(X, model.prior_factor()))


def chunk_rows(model: Model) -> int:
    """:return: number of rows per chunk, for arrays of about 16 MB."""
    num_latents, num_inducing = model.q_shape
    # Likelihoods need about 100 quadrature nodes per row and latent function.
    width = num_latents * max(num_inducing, 128)
    return int(np.clip(CHUNK_ENTRIES // width, 64, 2**14))


def check_width(model: Model, X: Any, Y: Any = None) -> None:
    """
    :raise ValueError: if X and the inducing points have different numbers of columns; if Y does not
        have one column per latent function (for likelihoods that need this); if the number of
        inducing points has changed.
    """
    variable = model.prior.inducing_variable
    parts = plain_parts(variable)
    # A shape costs nothing; `num_inducing` of plain points is a TensorFlow operation.
    number = parts[0].Z.shape[0] if parts else int(variable.num_inducing)
    if hasattr(model, "q_mu") and model.q_mu.shape[0] != number:
        raise ValueError(
            f"q has {model.q_mu.shape[0]} inducing points, but the model now has {number}: use "
            "gpflow_bsvm.inducing_points.exchange(model, Z), which also updates q"
        )
    widths = [("the inducing points have", part.Z.shape[-1]) for part in parts]
    widths += [("the model has", getattr(variable, "num_inputs", X.shape[-1]))]
    for what, width in widths:
        if width != X.shape[-1]:
            raise ValueError(f"X has {X.shape[-1]} columns, {what} {width}; they must agree")
    num_latents = model.q_shape[0]
    columns = label_columns(model.likelihood, num_latents)
    if Y is not None and columns not in (None, Y.shape[-1]):
        index = " and then the number of a likelihood" * (columns > num_latents)
        raise ValueError(
            f"Y has {Y.shape[-1]} columns, and the model has {num_latents} latent functions; this "
            f"likelihood needs one label per latent function{index} (shape [N, {columns}])"
        )


def check_active_dims(kernel: Kernel, num_columns: int, name: str = "X") -> None:
    """:raise ValueError: if a part of the kernel uses a column that its inputs do not have."""
    for part in parts_of(kernel):
        dims = part.active_dims
        last = -1 if isinstance(dims, slice) else int(np.max(dims))
        if last >= num_columns:
            raise ValueError(
                f"{type(part).__name__} has active_dims up to {last}, but {name} has columns 0 to "
                f"{num_columns - 1}"
            )


def networks_in(modules: Iterable[Any]) -> list[Any]:
    """:return: parts of these modules with the methods of `gpflow_bsvm.deep.DeepKernel`."""
    parts = [p for module in modules for p in (module, *getattr(module, "submodules", ()))]
    return [part for part in dict.fromkeys(parts) if hasattr(part, "learned_weights")]


def as_variables(variables: Sequence[Any]) -> list[tf.Variable]:
    """:return: TensorFlow variables; Keras 3 wraps them."""
    return [v if isinstance(v, tf.Variable) else v.value for v in variables]


def open_data(model: Model, data: Any, sample_weight: Any = None, *, part: bool = False) -> Source:
    """
    Check model and data before a fit.

    :param data: see `gpflow_bsvm.data`; if None, the model's data.
    :param sample_weight: [N], only with arrays; if None, all are 1.
    :param part: whether `data` are only a part of the rows, so that arrays may hold a single class.
    :raise ValueError: for bad data or weights.
    :raise TypeError: see `check_model`; for data of another kind, or None if the model stores none.
    :raise RuntimeError: inside a `tf.function`.
    """
    if not tf.executing_eagerly():
        raise RuntimeError("call this outside of tf.function: it compiles its own steps")
    check_model(model)
    if data is None:
        if not hasattr(model, "data"):
            kind = type(model).__name__
            raise TypeError(f"{kind} holds no data: give (X, Y) as the second argument")
        data = tuple(part.numpy() for part in model.data)
    return open_source(data, _Labelled(model, part), chunk_rows(model), sample_weight)


def weighted(model: Model, source: Source) -> Source:
    """
    :param source: all the data.
    :return: the source, weighted to count as the model's `num_data` rows.
    """
    if model.num_data is None:
        return source
    return source.scaled(float(model.num_data) / source.num_rows)


def warn_of_fewer_rows(model: Model, num_rows: int) -> None:
    """Warn if the rows of a fit, at least `num_rows`, outnumber the model's `num_data`."""
    num_data = math.inf if model.num_data is None else float(model.num_data)
    if num_data < num_rows:
        warn(
            f"the model's num_data is {num_data:.0f}, but the data have {num_rows} rows: "
            f"each row counts as {num_data / num_rows:.3g} rows; set num_data to the number "
            "of all rows, or to None"
        )


def open_all(model: Model, data: Any, sample_weight: Any = None) -> Source:
    """As in `open_data`, with rows `weighted`, for passes over all the data."""
    return weighted(model, open_data(model, data, sample_weight))


def open_inputs(model: Model, X: Any, size: int | None = None) -> Source:
    """
    :param X: [N, D], in memory, sparse or np.memmap; or a `Reader`, `tf.data.Dataset` or `Source`,
        whose labels, if any, are ignored.
    :param size: rows per chunk; if None, see `chunk_rows`.
    :return: rows without labels.
    :raise ValueError: if X is not finite or not as wide as in training, or for a `size` below 1.
    """
    if size is not None:
        check_whole(1, chunk_rows=size)
    data = X if isinstance(X, (Reader, Source, tf.data.Dataset)) else (X, None)
    return open_source(data, _Inputs(model), size or chunk_rows(model))


@dataclass(frozen=True)
class _Labelled:
    """A model's check of the rows of a fit; with `part`, they may hold a single class."""

    model: Model
    part: bool = False

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D] and Y [n, P]; `origin` is None for all the data."""
        if origin is not None and Y is None:
            raise ValueError(
                "there are no labels: data must yield (X, Y) or (X, Y, sample_weight); files need "
                "target=..., the name of a column"
            )
        part = self.part or origin is not None
        origin = origin or Origin()
        X, Y = check_data(self.model.likelihood, (X, Y), minibatch=part, origin=origin)
        check_size(X, origin)
        check_width(self.model, X, Y)
        check_active_dims(self.model.prior.kernel, X.shape[-1])
        check_codes(self.model.prior.kernel, X)
        if origin.first_row == 0 and origin.numbers is None:
            self._check_prior(X)
        return X, Y

    def _check_prior(self, X: Any) -> None:
        """Check once in each fit of an estimator: priors of its models differ only in values."""
        prior = self.model.prior
        num_latents = self.model.q_shape[0]
        structure = look_into((prior.kernel, prior.mean_function)).key
        if first_in_fit(("prior", structure, X.shape[-1], num_latents)):
            check_kernel(prior.kernel, X)
            check_mean(prior.mean_function, X, num_latents)

    def labels(self, Y: AnyNDArray) -> None:
        """:raise ValueError: if `Y` cannot be the distinct labels of all the data."""
        check_labels(self.model.likelihood, Y, minibatch=self.part)


class _Inputs(_Labelled):
    """A model's check of the rows of a prediction."""

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D], and labels without columns."""
        X = check_inputs(X, Origin() if origin is None else origin)
        check_width(self.model, X)
        check_codes(self.model.prior.kernel, X)
        return X, np.zeros((len(X), 0), X.dtype)

    def labels(self, Y: AnyNDArray) -> None:
        """Do nothing: labels are ignored."""
