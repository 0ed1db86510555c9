"""What automatic relevance determination calls irrelevant, where the truth is known.

`VEM` (`tol` 1e-3) learns a squared exponential with a lengthscale for every (standardised) input,
with the default priors and without any, from 1000 rows and 200 inducing points, three seeds. The
relevance of an input is 1 / lengthscale over the largest of its fit. By the definitions of the data

- all inputs of twonorm and ringnorm are equally relevant;
- inputs 1 and 21 of waveform are noise, whatever the class. The class means of the two-class set
  (one pair of waves against the other two) also coincide at input 12, but its value tells the
  share of the waves, so that it does inform;
- of waveform-40 (three classes) inputs 22 to 40 are noise too.

`information` is what is lost with an input: I(y; x_i | the others) in nats, by Monte Carlo from the
definition. Each two-class set comes again with 10 inputs of standard normal noise appended. A row
with an `input` is a median over seeds. The others summarise: medians of the smallest relevance of
a true input, the largest of a noise input, the AUC of relevance as a score for being true, counts
of inputs below a tenth of the largest relevance, and the mean held-out error, also of an isotropic
kernel that is learned in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import gpflow
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb

from ._common import numbered, scores

#: Data and the number of noise inputs appended to it.
SETS = (
    *((name, appended) for appended in (0, 10) for name in ("twonorm", "ringnorm", "waveform")),
    ("waveform-40", 0),
)
NUM_ROWS, NUM_INDUCING, SEEDS = 1000, 200, 3
#: A relevance below this counts as ignored.
IGNORED = 0.1
#: Waves of each class, by their peaks: inputs 7, 15 and 11. `binary/waveform` is 1 against 0 and 2.
WAVES = {0: (7, 15), 1: (7, 11), 2: (11, 15)}


class Split(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def run() -> list[dict]:
    return [row for name, appended in SETS for row in _set(name, appended)]


def _set(name: str, appended: int) -> list[dict]:
    splits = [_split(name, appended, seed) for seed in range(SEEDS)]
    truth = _truth(name, splits[0].X.shape[1])
    rows = []
    for priors in ("default", "none"):
        ard = [_learn(split, priors, seed, True) for seed, split in enumerate(splits)]
        isotropic = [_learn(split, priors, seed, False) for seed, split in enumerate(splits)]
        setting = {"data": name, "appended": appended, "priors": priors}
        lengthscales = np.array([fit["lengthscales"] for fit in ard])
        inputs = _inputs(lengthscales, truth, _information(name, len(truth)))
        errors = {
            "error_ard": np.mean([fit["error"] for fit in ard]),
            "error_isotropic": np.mean([fit["error"] for fit in isotropic]),
        }
        summary = {"kind": "summary", **_summary(_relevance(lengthscales), truth), **errors}
        rows += [{**setting, **row} for row in (*inputs, summary)]
    return rows


def _split(name: str, appended: int, seed: int) -> Split:
    X, y = numbered(name)
    generator = np.random.default_rng(seed)
    X = np.hstack([X, generator.standard_normal((len(y), appended))])
    order = generator.permutation(len(y))
    train, test = order[:NUM_ROWS], order[NUM_ROWS:]
    scaler = StandardScaler().fit(X[train])
    return Split(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])


def _learn(split: Split, priors: str, seed: int, ard: bool) -> dict:
    X, num_classes = split.X, int(split.y.max()) + 1
    scale = np.sqrt(X.shape[1])
    lengthscales = np.full(X.shape[1], scale) if ard else scale
    kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=lengthscales)
    multiclass = num_classes > 2
    likelihood = (
        gb.likelihoods.CrammerSinger(num_classes)
        if multiclass
        else gb.likelihoods.Hinge(bound="augmented")
    )
    if priors == "default":
        penalty = float(likelihood.penalty.numpy())
        gb.priors.set_default_priors(kernel, X.shape[1], penalty=penalty)
    model = gb.models.BSVM(
        kernel,
        likelihood,
        gb.inducing_points.kmeans(X, NUM_INDUCING, seed=seed),
        num_latent_gps=num_classes if multiclass else 1,
        num_data=len(X),
    )
    gpflow.set_trainable(model.inducing_variable, False)
    gb.inference.VEM(tol=1e-3).run(model, (X, split.y[:, None].astype(float)), progress=False)
    found = scores(model, split.X_test, split.y_test)
    return {"lengthscales": kernel.lengthscales.numpy(), **found}


def _truth(name: str, num_features: int) -> np.ndarray:
    """:return: [D], whether an input has a say in the class."""
    inputs = np.arange(1, num_features + 1)
    if name.startswith("waveform"):
        return (inputs >= 2) & (inputs <= 20)
    return inputs <= 20


def _relevance(lengthscales: np.ndarray) -> np.ndarray:
    """:return: [seeds, D], 1 for the most relevant input."""
    return lengthscales.min(axis=1, keepdims=True) / lengthscales


def _inputs(lengthscales: np.ndarray, truth: np.ndarray, information: np.ndarray) -> list[dict]:
    relevance = np.median(_relevance(lengthscales), axis=0)
    return [
        {
            "kind": "input",
            "input": i + 1,
            "true": int(truth[i]),
            "information": information[i],
            "lengthscale": np.median(lengthscales[:, i]),
            "relevance": relevance[i],
        }
        for i in range(len(truth))
    ]


def _summary(relevance: np.ndarray, truth: np.ndarray) -> dict:
    true, noise = relevance[:, truth], relevance[:, ~truth]
    both = not truth.all()
    aucs = [roc_auc_score(truth, of_seed) for of_seed in relevance] if both else [np.nan]
    return {
        "smallest_true": np.median(true.min(axis=1)),
        "largest_noise": np.median(noise.max(axis=1)) if both else np.nan,
        "auc": np.median(aucs),
        "auc_min": np.min(aucs),
        "num_true": true.shape[1],
        "ignored_true": np.median(np.sum(true < IGNORED, axis=1)),
        "num_noise": noise.shape[1],
        "ignored_noise": np.median(np.sum(noise < IGNORED, axis=1)),
    }


def _information(name: str, num_features: int, num_samples: int = 10_000) -> np.ndarray:
    """:return: [D], I(y; x_i | the others) for the waveforms, NaN for other data."""
    if not name.startswith("waveform"):
        return np.full(num_features, np.nan)
    positions = np.arange(1, 22)
    wave = {peak: np.maximum(6 - np.abs(positions - peak), 0) for peak in (7, 11, 15)}
    generator, share = np.random.default_rng(0), np.linspace(0, 1, 41)[:, None]
    means = [share * wave[a] + (1 - share) * wave[b] for a, b in WAVES.values()]  # each [41, 21]
    y = generator.integers(3, size=num_samples)
    u = generator.random((num_samples, 1))
    a, b = (np.array([wave[WAVES[c][side]] for c in y]) for side in (0, 1))
    X = u * a + (1 - u) * b + generator.standard_normal((num_samples, 21))
    terms = [-0.5 * np.square(X[:, None] - mean) for mean in means]  # each [samples, 41, 21]
    sums = [term.sum(axis=-1) for term in terms]
    groups = np.eye(3) if name == "waveform-40" else np.array([[1, 0], [0, 1], [1, 0]])
    full = _posterior(sums, groups)
    lost = []
    for i in range(21):
        without = _posterior([s - t[..., i] for s, t in zip(sums, terms)], groups)
        lost.append(np.mean(np.sum(full * np.log(full / without), axis=1)))
    return np.concatenate([lost, np.zeros(num_features - 21)])


def _posterior(sums: list[np.ndarray], groups: np.ndarray) -> np.ndarray:
    """
    :param sums: for each of three classes [samples, 41], log densities at 41 shares of its waves.
    :param groups: [3, C], the label of each class.
    :return: [samples, C], p(label | x).
    """
    density = np.stack([np.exp(s).mean(axis=1) for s in sums], axis=1)
    return density @ groups / density.sum(axis=1, keepdims=True)
