"""
The protocol: the folds, scaling, kernel and inducing points that all models share. A process can
run all models, or several processes one model of one data set at a time.
"""

from __future__ import annotations

from .. import quiet  # isort: skip  # noqa: F401 - in a new process, the first import of GPflow

import atexit
import gc
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from threading import RLock

import joblib
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm.auto import tqdm

from .. import metrics
from ..datasets import Dataset
from ..estimators.labels import number
from ..inducing_points.points import kmeans
from ..inference.run import progress_bar
from ..tables.labels import check_are_classes
from . import regression
from .baselines import Baseline, KernelSettings, Skipped
from .gp_baselines import make_baseline
from .registry import default_baselines

#: Labels [n] and predictions [n, K] of held-out rows.
Held = tuple[AnyNDArray, AnyNDArray]


@dataclass(frozen=True)
class Fold:
    """The rows of a fold, standardized with its training part."""

    number: int
    X: AnyNDArray  #: [n, D], training rows
    y: AnyNDArray  #: [n]
    Z: AnyNDArray  #: [M, D]
    X_test: AnyNDArray  #: [N - n, D], scaled like X
    y_test: AnyNDArray  #: [N - n]
    test: AnyNDArray  #: [N - n], indices of test rows in the data


def folds(
    X: AnyNDArray, y: AnyNDArray, num_folds: int = 10, seed: int = 0, num_inducing: int = 100
) -> Iterator[Fold]:
    """
    Yield folds of shuffled rows, scaled by their training part and, for classes, stratified.

    :param X: [N, D]; y: [N], in 0..C-1 (see `class_labels`), or floats, which are standardized with
        the training part.
    :param seed: seed of the shuffle; the inducing points of fold k use seed + k.
    :param num_inducing: maximum number of inducing points, found by k-means on the training part;
        fewer distinct rows give fewer points.
    """
    numbers = y.dtype.kind == "f"
    splits = (KFold if numbers else StratifiedKFold)(num_folds, shuffle=True, random_state=seed)
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    scaler = make_pipeline(medians, StandardScaler())
    for fold, (train, test) in enumerate(splits.split(X, y)):
        X_train = scaler.fit_transform(X[train])
        most = min(num_inducing, len(np.unique(X_train, axis=0)))
        Z = kmeans(X_train, most, seed=seed + fold)
        labels = (y - y[train].mean()) / (y[train].std() or 1.0) if numbers else y
        X_test = scaler.transform(X[test])
        yield Fold(fold, X_train, labels[train], Z, X_test, labels[test], test)


def class_labels(dataset: Dataset) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :return: labels [C], sorted or in the order of their type, and y [N], their indices.
    :raise ValueError: for a single label, or labels that look like a regression target.
    """
    labels = np.array(dataset.order) if dataset.order else np.unique(dataset.y)
    check_are_classes(labels.tolist(), len(dataset.y), dataset.name)
    return labels, number(dataset.y, labels)


def check_counts(name: str, labels: AnyNDArray, counts: AnyNDArray, folds: int) -> None:
    """:raise ValueError: unless every class has a row for every fold."""
    fewest = counts.min()
    if fewest >= folds:
        return
    few = np.count_nonzero(counts < folds)
    others = f" (one of {few} such classes)" if few > 1 else ""
    advice = f"at most {fewest} folds are possible" if fewest > 1 else "at least 2 are needed"
    raise ValueError(
        f"{name} has {fewest} row(s) of class {labels[counts.argmin()]!s}{others}, too few for "
        f"{folds} folds: {advice}"
    )


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison."""

    folds: int = 10  #: number of folds of the cross-validation, stratified for classes
    num_inducing: int = 100  #: largest number of inducing points; fewer distinct rows give fewer
    fixed_kernel: bool = False  #: whether all models keep the initial kernel
    seed: int = 0  #: seed of folds, inducing points and the models' own splits
    task: str = "classification"  #: or "regression"

    def kernel(self, num_features: int) -> KernelSettings:
        """:return: the (initial) kernel for D standardized columns."""
        return KernelSettings(math.sqrt(num_features), learn=not self.fixed_kernel)


@dataclass(frozen=True)
class FoldScore:
    """Result of a model on a fold."""

    dataset: str  #: name of the data set
    model: str  #: name of the model in `BASELINES`
    fold: int  #: number of the fold, from 0
    status: str  #: "ok", "ok: <note>", "skipped: <reason>" or "failed: <reason>"
    scores: dict[str, float]  #: values of the metrics on the held-out part, by name
    train_seconds: float = math.nan  #: for setup and fit; fold 0 includes TensorFlow's tracing
    predict_us: float = math.nan  #: microseconds per row, in a second call (the first traces)
    last_gain: float = math.nan  #: see `gpflow_bsvm.compare.baselines.Baseline`

    @property
    def ok(self) -> bool:
        """:return: True if there are scores."""
        return self.status.startswith("ok")


#: The number of a comparison, and the `fold_scores` and `held_out` of one of its models.
Result = tuple[int, list[FoldScore], dict[str, dict[int, Held]]]


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
        scores = regression if settings.task == "regression" else metrics
        self._evaluate = scores.evaluate
        self.metrics = scores.METRICS
        self.losses = scores.LOSSES
        if settings.task == "regression":
            self.labels = np.array([])
            self._y = dataset.y.astype(float)
        else:
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
        bar = progress_bar(self.num_fits, "compare", progress, "fit")
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
            return self._fitted(name, fold, made)
        except Exception as error:  # an error of one model must not end the comparison
            why = (str(error).splitlines() or [""])[0]
            skipped = isinstance(error, Skipped)
            status = f"skipped: {why}" if skipped else f"failed: {type(error).__name__}: {why}"
            return made(status, dict.fromkeys(self.metrics, math.nan))

    def _fitted(self, name: str, fold: Fold, made: Callable[..., FoldScore]) -> FoldScore:
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
        scores = self._evaluate(fold.y_test, p)
        self.held_out.setdefault(name, {})[fold.number] = (fold.y_test, p)
        status = f"ok: {model.note}" if model.note else "ok"
        return made(status, scores, train_seconds, predict_us, model.last_gain)

    def _predict(self, model: Baseline, fold: Fold) -> AnyNDArray:
        if len(self.labels):
            return np.asarray(model.predict_proba(fold.X_test))
        return np.asarray(model.predict_numbers(fold.X_test, fold.y_test))


def run_all(comparisons: Sequence[Comparison], jobs: int, bar: tqdm) -> Iterator[Comparison]:
    """
    Run comparisons, and yield each comparison when all its models are done.

    :param jobs: number of processes, which share the cores; 1: this process.
    :param bar: a bar for the fits of all comparisons.
    :raise ChildProcessError: if a process was killed; finished models are kept.
    """
    if jobs == 1:
        for comparison in comparisons:
            comparison.run(bar)
            yield comparison
        return
    try:
        for number, scores, held_out in _results(comparisons, jobs):
            comparison = comparisons[number]
            comparison.add(scores, held_out)
            bar.set_postfix_str(f"{comparison.dataset.name}: {scores[0].model}")
            bar.update(len(scores))
            if not comparison.ended_early:
                yield comparison
    except BrokenProcessPool as error:
        reason = "a process was killed, perhaps for lack of memory: --jobs 1 needs less"
        raise ChildProcessError(reason) from error


def _results(comparisons: Sequence[Comparison], jobs: int) -> Iterator[Result]:
    threads = max(1, joblib.cpu_count() // jobs)
    tasks = [
        joblib.delayed(_one_model)(number, one.dataset, one.settings, model, threads)
        for number, one in enumerate(comparisons)
        for model in one.models
    ]
    # Without max_nbytes, joblib would write large arrays to files.
    pool = joblib.Parallel(
        min(jobs, len(tasks)), return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    yield from pool(tasks)


def _one_model(
    number: int, dataset: Dataset, settings: Settings, model: str, threads: int
) -> Result:
    """:return: the argument `number`, and the results of the model on all folds."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    atexit.register(gc.freeze)  # collecting graphs at the end would take seconds
    tqdm.set_lock(RLock())  # its default lock would be leaked when an interrupt ends this process
    comparison = Comparison(dataset, settings, [model])
    comparison.run(progress=False)
    return number, comparison.fold_scores, comparison.held_out
