"""Data without end whose class probabilities are known: what the scale benchmarks run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from gpflow.base import AnyNDArray
from scipy.special import expit

#: Rows that are drawn together; a row depends on the seed and on its number, not on N.
BLOCK_ROWS = 2**16

#: Eight measured quantities of two leptons and what is missing, ten that are made of them.
SUSY_FEATURES = (
    *("lepton 1 pT", "lepton 1 eta", "lepton 1 phi", "lepton 2 pT", "lepton 2 eta"),
    *("lepton 2 phi", "missing pT", "missing phi", "mass", "pair pT", "transverse mass 1"),
    *("transverse mass 2", "scalar sum", "relative missing pT", "axial missing pT", "balance"),
    *("distance", "cos angle"),
)


@dataclass(frozen=True)
class SusyLike:
    """
    Two overlapping classes in the manner of the SUSY data of Baldi et al. (2014), which it does not
    contain: transverse momenta, directions and missing momentum of two leptons, and ten functions
    of these, 18 features in all. The log odds of class 1 are a smooth function of some of them, so
    that P(y = 1 | x) is known (`probability`) and no classifier errs less than the mean of
    min(P, 1 - P), .206; the best AUC is .873.

    Iterating gives blocks (X [n, 18], Y [n, 1]) of float64, the same each time: a source of any
    number of rows that needs no memory and no file.

    :ivar num_rows: N.
    :ivar seed: of the draws.
    :ivar start: number of the first row: rows from N on are a test set of those before.
    """

    num_rows: int
    seed: int = 0
    start: int = 0

    def __iter__(self) -> Iterator[tuple[AnyNDArray, AnyNDArray]]:
        end = self.start + self.num_rows
        for block in range(self.start // BLOCK_ROWS, -(-end // BLOCK_ROWS)):
            first = block * BLOCK_ROWS
            part = slice(max(self.start - first, 0), end - first)
            X, Y = _block(self.seed, block)
            yield X[part], Y[part]

    def arrays(self) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: all rows, X [N, 18] and Y [N, 1]."""
        X, Y = zip(*self)
        return np.concatenate(X), np.concatenate(Y)

    @staticmethod
    def probability(X: AnyNDArray) -> AnyNDArray:
        """
        :param X: [N, 18].
        :return: P(y = 1 | x), [N].
        """
        return np.asarray(expit(_log_odds(X)))


def _block(seed: int, number: int) -> tuple[AnyNDArray, AnyNDArray]:
    rng = np.random.default_rng([seed, number])
    momenta = np.exp(0.6 * rng.normal(size=(BLOCK_ROWS, 3)))  # heavy to the right
    eta = rng.normal(size=(BLOCK_ROWS, 2))
    phi = rng.uniform(-np.pi, np.pi, size=(BLOCK_ROWS, 3))
    X = _features(momenta, eta, phi)
    y = rng.random(BLOCK_ROWS) < SusyLike.probability(X)
    return X, y[:, None].astype(float)


def _features(momenta: AnyNDArray, eta: AnyNDArray, phi: AnyNDArray) -> AnyNDArray:
    p, q, missing = momenta.T
    turn, along, across = phi[:, 0] - phi[:, 1], phi[:, 0] - phi[:, 2], phi[:, 1] - phi[:, 2]
    gap = eta[:, 0] - eta[:, 1]
    mass = np.sqrt(2 * p * q * (np.cosh(gap) - np.cos(turn)))
    pair = np.sqrt(p**2 + q**2 + 2 * p * q * np.cos(turn))
    nearest = np.minimum(np.abs(np.sin(along)), np.abs(np.sin(across)))
    made = (
        *(mass, pair),
        *(np.sqrt(2 * p * missing * (1 - np.cos(along))),),
        *(np.sqrt(2 * q * missing * (1 - np.cos(across))),),
        *(p + q + missing, missing * nearest, -missing * np.cos(along), missing / (p + q)),
        *(np.hypot(gap, np.arctan2(np.sin(turn), np.cos(turn))), np.tanh(gap / 2)),
    )
    return np.column_stack(
        [p, eta[:, 0], phi[:, 0], q, eta[:, 1], phi[:, 1], missing, phi[:, 2], *made]
    )


def _log_odds(X: AnyNDArray) -> AnyNDArray:
    p, missing, mass, relative, axial, cos = X[:, [0, 6, 8, 13, 14, 17]].T
    return np.asarray(
        2.4 * np.tanh(relative - 0.5)
        + 1.6 * np.log(missing)
        + 1.2 * np.log(p)
        - 1.4 * np.tanh(mass - 2)
        + 0.8 * np.tanh(axial)
        - 1.5 * np.square(cos)
        - 0.1
    )
