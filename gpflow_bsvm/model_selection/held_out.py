r"""Selection between models, such as penalties, by the predictive density of held-out rows.

The evidence cannot select a penalty: the hinge is not normalized, and with its normalizer the
evidence measures the noise of labels, not the quality of predictions. Leave-one-out marginals
cannot do so either: a datum still affects the hyperparameters and, at large penalties, the other
sites. Refitting q without a fold of the rows is unbiased. It is cheap for few rows, where selection
matters most; of many rows, some suffice. (Learning the kernel in every fold is no better.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from ..checks import check_elbo, check_whole
from ..data.batch import joined, take
from ..data.checks import check_weights
from ..data.sources import ArraySource, Source, closed_at_end
from ..engine.contracts import Model, chunk_rows, shares_shifts
from ..engine.natural import Natural, compiled_solve
from ..engine.projected_data import ProjectedData, product_dtype
from ..engine.projection import Features, Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import Marginals, compiled_cavities, compiled_sum_sites
from ..inference.cavi import CAVI, Ascent, Point, compiled_sweeps
from ..likelihoods.base import Sites
from ..prediction.calibration import fit_link
from ..prediction.marginals import compiled_log_density, predict_log_density
from .densities import HeldOut

#: Candidates for a penalty.
PENALTIES = (1.0, 4.0, 16.0)
#: Number of folds; after this number of predicted rows, no further fold is used.
NUM_FOLDS = 3
ENOUGH_ROWS = 1000
#: Tolerance of the fits without a fold, relative to the ELBO.
TOL = 3e-5
#: More copies of a row than this are dealt to the folds as if they were this many: the shares are
#: close to 1 / NUM_FOLDS anyway.
MANY = 10**6
#: In tempering, n rows have the weight n / (n + LITTLE).
LITTLE = 100

T = TypeVar("T")

#: Fits a model to X [N, D], Y [N, 1] and weights [N], and returns it.
Fit = Callable[[AnyNDArray, AnyNDArray, AnyNDArray], Any]


def held_out_density(
    fit: Fit,
    data: tuple[AnyNDArray, AnyNDArray],
    *,
    sample_weight: Any = None,
    num_folds: int = NUM_FOLDS,
    enough_rows: int = ENOUGH_ROWS,
    seed: int = 0,
) -> float:
    """
    The mean of log p(y_n | rows of the other folds), with folds stratified by class: a general
    selection criterion.

    Folds do not depend on the order of rows and columns or on the names of classes. Equal rows may
    be in different folds, because new rows may be equal to known rows; but a row of weight 2 is
    left out as a whole. A row alone in its class is never left out.

    :param fit: a function, called with the rows of all folds but one.
    :param data: X [N, D] and Y [N, 1], discrete labels.
    :param sample_weight: [N]; if None, all weights are 1.
    :param enough_rows: stop after this many predicted rows.
    :param seed: seed of the folds.
    :return: nats per row (of weight 1); greater is better.
    :raise ValueError: if there are fewer rows than folds (ignoring rows alone in their class), if X
        and Y have other shapes, if `num_folds` is below 2, or if `enough_rows` is below 1.
    """
    check_whole(1, enough_rows=enough_rows)
    X, Y = map(np.asarray, data)
    if X.ndim != 2 or Y.shape not in ((len(X),), (len(X), 1)):
        raise ValueError(f"X must be [N, D] and Y [N, 1], got shapes {X.shape} and {Y.shape}")
    weight = check_weights(sample_weight, len(X))[:, 0]
    folds = _folds(X, Y, num_folds, seed, enough_rows)
    log_p = []
    for train, test in folds:
        model = fit(X[train], Y[train], weight[train])
        log_p.append(predict_log_density(model, (X[test], Y[test])))
    left_out = np.concatenate([test for _, test in folds])
    return HeldOut(np.concatenate(log_p), weight[left_out]).mean


#: Directions are dropped if rows add less precision than this times `tol` (the prior adds 1).
NEGLIGIBLE = 300.0


class Refit:
    """
    Fits of q to parts of the data with `CAVI`, at the model's current hyperparameters. Rows are
    projected once, and each fit starts from the previous sites.

    :ivar sites: sites of all rows after the latest fit.
    """

    def __init__(
        self, model: Model, source: Source, sites: Sites | None = None, tol: float = CAVI.tol
    ) -> None:
        """:param sites: initial sites; if None or of another length, the sites at the model's q."""
        self._climb = compiled_sweeps.bind(model.likelihood)
        self._look = compiled_cavities.bind(model.likelihood)
        self._share = shares_shifts(model)
        self._tol = tf.constant(tol, default_float())
        data = ProjectedData(model, source)
        width = None if data.cached else 0  # X may be wide
        with closed_at_end(data.chunks()) as chunks:
            parts = [Projected(b._replace(X=b.X[:, :width]), features) for b, features in chunks]
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
        start = Ascent.start(Point(sums, tf.constant(-math.inf, default_float()), sums))
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
    directions, which the rows hardly change, q is the prior: they only add residual variance.
    """
    phi, residual, mean = rows.features
    precision = tf.reduce_max(tf.abs(w), axis=-1) * rows.batch.weight[:, 0]
    gram = tf.matmul(phi * precision[:, None], phi, transpose_a=True)
    finite = tf.where(tf.math.is_finite(gram), gram, 0.0)  # fits report NaN
    values, vectors = tf.linalg.eigh(finite)
    number = tf.reduce_max(tf.reduce_sum(tf.cast(values > least, tf.int32), axis=-1))
    few = tf.matmul(phi, vectors[..., -tf.maximum(number, 1) :])
    left = tf.reduce_sum(tf.square(phi), axis=-1) - tf.reduce_sum(tf.square(few), axis=-1)
    return Features(few, residual + tf.transpose(left), mean)


class Refits:
    """
    Held-out densities as in `held_out_density`, but only q is refitted to the other folds. Folds
    and models share computations, see `Refit`.
    """

    def __init__(
        self, data: tuple[AnyNDArray, AnyNDArray, AnyNDArray], like: Any, are_parts: bool
    ) -> None:
        """
        :param data: X [N, D], Y [N, 1] and weights [N].
        :param like: a fitted model; fits start from the sites of its q.
        :param are_parts: whether equal rows are parts of one row, see `in_parts`.
        """
        self._data = data
        self._sites: Sites = self._refit(like, None).sites
        X, Y, _ = data
        self._folds = _folds(X, Y, NUM_FOLDS, 0, ENOUGH_ROWS, are_parts)
        self._left_out = np.concatenate([test for _, test in self._folds])
        self._best: tuple[float, Any] = -np.inf, None

    def __call__(self, model: Any, calibrates: bool) -> HeldOut:
        """
        :param calibrates: whether to fit the link too; it then keeps the values of the last fold.
        :return: densities of the left-out rows.
        """
        X, Y, weight = self._data
        refit = self._refit(model, self._sites)
        density = compiled_log_density.bind(model.likelihood)
        parts = []
        log_p = []
        for train, test in self._folds:
            f = refit(train)
            if calibrates:
                labels, weights = self._labels(train)
                fit_link(model.likelihood, take(f, train), labels, weights, len(train))
            mean, variance = left_out = take(f, test)
            parts.append(left_out)
            log_p.append(density(X[test], mean, variance, Y[test]))
        found = HeldOut(np.concatenate(log_p), weight[self._left_out])
        self._sites = refit.sites
        if found.mean > self._best[0]:
            self._best = found.mean, joined(parts)
        return found

    def _refit(self, model: Any, sites: Sites | None) -> Refit:
        X, Y, weight = self._data
        return Refit(model, ArraySource(X, Y, weight[:, None], chunk_rows(model)), sites, TOL)

    def density(self, link: Any) -> float:
        """:return: the sum of log densities of the best model's left-out rows, with this link."""
        X, Y, weight = self._data
        rows = self._left_out
        log_p = compiled_log_density.bind(link)(X[rows], *self._best[1], Y[rows])
        return float(weight[rows] @ log_p.numpy())

    def temper(self, link: Any) -> None:
        """
        Temperature scaling (Guo et al. 2017): set the link's scale, initially 1, to s^(n / (n +
        `LITTLE`)), where s is the best scale for the best model's left-out rows, and n is their
        total weight. As in `HeldOut.lead`, one row with another label is added: without any error,
        s would have no limit. With at least `ENOUGH_ROWS` rows, the scale stays 1, because a fit to
        all rows then has better probabilities than the folds.
        """
        Y, weight = self._labels(self._left_out)
        if len(Y) < ENOUGH_ROWS:
            number = np.sum(weight)
            C = link.num_classes
            labels = tf.concat([(Y + k) % C for k in range(C)], axis=0)
            wrong = weight / (number * (C - 1))
            weights = tf.concat([weight, *[wrong] * (C - 1)], axis=0)
            f = joined([self._best[1]] * C)
            scale = fit_link(link, f, labels, weights, len(labels), "scale")["scale"]
            link.scale.assign(scale ** (number / (number + LITTLE)))

    def _labels(self, rows: AnyNDArray) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: Y and weight, [n, 1]."""
        _, Y, weight = self._data
        return tf.constant(Y[rows]), tf.constant(weight[rows, None])


def in_parts(
    X: AnyNDArray | None, Y: AnyNDArray, counts: AnyNDArray
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    Put each copy of a row into one of `NUM_FOLDS` folds at random, so that a held-out row may have
    copies among the other rows, as a new row may. If all copies were held out together, rows at the
    same x with other labels would teach a fit that the held-out label is rare there.

    :param X: [n, D], None to depend on the order of rows; Y: [n, 1]. All rows differ.
    :param counts: [n], the numbers of copies.
    :return: the row of each part, and its share of the row's copies.
    """
    number = np.minimum(counts, MANY).astype(int)
    order = np.flatnonzero(number > 1)
    if X is not None and len(order):
        order = order[_in_order(X[order], _codes(Y[order]))]
    parts = np.outer(number, np.arange(NUM_FOLDS) == 0)
    chance = np.full(NUM_FOLDS, 1 / NUM_FOLDS)
    parts[order] = np.random.default_rng(0).multinomial(number[order], chance)
    rows, fold = np.nonzero(parts)
    return rows, parts[rows, fold] / number[rows]


def _folds(
    X: AnyNDArray,
    Y: AnyNDArray,
    num_folds: int,
    seed: int,
    enough_rows: float = np.inf,
    are_parts: bool = False,
) -> list[tuple[AnyNDArray, AnyNDArray]]:
    """
    :param are_parts: whether equal rows are parts of one row, for different folds.
    :return: training and test rows of each necessary fold.
    """
    check_whole(2, num_folds=num_folds)
    code = _codes(Y)
    keys: AnyNDArray = np.column_stack([X, code])
    member = np.arange(len(keys))
    if are_parts:
        keys, member = np.unique(keys, axis=0, return_inverse=True)
    class_of = keys[:, -1].astype(int)
    order = np.random.default_rng(seed).permutation(_in_order(keys[:, :-1], class_of))
    # Class after class, in the order in which they appear, so that their names do not matter.
    _, first = np.unique(class_of[order], return_index=True)
    order = order[np.argsort(first[class_of[order]], kind="stable")]
    rows = np.argsort(np.argsort(order)[member.reshape(-1)], kind="stable")  # keeps parts adjacent
    rows = rows[(np.bincount(code) > 1)[code[rows]]]
    if len(rows) < num_folds:
        raise ValueError(
            f"{num_folds} folds need {num_folds} rows with labels that occur twice or more, got "
            f"{len(rows)} such rows of {len(code)}; labels must be discrete: round numbers"
        )
    each = np.full(len(code), num_folds)  # `num_folds` means in no fold
    each[rows] = np.arange(len(rows)) % num_folds
    used = [k for k in range(num_folds) if (each < k).sum() < enough_rows]
    return [(np.flatnonzero(each != k), np.flatnonzero(each == k)) for k in used]


def _codes(Y: AnyNDArray) -> AnyNDArray:
    """:return: [N], classes as numbers from 0 on: beside words, X would become words."""
    return np.unique(Y, return_inverse=True)[1].reshape(-1)


def _in_order(X: AnyNDArray, code: AnyNDArray) -> AnyNDArray:
    """
    :return: rows in an order that depends neither on the order of columns nor on the names of
        classes. Rows with equal X are in the order of the mean places of their classes.
    """
    columns = np.lexsort(np.sort(X, axis=0))
    keys = np.column_stack([np.sort(X, axis=1), X[:, columns]])
    place = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    mean = np.bincount(code, place) / np.bincount(code)
    return np.lexsort([mean[code], place])


def find_peak(score: Callable[[T], HeldOut], values: Sequence[T], start: T) -> float:
    """
    Find the best of ordered values, assuming a single peak: search up from `start`, else down.

    A lead of one standard error moves the result to the next value; a smaller lead moves it by a
    fraction, so that the result is continuous in the data.

    :param start: one of `values`.
    :return: an index; 1.5 is halfway between the second and the third value.
    """
    here = first = values.index(start)
    best = score(start)
    for way in (1, -1):
        while 0 <= here + way < len(values):
            new = score(values[here + way])
            part = float(np.clip(new.lead(best), 0, 1))
            if 0 < part < 1:
                return here + way * part
            if part != 1:  # also if it is NaN
                break
            here = here + way
            best = new
        if here != first:
            break
    return float(here)
