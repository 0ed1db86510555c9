"""The fits of `wistuba2018`.

At most 1000 rows are for training and 2000 others for testing, a quarter of them all where there
are fewer, stratified and standardised by the training part. A class has 5 training rows at least,
taken from the rows that are left over; classes that cannot have them are left out.
"""

from __future__ import annotations

# isort: off
from . import _harness  # before GPflow
from . import _adam

# isort: on
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from gpflow_bsvm.compare.baselines import KernelSettings
from gpflow_bsvm.compare.protocol import Fold, class_labels
from gpflow_bsvm.datasets import BUNDLED, load
from gpflow_bsvm.inducing_points import kmeans

NUM_INDUCING, MOST_TRAIN, MOST_TEST, TEST_PART, FEWEST = 64, 1000, 2000, 0.25, 5


def cut(name: str, split: int) -> Fold:
    dataset = load(name if name in BUNDLED else f"multiclass/{name}")
    y = class_labels(dataset)[1]
    train, test = _parts(y, split)
    known = np.bincount(y[train], minlength=y.max() + 1) >= FEWEST
    train, test = train[known[y[train]]], test[known[y[test]]]
    number = np.cumsum(known) - 1
    scaler = StandardScaler().fit(dataset.X[train])
    X, X_test = scaler.transform(dataset.X[train]), scaler.transform(dataset.X[test])
    Z = kmeans(X, min(NUM_INDUCING, len(np.unique(X, axis=0))), seed=split)
    return Fold(split, X, number[y[train]], Z, X_test, number[y[test]], test)


def _parts(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """:return: training and test rows; a class of one row cannot be stratified."""
    kept = np.flatnonzero(np.bincount(y)[y] > 1)
    sizes = {"train_size": 1 - TEST_PART, "test_size": TEST_PART}
    if len(kept) * (1 - TEST_PART) > MOST_TRAIN:
        test_size = min(MOST_TEST, int(TEST_PART * len(kept)))
        sizes = {"train_size": MOST_TRAIN, "test_size": test_size}
    train, test = train_test_split(kept, stratify=y[kept], random_state=split, **sizes)
    rest = np.random.default_rng(split).permutation(np.setdiff1d(kept, [*train, *test]))
    counts = np.bincount(y[train], minlength=y.max() + 1)
    more = [rest[y[rest] == c][: FEWEST - counts[c]] for c in np.flatnonzero(counts < FEWEST)]
    return np.concatenate([train, *more]), test


def measure(method: str, fold: Fold) -> dict:
    kernel = KernelSettings(float(np.sqrt(fold.X.shape[1])), 4.0)
    module = _adam if method in _adam.MODELS else _harness
    return module.measured(method, fold, kernel)
