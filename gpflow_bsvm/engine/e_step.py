"""Coordinate ascent on the sites themselves, one of every datum."""

from __future__ import annotations

import math

import tensorflow as tf
from gpflow.config import default_float

from .line_search import grown, halved
from .m_step import Sites, compiled_gaussian
from .natural import Natural, compiled_solve
from .projected_data import EngineModel, View, shares_shifts
from .statistics import compiled_localise, compiled_sum_sites


class SiteAscent:
    """
    q by damped updates of the sites, at fixed hyperparameters.

    :ivar sites: of all rows, at the best point so far,
    :ivar elbo: its ELBO, and
    :ivar natural: its q.
    """

    def __init__(self, model: EngineModel, view: View, sites: Sites | None) -> None:
        """
        :param sites: where to start; None: those of the model's q, or none at all if these are
            better.
        """
        self._localise = compiled_localise.bind(model.likelihood)
        self._view = view
        self._dtype = tf.as_dtype(default_float())
        self._share = tf.constant(float(shares_shifts(model)), self._dtype)
        starts = [sites] if sites is not None else self._first_guesses(model)
        points = [self._at(guess) for guess in starts]
        best = max(points, key=lambda point: point[1] if math.isfinite(point[1]) else -math.inf)
        self.sites, self.elbo, self.natural, self._fresh = best

    def _first_guesses(self, model: EngineModel) -> list[Sites]:
        nothing = tf.zeros([len(self._view), model.num_features[0]], self._dtype)
        q = compiled_solve(*model.natural())
        return [Sites(nothing, nothing), self._look(q.R, q.c)[0]]

    def climb(self, sweeps: int) -> float:
        """
        Update the sites, each time by rho = 1 or, where F would fall, by less.

        :return: the last rho, 0 if none was found that does not lower F.
        """
        rho, taken = 1.0, 0.0
        for _ in range(sweeps):
            taken, point = halved(self._towards_fresh, self.elbo, rho, self._dtype)
            if point is None:
                break
            self.sites, self.elbo, self.natural, self._fresh = point
            rho = grown(taken)
        return taken

    def _towards_fresh(self, rho: float) -> tuple[Sites, float, Natural, Sites]:
        pairs = zip(self.sites, self._fresh)
        return self._at(Sites(*((1 - rho) * old + rho * new for old, new in pairs)))

    def _at(self, sites: Sites) -> tuple[Sites, float, Natural, Sites]:
        """:return: `sites`, their ELBO, their q, and the sites seen from there."""
        start, sums = 0, []
        for rows in self._view.chunks(self._dtype):
            end = start + len(rows.X)
            sums.append(compiled_sum_sites(*(part[start:end] for part in sites), *rows))
            start = end
        h, P = (tf.add_n(column) for column in zip(*sums))
        natural, q = compiled_gaussian(h, P, self._share)
        fresh, expectation = self._look(q.R, q.c)
        return sites, float(expectation - q.kl), natural, fresh

    def _look(self, R: tf.Tensor, c: tf.Tensor) -> tuple[Sites, tf.Tensor]:
        """:return: the sites of all rows at q(s) = N(R^T c, R^T R), and the expectation."""
        seen = [self._localise(R, c, *rows) for rows in self._view.chunks(self._dtype)]
        w, r, expectations = zip(*seen)
        return Sites(tf.concat(w, 0), tf.concat(r, 0)), tf.add_n(expectations)
