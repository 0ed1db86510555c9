"""The protocol: the folds, scaling, kernel and inducing points that all models share."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from tqdm.auto import tqdm

from .. import metrics
from ..datasets import Dataset
from . import regression
from .baselines import Baseline, KernelSettings, Skipped
from .gp_baselines import make_baseline
from .registry import default_baselines
from .splits import Fold, check_counts, class_labels, folds

#: Labels [n] and predictions [n, K] of held-out rows.
Held = tuple[AnyNDArray, AnyNDArray]


@dataclass(frozen=True)
class Settings:
    """
    :ivar folds: number of folds of the cross-validation, stratified for classes.
    :ivar num_inducing: maximum number of inducing points; fewer distinct rows give fewer points.
    :ivar fixed_kernel: whether all models keep the initial kernel.
    :ivar seed: seed of folds, inducing points and the models' own splits.
    :ivar task: "classification" or "regression".
    """

    folds: int = 10
    num_inducing: int = 100
    fixed_kernel: bool = False
    seed: int = 0
    task: str = "classification"

    def kernel(self, num_features: int) -> KernelSettings:
        """:return: the (initial) kernel for D standardized columns."""
        return KernelSettings(math.sqrt(num_features), learn=not self.fixed_kernel)


@dataclass(frozen=True)
class FoldScore:
    """
    Result of a model on a fold.

    :ivar dataset: name of the data set.
    :ivar model: name of the model in `BASELINES`.
    :ivar fold: number of the fold, from 0.
    :ivar status: "ok", "ok: <note>", "skipped: <reason>" or "failed: <reason>".
    :ivar scores: values of the metrics on the held-out part, by name.
    :ivar train_seconds: time to set up and fit the model; fold 0 includes TensorFlow's tracing.
    :ivar predict_us: microseconds per held-out row, in a second call (the first call traces).
    :ivar last_gain: see `gpflow_bsvm.compare.baselines.Baseline`.
    """

    dataset: str
    model: str
    fold: int
    status: str
    scores: dict[str, float]
    train_seconds: float = math.nan
    predict_us: float = math.nan
    last_gain: float = math.nan

    @property
    def ok(self) -> bool:
        """:return: True if there are scores."""
        return self.status.startswith("ok")


class Comparison:
    """
    All models on all folds of one data set. If `run` is interrupted, `fold_scores` keeps results.

    :ivar models: the models to run, in the order of tables.
    :ivar labels: [C], see `class_labels`: class c is the label at index c. Empty for numbers.
    :ivar metrics: the metrics of held-out predictions, by name.
    :ivar losses: functions that return row losses [n], for `metrics` that average over rows.
    :ivar fold_scores: one `FoldScore` per fold and model.
    :ivar held_out: labels [n] and predictions [n, K] of each model, by fold: probabilities of the C
        classes, or see `regression.columns`.
    """

    def __init__(
        self, dataset: Dataset, settings: Settings, models: Sequence[str] | None = None
    ) -> None:
        """
        :param models: names in `BASELINES`; None: the default models for these labels.
        :raise ValueError: for fewer than two classes, or a class with fewer rows than folds.
        """
        self.dataset = dataset
        self.settings = settings
        if settings.task == "regression":
            self.labels = np.array([])
            self._y = dataset.y.astype(float)
            self.metrics = regression.METRICS
            self.losses = regression.LOSSES
        else:
            self.metrics = metrics.METRICS
            self.losses = metrics.LOSSES
            self.labels, self._y = class_labels(dataset)
            check_counts(dataset.name, self.labels, np.bincount(self._y), settings.folds)
        default = default_baselines(len(self.labels), settings.fixed_kernel)
        self.models = default if models is None else list(dict.fromkeys(models))
        self.fold_scores: list[FoldScore] = []
        self.held_out: dict[str, dict[int, Held]] = {}
        self._made: dict[str, Baseline] = {}

    def run(self, progress: bool | tqdm | None = None) -> None:
        """
        :param progress: whether to show a progress bar (None: on a terminal only); or a bar that
            several comparisons share, which stays open.
        """
        settings = self.settings
        bar = progress if isinstance(progress, tqdm) else progress_bar([self], progress)
        tf.random.set_seed(settings.seed)  # seeds GPflow's Softmax; slow: only once
        each = folds(self.dataset.X, self._y, settings.folds, settings.seed, settings.num_inducing)
        try:
            for fold in each:
                # A new order for each fold, because threads and memory of the previous model
                # affect the time of the next.
                for name in map(str, np.random.default_rng(fold.number).permutation(self.models)):
                    bar.set_postfix_str(f"{self.dataset.name}: {name}")
                    self.fold_scores.append(self._one(name, fold))
                    bar.update()
        finally:
            if bar is not progress:
                bar.close()
            self._sort()

    def add(self, scores: Sequence[FoldScore], held_out: dict[str, dict[int, Held]]) -> None:
        """Add `fold_scores` and `held_out` of another process, which ran some of the `models`."""
        self.fold_scores += scores
        self.held_out |= held_out
        self._sort()

    def _sort(self) -> None:
        """Put results into the order of `models`, for tables and pictures."""
        names = self.models
        self.fold_scores.sort(key=lambda score: (score.fold, names.index(score.model)))
        self.held_out = {name: self.held_out[name] for name in names if name in self.held_out}

    def predictions(self, model: str) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: labels [n] and predictions [n, K] of all held-out rows, fold after fold."""
        folds = self.held_out[model].values()
        return np.concatenate([y for y, _ in folds]), np.concatenate([P for _, P in folds])

    @property
    def ended_early(self) -> bool:
        """:return: True if there are results, but not for all models on all folds."""
        return 0 < len(self.fold_scores) < self.num_fits

    @property
    def num_fits(self) -> int:
        """:return: the number of fits of all models to all folds."""
        return self.settings.folds * len(self.models)

    def _one(self, name: str, fold: Fold) -> FoldScore:
        made = partial(FoldScore, self.dataset.name, name, fold.number)
        try:
            if name not in self._made:
                self._made[name] = make_baseline(name, len(self.labels))
            model = self._made[name]
            kernel = self.settings.kernel(fold.X.shape[1])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                model.fit(fold.X, fold.y, fold.Z, kernel, self.settings.seed + fold.number)
                train_seconds = time.perf_counter() - start
                p = self._predict(model, fold)
                again = time.perf_counter()  # traced by the first call
                self._predict(model, fold)
                predict_us = 1e6 * (time.perf_counter() - again) / len(p)
            evaluate = metrics.evaluate if len(self.labels) else regression.evaluate
            scores = evaluate(fold.y_test, p)
        except Exception as error:  # an error of one model must not end the comparison
            return made(_reason(error), dict.fromkeys(self.metrics, math.nan))
        self.held_out.setdefault(name, {})[fold.number] = (fold.y_test, p)
        status = f"ok: {model.note}" if model.note else "ok"
        return made(status, scores, train_seconds, predict_us, model.last_gain)

    def _predict(self, model: Baseline, fold: Fold) -> AnyNDArray:
        if len(self.labels):
            return np.asarray(model.predict_proba(fold.X_test))
        return np.asarray(model.predict_numbers(fold.X_test, fold.y_test))


def progress_bar(comparisons: Sequence[Comparison], progress: bool | None) -> tqdm:
    """
    :param progress: whether to show a bar (None: on terminals).
    :return: a single bar for all fits.
    """
    total = sum(one.num_fits for one in comparisons)
    return tqdm(total=total, unit="fit", disable=None if progress is None else not progress)


def _reason(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    if isinstance(error, Skipped):
        return f"skipped: {first}"
    return f"failed: {type(error).__name__}: {first}"
