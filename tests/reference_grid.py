"""Means, variances and labels to try binary likelihoods on."""

import numpy as np

MU = np.array([-50.0, -3.0, -1.0, -0.2, 0.0, 0.7, 1.0, 1.3, 4.0, 50.0])


V = np.array([1e-12, 1e-4, 0.3, 1.0, 25.0, 1e4])


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and labels in {-1, +1}, each [N, 1]."""
    columns = np.meshgrid(MU, V, [-1.0, 1.0])
    mu, v, y = (column.reshape(-1, 1) for column in columns)
    return mu, v, y


def expectations(likelihood, mu, v, y):
    mu, v, y = (np.asarray(values, float) for values in (mu, v, y))
    return likelihood.variational_expectations(None, mu, v, y).numpy()
