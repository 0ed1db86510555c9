"""Open and check data for a model, in chunks of suitable size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_whole
from ..data.batch import Origin
from ..data.checks import check_data, check_inputs, check_size
from ..data.opening import open_source
from ..data.readers import Reader
from ..data.sources import Source
from ..likelihoods.hooks import check_labels
from ..notices import warn
from .contracts import Model, check_model, check_width, chunk_rows
from .kernel_check import check_codes, check_kernel, check_mean
from .shared_graph import first_in_fit
from .structure import look_into


def open_data(model: Model, data: Any, sample_weight: Any = None, *, part: bool = False) -> Source:
    """
    Check model and data before a fit.

    :param data: see `gpflow_bsvm.data.open_source`; None: the model's data.
    :param sample_weight: [N], only with arrays; None: ones.
    :param part: whether `data` are only some of the rows, so that arrays may hold a single class.
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
    :return: the source, rescaled to the model's `num_data` rows if that differs from N.
    """
    if model.num_data is None:
        return source
    return source.scaled(float(model.num_data) / source.num_rows)


def warn_of_fewer_rows(model: Model, source: Source) -> None:
    """Warn if the rows of a fit outnumber the model's `num_data`."""
    if model.num_data is None or not source.counted:
        return
    num_data = float(model.num_data)
    if num_data < source.num_rows:
        warn(
            f"the model's num_data is {num_data:.0f}, but the data have {source.num_rows} rows: "
            f"each row counts as {num_data / source.num_rows:.3g} rows; set num_data to the number "
            "of all rows, or to None"
        )


def open_all(model: Model, data: Any, sample_weight: Any = None) -> Source:
    """As in `open_data`, with rows `weighted`, for passes over all the data."""
    return weighted(model, open_data(model, data, sample_weight))


def open_inputs(model: Model, X: Any, size: int | None = None) -> Source:
    """
    :param X: [N, D], in memory, sparse or np.memmap; or a `Reader`, `tf.data.Dataset` or `Source`,
        whose labels, if any, are ignored.
    :param size: rows per chunk; None: see `chunk_rows`.
    :return: rows without labels.
    :raise ValueError: if X is not finite or not as wide as the training data, or for a `size` below
        1.
    """
    if size is not None:
        check_whole(1, chunk_rows=size)
    data = X if isinstance(X, (Reader, Source, tf.data.Dataset)) else (X, None)
    return open_source(data, _Inputs(model), size or chunk_rows(model))


@dataclass(frozen=True)
class _Labelled:
    """A model's check of a fit's rows; a part of the data may hold a single class."""

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
        _check_active_dims(self.model, X.shape[-1])
        check_codes(self.model.prior.kernel, X)
        if origin.first_row == 0 and origin.numbers is None:
            self._check_prior(X)
        return X, Y

    def _check_prior(self, X: Any) -> None:
        """Check once in each fit of an estimator, because its models differ only in values."""
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


def _check_active_dims(model: Model, num_columns: int) -> None:
    """:raise ValueError: if a part of the kernel uses a column that X does not have."""
    for part in (model.prior.kernel, *model.prior.kernel.submodules):
        dims = getattr(part, "active_dims", slice(None))
        last = -1 if isinstance(dims, slice) else int(np.max(dims))
        if last >= num_columns:
            raise ValueError(
                f"{type(part).__name__} has active_dims up to {last}, but X has columns 0 to "
                f"{num_columns - 1}"
            )
