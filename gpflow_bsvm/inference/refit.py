"""Repeated fits of q to parts of the rows, with shared features and sites."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from ..checks import check_elbo
from ..data.batch import take
from ..data.sources import Source, closed_at_end
from ..engine.contracts import Model, shares_shifts
from ..engine.e_step import Ascent
from ..engine.natural import Natural, compiled_solve
from ..engine.projected_data import ProjectedData, product_dtype
from ..engine.projection import Features, Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import Marginals, compiled_cavities, compiled_sum_sites
from ..likelihoods.hooks import Sites
from .cavi import CAVI, Point, compiled_sweeps

#: Directions are dropped if rows add less precision than this times `tol` (the prior adds 1).
NEGLIGIBLE = 300.0


class Refit:
    """
    Fits of q to parts of the data by `CAVI`, at the model's current hyperparameters. Rows are
    projected once, and each fit starts from the previous sites.

    :ivar sites: sites of all rows after the latest fit.
    """

    def __init__(
        self, model: Model, source: Source, sites: Sites | None = None, tol: float = CAVI.tol
    ) -> None:
        """
        :param source: rows that fit into memory.
        :param sites: initial sites of all rows; if None or of another length, the sites of the
            model's q.
        :param tol: as in `CAVI`.
        """
        self._climb = compiled_sweeps.bind(model.likelihood)
        self._look = compiled_cavities.bind(model.likelihood)
        self._share = shares_shifts(model)
        self._tol = tf.constant(tol, default_float())
        data = ProjectedData(model, source)
        with closed_at_end(data.chunks()) as chunks:
            parts = [rows if data.cached else rows.without_inputs() for rows in chunks]
        self._rows = Projected.joined(parts)
        if sites is None or sites.w.shape[-1] != model.q_shape[0]:
            sites, _ = self._look(compiled_solve(model.natural()), self._rows)
        self.sites: Sites = sites
        self._least = tf.constant(NEGLIGIBLE * tol, default_float())
        self._rows = self._in_few(self._rows)
        entries = model.q_shape[0] * math.prod(self._rows.features.phi.shape[1:])
        single = product_dtype(entries, tol)
        self._dtypes = dict.fromkeys((single, tf.as_dtype(default_float())))

    def __call__(self, part: AnyNDArray) -> Marginals:
        """
        :param part: indices of the rows to fit q to.
        :return: marginals of f at all rows; each marginal ignores the row's own label.
        :raise ValueError: if no finite marginals are found.
        """
        kept: AnyNDArray = np.zeros(self._rows.batch.weight.shape, default_float())
        kept[part] = 1.0
        batch = self._rows.batch._replace(weight=kept * self._rows.batch.weight)
        rows = self._rows._replace(batch=batch)
        if len(part) < rows.features.phi.shape[-1]:
            rows = self._in_few(rows)
        q = compiled_solve(self._fitted(rows.take(part), take(self.sites, part)))
        left_out: Marginals
        self.sites, left_out = self._look(q, rows)
        return left_out

    def _in_few(self, rows: Projected) -> Projected:
        return rows._replace(features=_in_few(rows, self.sites.w, self._least))

    def _fitted(self, rows: Projected, sites: Sites) -> Natural:
        # Take a step of size 1 from a point with bound -infinity.
        sums = compiled_sum_sites(rows, sites)
        lowest = tf.constant(-math.inf, default_float())
        start = Ascent.start(Point(sums, lowest, sums))
        for dtype in self._dtypes:  # single precision may overflow
            some = rows.in_precision(dtype)
            ascent, _ = self._climb(start, self._share, (), self._tol, CAVI.max_steps, some)
            if np.isfinite(ascent.point.value):
                break
        check_elbo(ascent.point.value, "for a part of the rows")
        return cast(Natural, ascent.point.natural)


@Compiled
@check_shapes("rows.features.phi: [G, N, M]", "w: [N, L]", "return.phi: [G, N, n]")
def _in_few(rows: Projected, w: tf.Tensor, least: tf.Tensor) -> Features:
    """
    Features on the eigenvectors of Phi^T diag(w) Phi with eigenvalues above `least`. In all other
    directions q is the prior, because the rows hardly change it: they only add residual variance.
    """
    phi, residual, mean = rows.features
    precision = tf.reduce_max(tf.abs(w), axis=-1) * rows.batch.weight[:, 0]
    gram = tf.matmul(phi * precision[:, None], phi, transpose_a=True)
    finite = tf.where(tf.math.is_finite(gram), gram, 0.0)  # fits report other values
    values, vectors = tf.linalg.eigh(finite)
    number = tf.reduce_max(tf.reduce_sum(tf.cast(values > least, tf.int32), axis=-1))
    few = tf.matmul(phi, vectors[..., -tf.maximum(number, 1) :])
    left = tf.reduce_sum(tf.square(phi), axis=-1) - tf.reduce_sum(tf.square(few), axis=-1)
    return Features(few, residual + tf.transpose(left), mean)
