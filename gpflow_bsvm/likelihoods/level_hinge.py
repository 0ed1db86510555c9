"""The Bayesian SVM at every level of probability: cost-weighted hinges that share their latents."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.config import default_float

from .base import Classification, Sites
from .categorical import CategoricalLikelihood
from .hinge import BinaryHinges
from .labels import check_binary_labels, check_columns, check_latents, signs
from .level_links import LINKS, log_probabilities, log_slopes
from .levels import Levels, location_spread
from .penalty import Bound, Penalized, Seen
from .vertices import losses_at_vertices


class LevelHinges(Penalized):
    r"""
    What `LevelHinge` and `OneVsRestLevelHinge` have in common: K targets y in {-1, +1}, each with
    the hinges of all levels. Latent functions are in the order of the targets, Q of each.
    """

    bounds = BinaryHinges.bounds
    scale: Any
    offset: Any = 0.0

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str | Bound = "exact",
        levels: Levels | None = None,
        link: str = "integral",
        **kwargs: Any,
    ) -> None:
        """
        :param penalty: slope of the mean of the losses, positive.
        :param bound: a name or a `Bound` of hinges.
        :param levels: see `gpflow_bsvm.likelihoods.levels`; None: `location_spread()`.
        :param link: "integral" or "stationary", see `log_odds`.
        :param kwargs: `normalizer`, see `Penalized`.
        :raise ValueError: for other values.
        """
        levels = location_spread() if levels is None else levels
        if not isinstance(levels, Levels):
            raise ValueError(
                "levels must be Levels, such as gpflow_bsvm.likelihoods.location_spread(9), got "
                f"{levels!r}"
            )
        if link not in LINKS:
            raise ValueError(f"link must be one of {list(LINKS)}, got {link!r}")
        if link == "stationary" and not levels.shift_together:
            raise ValueError(
                "link='stationary' needs levels that the latent functions can shift together, such "
                f"as location_spread(), got W = {levels.W.round(3).tolist()}"
            )
        super().__init__(penalty, bound, **kwargs)
        self.levels, self.link, self._knots = levels, link, levels.knots()
        self._vertices = losses_at_vertices(levels) if self.normalizer else np.zeros((0, 2))

    @property
    def has_point_sites(self) -> bool:
        """:return: see `Hook`; not where a level is made of several latent functions."""
        alone = (np.count_nonzero(self.levels.W, axis=1) <= 1).all()
        return bool(alone and self.bound.has_point_sites)

    def by_target(self, F: TensorType) -> tf.Tensor:
        """
        :return: latent functions [..., K Q] as [..., K, Q].
        :raise ValueError: for another number of them.
        """
        F = tf.convert_to_tensor(F)
        check_latents(self, F)
        shape = tf.concat([tf.shape(F)[:-1], [-1, self.levels.num_latents]], axis=0)
        return tf.reshape(F, shape)

    def _seen(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Seen:
        """:return: what the bound is told of all levels, [..., K, T]."""
        y, seen = self.targets(Y, Fmu)[..., None], super()._seen(Fmu, Fvar, Y)
        return Seen(y, *self._at_levels(seen.Fmu, seen.Fvar), self.penalty * self.costs(y))

    def _at_levels(self, Fmu: TensorType, Fvar: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of f at all levels, [..., K, T]."""
        b, W = self._constants(Fmu)
        m = b + tf.einsum("...q,tq->...t", self.by_target(Fmu), W)
        return m, tf.einsum("...q,tq->...t", self.by_target(Fvar), tf.square(W))

    def _constants(self, F: Any) -> tuple[tf.Tensor, tf.Tensor]:
        dtype = tf.convert_to_tensor(F).dtype
        return tf.constant(self.levels.b, dtype), tf.constant(self.levels.W, dtype)

    def costs(self, y: tf.Tensor) -> tf.Tensor:
        """
        :param y: [..., 1], in {-1, +1}.
        :return: [..., T]: 2 (1 - t) / T for y = 1 and 2 t / T for y = -1, of which a hinge is
            smallest at sign(P(y = 1) - t).
        """
        t = tf.constant(self.levels.t, y.dtype)
        return (1 + y * (1 - 2 * t)) / len(self.levels.t)

    def losses(self, y: tf.Tensor, F: TensorType) -> tf.Tensor:
        """:return: sum_k c_k(y) max(0, 1 - y f_k), [..., K]."""
        b, W = self._constants(F)
        y, f = y[..., None], b + tf.einsum("...q,tq->...t", self.by_target(F), W)
        return tf.reduce_sum(self.costs(y) * tf.nn.relu(1 - y * f), axis=-1)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        terms = tf.reduce_sum(self.bound.expectation(self._seen(Fmu, Fvar, Y)), axis=-1)
        return tf.reduce_sum(self.log_kappa() + terms, axis=-1)

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites of the bound: with those of the levels (w_k, r_k at f_k) and their means
        m_k, by the chain rule,

            w_q = sum_k W_kq^2 w_k,    r_q = sum_k W_kq (r_k - w_k m_k) + w_q Fmu_q.
        """
        seen, W = self._seen(Fmu, Fvar, Y), self._constants(Fmu)[1]
        w, r = self.bound.sites(seen)
        precision = tf.einsum("...t,tq->...q", w, tf.square(W))
        slope = tf.einsum("...t,tq->...q", r - w * seen.Fmu, W)
        Fmu = tf.convert_to_tensor(Fmu)
        precision, slope = (tf.reshape(part, tf.shape(Fmu)) for part in (precision, slope))
        return Sites(precision, slope + precision * Fmu)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        losses = tf.constant(self._vertices, penalty.dtype)
        return -tf.reduce_max(tf.reduce_logsumexp(-penalty * losses, axis=-1))

    def log_odds(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """
        With link="integral" P = int_0^1 P(f_t > 0) dt. With "stationary" it is the P of which
        another row at x would not move the mean of f: the derivatives of both expected losses by a
        shift of all f_k balance,

            P / (1 - P) = sum_k t_k Phi((1 + m_k) / s_k) / sum_k (1 - t_k) Phi((1 - m_k) / s_k),

        m_k and s_k mean and deviation of f_k. So it is the true P wherever the loss is smallest, as
        the inverse link of a proper composite loss (Reid & Williamson 2010).

        :param Fmu: [..., K Q], and Fvar: [..., K Q].
        :return: scale logit P + offset, for each target, [..., K].
        """
        if self.link == "stationary":
            yes, no = log_slopes(self.levels.t, *self._at_levels(Fmu, Fvar))
        else:
            yes, no = log_probabilities(self._knots, self.by_target(Fmu), self.by_target(Fvar))
        return self.scale * (yes - no) + self.offset

    def decisions(self, Fmu: TensorType, Fvar: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of f_t at t = 1/2, which decides, [..., K]."""
        b, W, W2 = (tf.constant(part[0], default_float()) for part in self.levels.at(np.zeros(1)))
        mean = b + tf.linalg.matvec(self.by_target(Fmu), W)
        return mean, tf.linalg.matvec(self.by_target(Fvar), W2)


class LevelHinge(LevelHinges, Classification):
    r"""
    The hinge at T levels of probability,

        L(y | g) = exp(-penalty / T sum_k c_k(y) max(0, 1 - y f_k)),    f_k = b_k + sum_q W_kq g_q,

    with costs c_k(+1) = 2 (1 - t_k) and c_k(-1) = 2 t_k, of latent functions g_1..g_Q
    (`num_latent_gps=Q`) and labels in one column. The minimiser of a hinge with these costs is
    sign(P(y = 1 | x) - t_k) (Lin, Lee & Wahba 2002), so that the levels together tell the whole
    probability (Wang, Shen & Liu 2008), where `Hinge`, the level 1/2, tells its side. Prediction is

        P(y = 1 | x) = int_0^1 P(f_t(x) > 0) dt,

    a proper Bernoulli distribution, or, with link="stationary", the P of which another row would
    not move f, see `log_odds`; `scale` and `offset`, of logit P, are 1 and 0 unless calibrated.
    What the g_q are is said by `levels`: `location_spread` (Q = 2), `location` (Q = 1),
    `independent` (Q = T), or your own W and b.

    Expectation and sites are those of `Hinge`, by the chain rule; exact for g independent under q,
    which is what models assume.

    See `BinaryLikelihood` for labels, `Penalized` for `penalty` and `normalizer`.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": 0.0}

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str | Bound = "exact",
        levels: Levels | None = None,
        link: str = "integral",
        **kwargs: Any,
    ) -> None:
        """As `LevelHinges`."""
        kwargs |= {"input_dim": None, "latent_dim": None, "observation_dim": 1}
        super().__init__(penalty, bound, levels, link, **kwargs)
        self.latent_dim = self.levels.num_latents
        self._make_link()
        self.offset = Parameter(self.neutral_link["offset"], trainable=False)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """As `BinaryLikelihood.check_labels`, of one column."""
        check_columns(np.asarray(Y), 1, "binary labels must be one column")
        check_binary_labels(Y, minibatch=minibatch)

    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: labels in {-1, +1}, [..., 1]."""
        return signs(Y, tf.convert_to_tensor(F)[..., :1])

    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = 1) at q(g) = N(Fmu, Fvar), [..., 1]."""
        return tf.sigmoid(self.log_odds(Fmu, Fvar))

    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with P(y = 1) = Phi(z), [..., 1]."""
        odds = self.log_odds(Fmu, Fvar)
        return -tf.sign(odds) * tf.math.ndtri(tf.sigmoid(-tf.abs(odds)))

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        odds = self.targets(Y, Fmu) * self.log_odds(Fmu, Fvar)
        return -tf.reduce_sum(tf.nn.softplus(-odds), axis=-1)


class OneVsRestLevelHinge(LevelHinges, CategoricalLikelihood):
    r"""
    A `LevelHinge` for each of C classes against all others, with Q latent functions of its own:
    `num_latent_gps=C Q`, those of class 0 first. Prediction divides the binary probabilities by
    their sum; `scale` multiplies their log odds.

    See `CategoricalLikelihood` for labels, `LevelHinge` for all else, `OneVsRest` for what binary
    machines that know nothing of each other imply.
    """

    def __init__(
        self,
        num_classes: int,
        penalty: float = 2.0,
        bound: str | Bound = "exact",
        levels: Levels | None = None,
        link: str = "integral",
        **kwargs: Any,
    ) -> None:
        """
        :param num_classes: C, at least 2; the others as `LevelHinges`.
        """
        super().__init__(penalty, bound, levels, link, num_classes=num_classes, **kwargs)
        self.latent_dim = num_classes * self.levels.num_latents

    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: [..., C]: +1 for the class, -1 for all others."""
        return 2 * self.one_hot(Y, F) - 1

    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = c) at q(g) = N(Fmu, Fvar), [..., C]."""
        Fmu, Fvar = self.latents(Fmu), self.latents(Fvar)
        return tf.nn.softmax(tf.math.log_sigmoid(self.log_odds(Fmu, Fvar)), axis=-1)
