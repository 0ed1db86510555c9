"""Models as classifiers for scikit-activeml's query strategies.

Importing this module needs the extra `active`.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_inputs
from ..engine.contracts import Model, check_model, open_data
from ..engine.structure import copied
from ..likelihoods.labels import check_one_label, with_both_classes
from ..optional import require
from ..prediction import draw_probabilities, predict_probabilities
from . import fit_from_prior

_SkactivemlClassifier: Any = require("skactiveml.base", "active").SkactivemlClassifier


class ModelClassifier(_SkactivemlClassifier):
    """
    A model as the `clf` or `ensemble` of a query strategy. It keeps its kernel and inducing points:
    `fit` runs `CAVI` on the labelled rows, in milliseconds for a few hundred rows.

    :ivar model_: a copy, with q fitted to these rows.
    """

    def __init__(self, model: Any = None, classes: Any = None, missing_label: Any = np.nan) -> None:
        """
        :param model: a model, such as a `BSVM` of L latent functions; it is not changed.
        :param classes: [C], the labels of the model's classes 0..C-1, in increasing order.
        :param missing_label: the value in y for an unknown label.
        """
        super().__init__(classes, missing_label)
        self.model = model

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ModelClassifier:
        """
        :param X: [N, D]; y: [N], with `missing_label` for unknown labels; sample_weight: [N].
        :raise ValueError: for bad inputs, a likelihood without classes, or if their number differs.
        :raise TypeError: for a model without closed-form steps.
        """
        check_model(self.model)
        check_one_label(self.model.likelihood, self.model.num_latent_gps)
        X, numbers, weight = self._validate_data(X, y, sample_weight)
        expected = num_classes(self.model)
        if len(self.classes_) != expected:
            raise ValueError(
                f"the model has {expected} classes, but {len(self.classes_)} are given: "
                f"{self.classes_.tolist()}; give all of them with classes=..."
            )
        rows = np.flatnonzero(numbers >= 0)
        known: Any = [np.asarray(part, default_float())[rows] for part in (X, numbers[:, None])]
        weight = None if weight is None else np.asarray(weight)[rows]
        model = copied(self.model)
        data = open_data(model, tuple(known), weight, part=True) if len(rows) else None
        fit_from_prior(model, data)
        self.model_ = model
        return self

    def predict_proba(self, X: Any) -> AnyNDArray:
        """:return: [N, C], in the order of `classes_`."""
        X = self._checked(X)
        return with_both_classes(predict_probabilities(self.model_, X))

    def sample_proba(self, X: Any, num_samples: int = 100, seed: int = 0) -> AnyNDArray:
        """
        Compute class probabilities under joint draws of f, as a committee for strategies such as
        `BatchBALD` with `sample_predictions_method_name="sample_proba"`.

        :return: [S, N, C].
        """
        X = self._checked(X)
        return draw_probabilities(self.model_, X, num_samples=num_samples, seed=seed)

    def _checked(self, X: Any) -> AnyNDArray:
        """:raise NotFittedError, ValueError: before a fit, or for rows that are not numbers."""
        check_is_fitted(self, "model_")
        return check_inputs(np.asarray(X, default_float()))

    def __sklearn_clone__(self) -> ModelClassifier:
        return type(self)(**self.get_params(deep=False))

    def __deepcopy__(self, memo: Any) -> ModelClassifier:
        """Copy shallowly: fits replace attributes without modifying them."""
        return copy.copy(self)


def num_classes(model: Model) -> int:
    """:return: C."""
    likelihood = model.likelihood
    num_latents = model.q_shape[0]
    if num_latents == 1 or likelihood.observation_dim == 1:  # p(y = 1) suffices
        return 2
    return int(getattr(likelihood, "num_classes", num_latents))
