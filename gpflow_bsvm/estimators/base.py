"""What all estimators share: rows of any kind to a fitted model, more rows, and its units."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from ..checkpoints import Directory
from ..data.sources import ArraySource, Source
from ..engine.open import open_data
from ..engine.shared_graph import one_fit
from ..inference import History, Streaming
from ..models import BSVM
from . import inputs
from .choice import Candidate, chosen_model
from .large import fit_large, open_later
from .merging import merge_equal
from .parameters import check_parameters
from .prepared import CHUNK_ROWS, Prepared, open_rows, source_of
from .specification import Data, Specification
from .stages import Stages
from .survey import Rows, Survey
from .training import train

E = TypeVar("E", bound="BSVMEstimator")


class BSVMEstimator(BaseEstimator):  # type: ignore[misc]
    """
    An estimator of scikit-learn around a `BSVM`. A subclass says what labels are to the model
    (`_learn_labels`, `_targets`), and what is trained (`_specify`, `_candidates`).
    """

    model_: BSVM
    scaler_: StandardScaler | None
    history_: History
    fill_: AnyNDArray | None
    n_features_in_: int
    kernel: Any
    standardize: bool
    impute: bool
    chunk_rows: int | None
    verbose: bool
    #: Whether rows need labels.
    _labelled = True

    @abstractmethod
    def _learn_labels(self, y: AnyNDArray, weight: AnyNDArray) -> None:
        """Set what `_targets` needs to know, from the labels of all rows that count."""

    @abstractmethod
    def _targets(self, y: AnyNDArray) -> AnyNDArray:
        """:return: labels as the model has them, [N]."""

    def _learn_survey(self, rows: Any, found: Survey) -> None:
        """As `_learn_labels`, of the sample of rows that are not in memory."""
        _, Y, weight = found.sample
        self._learn_labels(Y[:, 0], weight)

    @abstractmethod
    def _encoding(self, rows: Any, found: Survey | None = None) -> Any:
        """:return: labels of rows that are not in memory to those of the model, see `labels`."""

    @abstractmethod
    def _specify(self, seed: int, data: Data) -> Specification:
        """:return: what is to be trained of these rows."""

    def _candidates(self, spec: Specification) -> Sequence[Candidate]:
        """:return: losses and penalties to choose from."""
        return (Candidate(spec.loss, spec.penalty),)

    def _found(self, spec: Specification, data: Data) -> None:
        """Keep what was chosen; `model_` is fitted, to all these rows or to more."""

    def _weights(self, y: AnyNDArray, sample_weight: Any) -> AnyNDArray:
        return inputs.weigh(y, sample_weight, None)

    def _fit(self: E, X: Any, y: Any, sample_weight: Any, checkpoint: Directory | None) -> E:
        """A fit that fails or is interrupted leaves the estimator as it was before."""
        check_parameters(self)
        new, stages = copy.copy(self), Stages(checkpoint)
        rows = source_of(X, y, sample_weight)
        with one_fit():  # a kernel of the user's is compiled once, not in every inner fit
            if rows is not None:
                fit_large(new, rows, stages)
            else:
                data = new._validate(X, y, sample_weight)
                inputs.warn_of_little_weight(data[2])
                new._fit_arrays(*data, stages)
        self.__dict__ = new.__dict__  # all at once
        return self

    def _fit_arrays(self, X: Any, targets: AnyNDArray, weight: AnyNDArray, stages: Stages) -> None:
        X, targets, weight = merge_equal(X, targets, weight)
        scaler = inputs.make_scaler(X, weight)
        self.scaler_ = scaler if self.standardize else None
        data = inputs.scale(self.scaler_, X), targets[:, None], weight
        seed = stages.seed(self, ArraySource(*data[:2], weight[:, None], CHUNK_ROWS))
        spec = self._specify(seed, data)
        spec, begun = chosen_model(spec, self._candidates(spec), data, stages)
        self.model_, self.history_ = train(spec, data, begun, stages)
        self._found(spec, data)

    def _partial_fit(
        self: E,
        X: Any,
        y: Any,
        sample_weight: Any,
        forget: float,
        checkpoint: Directory | None,
    ) -> E:
        algorithm, new = Streaming(forget=forget), copy.copy(self)
        source = new._later(X, y, sample_weight)
        new.model_ = gpflow.utilities.deepcopy(self.model_)
        new.history_ = algorithm.run(
            new.model_, source, progress=bool(self.verbose), checkpoint=checkpoint
        )
        new.model_.num_data = (self.model_.num_data or 0) + source.num_rows
        self.__dict__ = new.__dict__
        return self

    def _later(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """:return: rows as the model sees them."""
        rows = source_of(X, y, sample_weight)
        if rows is not None:
            return open_later(rows, self)
        X, targets, weight = self._validate(X, y, sample_weight, reset=False)
        data = inputs.scale(self.scaler_, X), targets[:, None]
        return open_data(self.model_, data, weight, part=True)

    def _validate(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[AnyNDArray, AnyNDArray, AnyNDArray]:
        """
        :param reset: whether these are the first rows.
        :return: X, labels as the model has them, and weights of the rows that count.
        """
        dtype = gpflow.config.default_float()
        inputs.check_format(X, self._formats)
        X, y = self._checked(X, y, reset)
        weight = self._weights(y, sample_weight)
        used = weight > 0
        if reset:
            self._learn_labels(y, weight)
            self.fill_ = inputs.medians(X[used]) if self.impute else None
        X = inputs.filled(X, self.fill_)
        return X[used], self._targets(y[used]).astype(dtype), weight[used]

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, AnyNDArray]:
        """:return: rows and labels, as scikit-learn checks them."""
        X, y = validate_data(self, X, y, reset=reset, **self._how)
        return X, y

    @property
    def _how(self) -> dict[str, Any]:
        """:return: what `validate_data` is to accept."""
        finite = "allow-nan" if self.impute else True
        how = {"dtype": gpflow.config.default_float(), "accept_sparse": self._formats}
        return how | {"ensure_all_finite": finite}

    @property
    def _formats(self) -> str | bool:
        """:return: the formats that `validate_data` may accept beside arrays."""
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        return linear and not self.impute and "csr"

    def _scaled(self, X: Any) -> Any:
        """:return: rows as the model has them."""
        source = source_of(X)
        if source is not None:
            inputs.check_names(source, getattr(self, "feature_names_in_", None))
            rows = Rows(labelled=False, num_columns=self.n_features_in_)
            return Prepared(open_rows(source, rows), self.scaler_)
        X = validate_data(self, X, reset=False, **self._how)
        return inputs.scale(self.scaler_, inputs.filled(X, self.fill_))

    def as_model_sees(self, rows: Any, *, labelled: bool = False) -> Any:
        """
        What `model_` is to be given: inputs scaled by `scaler_`, and labels in its own units. The
        functions of `gpflow_bsvm.prediction` that are given the estimator ask for it themselves.

        :param rows: X [N, D]; with `labelled` (X, y); or either read piece by piece, as in `fit`.
        :return: the rows, scaled, and their labels.
        :raise ValueError: for labels that are not among `classes_`, and other columns.
        """
        check_is_fitted(self)
        if not labelled:
            return self._scaled(rows)
        if source_of(rows) is not None:
            return open_later(rows, self)
        X, y = rows
        targets = self._targets(np.ravel(y))[:, None]
        return self._scaled(X), targets.astype(gpflow.config.default_float())

    def __sklearn_tags__(self) -> Any:
        """:return: scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._formats)
        tags.input_tags.allow_nan = bool(self.impute)
        return tags
