"""Fits to rows not in memory: a sample determines everything but q; all rows determine q."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.base import is_classifier

from ..cluster.dask_data import dask_reader, is_of_dask
from ..data.batch import Batch, Origin
from ..data.checks import as_matrix, check_inputs, refuse_lazy
from ..data.opening import open_source
from ..data.passes import sum_over
from ..data.readers import Reader, names_of
from ..data.sampling import random_keys
from ..data.sources import Source
from ..engine.natural import compiled_gaussian, scaled_sites
from ..models import BSVM
from ..notices import warn
from ..tables.labels import MOST_CLASSES
from ..tables.paths import listed
from . import inputs, scaling
from .labels import Encoding, standardised
from .scaling import ColumnScaler
from .specification import Data
from .stages import Stages
from .training import few_of_each_first, fit_q

CHUNK_ROWS = 2**14
#: Number of random rows for learning everything but q.
SAMPLE_ROWS = 20_000


def source_of(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """
    :return: rows with their labels; None for arrays in memory; a path, which later checks refuse.
    :raise TypeError: for a query of Polars, DuckDB or Spark.
    :raise ValueError: for labels or weights beside a reader, dataset or data frame, which must
        include them.
    """
    refuse_lazy(X=X, y=y, sample_weight=sample_weight)
    if is_of_dask(X):
        return dask_reader(X, y, sample_weight)
    if not isinstance(X, (Reader, Source, tf.data.Dataset)):
        return X if isinstance(X, str | PathLike) else None  # a path is refused later
    if y is not None or sample_weight is not None:
        raise ValueError(
            "labels and weights must come with the rows if these are read piece by piece (for "
            "files: target=..., weight=...): leave out y and sample_weight"
        )
    return X


class Rows(NamedTuple):
    """Checks rows before a model exists."""

    labelled: bool = True
    num_columns: int | None = None  #: required number of columns of X, if known
    names: AnyNDArray | None = None  #: their names in training, if known

    def rows(self, X: Any, Y: Any, origin: Origin | None) -> tuple[Any, AnyNDArray]:
        """:return: X [n, D] and Y [n, 1], or [n, 0] without labels."""
        where = origin or Origin()
        X = check_inputs(X, where)
        if self.num_columns is not None:
            self._check_names(where)
        if self.num_columns not in (None, X.shape[1]):
            raise ValueError(f"X has {X.shape[1]} columns, but training had {self.num_columns}")
        if not self.labelled:
            return X, np.zeros((len(X), 0), X.dtype)
        if Y is None:
            raise ValueError("there are no labels: files need target=... with the label column")
        Y = as_matrix(np.reshape(Y, (-1, 1)) if np.ndim(Y) == 1 else Y, "Y", where)
        if Y.shape != (len(X), 1):
            raise ValueError(f"Y must be one column of {len(X)} labels, got shape {Y.shape}")
        return X, Y

    def labels(self, Y: AnyNDArray) -> None:
        """Do nothing, because `survey` checks all labels."""

    def _check_names(self, where: Origin) -> None:
        """Compare names; as in scikit-learn, warn if only X or only training has names."""
        known = () if self.names is None else (*self.names,)
        given = names_of(where.columns, self.names) or ()
        if known and given and known != given:
            raise ValueError(
                f"the columns of X are {[*given]}, but training had {[*known]}: pass "
                "features=[...] to the source, in the order of training"
            )
        if bool(known) != bool(given) and where.first_row == 0 and where.numbers is None:
            one, other = ("training had", "X has") if known else ("X has", "training had")
            warn(
                f"{one} names of columns ({listed([*known, *given])}), but {other} none: columns "
                "are taken by their places"
            )


class Survey(NamedTuple):
    """Statistics of some rows; `_merged` combines several of these."""

    values: AnyNDArray  #: [C], the labels in the source, sorted
    counts: AnyNDArray  #: [C], rows of each label
    weights: AnyNDArray  #: [C], sums of their weights
    mean: AnyNDArray  #: [C, D], of the rows of each label
    var: AnyNDArray  #: [C, D]
    kept: AnyNDArray  #: a sample: random keys, labels, weights, y, X

    @property
    def num_rows(self) -> int:
        """:return: N."""
        return int(self.counts.sum())

    @property
    def is_complete(self) -> bool:
        """:return: True if the sample contains all rows."""
        return len(self.kept) < SAMPLE_ROWS or len(self.kept) == self.num_rows

    @property
    def sample(self) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        """:return: X, Y and weights of the sample, in the order of the keys."""
        rows = self.kept[np.argsort(self.kept[:, 0])].astype(gpflow.config.default_float())
        return np.ascontiguousarray(rows[:, 4:]), rows[:, 3:4], rows[:, 2]

    def scaler(self, factors: Any = 1.0) -> ColumnScaler:
        """
        :param factors: [C, 1], or one number: factors of the rows' weights, by label.
        :return: a scaler fitted to the statistics of all rows.
        """
        scaling.refuse_overflow(self.var.T, "column {} of X is so large that its variance")
        weights = (self.weights[:, None] * factors)[:, 0] / 2
        spread = np.sqrt(self.var)
        rows = np.concatenate([self.mean - spread, self.mean + spread])  # same variance
        scaler = ColumnScaler()
        scaler.fit(rows, sample_weight=np.concatenate([weights, weights]))
        return scaler


def survey(source: Source, seed: int, classes: bool = True) -> Survey:
    """
    Collect, in one pass, the labels, means and deviations of columns, and random rows, including a
    few of every class. Rows of weight 0 are only counted.

    :param classes: whether labels are classes; if not, all rows belong to one class.
    :raise ValueError: for labels that are not classes.
    """
    seen = sum_over(source, partial(_look, seed, classes), add=_merged)
    return Survey._make(map(np.asarray, seen))  # clusters return tensors


def _look(seed: int, classes: bool, batch: Batch) -> Survey:
    X, Y, weight = map(np.asarray, batch)
    y = Y[:, :1] if Y.shape[1] else np.zeros((len(X), 1))  # if rows have no labels
    label = y if classes else np.zeros_like(y)
    rows = np.column_stack([random_keys(batch, seed), label, weight, y, X])[weight[:, 0] > 0]
    counts = np.ones(len(X), int)
    known = np.where(weight > 0, X, 0.0)  # weight 0 times an infinite square would be NaN
    return _merged(Survey(label[:, 0], counts, weight[:, 0], known, np.zeros_like(known), rows))


def _merged(*surveys: Survey) -> Survey:
    """
    :param surveys: statistics of parts of the rows; a label may have several entries.
    :return: one entry for each label; `kept` has the smallest keys, and a few rows of each label.
    """
    parts = Survey._make(map(np.concatenate, zip(*surveys)))
    values, index = np.unique(parts.values, return_inverse=True)
    if len(values) > MOST_CLASSES:
        raise ValueError(
            f"there are more than {MOST_CLASSES} labels, too many for classes: name the right "
            "column with target=..., or use BSVMRegressor"
        )
    counts, weights = (np.bincount(index, part) for part in (parts.counts, parts.weights))
    share = parts.weights / np.where(weights > 0, weights, 1.0)[index]
    mean = _sums(share, parts.mean, index)
    var = _sums(share, parts.var + (parts.mean - mean[index]) ** 2, index)
    rows = parts.kept[np.argsort(parts.kept[:, 0])]
    some = few_of_each_first(rows[:, 1])[:SAMPLE_ROWS]
    return Survey(values, counts, weights, mean, var, rows[some])


def _sums(share: AnyNDArray, columns: AnyNDArray, index: AnyNDArray) -> AnyNDArray:
    """:return: [C, D], for each label the sums of `columns` [n, D] times `share` [n]."""
    return np.stack([np.bincount(index, share * column) for column in columns.T], axis=-1)


def prepared(source: Source, estimator: Any, encoding: Encoding) -> Source:
    """:return: the rows as inputs of an estimator's model: scaled, with encoded labels."""
    return source.viewed(partial(_prepared, estimator.scaler_, encoding, estimator.fill_))


def _prepared(
    scaler: ColumnScaler | None, encoding: Encoding, fill: AnyNDArray | None, batch: Batch
) -> Batch:
    X = inputs.filled(np.asarray(batch.X), fill)
    X = tf.constant(X if scaler is None else scaler.transform(X), batch.X.dtype)
    targets, factors = encoding(batch.Y.numpy())
    return Batch(X, tf.constant(targets, batch.Y.dtype), batch.weight * factors)


def fit_large(estimator: Any, rows: Any, stages: Stages) -> None:
    """
    Select options and learn the kernel on a sample. Then fit q to all rows, unless the sample
    contains all of them. The start is the sample's q, scaled to the number of rows.

    :param estimator: a `BSVMEstimator`; it is fitted in place.
    :raise ValueError: as in `survey`, or if all weights are 0.
    """
    source: Any = open_source(rows, Rows(estimator._labelled), CHUNK_ROWS)
    seed = stages.seed(estimator, source)
    found = _surveyed(estimator, source, seed, stages)
    estimator.fill_ = None
    encoding = estimator._learn_survey(rows, found)
    names = getattr(rows, "features", getattr(source, "names", None))
    sample, codes = _learn_inputs(estimator, found, encoding, names)
    num_rows = None if found.is_complete else found.num_rows
    spec = estimator._learn_model(sample, codes, seed, stages, num_rows)
    if not found.is_complete:
        scale_up(estimator.model_, float(found.weights.sum() / found.sample[-1].sum()))
        every = prepared(source, estimator, encoding)
        estimator.history_ = fit_q(spec, estimator.model_, every, "q of all rows")
    estimator._found(spec, sample)
    vars(estimator).pop("feature_names_in_", None)  # left by an earlier fit
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def _surveyed(estimator: Any, source: Any, seed: int, stages: Stages) -> Survey:
    """:return: the survey of the rows; the source's number of rows is set from it."""
    stages.begin("rows", "looking at all rows")
    found: Survey = stages.result("survey", partial(survey, source, seed, is_classifier(estimator)))
    inputs.check_weighs(found.weights)
    source.known_rows = found.num_rows
    if found.is_complete and stages.place("survey"):  # the source checks its rows as it reads them
        for _ in source.chunks():
            pass
    return found


def _learn_inputs(
    estimator: Any, found: Survey, encoding: Encoding, names: Any
) -> tuple[Data, Sequence[int]]:
    """:return: the sample as the model's input, and the columns of codes; sets the scaler."""
    X, Y, weight = found.sample
    estimator.n_features_in_ = X.shape[1]
    data, copies = inputs.counted(X, Y, weight[:, None], encoding)
    inputs.warn_of_weights(data[2])
    data = inputs.merge_equal(data, copies)
    if found.is_complete:  # scaled as in memory, exactly: k-means enlarges rounding errors
        scaler = scaling.make_scaler(data[0], data[2])
    else:
        scaler = found.scaler(encoding(found.values[:, None])[1])
    sample: tuple[Data, Sequence[int]] = estimator._learn_scale(data, scaler, names)
    return sample


def scale_up(model: BSVM, factor: float) -> None:
    """Change q as if each row, and so its site, occurred `factor` times."""
    sums = scaled_sites(model.natural(), factor)
    model.assign_natural(compiled_gaussian(sums, tf.zeros([], sums.h.dtype))[0])


def open_later(rows: Any, estimator: Any, labelled: bool = True) -> Source:
    """
    :return: the rows as inputs for the estimator's model, with labels if `labelled`.
    :raise ValueError: for unknown labels; while reading, for columns that differ from the fit.
    """
    names = getattr(estimator, "feature_names_in_", None)
    source = open_source(rows, Rows(labelled, estimator.n_features_in_, names), CHUNK_ROWS)
    encoding = estimator._encoding(rows) if labelled else standardised  # there are no labels
    return prepared(source, estimator, encoding)
