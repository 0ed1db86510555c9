"""The protocol: stratified folds, scaling, kernel and inducing points that all peers share."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from tqdm.auto import tqdm

from .. import metrics
from ..datasets import Dataset
from ..inducing_points import initial as inducing_points
from .baselines import PEERS, Peer, Skipped
from .labels import check_counts, class_labels
from .training import KernelSettings

_NAN = float("nan")


@dataclass(frozen=True)
class Settings:
    """
    :ivar folds: of the stratified cross-validation.
    :ivar num_inducing: M, at most; no more than there are training rows.
    :ivar lengthscale: of the kernel on standardised features; None: the square root of D.
    :ivar variance: of the kernel.
    :ivar learn_kernel: whether every peer learns its kernel, from there.
    :ivar seed: of folds, inducing points and the peers' own splits.
    """

    folds: int = 10
    num_inducing: int = 100
    lengthscale: float | None = None
    variance: float = 4.0
    learn_kernel: bool = False
    seed: int = 0

    def kernel(self, num_features: int) -> KernelSettings:
        """:return: where the kernel starts for data of D columns."""
        lengthscale = self.lengthscale or math.sqrt(num_features)
        return KernelSettings(lengthscale, self.variance, self.learn_kernel)


@dataclass(frozen=True)
class Row:
    """
    A peer on a fold.

    :ivar status: "ok", "ok: <note>", "skipped: <reason>" or "failed: <reason>".
    :ivar scores: by name of `gpflow_bsvm.metrics.METRICS`, on the held-out part.
    :ivar train_seconds: to set up and fit the model.
    :ivar predict_us: microseconds per held-out row.
    """

    dataset: str
    peer: str
    fold: int
    status: str
    scores: dict[str, float]
    train_seconds: float = _NAN
    predict_us: float = _NAN

    @property
    def ok(self) -> bool:
        """:return: whether there are scores."""
        return self.status.startswith("ok")


@dataclass
class Trace:
    """A fit of fold 0, step by step: training seconds, ELBO, held-out error and NLL."""

    seconds: list[float] = field(default_factory=list)
    elbo: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    nll: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class _Fold:
    number: int
    X: AnyNDArray
    y: AnyNDArray
    Z: AnyNDArray
    X_test: AnyNDArray
    y_test: AnyNDArray


class Comparison:
    """
    All peers on all folds of one data set. What is done stays in `rows`, also when `run` ends
    early by an interrupt.

    :ivar labels: [C], in sorted order; number c is the label's place in it.
    :ivar rows: one per fold and peer.
    :ivar held_out: labels [N] in 0..C-1 and predictions [N, C] of each peer, fold after fold.
    :ivar traces: by peer.
    """

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        """
        :raise DataError: unless there are two classes or more, each with a row for every fold.
        """
        self.dataset, self.settings = dataset, settings
        self.labels, self._y = class_labels(dataset)
        check_counts(dataset.name, self.labels, np.bincount(self._y), settings.folds)
        self.rows: list[Row] = []
        self.held_out: dict[str, list[tuple[AnyNDArray, AnyNDArray]]] = {}
        self.traces: dict[str, Trace] = {}

    def run(
        self,
        peers: Sequence[str],
        *,
        with_traces: bool = True,
        progress: bool | None = None,
    ) -> None:
        """
        :param peers: names in `PEERS`.
        :param with_traces: fit fold 0 once more, watched, outside of the timed part.
        :param progress: show a progress bar; None: on a terminal only.
        """
        names, made = list(dict.fromkeys(peers)), dict[str, Peer]()
        disable = None if progress is None else not progress
        total = self.settings.folds * len(names)
        bar = tqdm(total=total, desc=self.dataset.name, unit="fit", disable=disable)
        with contextlib.ExitStack() as stack:
            stack.enter_context(bar)
            stack.callback(self._sort, names)
            tf.random.set_seed(self.settings.seed)  # for GPflow's Softmax; here as it is slow
            for fold in self._folds():
                # In a fresh order each time: what ran before (its threads, its memory) tells on
                # the clock of what runs next.
                for name in np.random.default_rng(fold.number).permutation(names):
                    bar.set_postfix_str(name)
                    self.rows.append(self._one(name, made, fold))
                    if with_traces and fold.number == 0 and self.rows[-1].ok:
                        self._trace(name, made[name], fold)
                    bar.update()

    def _sort(self, peers: list[str]) -> None:
        """Rows and curves in the order of `peers`, in which tables and pictures show them."""
        self.rows.sort(key=lambda row: (row.fold, peers.index(row.peer)))
        self.held_out = {name: self.held_out[name] for name in peers if name in self.held_out}
        self.traces = {name: self.traces[name] for name in peers if name in self.traces}

    def _folds(self) -> list[_Fold]:
        settings, X, y = self.settings, self.dataset.X, self._y
        splits = StratifiedKFold(settings.folds, shuffle=True, random_state=settings.seed)
        folds = []
        for number, (train, test) in enumerate(splits.split(X, y)):
            scaler = StandardScaler().fit(X[train])
            X_train = scaler.transform(X[train])
            num_inducing = min(settings.num_inducing, len(train))
            Z = inducing_points.kmeans(X_train, num_inducing, seed=settings.seed + number)
            X_test = scaler.transform(X[test])
            folds.append(_Fold(number, X_train, y[train], Z, X_test, y[test]))
        return folds

    def _one(self, name: str, made: dict[str, Peer], fold: _Fold) -> Row:
        try:
            if name not in made:
                made[name] = PEERS[name].make(len(self.labels))
            peer = made[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if fold.number == 0:  # TensorFlow traces and compiles here, outside of the timing
                    self._fit(peer, fold)
                    peer.predict_proba(fold.X_test)
                train_seconds, _ = _timed(lambda: self._fit(peer, fold))
                predict_seconds, p = _timed(lambda: peer.predict_proba(fold.X_test))
            scores = metrics.evaluate(fold.y_test, p)
        except Exception as error:  # whatever it is: one peer must not end the comparison
            return self._missing(name, fold, error)
        self.held_out.setdefault(name, []).append((fold.y_test, p))
        status = f"ok: {peer.note}" if peer.note else "ok"
        predict_us = 1e6 * predict_seconds / len(p)
        return Row(self.dataset.name, name, fold.number, status, scores, train_seconds, predict_us)

    def _missing(self, name: str, fold: _Fold, error: Exception) -> Row:
        reason = (str(error).splitlines() or [""])[0]
        if isinstance(error, Skipped):
            status = f"skipped: {reason}"
        else:
            status = f"failed: {type(error).__name__}: {reason}"
        return Row(
            self.dataset.name, name, fold.number, status, dict.fromkeys(metrics.METRICS, _NAN)
        )

    def _fit(self, peer: Peer, fold: _Fold, trace: Trace | None = None) -> None:
        def watch(seconds: float, elbo: float) -> None:
            assert trace is not None
            p = peer.predict_proba(fold.X_test)
            trace.seconds.append(seconds)
            trace.elbo.append(elbo)
            trace.error.append(metrics.error(fold.y_test, p))
            trace.nll.append(metrics.nll(fold.y_test, p))

        kernel = self.settings.kernel(fold.X.shape[1])
        seed = self.settings.seed + fold.number
        peer.fit(fold.X, fold.y, fold.Z, kernel, seed, None if trace is None else watch)

    def _trace(self, name: str, peer: Peer, fold: _Fold) -> None:
        if not peer.has_trace:
            return
        trace = Trace()
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            self._fit(peer, fold, trace)
            self.traces[name] = trace  # a peer whose second fit fails has no picture


def _timed(function: Callable[[], AnyNDArray | None]) -> tuple[float, AnyNDArray]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, np.asarray(value)
