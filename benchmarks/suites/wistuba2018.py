"""Wistuba and Rawat (2018), section 4.1: multi-class sets, M = 64, who is more accurate and when.

Two arms. By natural gradients, on all sets: q alone is learned, at one kernel for all (variance 4,
lengthscale sqrt(D), which the papers' tuning is not): Crammer and Singer's machine, binary ones one
against the rest, GPflow's SVGP with Softmax and with RobustMax (the harness finds step sizes that
hold), scikit-learn's SVC with C by grid search and Platt scaling. By Adam as the paper says (rate
5e-4, 1000 epochs), on small sets: everything is learned, see `_adam`.

At most 1000 rows are for training and 2000 others for testing, a quarter of them all where there
are fewer, stratified; classes with fewer than 5 training rows are left out.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from gpflow_bsvm.compare import Fold, KernelSettings, class_labels
from gpflow_bsvm.datasets import BUNDLED, load
from gpflow_bsvm.inducing_points import kmeans

from . import _adam
from ._contract import Stage, Suite
from ._harness import measured

NUM_INDUCING, MOST_TRAIN, MOST_TEST, TEST_PART, FEWEST = 64, 1000, 2000, 0.25, 5
#: By what a fit of them takes, least first.
SETS = (
    *("iris", "lymphography", "flags", "glass", "auto", "cars", "balance-scale", "schizo"),
    *("cleveland", "solar-flare_1", "movement_libras", "collins", "analcatdata_authorship"),
    *("analcatdata_dmft", "soybean", "car", "solar-flare_2", "vowel", "yeast", "allhypo", "allbp"),
    *("allrep", "allhyper", "splice", "waveform-21", "waveform-40", "ann-thyroid", "page-blocks"),
    *("wine-quality-white", "satimage", "mfeat-morphological", "mfeat-zernike", "mfeat-karhunen"),
    *("mfeat-fourier", "mfeat-factors", "mfeat-pixel", "led7", "led24", "nursery", "optdigits"),
    *("pendigits", "covtype_15k", "usps", "letter", "krkopt", "connect-4", "shuttle", "sleep"),
    *("fars", "poker", "kddcup"),
)
#: The other sets of the directory are one of these once more, see `docs/suites.md`.
SAME_AS = {
    "car-evaluation": "car",
    "cars1": "cars",
    "cleveland-nominal": "cleveland",
    "dna": "splice",
    "prnn_fglass": "glass",
}
SMALL = (
    "iris",
    "lymphography",
    "flags",
    "glass",
    "auto",
    "cars",
    "schizo",
    "cleveland",
    "solar-flare_1",
    "movement_libras",
)
NATURAL = ("bsvm", "one-vs-rest", "svgp", "svgp-robustmax", "svc")
SPLITS = 2


def cut(name: str, split: int) -> Fold:
    dataset = load(name if name in BUNDLED else f"multiclass/{name}")
    y = class_labels(dataset)[1]
    kept = np.flatnonzero(np.bincount(y)[y] > 1)  # a class of one row cannot be stratified
    sizes = {"train_size": 1 - TEST_PART, "test_size": TEST_PART}
    if len(kept) * (1 - TEST_PART) > MOST_TRAIN:
        test_size = min(MOST_TEST, int(TEST_PART * len(kept)))
        sizes = {"train_size": MOST_TRAIN, "test_size": test_size}
    train, test = train_test_split(kept, stratify=y[kept], random_state=split, **sizes)
    known = np.bincount(y[train], minlength=y.max() + 1) >= FEWEST
    train, test = train[known[y[train]]], test[known[y[test]]]
    number = np.cumsum(known) - 1
    scaler = StandardScaler().fit(dataset.X[train])
    X, X_test = scaler.transform(dataset.X[train]), scaler.transform(dataset.X[test])
    Z = kmeans(X, min(NUM_INDUCING, len(np.unique(X, axis=0))), seed=split)
    return Fold(split, X, number[y[train]], Z, X_test, number[y[test]], test)


def measure(method: str, fold: Fold) -> dict:
    kernel = KernelSettings(float(np.sqrt(fold.X.shape[1])), 4.0)
    return (
        _adam.measured(method, fold, kernel)
        if method in _adam.METHODS
        else measured(method, fold, kernel)
    )


SUITE = Suite(
    stages=(
        Stage(0, SETS, NATURAL),
        Stage(0, SMALL, _adam.METHODS),
        *(Stage(split, SETS, NATURAL) for split in range(1, SPLITS)),
    ),
    smoke=(Stage(0, ("iris",), (*NATURAL, *_adam.METHODS)),),
    limit=120.0,
    cut=cut,
    measure=measure,
)
