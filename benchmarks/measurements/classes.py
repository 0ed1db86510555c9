"""One multi-class step at batch 500 against GPflow's, and how its cost grows with the classes.

The inputs are those of letter (16 columns); the labels are k-means clusters of them, so that there
can be any number of classes on the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gpflow
import numpy as np
from sklearn.cluster import KMeans

import gpflow_bsvm as gb

from ._common import natgrad_timer, repeated, standardised, svi_timer, usual_kernel

REPEATS, BATCH, NUM_INDUCING, RATE = 9, 500, 100, 0.02
CLASSES = (3, 10, 26, 100)


def run() -> Iterator[dict]:
    X = standardised("letter")[0][:10_000]
    Z = gb.inducing_points.kmeans(X, NUM_INDUCING)
    for num_classes in CLASSES:
        labels = KMeans(num_classes, n_init=1, random_state=0).fit_predict(X)
        for row in repeated(_timers(X, labels[:, None], Z, num_classes), REPEATS):
            yield {"classes": num_classes, **row}


def _timers(X: np.ndarray, Y: np.ndarray, Z: np.ndarray, C: int) -> dict[str, Callable]:
    ours, theirs = gb.likelihoods, gpflow.likelihoods
    num_steps = 100 if C < 50 else 30
    svi = gb.inference.SVI(batch_size=BATCH, max_steps=num_steps, learning_rate=RATE)
    index = np.random.default_rng(0).integers(0, len(X), (num_steps // 5, BATCH))

    def model(cls: type, likelihood: gpflow.likelihoods.Likelihood) -> gpflow.models.SVGP:
        latents = {"num_latent_gps": likelihood.latent_dim, "num_data": len(X)}
        return cls(usual_kernel(X.shape[1]), likelihood, Z.copy(), **latents)

    def our(likelihood: gpflow.likelihoods.Likelihood) -> Callable:
        data = X, Y.astype(float)
        return svi_timer(lambda: model(gb.models.BSVM, likelihood), data, svi)

    def their(likelihood: gpflow.likelihoods.Likelihood) -> Callable:
        svgp = model(gpflow.models.SVGP, likelihood)  # its Softmax takes integers only
        return natgrad_timer(
            svgp, (X, Y.astype(int)), index, RATE / 100
        )  # at our size it turns to NaN

    return {
        "SVI, exact": our(ours.CrammerSinger(C)),
        "SVI, published": our(ours.CrammerSinger(C, bound="wistuba2018")),
        "SVI, one-vs-rest": our(ours.OneVsRest(C)),
        "GPflow, Softmax": their(theirs.Softmax(C)),
        "GPflow, RobustMax": their(theirs.MultiClass(C)),
    }
