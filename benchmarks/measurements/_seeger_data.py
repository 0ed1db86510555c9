"""The data of Seeger (2000), Table 1: random splits, inputs standardised over all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._common import numbered

#: Training rows; the others are test rows.
SIZES = {"crabs": 80, "pima": 200, "wdbc": 300, "twonorm": 300, "ringnorm": 400, "waveform": 800}


class Split(NamedTuple):
    X: np.ndarray
    y: np.ndarray  #: 0 or 1
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X, self.y[:, None].astype(float)

    def errors(self, f: np.ndarray) -> int:
        """:param f: [N_test] or [N_test, 1], of either sign."""
        return int(np.sum((np.ravel(f) > 0) != (self.y_test == 1)))


def split(name: str, number: int) -> Split:
    """`crabs` is sex by five measures, `waveform` its first class against its second."""
    X, y = _load(name)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(number).permutation(len(y))
    train, test = order[: SIZES[name]], order[SIZES[name] :]
    return Split(X[train], y[train], X[test], y[test])


def _load(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "crabs":
        X, _ = numbered("crabs")
        return X[:, 2:], (X[:, 0] == 1).astype(int)
    if name == "pima":  # Ripley's complete patients, without insulin
        X, y = numbered("pima")
        known = (X[:, [1, 2, 3, 5]] > 0).all(axis=1)
        return np.delete(X[known], 4, axis=1), y[known]
    if name == "waveform":
        X, y = numbered("waveform-21")
        return X[y < 2], y[y < 2]
    return numbered("breast-cancer" if name == "wdbc" else name)
