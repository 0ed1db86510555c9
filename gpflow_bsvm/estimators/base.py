"""The base class of all estimators: it checks rows, fits the model, and converts later rows."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeVar

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..checkpoints.directory import Directory
from ..data.sources import ArraySource
from ..engine.contracts import open_data
from ..engine.shared_graph import one_fit
from ..engine.structure import check_process, copied
from ..inference import History, Streaming
from ..models import BSVM
from ..notices import told_by
from . import inputs, scaling
from .candidates import Candidate
from .choice import chosen_model
from .columns import Attributes, unscaled_columns
from .labels import Encoding, check_known, known_labels
from .large import CHUNK_ROWS, Survey, fit_large, open_later, source_of
from .options import check_options, in_words_of_estimators
from .scaling import ColumnScaler
from .specification import Data, Specification
from .stages import Stages
from .training import steeper, train

E = TypeVar("E", bound="BSVMEstimator")


@dataclass(eq=False, repr=False)
class BSVMEstimator(Attributes, BaseEstimator):
    """
    A scikit-learn estimator that contains a `BSVM`. Subclasses define the encoding of labels
    (`_learn_labels`, `_encoding`) and the model to train (`_specify`, `_candidates`).
    """

    kernel: Kernel | str | None = None
    _: KW_ONLY
    standardize: bool = True
    impute: bool = False
    random_state: int | np.random.RandomState | None = None
    chunk_rows: int | None = None
    verbose: bool = False

    model_: BSVM = field(init=False)
    scaler_: ColumnScaler | None = field(init=False)
    history_: History = field(init=False)
    seconds_: dict[str, float] = field(init=False)
    fill_: AnyNDArray | None = field(init=False)
    n_features_in_: int = field(init=False)
    penalty_: float = field(init=False)

    #: Whether rows need labels.
    _labelled: ClassVar[bool] = True

    def set_params(self: E, **params: Any) -> E:
        """
        As in scikit-learn.

        :raise ValueError: for a part of an option, such as `kernel__variance`: GPflow's kernels
            have no `set_params`.
        """
        for name in params:
            owner, _, part = name.partition("__")
            if part and owner in self.get_params(deep=False):
                raise ValueError(
                    f"{name} cannot be set, because {owner} has no set_params (scikit-learn's "
                    f"estimators have it): give a whole {owner}, for instance as one of several in "
                    f'a grid, {{"{owner}": [...]}}'
                )
        super().set_params(**params)
        return self

    @abstractmethod
    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, AnyNDArray]:
        """:return: rows and labels after scikit-learn's checks."""

    @abstractmethod
    def _learn_labels(self, y: AnyNDArray, weight: AnyNDArray) -> Encoding:
        """Learn the encoding of labels [N] for the model; return it."""

    @abstractmethod
    def _learn_survey(self, rows: Any, found: Survey) -> Encoding:
        """:return: the encoding, learned from a survey of rows that are not in memory."""

    @abstractmethod
    def _encoding(self, rows: Any = None) -> Encoding:
        """:return: the encoding for labels after the fit (or for the labels in `rows`)."""

    @abstractmethod
    def _specify(self, seed: int, data: Data) -> Specification:
        """:return: the specification of the model for these rows."""

    def _candidates(self, spec: Specification) -> Sequence[Candidate]:
        """:return: losses and penalties to select from."""
        return (Candidate(spec.loss, spec.penalty),)

    def _found(self, spec: Specification, data: Data) -> None:
        """Store the selected options. `model_` is already fitted to all rows."""

    def fit(
        self: E,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        checkpoint: Directory | None = None,
    ) -> E:
        """
        If a fit fails or is interrupted, the estimator keeps its previous state. If the rows are
        not in memory, one pass draws 20 000 random rows, which determine all options, and the model
        except q. If there are more rows, a few more passes fit q to all of them.

        :param X: [N, D] numbers: an array, a data frame or, for kernel="linear", a sparse matrix;
            or a source of rows and their labels: `gpflow_bsvm.files.ParquetFiles`, `CSVFiles`,
            `Blocks`, `DaskFrame`, a `tf.data.Dataset` or a Dask array.
        :param y: [N] numbers, strings or truth values, from at least two classes; for a regressor,
            numbers; None if X includes the labels; ignored by a one-class estimator.
        :param sample_weight: [N], the power of each row's likelihood: a row of weight 2 counts
            twice, a row of weight 0 does not count. Weights with a sum of at most 1 (in later calls
            of `partial_fit`, of 1) are rescaled to mean 1; rows read piece by piece keep their
            weights, with a warning if these are small. If all weights are whole numbers, one
            repetition of a row of weight 2 may be held out; if not, a whole row.
        :param checkpoint: a directory for this fit alone. If this process dies, the same call in
            another process continues the fit, and returns the same model.
        :raise TypeError: for parameters of a wrong type.
        :raise ValueError: for NaN, infinity or overflow, missing labels, a single class, negative
            weights, a checkpoint of another fit, or input that scikit-learn rejects.
        :raise RuntimeError: in a fork of a process that ran TensorFlow.
        """
        check_process()
        check_options(self)
        new = copy.copy(self)
        new.__dict__.pop("fill_", None)
        y = y if self._labelled else None
        rows = source_of(X, y, sample_weight)
        stages = Stages(checkpoint, bool(self.verbose))
        # The user's kernel is compiled once, not in every inner fit.
        with one_fit(), told_by(in_words_of_estimators), stages:
            if rows is not None:
                fit_large(new, rows, stages)
            else:
                new._fit_arrays(new._validate(X, y, sample_weight), stages)
        new.seconds_ = stages.seconds
        self.__dict__ = new.__dict__  # all at once
        return self

    def _fit_arrays(self, data: Data, stages: Stages) -> None:
        scaler = scaling.make_scaler(data[0], data[2])
        data, codes = self._learn_scale(data, scaler, getattr(self, "feature_names_in_", None))
        X, Y, weight = data
        stages.units |= {
            "scale of X": scaling.digest_of(self.scaler_, X.shape[1]),
            "number of classes": str(len(getattr(self, "classes_", ()))),  # some may lack rows
        }
        seed = stages.seed(self, ArraySource(X, Y, weight[:, None], CHUNK_ROWS))
        self._found(self._learn_model(data, codes, seed, stages), data)

    def _learn_scale(
        self, data: Data, scaler: ColumnScaler, names: Any
    ) -> tuple[Data, Sequence[int]]:
        """:return: the scaled rows, and the columns of codes."""
        X, Y, weight = data
        codes = unscaled_columns(self.kernel, X, self.fill_)
        scaling.scale_two_values(scaler, X)
        scaler.mean_[codes] = 0.0
        scaler.scale_[codes] = 1.0
        # Numbers y are often proportional to skewed columns, and a transform would hide outliers.
        if is_classifier(self) and self.standardize and self.kernel is None:
            scaler.take_logs(X, weight)
        self.scaler_ = scaler if self.standardize else None
        Z = scaling.scale(self.scaler_, X)
        if self.standardize:
            scaling.warn_of_extremes(X, Z, names)
        return (Z, Y, weight), codes

    def _learn_model(
        self,
        data: Data,
        codes: Sequence[int],
        seed: int,
        stages: Stages,
        num_rows: int | None = None,
    ) -> Specification:
        """Fit `model_` to scaled rows; if they are a sample, `num_rows` counts all rows."""
        spec = self._specify(seed, data)
        spec = spec._replace(codes=tuple(codes), num_rows=num_rows, stages=stages)
        spec, begun = chosen_model(spec, self._candidates(spec), data)
        self.model_, self.history_ = train(spec, data, begun)
        if spec.steeper:
            spec, self.model_ = steeper(spec, self.model_, data, begun.history is not None)
        return spec

    def _partial_fit(
        self: E,
        X: Any,
        y: Any,
        sample_weight: Any,
        forget: float,
        checkpoint: Directory | None,
    ) -> E:
        algorithm = Streaming(forget=forget)
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight, checkpoint)
        check_process()
        new = copy.copy(self)
        if (rows := source_of(X, y, sample_weight)) is None:
            X, Y, weight = self._validate(X, y, sample_weight, reset=False)
            source = open_data(self.model_, (scaling.scale(self.scaler_, X), Y), weight, part=True)
        else:
            source = open_later(rows, self)
        new.model_ = copied(self.model_)
        with told_by(in_words_of_estimators):
            new.history_ = algorithm.run(
                new.model_, source, progress=bool(self.verbose), checkpoint=checkpoint
            )
        self.__dict__ = new.__dict__
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Data:
        """
        :param reset: whether columns and labels may differ from an earlier fit.
        :return: X, encoded labels [N, 1], and positive weights; rows of weight 0 are left out, and
            for a new fit, equal rows are merged.
        """
        if self._labelled:
            check_known(y)
        X, y = self._checked(X, y, reset)
        weight = inputs.repetitions(sample_weight, len(y), 0.0 if reset else 1 - 1e-6)
        encoding = self._learn_labels(y, weight[:, 0]) if reset else self._encoding()
        (X, Y, weight), copies = inputs.counted(X, y[:, None], weight, encoding)
        if reset or weight.sum() <= 1 < len(weight):
            inputs.warn_of_weights(weight)
        if not reset:
            return inputs.filled(X, self.fill_), Y, weight
        self.fill_ = inputs.medians(X, weight, self.kernel) if self.impute else None
        return inputs.merge_equal((inputs.filled(X, self.fill_), Y, weight), copies)

    @property
    def _how(self) -> dict[str, Any]:
        """:return: options of `validate_data`."""
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        has_fill = getattr(self, "fill_", ()) is not None  # `impute` may be set after the fit
        return {
            "dtype": gpflow.config.default_float(),
            "accept_sparse": linear and not self.impute and "csr",
            "ensure_all_finite": "allow-nan" if self.impute and has_fill else True,
        }

    def _ask(self, function: Callable[..., Any], X: Any) -> Any:
        """:return: the result of a function of `prediction` for these rows."""
        check_is_fitted(self)
        answer = function(self.model_, self.as_model_sees(X), chunk_rows=self.chunk_rows)
        scaling.refuse_overflow(answer[0] if isinstance(answer, tuple) else answer)
        return answer

    def as_model_sees(self, rows: Any, *, labelled: bool = False, sample_weight: Any = None) -> Any:
        """
        Convert rows to inputs of `model_`: scale X by `scaler_` and encode labels. Functions of
        `gpflow_bsvm.prediction` do this themselves if called with the estimator.

        :param rows: X [N, D], or (X, y) if `labelled`, or rows read piece by piece, as in `fit`.
        :param sample_weight: [N], only for Dask arrays; for other rows see `weights_in_fit`.
        :return: the scaled rows, with encoded labels if `labelled`.
        :raise ValueError: for labels not in `classes_`, columns that differ from the fit, or (X, y)
            without `labelled`.
        """
        check_is_fitted(self)
        is_pair = isinstance(rows, tuple | list) and len(rows) == 2
        X, y = rows if labelled and is_pair else (rows, None)
        if (source := source_of(X, y, sample_weight)) is not None:
            return open_later(source, self, labelled)
        if labelled:
            Y, _ = self._encoding()(known_labels(y)[:, None])
            X = self.as_model_sees(X)
            check_consistent_length(X, Y)
            return X, Y.astype(gpflow.config.default_float())
        if isinstance(rows, tuple) and [np.ndim(part) for part in rows] == [2, 1]:
            raise ValueError("X must be [N, D], got a pair (X, y): set labelled=True, or give X")
        X = inputs.validated(self, rows, reset=False)
        return scaling.scale(self.scaler_, inputs.filled(X, self.fill_))

    def weights_in_fit(self, rows: Any, sample_weight: Any = None) -> Any:
        """
        :param rows: (X, y), or rows read piece by piece, as in `fit`.
        :param sample_weight: [N], as in `fit`.
        :return: the weights [N] that a fit gives to these rows, including `class_weight`; None for
            rows read piece by piece, which include their weights.
        """
        check_is_fitted(self)
        X, y = rows if isinstance(rows, tuple | list) and len(rows) == 2 else (rows, None)
        if source_of(X, y) is not None:
            return None
        y = known_labels(y)
        weight = inputs.repetitions(sample_weight, len(y))
        return (weight * self._encoding()(y[:, None])[1])[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._how["accept_sparse"])
        tags.input_tags.allow_nan = bool(self.impute)
        return tags
