"""What a fitted classifier says of rows, as scikit-learn asks it."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted, validate_data

from ..prediction.marginals import predict_probabilities, predict_probits
from . import inputs
from .large import open_later
from .prepared import Prepared, open_rows, source_of
from .survey import Rows


class Predictions:
    """The predicting half of `BSVMClassifier`; attributes as there."""

    classes_: AnyNDArray
    model_: Any
    scaler_: Any
    n_features_in_: int
    chunk_rows: int | None
    kernel: Any

    @property
    def _formats(self) -> str | bool:
        """:return: the formats that `validate_data` may accept beside arrays."""
        return isinstance(self.kernel, str) and self.kernel == "linear" and "csr"

    def _predicted(self, X: Any) -> AnyNDArray:
        """:return: Phi^-1 of probabilities, [N], of two classes; probabilities, [N, C], of more."""
        check_is_fitted(self)
        X = self._seen(X)
        if len(self.classes_) > 2:
            p = predict_probabilities(self.model_, X, chunk_rows=self.chunk_rows)
            inputs.refuse_overflow(p)
            return p
        z = predict_probits(self.model_, X, chunk_rows=self.chunk_rows)
        inputs.refuse_overflow(z)
        return z[:, 0]

    def _seen(self, X: Any) -> Any:
        source = source_of(X)
        if source is not None:
            inputs.check_names(source, getattr(self, "feature_names_in_", None))
            rows = Rows(labelled=False, num_columns=self.n_features_in_)
            return Prepared(open_rows(source, rows), self.scaler_)
        dtype = gpflow.config.default_float()
        X = validate_data(self, X, reset=False, dtype=dtype, accept_sparse=self._formats)
        return inputs.scale(self.scaler_, X)

    def as_model_sees(self, rows: Any, *, labelled: bool = False) -> Any:
        """
        What `model_` is to be given: it sees inputs scaled by `scaler_`, and labels 0..C-1. The
        functions of `gpflow_bsvm.prediction` that are given the classifier ask for it themselves.

        :param rows: X [N, D]; with `labelled` (X, y); or either read piece by piece, as in `fit`.
        :return: the rows, scaled and numbered.
        :raise ValueError: for labels that are not among `classes_`, and other columns.
        """
        check_is_fitted(self)
        if not labelled:
            return self._seen(rows)
        if source_of(rows) is not None:
            return open_later(rows, self)
        X, y = rows
        numbers = inputs.number(np.ravel(y), self.classes_)[:, None]
        return self._seen(X), numbers.astype(gpflow.config.default_float())

    def decision_function(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D], or rows that are read piece by piece, as in `fit`.
        :return: [N] for two classes, Phi^-1 of the probability of `classes_[1]`, positive where
            that class is chosen; for a hinge mu / sqrt(1 + v) by its calibrated link. For more
            classes [N, C], logarithms of the probabilities.
        :raise ValueError: as all predictions, for an X so large that f overflows.
        """
        values = self._predicted(X)
        return values if values.ndim == 1 else np.log(values + np.finfo(values.dtype).tiny)

    def predict_proba(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D].
        :return: [N, C], probabilities in the order of `classes_`.
        """
        values = self._predicted(X)
        return values if values.ndim == 2 else norm.cdf(np.stack([-values, values], axis=-1))

    def predict_log_proba(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D].
        :return: [N, C], logarithms of `predict_proba`, finite also where that is 0.
        """
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else norm.logcdf(np.stack([-scores, scores], axis=-1))

    def predict(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D].
        :return: [N] labels, the most probable class of `predict_proba`.
        """
        best = np.argmax(self.predict_proba(X), axis=-1)
        return np.asarray(self.classes_[best])
