"""Both ways to scikit-activeml: its strategies as policies here, our models as its classifiers.

Importing this module needs the extra `active`.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_inputs
from ..engine.contracts import Model
from ..engine.open import open_data
from ..estimators import BSVMClassifier
from ..likelihoods.labels import is_binary, with_both_classes
from ..optional import require
from ..prediction.marginals import predict_probabilities
from .kernels import fit_from_prior
from .policies import Policy, Request

_SkactivemlClassifier: Any = require("skactiveml.base", "active").SkactivemlClassifier


def classifier(
    estimator: BSVMClassifier | None = None, *, classes: Any, missing_label: Any = np.nan
) -> Any:
    """
    :param estimator: None: `BSVMClassifier()`.
    :param classes: all labels there may be; some may have no row yet.
    :param missing_label: what stands in y for a label that is not known.
    :return: `skactiveml.classifier.SklearnClassifier` of it, the `clf` of a query strategy. Each of
        its fits learns everything anew: for a loop that does not see `ModelClassifier`. Where no
        fit is possible, as with one class only, it says so in a warning and predicts frequencies.
    """
    wrapper = require("skactiveml.classifier", "active").SklearnClassifier
    inner = BSVMClassifier() if estimator is None else estimator
    return wrapper(inner, classes=classes, missing_label=missing_label)


class ModelClassifier(_SkactivemlClassifier):  # type: ignore[misc]
    """
    A model as the `clf` of a query strategy, at its present kernel and inducing points: `fit` is
    `CAVI` on the rows that have a label, milliseconds for some hundred rows.

    :ivar model_: a copy, with the q of these rows.
    """

    def __init__(
        self,
        model: Any = None,
        classes: Any = None,
        missing_label: Any = np.nan,
        cost_matrix: Any = None,
        random_state: Any = None,
    ) -> None:
        """
        :param model: such as a `BSVM` of L latent functions; it is not changed.
        :param classes: [C], the labels that its 0..C-1 stand for, in rising order; others as in
            `skactiveml.base.SkactivemlClassifier`.
        """
        super().__init__(classes, missing_label, cost_matrix, random_state)
        self.model = model

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ModelClassifier:
        """
        :param X: [N, D]; y: [N], with `missing_label` where there is none; sample_weight: [N].
        :raise ValueError: for bad inputs, or another number of classes than the model has.
        """
        X, numbers, weight = self._validate_data(X, y, sample_weight)
        self._check_classes()
        rows = np.flatnonzero(numbers >= 0)
        model = gpflow.utilities.deepcopy(self.model)
        Y: AnyNDArray = np.asarray(numbers, default_float())[rows, None]
        X_known: AnyNDArray = np.asarray(X, default_float())[rows]
        weights = _part(weight, rows)
        known = open_data(model, (X_known, Y), weights, part=True) if len(rows) else None
        fit_from_prior(model, known)
        self.model_ = model
        return self

    def _check_classes(self) -> None:
        expected = num_classes(self.model)
        if len(self.classes_) != expected:
            raise ValueError(
                f"the model is of {expected} classes, and there are {len(self.classes_)} here: "
                f"{self.classes_.tolist()}; give classes=..., all of them"
            )

    def predict_proba(self, X: Any) -> AnyNDArray:
        """:return: [N, C], in the order of `classes_`."""
        check_is_fitted(self, "model_")
        X = check_inputs(np.asarray(X, default_float()))
        return with_both_classes(predict_probabilities(self.model_, X))

    @classmethod
    def as_it_is(cls, model: Model, classes: Any, X: Any, y: Any) -> ModelClassifier:
        """:return: fitted, with the model's present q."""
        self = cls(model, classes)
        self._validate_data(X, y)
        self._check_classes()
        self.model_ = model
        return self

    def __sklearn_clone__(self) -> ModelClassifier:
        return type(self)(**self.get_params(deep=False))

    def __deepcopy__(self, memo: Any) -> ModelClassifier:
        """A fit puts new things instead of what it has, so that nothing need be copied."""
        return copy.copy(self)


def _part(weight: Any, rows: AnyNDArray) -> Any:
    return None if weight is None else np.asarray(weight)[rows]


def num_classes(model: Model) -> int:
    """:return: C."""
    binary = is_binary(model.likelihood, model.num_features[0])
    return 2 if binary else int(getattr(model.likelihood, "num_classes", model.num_features[0]))


def strategy(query_strategy: Any, **query: Any) -> Policy:
    """
    :param query_strategy: of `skactiveml.pool`, with NaN for its `missing_label`.
    :param query: further arguments of its `query`, such as `ensemble`; fit_clf=True for one that
        fits `clf` to labels that might be, as expected error reduction does.
    :return: a policy, for which `clf`, if the strategy wants one, is the loop's model as it is.
    """
    known = inspect.signature(query_strategy.query).parameters

    def policy(model: Model, X: AnyNDArray, request: Request) -> AnyNDArray:
        labelled, Y = len(request.X), request.Y[:, 0]
        rows = np.concatenate([request.X, X])
        y = np.concatenate([Y, np.full(len(X), np.nan)])
        classes = (-1.0, 1.0) if (Y < 0).any() else np.arange(float(num_classes(model)))
        how: dict[str, Any] = {"fit_clf": False} if "fit_clf" in known else {}
        if "clf" in known:
            how["clf"] = ModelClassifier.as_it_is(model, classes, rows, y)
        size = request.batch_size
        where = {"candidates": np.arange(labelled, len(rows)), "batch_size": size}
        found = query_strategy.query(X=rows, y=y, **where, **how | query)
        return np.asarray(found) - labelled

    return policy
