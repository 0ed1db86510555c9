"""Expectation maximization for the pseudo-posterior's mode, the support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.config import default_float

from ..checks import check_elbo, check_number, check_whole
from ..data.passes import sum_over
from ..data.sources import Source
from ..engine.contracts import Model
from ..engine.natural import POINT_PRECISION, Natural, compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.projection import Projected
from ..engine.shared_graph import Compiled
from ..engine.statistics import Statistics, sum_sites
from ..likelihoods.base import Sites
from .algorithm import Algorithm
from .cavi import Ascent
from .run import Run, Step


@dataclass(frozen=True)
class ECM(Algorithm):
    """
    Expectation conditional maximization (Henao et al. 2014; for the linear model, the M step of
    Polson & Scott 2011) for the mode of q(s), at fixed hyperparameters:

        w_n, r_n at f_n = Phi_n s + m(x_n),    s <- (I + Phi^T diag(w) Phi)^-1 Phi^T (r - w m).

    The sites are the likelihood's `point_sites`, for any bound. Each step raises the log posterior
    log p(s) + sum_n log L(y_n | f_n). For `Hinge`, its maximum is scikit-learn's SVC with C =
    penalty and the model's kernel, but without a bias. For a bias without a penalty, add a
    `Constant` kernel of large variance, or give the bias of `LinearBSVM` a large prior variance.

    The residual variance of a sparse model is ignored. At the end, q is a point (standard deviation
    1e-6): predictions ignore the uncertainty of s. The history's `elbo` is the log posterior,
    without its constant.

    :ivar max_steps: maximum number of steps.
    :ivar tol: stop when a step raises the log posterior by less than `tol` times its absolute
        value; for halved steps see `CAVI`.
    """

    needs = ("point_sites",)

    max_steps: int = 1000
    tol: float = 1e-9

    def __post_init__(self) -> None:
        check_whole(1, max_steps=self.max_steps)
        check_number(0, tol=self.tol)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        return _Mode(self, model, ProjectedData(model, source))


class ModePoint(NamedTuple):
    """A value of s (see `ECM`), its log posterior, and the point that a full step reaches."""

    s: tf.Tensor  #: [L, M]
    value: tf.Tensor  #: []
    target: tf.Tensor  #: [L, M]


class ModeState(NamedTuple):
    """The state of `ECM`."""

    ascent: Ascent  #: ascent of a `ModePoint`
    steps: int = 0


@Compiled
@check_shapes("s: [L, M]", "rows.features.phi: [G, N, M]")
def _statistics(likelihood: Any, s: tf.Tensor, rows: Projected) -> Statistics:
    """:return: sums of the sites at s [L, M], and the log-likelihood."""
    X, Y, weight = rows.batch
    F = tf.transpose(tf.linalg.matvec(rows.features.phi, s)) + rows.features.mean
    sites = likelihood.point_sites(F, Y)
    joint = sites.w.shape.rank > sites.r.shape.rank
    sums = _joint_sums(rows, sites) if joint else sum_sites(rows, sites)
    return Statistics(sums, tf.reduce_sum(weight[:, 0] * likelihood.log_prob(X, F, Y)))


@check_shapes("sites.w: [N, L, L]", "return.h: [1, LM]", "return.P: [1, LM, LM]")
def _joint_sums(rows: Projected, sites: Sites) -> Natural:
    """:return: `sum_sites` for all latent functions combined, with L M features."""
    weight = rows.batch.weight
    num_latents = tf.shape(sites.r)[1:]
    shape = tf.concat([num_latents, tf.shape(rows.features.phi)[1:]], axis=0)
    phi = tf.broadcast_to(rows.features.phi, shape)
    mean = rows.features.mean + tf.zeros_like(sites.r)
    r = weight * (sites.r - tf.linalg.matvec(sites.w, mean))
    h = tf.einsum("qnm,nq->qm", phi, r)
    P = tf.einsum("qnm,nqp,pnk->qmpk", phi, weight[..., None] * sites.w, phi)
    LM = tf.size(h)
    return Natural(tf.reshape(h, [1, LM]), tf.reshape(P, [1, LM, LM]))


class _Mode(Run[ModeState, Step]):
    point = True

    state: ModeState

    def __init__(self, options: ECM, model: Model, data: ProjectedData) -> None:
        super().__init__(options, model)
        self._data = data
        self._statistics = _statistics.bind(model.likelihood)
        start = self._at(tf.zeros(model.q_shape, default_float()))
        check_elbo(start.value, "at the start")
        self.state = ModeState(Ascent.start(start))

    def advance(self) -> Step | None:
        """Take a step that does not lower the log posterior."""
        ascent = self.state.ascent.step(self._move, self._options.tol, self._data.dtype)
        self.converged = bool(ascent.ended)
        if not ascent.taken:
            return None
        self.state = ModeState(ascent, self.state.steps + 1)
        return Step(self.state.steps, float(ascent.point.value), float(ascent.taken))

    def _move(self, start: ModePoint, rho: tf.Tensor) -> ModePoint:
        return self._at((1 - rho) * start.s + rho * start.target)

    def _at(self, s: tf.Tensor) -> ModePoint:
        sums, log_likelihood = sum_over(self._data, partial(self._statistics, s))
        q = compiled_solve(Natural(sums.h, sums.P + tf.eye(sums.h.shape[1], dtype=s.dtype)))
        target = q.mean()
        value = log_likelihood - 0.5 * tf.reduce_sum(tf.square(s))
        return ModePoint(s, value, tf.reshape(target, s.shape))

    def restore(self) -> None:
        s: Any = self.state.ascent.point.s
        eye = tf.eye(s.shape[1], batch_shape=[s.shape[0]], dtype=s.dtype)
        if self.state.steps:
            self._model.assign_natural(Natural(POINT_PRECISION * s, POINT_PRECISION * eye))
