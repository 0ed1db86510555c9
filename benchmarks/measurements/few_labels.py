"""Ways to a kernel from few labels: as it is given, by the evidence, by leave-one-out density.

A row is a fit to so many labels, one of each class first (and as many as there are classes at
least). All fits of a set and a seed share rows, test rows (up to 1000), 32 k-means of the pool of
400 as inducing points, and the kernel to begin with: isotropic, variance 4, lengthscale sqrt(D).

"given" is `CAVI` at that kernel, "vem" learns without priors, "vem, priors" with the default ones,
"guard" keeps that only where the leave-one-out density gains, "left out" is the best multiple of
variance and lengthscale by that density.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import gpflow
import numpy as np
from sklearn.preprocessing import StandardScaler

import gpflow_bsvm as gb
from gpflow_bsvm import likelihoods
from gpflow_bsvm.active import fit_from_prior
from gpflow_bsvm.inference import CAVI, VEM
from gpflow_bsvm.papers import seeger2000
from gpflow_bsvm.prediction import leave_one_out_density

from ._common import numbered, scores, usual_kernel

SETS = {"vowel": "vowel", "pendigits": "pendigits", "digits": "digits", "cancer": "breast-cancer"}
LABELS, SEEDS, POOL, ROWS = (10, 20, 40, 100), 3, 400, 1400
MANY = {"CrammerSinger": 1, "OneVsRestLevelHinge": 2}  # latent functions of a class
TWO = {"Hinge": 1, "NormalizedHinge": 1, "LevelHinge": 2}
WAYS = ("given", "vem", "vem, priors", "guard", "left out")
VARIANCES, LENGTHSCALES = (0.25, 0.5, 1, 2, 4, 8), (0.4, 0.6, 1, 1.6, 2.5)


def run() -> Iterator[dict]:
    for seed, (name, of) in itertools.product(range(SEEDS), SETS.items()):
        X, y = numbered(of)
        order = np.random.default_rng(seed).permutation(len(y))[:ROWS]
        X, y = X[order], y[order]
        pool, C = min(POOL, len(y) // 2), int(y.max()) + 1
        scaler = StandardScaler().fit(X[:pool])
        pool, test = (scaler.transform(X[:pool]), y[:pool]), (scaler.transform(X[pool:]), y[pool:])
        Z = gb.inducing_points.kmeans(pool[0], 32, seed=seed)
        first = [int(np.flatnonzero(pool[1] == c)[0]) for c in range(C)]
        queue = first + [row for row in range(len(pool[0])) if row not in first]
        kinds, where = TWO if C == 2 else MANY, {"data": name, "seed": seed}
        for number, kind, way in itertools.product(LABELS, kinds, WAYS):
            rows = queue[: max(number, C)]
            data = pool[0][rows], pool[1][rows, None].astype(float)
            model = _fitted(kind, C, way, Z, data)
            row = {"labels": number, "loss": kind, "way": way, **scores(model, *test)}
            yield {**where, **row, "variance": float(model.kernel.variance.numpy())}


def _fitted(kind: str, C: int, way: str, Z: np.ndarray, data: tuple) -> gb.models.BSVM:
    num = MANY[kind] * C if C > 2 else TWO[kind]
    home = seeger2000 if kind == "NormalizedHinge" else likelihoods
    likelihood = getattr(home, kind)(*([C] if C > 2 else []))
    kernel = usual_kernel(Z.shape[1])
    if way != "vem":
        penalty = float(likelihood.penalty.numpy())
        gb.priors.set_default_priors(kernel, Z.shape[1], penalty=penalty)
    model = gb.models.BSVM(kernel, likelihood, Z.copy(), num_latent_gps=num)
    gpflow.set_trainable(model.inducing_variable, False)
    if way in ("vem", "vem, priors"):
        VEM().run(model, data)
        return model
    kernels = [read(kernel)]
    if way == "left out":
        steps = itertools.product(VARIANCES, LENGTHSCALES)
        kernels += [{n: v * by for (n, v), by in zip(read(kernel).items(), s)} for s in steps]
    found = [_at(model, values, data) for values in kernels]
    if way == "guard":
        fit_from_prior(model, None)
        VEM().run(model, data)
        found.append((leave_one_out_density(model, data), read(kernel), model.natural()))
    _, values, natural = max(found, key=lambda one: one[0])
    gpflow.utilities.multiple_assign(kernel, values)
    model.assign_natural(natural)
    return model


def read(kernel: gpflow.kernels.Kernel) -> dict:
    return {".variance": kernel.variance.numpy(), ".lengthscales": kernel.lengthscales.numpy()}


def _at(model: gb.models.BSVM, values: dict, data: tuple) -> tuple:
    gpflow.utilities.multiple_assign(model.kernel, values)
    fit_from_prior(model, None)
    CAVI().run(model, data)
    return leave_one_out_density(model, data), values, model.natural()
