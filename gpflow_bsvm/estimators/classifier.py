"""The scikit-learn interface for classification."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from scipy.special import log_ndtr, ndtr
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..checkpoints.directory import Directory
from ..data.checks import MOST_WEIGHT
from ..likelihoods import Hinge
from ..notices import warn
from ..prediction.marginals import predict_probabilities, predict_probits
from ..tables.labels import check_are_classes
from . import inputs, labels
from .base import BSVMEstimator
from .candidates import Candidate, candidates
from .columns import Scored
from .labels import Encoding
from .large import Survey
from .specification import Data, Specification, levels_for, link_for, specify


@dataclass(eq=False, repr=False, kw_only=True)
class BSVMClassifier(Scored, ClassifierMixin, BSVMEstimator):
    r"""
    Bayesian support vector machine with probabilities.

    A sparse Bayesian SVM (`gpflow_bsvm.models.BSVM`) on standardized features, with one of two
    losses. By default, the loss is chosen on held-out rows:

    - "levels": cost-weighted hinges at many levels of probability: `LevelHinge`, or one-vs-rest
      `OneVsRestLevelHinge` for more than two classes. P(y = 1 | x) = int P(f_t(x) > 0) dt is a
      proper predictive distribution. For more than two classes and few rows, a temperature is
      fitted on held-out folds.
    - "hinge": for two classes `Hinge` (Wenzel et al. 2017), with P(y = 1 | x) = Phi(mu / sqrt(1 +
      v)) of the calibrated latent function; for more classes, `CrammerSinger` (Wistuba & Rawat
      2018) or `OneVsRest`. The hinge gives sharper probabilities if classes hardly overlap.

    The final model is trained on all rows, including rows that were held out before.

    Up to 20 000 rows, the fit does not depend on their order, and a row given twice counts like a
    row of weight 2, if all weights are whole numbers. With more rows, equal rows are not merged,
    and inducing points come from a random subsample.

    :param kernel: any GPflow kernel (it is copied). None: `gpflow_bsvm.priors.default_kernel`, with
        priors, a lengthscale for every feature and an offset. "linear": a `LinearBSVM` with one
        learned prior variance, also for SciPy's sparse matrices. (If there are no more rows than
        columns, it is a `BSVM` with the rows as inducing points.) A grid search can try a list of
        kernels, such as [Matern32(lengthscales=s) for s in (0.5, 1, 2)], with learn_kernel=False;
        it cannot set a kernel's own parameters.
    :param loss: "levels", "hinge", or "auto": levels, unless the hinge gains more on held-out folds
        than two wrong rows would cost it, also with its own learned kernel; for kernel="linear",
        the hinge. There are 17 levels (logit t from -4 to 4), but 21 (-5 to 5) from about 700 rows
        on, and 25 (-6 to 6) from 2000. If a class has less than 12 % of the rows, the link of
        levels is "stationary", unless held-out rows prefer the integral: see `LevelHinge`.
    :param penalty: slope of the loss. "auto" chooses it together with the loss: from 1 to 32 for 17
        levels (in proportion higher for more levels), or from 1 to 16 for loss="hinge". If
        loss="auto" compares levels with a hinge, the hinge has penalty 16. If a hinge of penalty 16
        is chosen, penalty 64 is tried at the end (if the lengthscales are not learned, also with .8
        times these), and kept if leave-one-out densities prefer it by the same rule.
    :param bound: "exact" or "augmented", see `gpflow_bsvm.likelihoods.Hinge`; for several classes
        "augmented" needs multi_class="ovr" or loss="levels".
    :param multi_class: the hinge for more than two classes: "crammer_singer" (one joint model) or
        "ovr" (one-vs-rest); levels are always one-vs-rest. "ordinal", for ordered classes: levels
        of one function with learned thresholds (`Ordinal`). Labels must then be numbers, an
        ordered pandas Categorical or a Polars Enum.
    :param learn_kernel: learn the kernel's trainable parameters with `VEM` on a quarter of the
        rows, but at least 2000 (with many classes or inducing points 1000) and at most 5000. The
        kernel is learned again if held-out rows select another loss or, with more than 1700 rows,
        another penalty. A default kernel keeps its initial, equal lengthscales if held-out rows
        prefer these. Finally, all lengthscales are multiplied by a factor that held-out rows
        determine. False: use the kernel as it is. The default kernel is then a squared exponential
        of variance 4, whose lengthscale is 0.75 times the median distance between inducing points.
    :param calibrate: fit scale and offset of the link (for several classes, a temperature) to
        leave-one-out marginals, see `gpflow_bsvm.prediction`. "auto": calibrate a hinge. For levels
        with several classes, a learned kernel and fewer than 1000 rows, fit a temperature on
        held-out folds.
    :param num_inducing: maximum number M of inducing points; fewer distinct rows give fewer points.
        "auto": learn the kernel with 100 points. Then triple M, each time from the projected q, as
        long as the leave-one-out log density improves by 1 %. M is at most 1000, and rows * M^2 *
        latent functions at most 5e9. `num_inducing_` is the result.
    :param inference: the algorithm of the final fit, such as `SVI()` (folds use `CAVI`); None: the
        algorithm of `gpflow_bsvm.fit`.
    :param standardize: shift and scale every feature to mean 0 and variance 1, or, if it has only
        two values, to values that are 2 apart. With kernel=None, logarithms are taken of very
        skewed features (ten or more values, skewness above 3 or below -3), on both sides of the
        median. Sparse features are only scaled, so probabilities differ from a fit to the same
        rows as an array. Columns stay unscaled if the kernel uses them as codes (`Coregion`, or a
        custom kernel that truncates or compares values). Periods of `Periodic`, locations and
        steepness of `ChangePoints`, and bounds of GPflow's hierarchical kernels are in units of X;
        lengthscales are in units of the scaled columns.
    :param impute: replace NaN by the column's median (codes: by the most frequent code), and append
        an indicator column for each column with NaN in training. Rows must be in memory.
    :param class_weight: {label: weight}, or "balanced", which gives every class the same total
        weight (except for classes without weight). Either multiplies `sample_weight`.
    :param random_state: seed for drawing rows: to learn the kernel (see `learn_kernel`), and to
        sample more than 20 000 rows not in memory. A fit also depends slightly on the order and
        signs of columns and on constant columns, through k-means, the kernel's prior and the start
        of its search. With few rows, probabilities change by a few hundredths; a few change by up
        to .2 if held-out rows then select another penalty.
    :param chunk_rows: number of rows per chunk in predictions; None: as many as memory allows.
    :param verbose: show the current stage of the fit in one line.
    :ivar classes_: all labels, even of rows with weight 0, sorted: the columns of `predict_proba`.
    :ivar order_: the same labels in the user's order, if multi_class="ordinal" or a source of rows
        gives an order; else sorted.
    :ivar model_: the fitted `BSVM`, on standardized features and labels 0..C-1: places in `order_`
        if it is `Ordinal`, else in `classes_`. Its methods need `as_model_sees(X)`; functions of
        `gpflow_bsvm.prediction` take the classifier and X.
    :ivar num_inducing_: the chosen M; see also the properties `lengthscales_`,
        `feature_importances_` and, with a linear kernel, `coef_` and `intercept_`.
    :ivar loss_: "levels" or "hinge".
    :ivar penalty_: the chosen slope of the loss.
    :ivar scaler_: the fitted scaler, scikit-learn's `StandardScaler` with logarithms of skewed
        columns, or None.
    :ivar history_: the `gpflow_bsvm.inference.History` of learning the kernel; of fitting q if no
        kernel is learned, if more than 20 000 rows are read piece by piece, or in `partial_fit`.
    :ivar seconds_: wall-clock seconds per stage: "rows", "kernel", "choice", "q", "growth", "link".
    """

    loss: str = "auto"
    penalty: float | str = "auto"
    bound: str = "exact"
    multi_class: str = "crammer_singer"
    learn_kernel: bool = True
    calibrate: bool | str = "auto"
    num_inducing: int | str = "auto"
    inference: Any = None
    class_weight: dict[Any, float] | str | None = None

    classes_: AnyNDArray = field(init=False)
    order_: AnyNDArray = field(init=False)
    loss_: str = field(init=False)
    _numbered: AnyNDArray = field(init=False)  #: labels of the model's classes 0..C-1
    _told: AnyNDArray = field(init=False)  #: classes, some of which may have no rows yet
    _balance: AnyNDArray = field(init=False)  #: weights of the classes for class_weight="balanced"

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        forget: float = 1.0,
        checkpoint: Directory | None = None,
    ) -> BSVMClassifier:
        """
        Update q with more rows, without rereading earlier rows (see
        `gpflow_bsvm.inference.Streaming`). The first call is the same as `fit`. Later calls change
        only q. Kernel, penalty, link, scaling and inducing points keep their values from the first
        call, whose rows should be representative.

        :param X: [N, D], or rows that are read piece by piece, as in `fit`.
        :param classes: all labels (if ordinal: in order, unless y is an ordered Categorical); None:
            the labels in the first call. If a class has no rows yet, the model learns only that
            earlier rows do not belong to it. (If rows are read piece by piece, the first call must
            include all classes.) Rows of one class teach nothing: a warning appears.
        :param sample_weight: [N], as in `fit`; rows read piece by piece include their weights.
        :param forget: in [0, 1], the weight of earlier rows, for data that drift.
        :raise ValueError: as in `fit`; for labels, classes or columns that differ from the first
            call; for class_weight="balanced", which needs all rows.
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                'class_weight="balanced" needs all rows: for partial_fit, set class_weight to '
                "{label: weight}, or give sample_weight"
            )
        new = copy.copy(self)
        if classes is not None:
            told = labels.told_classes(classes, self._ordinal, y)
            if not hasattr(self, "model_"):
                new._told = told
            elif [*told] != [*labels.told_classes(self.order_, self._ordinal)]:
                raise ValueError(
                    f"classes {told.tolist()} differ from the classes in the first call, "
                    f"{self.order_.tolist()}: name all classes in the first call"
                )
        new._partial_fit(X, y, sample_weight, forget, checkpoint)
        self.__dict__ = new.__dict__
        return self

    def _specify(self, seed: int, data: Data) -> Specification:
        if self.multi_class == "ordinal" and self.loss == "hinge":
            raise ValueError('multi_class="ordinal" uses levels: leave loss at "auto", got "hinge"')
        if len(self.classes_) < 2:
            raise ValueError("BSVMClassifier needs rows of two classes, got one class only")
        several = len(self.classes_) > 2 and self.loss != "levels"
        if several and self.bound != "exact" and self.multi_class == "crammer_singer":
            raise ValueError(
                f'multi_class="crammer_singer" needs bound="exact", got {self.bound!r}: use this '
                'bound, or multi_class="ovr" or loss="levels"'
            )
        spec = specify(self, seed)._replace(
            num_classes=len(self.classes_),
            levels=levels_for(float(data[2].sum())),
            link=link_for(data, len(self.classes_)),
        )
        if self._ordinal and len(self.classes_) > 2:
            spec = spec._replace(learned=("thresholds",), loss="levels")
        if np.ptp(data[1]) == 0:
            spec = spec._replace(learned=(), learn_kernel=False, calibrate=False)
            only = self._numbered.tolist()[int(data[1][0, 0])]
            warn(
                f"all rows with positive weight are of class {only!r}: kernel, loss and penalty "
                "keep their initial values, because one class cannot determine them"
            )
        return spec

    @property
    def _units_of_f(self) -> tuple[float, float]:
        """:return: scale and offset of a hinge's link for two classes."""
        link = self.model_.likelihood
        two = isinstance(link, Hinge)
        return (float(link.scale.numpy()), float(link.offset.numpy())) if two else (1.0, 0.0)

    @property
    def _ordinal(self) -> bool:
        return self.multi_class == "ordinal"

    def _candidates(self, spec: Specification) -> Sequence[Candidate]:
        loss = "levels" if self._ordinal else self.loss
        return candidates(loss, self.penalty, spec.linear, spec.levels.t.size)

    def _found(self, spec: Specification, data: Data) -> None:
        self.loss_ = spec.loss
        self.penalty_ = spec.penalty

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, AnyNDArray]:
        stated = labels.stated_order(y) if self._ordinal else None
        X, y = inputs.validated(self, X, labels.with_numpy_type(y), reset=reset)
        labels.check_targets(y)
        if reset:
            told = self.__dict__.pop("_told", None)
            self._learn_order(labels.classes_of(y, stated, self._ordinal) if told is None else told)
        return X, y

    def _learn_order(self, order: AnyNDArray) -> None:
        """Store the labels in the user's order; only `Ordinal` needs this order."""
        self.order_ = order
        self.classes_ = np.sort(order)
        self._numbered = order if self._ordinal and len(order) > 2 else self.classes_

    @property
    def _columns(self) -> AnyNDArray:
        """:return: [C], the model's numbers of `classes_`."""
        return np.argsort(self._numbered)

    def _learn_labels(self, y: AnyNDArray, weight: AnyNDArray) -> Encoding:
        totals = np.bincount(labels.number(y, self._numbered), weight, len(self.classes_))
        return self._numbering(self._numbered, totals)

    def _learn_survey(self, rows: Any, found: Survey) -> Encoding:
        check_are_classes(found.values, found.num_rows, "the column of labels")
        self._learn_order(labels.label_names(rows, found.values))
        told = self.__dict__.pop("_told", self.classes_)
        if {*told.tolist()} != {*self.classes_.tolist()}:
            raise ValueError(
                f"classes {told.tolist()} differ from the classes in these rows, "
                f"{self.classes_.tolist()}: begin with rows of all classes"
            )
        if self.classes_.dtype.kind in "iuf":
            labels.warn_of_numbers(len(self.classes_), found.num_rows)
        if self._ordinal and not getattr(rows, "classes_in_order", True):
            labels.check_order(self.order_, "give the source classes=[...] in order")
        places = labels.number(self._numbered, self.order_)
        return self._numbering(found.values[places], found.weights[places])

    def _encoding(self, rows: Any = None) -> Encoding:
        values = self._numbered if rows is None else labels.label_values(rows, self._numbered)
        return self._numbering(values)

    def _numbering(self, values: AnyNDArray, totals: AnyNDArray | None = None) -> Encoding:
        """:return: the encoding for class labels [C] in the rows, and their total weights [C]."""
        if self.class_weight == "balanced":
            if totals is not None:
                mean = totals.sum() / np.count_nonzero(totals)
                self._balance = mean / np.where(totals > 0, totals, mean)
            weights = getattr(self, "_balance", np.ones(len(self.classes_)))
        else:
            weights = labels.told_weights(self.class_weight or {}, self._numbered)
        if not ((weights >= 0) & (weights <= MOST_WEIGHT)).all():
            given = dict(zip(self._numbered.tolist(), weights.tolist()))
            raise ValueError(f"class_weight must be from 0 to {MOST_WEIGHT:.0e}, got {given}")
        return partial(labels.numbered, values=values, weights=weights)

    def _predicted(self, X: Any) -> AnyNDArray:
        """:return: Phi^-1 of probabilities [N] for two classes, else probabilities [N, C]."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return np.take(self._ask(predict_probabilities, X), self._columns, axis=-1)
        return self._ask(predict_probits, X)[:, 0]

    def decision_function(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D], or rows that are read piece by piece, as in `fit`.
        :return: values [N] for two classes: Phi^-1 of the probability of `classes_[1]`, positive
            where `predict` returns `classes_[1]`. For a hinge this is mu / sqrt(1 + v) of the
            calibrated f. For more classes: [N, C], logarithms of the probabilities.
        :raise ValueError: if X is so large that f overflows; all predictions raise this error.
        """
        values = self._predicted(X)
        return values if values.ndim == 1 else np.log(values + np.finfo(values.dtype).tiny)

    def predict_proba(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D].
        :return: [N, C], probabilities of the classes in the order of `classes_`.
        """
        values = self._predicted(X)
        return values if values.ndim == 2 else ndtr(np.stack([-values, values], axis=-1))

    def predict_log_proba(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D].
        :return: [N, C], logarithms of `predict_proba`; they are finite even if a probability is 0.
        """
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else log_ndtr(np.stack([-scores, scores], axis=-1))

    def predict(self, X: Any) -> AnyNDArray:
        """
        :param X: [N, D].
        :return: [N], for each row the label with the largest probability in `predict_proba`.
        """
        values = self._predicted(X)
        best = np.argmax(values, axis=-1) if values.ndim == 2 else (values > 0).astype(int)
        return np.asarray(self.classes_[best])
