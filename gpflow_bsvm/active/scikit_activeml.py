"""Bridges to scikit-activeml: its strategies as policies here, our models as its classifiers.

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
from ..likelihoods.labels import with_both_classes
from ..optional import require
from ..prediction import draw_probabilities, predict_probabilities
from .kernels import fit_from_prior
from .policies import Policy, Request

_SkactivemlClassifier: Any = require("skactiveml.base", "active").SkactivemlClassifier


class ModelClassifier(_SkactivemlClassifier):  # type: ignore[misc]
    """
    A model as the `clf` or `ensemble` of a query strategy, at its present kernel and inducing
    points: `fit` is `CAVI` on the rows that have a label, milliseconds for some hundred rows.

    :ivar model_: a copy, with the q of these rows.
    """

    def __init__(self, model: Any = None, classes: Any = None, missing_label: Any = np.nan) -> None:
        """
        :param model: such as a `BSVM` of L latent functions; it is not changed.
        :param classes: [C], the labels that its 0..C-1 stand for, in increasing order.
        :param missing_label: the value in y that stands for an unknown label.
        """
        super().__init__(classes, missing_label)
        self.model = model

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ModelClassifier:
        """
        :param X: [N, D]; y: [N], with `missing_label` where there is none; sample_weight: [N].
        :raise ValueError: for bad inputs, or another number of classes than the model has.
        """
        X, numbers, weight = self._validate_data(X, y, sample_weight)
        self._check_classes()
        rows = np.flatnonzero(numbers >= 0)
        known: Any = [np.asarray(part, default_float())[rows] for part in (X, numbers[:, None])]
        weight = None if weight is None else np.asarray(weight)[rows]
        model = gpflow.utilities.deepcopy(self.model)
        fit_from_prior(
            model, open_data(model, tuple(known), weight, part=True) if len(rows) else None
        )
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

    def sample_proba(self, X: Any, num_samples: int = 100, seed: int = 0) -> AnyNDArray:
        """
        The probabilities under joint draws of f, a committee for strategies such as `BatchBALD`
        with `sample_predictions_method_name="sample_proba"`.

        :return: [S, N, C].
        """
        return draw_probabilities(self.model_, X, num_samples=num_samples, seed=seed)

    def __sklearn_clone__(self) -> ModelClassifier:
        return type(self)(**self.get_params(deep=False))

    def __deepcopy__(self, memo: Any) -> ModelClassifier:
        """A fit replaces attributes and changes none of them, so nothing need be copied."""
        return copy.copy(self)


def num_classes(model: Model) -> int:
    """:return: C."""
    likelihood, num_latents = model.likelihood, model.num_features[0]
    if num_latents == 1 or likelihood.observation_dim == 1:  # p(y = 1) is enough
        return 2
    return int(getattr(likelihood, "num_classes", num_latents))


def strategy(query_strategy: Any, **query: Any) -> Policy:
    """
    :param query_strategy: of `skactiveml.pool`, with NaN for its `missing_label`.
    :param query: further arguments of its `query`; fit_clf=True for one that fits `clf` to possible
        labels, as expected error reduction does.
    :return: a policy; if the strategy wants `clf` or `ensemble`, that is the loop's model as it is.
    """
    known = inspect.signature(query_strategy.query).parameters

    def policy(model: Model, X: AnyNDArray, request: Request) -> AnyNDArray:
        labelled, Y = len(request.X), request.Y[:, 0]
        rows, y = np.concatenate([request.X, X]), np.append(Y, np.full(len(X), np.nan))
        where = {"candidates": np.arange(labelled, len(rows)), "batch_size": request.batch_size}
        how: dict[str, Any] = {}
        for name in {"clf", "ensemble"} & set(known) - set(query):
            how |= {name: _as_it_is(model, rows, y), f"fit_{name}": False}
        found = query_strategy.query(X=rows, y=y, **where, **how | query)
        return np.asarray(found) - labelled

    return policy


def _as_it_is(model: Model, X: AnyNDArray, y: AnyNDArray) -> ModelClassifier:
    """:return: a classifier with the model's present q, as if it had been fitted."""
    classes = [-1.0, 1.0] if (y < 0).any() else np.arange(float(num_classes(model)))
    clf = ModelClassifier(model, classes)
    clf._validate_data(X, y)
    clf.model_ = model
    return clf
