"""Wistuba & Rawat (2018), section 4.3.1: error after some queries, policy by policy.

A row is a policy after so many queries, on a set and a seed. All policies of a seed share split,
pool (at most 400 rows), test rows (at most 1000 others), inducing points (32 k-means of the pool),
kernel to begin with and first labels: those of a random row of every class that the pool has. The
loop asks about 2 rows at a time, adds them by `Streaming`, and chooses the kernel (isotropic, with
the default priors) after 22 and after 52 queries by the leave-one-out density of the labels that it
has; two policies are there once more with the kernel as it was given. "all" is a fit to the whole
pool, its kernel learned by `VEM`. The paper asks for 1 row at a time, and has 4 inducing points.

BALD's mutual information is that of 16 draws. `ask_ms` and `tell_ms` are milliseconds of CPU a
batch. For two policies there is what a refit changes at the test rows, and the error after it.

Rows are kept as they come in results/active, see `store.Kept`.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Iterator

import gpflow
import numpy as np
from sklearn.preprocessing import StandardScaler
from store import Kept

import gpflow_bsvm as gb
from gpflow_bsvm.active import ActiveLearner, Request
from gpflow_bsvm.engine.open import open_data
from gpflow_bsvm.inference import VEM, Streaming
from gpflow_bsvm.papers.wistuba2018 import softmax_entropy

from ._common import numbered, scores, usual_kernel

#: No two of these hold the same data.
SETS = (
    *("analcatdata_authorship", "analcatdata_dmft", "ann-thyroid", "balance-scale", "car", "cars"),
    *("cleveland", "covtype_15k", "dna", "nursery", "page-blocks", "pendigits", "satimage"),
    *("schizo", "shuttle", "sleep", "solar-flare_1", "vowel", "waveform-21", "yeast"),
)
SEEDS, POOL, TEST, NUM_INDUCING, BATCH, BALD_SAMPLES = 3, 400, 1000, 32, 2, 16
QUERIES, CHOOSE_AFTER = (20, 50, 100), (22, 52)
#: What is measured with the kernel as it was given, too, under its name and this.
GIVEN, AS_GIVEN = ("variation_ratio", "margin"), ", kernel as given"
#: Of which the distance from a refit is measured.
COMPARED = ("variation_ratio", "random")


def _bald(model, X: np.ndarray, request: Request) -> np.ndarray:
    how = {"num_samples": BALD_SAMPLES, "seed": request.seed}
    return gb.prediction.mutual_information(model, X, **how)


POLICIES: dict[str, Callable | str] = {
    **{name: name for name in ("variation_ratio", "margin", "random")},
    "softmax_entropy": softmax_entropy,
    "bald": _bald,
}


def run() -> list[dict]:
    kept = Kept("active")
    for seed, name in itertools.product(range(SEEDS), SETS):
        key = {"data": name, "seed": seed}
        kept.complete(name, key, lambda name=name, seed=seed: _set(name, seed))
    return kept.rows("seed", "data")


def _set(name: str, seed: int) -> Iterator[dict]:
    random = np.random.default_rng(seed)
    X, y = numbered(name)
    order = random.permutation(len(y))[: POOL + TEST]
    size = min(POOL, 2 * len(order) // 3)
    scaler = StandardScaler().fit(X[order[:size]])
    X, X_test = (scaler.transform(X[part]) for part in (order[:size], order[size:]))
    C, y, y_test = int(y.max()) + 1, y[order[:size]], y[order[size:]]
    first = np.array([random.choice(np.flatnonzero(y == c)) for c in np.unique(y)])
    Z = gb.inducing_points.kmeans(X, NUM_INDUCING, seed=seed)
    pool, test = (X, y, first), (X_test, y_test)
    for policy in POLICIES:
        yield from _policy(policy, _model(X, C, Z), seed, pool, test)
    for policy in GIVEN:
        yield from _policy(policy, _model(X, C, Z), seed, pool, test, AS_GIVEN)
    whole = ActiveLearner(_model(X, C, Z), X, relearn=None)
    whole.tell(np.arange(size), y)
    VEM(tol=1e-3).run(whole.model, open_data(whole.model, (X, whole.Y), part=True))
    yield _row("all", size, whole, test, 0, 0)


def _model(X: np.ndarray, C: int, Z: np.ndarray) -> gb.models.BSVM:
    kernel = usual_kernel(X.shape[1])
    gb.priors.set_default_priors(kernel, X.shape[1], penalty=2.0)
    likelihood = gb.likelihoods.CrammerSinger(C)
    model = gb.models.BSVM(kernel, likelihood, Z.copy(), num_latent_gps=C)
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def _policy(
    policy: str, model, seed: int, pool: tuple, test: tuple, variant: str = ""
) -> Iterator[dict]:
    X, y, first = pool
    moments = None if variant else tuple(len(first) + number for number in CHOOSE_AFTER)
    how = {"batch_size": BATCH, "relearn": moments, "seed": seed, "update": Streaming(tol=1e-3)}
    learner = ActiveLearner(model, X, POLICIES[policy], **how)
    learner.tell(first, y[first])
    asked = told = before = 0.0
    while before < QUERIES[-1]:
        start = time.process_time()
        index = learner.ask()
        middle = time.process_time()
        learner.tell(index, y[index])
        asked, told = asked + middle - start, told + time.process_time() - middle
        before += BATCH
        if before in QUERIES:
            batches = before / BATCH
            yield _row(
                policy + variant, int(before), learner, test, asked / batches, told / batches
            )


def _row(
    policy: str, queries: int, learner: ActiveLearner, test: tuple, asked: float, told: float
) -> dict:
    X, y = test
    row = {"policy": policy, "queries": queries, **scores(learner.model, X, y)}
    row |= {"classes_seen": len(np.unique(learner.Y)), "ask_ms": 1e3 * asked, "tell_ms": 1e3 * told}
    far = dict.fromkeys(("mean", "variance", "probability", "decisions", "refit_error"), np.nan)
    if policy in COMPARED:
        far = _distance(learner, X, y)
    return row | far


def _distance(learner: ActiveLearner, X: np.ndarray, y: np.ndarray) -> dict:
    """Of f in standard deviations, its variance as a ratio, p in total variation, and the class."""
    again = copy.copy(learner)
    again.model = gpflow.utilities.deepcopy(learner.model)
    again.refit()
    models = learner.model, again.model
    (mean, variance), (mean_, variance_) = (gb.prediction.predict_marginals(m, X) for m in models)
    p, p_ = (gb.prediction.predict_probabilities(m, X) for m in models)
    return {
        "mean": np.sqrt(np.mean(np.square(mean - mean_) / variance_)),
        "variance": np.mean(variance / variance_),
        "probability": np.abs(p - p_).sum(axis=1).mean() / 2,
        "decisions": np.mean(p.argmax(axis=1) != p_.argmax(axis=1)),
        "refit_error": scores(again.model, X, y)["error"],
    }
