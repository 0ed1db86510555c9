"""Means, variances and labels of several classes, integrals over them, and rows in three blobs."""

import numpy as np
from scipy.special import ndtr


def draw(num_classes, num_rows=4, spread=1.0, seed=0):
    """:return: X, Fmu, Fvar, Y; standard deviations within a factor of `spread` of 1."""
    random = np.random.default_rng(seed)
    Fmu = 2 * random.normal(size=(num_rows, num_classes))
    Fvar = np.exp(2 * np.log(spread) * random.uniform(-1, 1, size=Fmu.shape))
    Y = random.integers(0, num_classes, (num_rows, 1)).astype(float)
    return np.zeros((num_rows, 1)), Fmu, Fvar, Y


NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def integral(low, high, function):
    """Of a function of arrays, from each low [...] to each high: 8 panels of 60 nodes."""
    edges = np.linspace(low, high, 9)[..., None]
    half = np.diff(edges, axis=0) / 2
    return (half * WEIGHTS * function(edges[:-1] + half * (1 + NODES))).sum(axis=(0, -1))


def above(u, mean, scale):
    """P(max_j f_j > u)."""
    return 1 - ndtr((u[..., None] - mean) / scale).prod(axis=-1)


def three_blobs(num_rows=90, seed=0):
    random = np.random.default_rng(seed)
    Y = np.arange(num_rows)[:, None] % 3
    centres = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    return centres[Y[:, 0]] + random.normal(size=(num_rows, 2)), Y.astype(float)
