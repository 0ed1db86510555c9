"""Score functions in place of fits to folds."""

import numpy as np

from gpflow_bsvm.estimators.candidates import candidates
from gpflow_bsvm.model_selection.densities import HeldOut


def of_nats(*nats):
    """:return: a score function: these mean log densities, of rows that differ."""
    among = candidates("auto", "auto", False)[: len(nats)]
    noise = np.random.default_rng(0).normal(size=(len(among), 9))
    rows = dict(zip(among, np.array(nats)[:, None] + noise - noise.mean(axis=1, keepdims=True)))
    return lambda one: HeldOut(rows[one], np.ones(9))
