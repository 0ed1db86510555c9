"""What the engine asks of a model, and how it opens data for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.inducing_variables import InducingPoints
from gpflow.likelihoods import Likelihood

from ..checks import check_whole
from ..data.checks import check_data, check_inputs
from ..data.opening import open_source
from ..data.pieces import Origin
from ..data.readers import Reader
from ..data.sources import Source
from ..likelihoods.base import Classification
from ..likelihoods.hooks import check_labels, is_shift_invariant
from ..likelihoods.labels import label_columns
from .natural import Natural
from .projection import Features, Prior

#: Feature entries of a chunk: large enough for fast products, small enough for any machine.
CHUNK_ENTRIES = 2**21


#: Variances of f, in squared margins, from which on float64 does not tell one margin from the next.
MOST_VARIANCE = 1e24


class Model(Protocol):
    """
    All that an algorithm or a prediction asks of a model. Those of `gpflow_bsvm.models` have it; so
    has anything else that is Gaussian in whitened features.

    :ivar likelihood: any of GPflow's or of this package's; see `gpflow_bsvm.likelihoods.hooks` for
        what an algorithm may ask of it.
    :ivar num_data: rows in all, where a fit sees a part of them; None: those that it sees.
    """

    likelihood: Likelihood
    num_data: Any

    @property
    def prior(self) -> Prior:
        """:return: kernel, inducing variable and mean function."""

    @property
    def num_features(self) -> tuple[int, int]:
        """:return: number of latent functions L and of features M of each."""

    @property
    def num_feature_groups(self) -> int:
        """:return: 1 where all latent functions share their features, else L."""

    @property
    def jitter(self) -> float:
        """:return: what is added to the diagonal of the prior's covariance."""

    def projector(self) -> Callable[[tf.Tensor], Features]:
        """:return: X [N, D] -> features, at the present hyperparameters."""

    def natural(self) -> Natural:
        """:return: q in natural parameters."""

    def assign_natural(self, natural: Natural) -> None:
        """Store q."""

    def hyperparameters(self) -> dict[str, gpflow.Parameter | tf.Variable]:
        """:return: what is trainable beside q, by GPflow's names."""


def check_model(model: Any) -> None:
    """
    :raise TypeError: if `model` is none that the package's algorithms can fit, or was frozen.
    :raise ValueError: for a `num_data` that is no number of rows.
    """
    if not all(hasattr(model, name) for name in ("projector", "natural", "assign_natural")):
        own = "its to_bsvm()" if hasattr(model, "to_bsvm") else "gpflow_bsvm.models.BSVM"
        own = getattr(model, "fitted_by", own)
        raise TypeError(
            f"{type(model).__name__} has no closed-form steps: use {own} in its place, or one of "
            "GPflow's optimisers"
        )
    check_num_data(model.num_data)
    if isinstance(getattr(model, "q_mu", None), tf.Tensor):
        raise TypeError(
            "the model was frozen (gpflow.utilities.freeze): its parameters are constants now, for "
            "predictions; fit the model that it was made of"
        )


def check_num_data(num_data: Any) -> None:
    """:raise ValueError: unless this is a number of rows, or None."""
    try:
        known = num_data is None or (float(num_data) > 0 and float(num_data).is_integer())
    except (TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(
            f"the model's num_data must be a positive whole number or None, got {num_data!r}"
        )


def shares_shifts(model: Model) -> tf.Tensor:
    """:return: 1. where adding one function to all latent ones costs prior and nothing else."""
    shared = is_shift_invariant(model.likelihood) and model.num_feature_groups == 1
    return tf.constant(float(shared), gpflow.config.default_float())


def jitter_of(model: Model) -> tf.Tensor:
    """:return: the model's jitter, []."""
    return tf.constant(model.jitter, gpflow.config.default_float())


def prior_variance(features: Features) -> tf.Tensor:
    """:return: variance of f at these rows under the prior, [N, G]."""
    return features.residual + tf.transpose(tf.reduce_sum(tf.square(features.phi), axis=-1))


def check_margins(likelihood: Likelihood, features: Features) -> None:
    """:raise FloatingPointError: if float64 holds no margin of 1 beside the prior's variance."""
    most = float(tf.reduce_max(prior_variance(features)))
    if isinstance(likelihood, Classification) and not most < MOST_VARIANCE:
        raise FloatingPointError(
            f"the kernel's variance of f is {most:.1g} at a row, beside which float64 does not "
            f"hold a margin of 1; {SMALLER}"
        )


SMALLER = (
    "scale X (sklearn.preprocessing.StandardScaler), and take a kernel whose variance is nearer 1"
)


def chunk_rows(model: Model) -> int:
    """:return: rows to look at together, so that a chunk takes some 16 MB an array."""
    num_latents, num_features = model.num_features
    # A chunk also holds what a likelihood makes of it: some 100 quadrature nodes per latent.
    width = num_latents * max(num_features, 128)
    return int(np.clip(CHUNK_ENTRIES // width, 64, 2**14))


def open_data(model: Model, data: Any, sample_weight: Any = None, *, part: bool = False) -> Source:
    """
    Everything that a fit can be told beforehand, checked.

    :param data: whatever `gpflow_bsvm.data.open_source` takes; None: those that the model holds.
    :param sample_weight: [N], with arrays; ones if None.
    :param part: whether these are some of the rows: arrays may then hold one class only.
    :raise ValueError: for bad data or weights.
    :raise TypeError: see `check_model` and `open_source`, or if there are no data.
    """
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
    :return: the same, if the model's `num_data` differs from N as a sample of so many rows.
    """
    if model.num_data is None:
        return source
    return source.scaled(float(model.num_data) / source.num_rows)


def open_all(model: Model, data: Any, sample_weight: Any = None) -> Source:
    """As `open_data`, for passes over all the data, see `weighted`."""
    return weighted(model, open_data(model, data, sample_weight))


def open_inputs(model: Model, X: Any, size: int | None = None) -> Source:
    """
    :param X: [N, D], in memory, sparse or np.memmap; or a `Reader`, `tf.data.Dataset` or `Source`,
        whose labels, if it has any, are not looked at.
    :param size: rows to look at together; None: see `chunk_rows`.
    :return: rows without labels.
    :raise ValueError: for X that is not finite or of another width than the training data, or a
        `size` below 1.
    """
    if size is not None:
        check_whole(1, chunk_rows=size)
    data = X if isinstance(X, (Reader, Source, tf.data.Dataset)) else (X, None)
    return open_source(data, _Inputs(model), size or chunk_rows(model))


@dataclass(frozen=True)
class _Labelled:
    """What a model has to say of the rows of a fit; of a part, one class may be all there is."""

    model: Model
    part: bool = False

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D] and Y [n, P]; `origin` is None for all the data."""
        if origin is not None and Y is None:
            raise ValueError(
                "there are no labels: data must yield (X, Y) or (X, Y, sample_weight); files need "
                "target=..., the name of a column"
            )
        part, origin = self.part or origin is not None, origin or Origin()
        X, Y = check_data(self.model.likelihood, X, Y, minibatch=part, origin=origin)
        check_width(self.model, X, Y)
        _check_active_dims(self.model, X.shape[-1])
        return X, Y

    def labels(self, Y: AnyNDArray) -> None:
        """:raise ValueError: unless these may be the distinct labels of all the data."""
        check_labels(self.model.likelihood, Y, minibatch=self.part)


@dataclass(frozen=True)
class _Inputs:
    """What a model has to say of the rows of a prediction."""

    model: Model

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D], and labels of no columns."""
        X = check_inputs(X, Origin() if origin is None else origin)
        check_width(self.model, X)
        return X, np.zeros((len(X), 0), X.dtype)

    def labels(self, Y: AnyNDArray) -> None:
        """Nothing: no label is looked at."""


def check_width(model: Model, X: Any, Y: Any = None) -> None:
    """
    :raise ValueError: if X has another number of columns than the inducing points of `model`, or
        Y another number than it has latent functions (for likelihoods with one label per latent).
    """
    variable = model.prior.inducing_variable
    widths = [("the inducing points have", Z.shape[-1]) for Z in plain_points(variable)]
    widths += [("the model has", getattr(variable, "num_inputs", X.shape[-1]))]
    for what, width in widths:
        if width != X.shape[-1]:
            raise ValueError(f"X has {X.shape[-1]} columns, {what} {width}; they must agree")
    num_latents = model.num_features[0]
    columns = label_columns(model.likelihood, num_latents)
    if Y is not None and columns not in (None, Y.shape[-1]):
        index = " and then the number of a likelihood" * (columns > num_latents)
        raise ValueError(
            f"Y has {Y.shape[-1]} columns and the model {num_latents} latent functions; this "
            f"likelihood needs one label per latent function{index} (shape [N, {columns}])"
        )


def _check_active_dims(model: Model, num_columns: int) -> None:
    """:raise ValueError: if a part of the kernel looks at a column that X does not have."""
    for part in (model.prior.kernel, *model.prior.kernel.submodules):
        dims = getattr(part, "active_dims", slice(None))
        last = -1 if isinstance(dims, slice) else int(np.max(dims))
        if last >= num_columns:
            raise ValueError(
                f"{type(part).__name__} has active_dims up to {last}, X has columns 0 to "
                f"{num_columns - 1}"
            )


def plain_points(inducing_variable: Any) -> list[AnyNDArray]:
    """:return: every Z [M, D] that is made of nothing but inputs (no patches, no scales)."""
    parts = getattr(inducing_variable, "inducing_variables", (inducing_variable,))
    return [np.asarray(part.Z) for part in parts if type(part) is InducingPoints]
