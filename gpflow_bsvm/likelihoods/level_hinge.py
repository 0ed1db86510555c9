"""The Bayesian SVM at every level of probability, for two, several, and ordered classes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import AnyNDArray, MeanAndVariance, TensorType
from gpflow.config import default_float

from ..checks import check_choice, check_whole
from .classes import CategoricalLikelihood, Classification, normal_cdf
from .hinge import HingeSum, Terms
from .labels import check_binary_labels, check_columns, signs
from .levels import LINKS, Levels, location_spread, log_probabilities, log_slopes
from .maximum import favoured


class LevelHinges(Classification, HingeSum):
    """
    Base class of likelihoods with hinges at many levels. Each target y in {-1, +1} has one hinge
    per level, and Q latent functions, in the order of the targets. (`Ordinal` has other targets.)
    """

    scale: Any
    offset: Any = 0.0

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str = "exact",
        levels: Levels | None = None,
        link: str = "integral",
        *,
        latent_dim: int = 1,
        num_thresholds: int = 1,
        normalizer: bool = False,
        **shape: int | None,
    ) -> None:
        """
        :param penalty: positive, the slope of the mean loss.
        :param bound: "exact" or "augmented".
        :param levels: see `gpflow_bsvm.likelihoods.Levels`; if None, `location_spread()`.
        :param link: "integral" or "stationary", see `log_odds`.
        :param latent_dim: number of targets, each with all levels at `num_thresholds` thresholds.
        :param normalizer: as in `Penalized`; so is `shape`.
        :raise ValueError: for invalid values.
        """
        levels = location_spread() if levels is None else levels
        if not isinstance(levels, Levels):
            raise ValueError(
                "levels must be Levels, such as gpflow_bsvm.likelihoods.location_spread(9), got "
                f"{levels!r}"
            )
        shape = {"input_dim": None, "observation_dim": 1} | shape
        shape["latent_dim"] = latent_dim * levels.num_latents
        # All levels of the first threshold come first, then all levels of the next.
        W = np.tile(levels.W, (num_thresholds, 1))
        b = np.tile(levels.b, num_thresholds)
        super().__init__(penalty, bound, W=W, b=b, normalizer=normalizer, **shape)
        self.levels = levels
        self.link = link
        self._knots = levels.knots()

    def __setattr__(self, name: str, value: Any) -> None:
        """:raise ValueError: for an invalid link; other errors are as in `Hooks`."""
        if name == "link":
            check_choice(LINKS, link=value)
            if value == "stationary" and not self.levels.shift_together:
                raise ValueError(
                    "link='stationary' needs more levels than latent functions, and a W that can "
                    "shift all levels equally, as in location_spread(), got W = "
                    f"{self.levels.W.round(3).tolist()}"
                )
        super().__setattr__(name, value)

    @inherit_check_shapes
    def terms(self, y: tf.Tensor) -> Terms:
        """
        :return: hinges of costs 2 (1 - t) / T for y = 1 and 2 t / T for y = -1; the expected loss
            is smallest at sign(P(y = 1) - t).
        """
        t = tf.constant(self.levels.t, y.dtype)
        return Terms((1 + y * (1 - 2 * t)) / len(self.levels.t), 1.0, y)

    @check_shapes("F: [batch..., L]", "return: [batch..., G, Q]")
    def by_target(self, F: TensorType) -> tf.Tensor:
        """:return: latent functions [..., G Q] as [..., G, Q]."""
        return self._seen_through(F, np.eye(self.levels.num_latents))

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., G]")
    def log_odds(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """
        With link="integral", P = int_0^1 P(f_t > 0) dt. With "stationary", P is the value at which
        another row at x would not move the mean of f, because the derivatives of both expected
        losses with respect to a shift of all f_k balance,

            P / (1 - P) = sum_k t_k Phi((1 + m_k) / s_k) / sum_k (1 - t_k) Phi((1 - m_k) / s_k),

        where m_k and s_k are the mean and deviation of f_k. At the minimum of the loss, this is the
        true P, the inverse link of a proper composite loss (Reid & Williamson 2010).

        :return: scale * logit P + offset, for each of the G targets.
        """
        odds = self._odds(self.by_target(Fmu), self.by_target(Fvar))
        return self.scale * odds + self.offset

    @check_shapes("Fmu: [batch..., Q]", "Fvar: [batch..., Q]", "return: [...]")
    def _odds(self, Fmu: tf.Tensor, Fvar: tf.Tensor, threshold: Any = 0.0) -> tf.Tensor:
        """:return: logit P before calibration, where y = 1 if functions exceed the threshold."""
        if self.link == "integral":
            yes, no = log_probabilities(self._knots, Fmu, Fvar, threshold)
            return yes - no
        W = self.levels.W
        knots = (self.levels.t, self.levels.b, W, np.square(W))
        yes, no = log_slopes(knots, Fmu, Fvar, threshold)
        return yes - no

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[all]: [batch..., G]")
    def decisions(self, Fmu: TensorType, Fvar: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """:return: mean and variance of f_t, [..., G], at the t where the calibrated P is 1/2."""
        level = np.atleast_1d(-np.asarray(self.offset / self.scale))
        b, W, W2 = (tf.constant(part, default_float()) for part in self.levels.at(level))
        mean = b + tf.reduce_sum(self.by_target(Fmu) * W, axis=-1)
        return mean, tf.reduce_sum(self.by_target(Fvar) * W2, axis=-1)

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., C]")
    def favoured(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(f_t favors class c) at the level of `decisions`."""
        mean, variance = self.decisions(Fmu, Fvar)
        return favoured(mean, variance)


class LevelHinge(LevelHinges):
    r"""
    The hinge at T levels of probability,

        L(y | g) = exp(-penalty / T sum_k c_k(y) max(0, 1 - y f_k)),    f_k = b_k + sum_q W_kq g_q,

    with costs c_k(+1) = 2 (1 - t_k) and c_k(-1) = 2 t_k, latent functions g_1..g_Q
    (`num_latent_gps=Q`) and labels in one column. The minimizer of a hinge with these costs is
    sign(P(y = 1 | x) - t_k) (Lin, Lee & Wahba 2002). All levels together therefore determine the
    probability (Wang, Shen & Liu 2008). `Hinge` is the level 1/2 alone, and only determines on
    which side of 1/2 the probability lies. Prediction is

        P(y = 1 | x) = int_0^1 P(f_t(x) > 0) dt,

    a proper Bernoulli distribution. If few levels are below the frequency of a rare class, as with
    2 % of the rows, this P may become much too small; with link="stationary" (see `log_odds`) it
    does not. `scale` and `offset` of logit P are 1 and 0 unless calibrated. `levels` defines the
    g_q: `location_spread` (Q = 2 or 1), or custom W and b, such as W = I and b = 0 for levels that
    share only their prior.

    See `BinaryLikelihood` for labels, and `HingeSum` for bounds and sites, which are exact if the
    g_q are independent under q, as models assume.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": 0.0}

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """As in `BinaryLikelihood.check_labels`, for a single column."""
        check_columns(np.asarray(Y), 1, "binary labels must form a single column")
        check_binary_labels(Y, minibatch=minibatch)

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: labels in {-1, +1}, [..., 1]."""
        return signs(Y, tf.convert_to_tensor(F)[..., :1])

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = 1) at q(g) = N(Fmu, Fvar), [..., 1]."""
        return tf.sigmoid(self.log_odds(Fmu, Fvar))

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., 1]")
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


class OneVsRestLevelHinge(CategoricalLikelihood, LevelHinges):
    r"""
    A `LevelHinge` for each of C classes against all others, with Q latent functions of its own:
    `num_latent_gps=C Q`, in the order of the classes. Prediction divides the binary probabilities
    by their sum; `scale` multiplies their log odds.

    See `CategoricalLikelihood` for labels, `OneVsRest` for the effect of this normalization, and
    `LevelHinge` for everything else, also for rare classes.
    """

    def __init__(
        self,
        num_classes: int,
        penalty: float = 2.0,
        bound: str = "exact",
        levels: Levels | None = None,
        link: str = "integral",
    ) -> None:
        """Arguments and errors are as in `CategoricalLikelihood` and `LevelHinge`."""
        super().__init__(num_classes, penalty, bound, about={"levels": levels, "link": link})

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = c) at q(g) = N(Fmu, Fvar), [..., C]."""
        Fmu = self.latents(Fmu)
        Fvar = self.latents(Fvar)
        return tf.nn.softmax(tf.math.log_sigmoid(self.log_odds(Fmu, Fvar)), axis=-1)


class Ordinal(CategoricalLikelihood, LevelHinges):
    r"""
    Ordered classes 0..C-1, with the all-threshold loss (Rennie & Srebro 2005; Chu & Keerthi 2007):
    a `LevelHinge` for each question "y >= k?", k = 1..C-1, all with the same functions,

        L(y | g) = exp(-penalty / T sum_k sum_t c_t(y_k) max(0, 1 - y_k (f_t - theta_k))),

    with y_k = 1 if y >= k, else -1, and the costs of T levels t with functions f_t = b_t + sum_q
    W_tq g_q (`num_latent_gps=Q`, 2 by default). The thresholds theta are trainable (`VEM` and `ML2`
    learn them) and stay in order. Therefore

        P(y >= k | x) = int_0^1 P(f_t(x) > theta_k) dt

    decreases with k, and P(y = k) = P(y >= k) - P(y > k) is a proper distribution over classes,
    even for noisy labels. `scale` of the link multiplies the log odds of all P(y >= k).

    Labels are in one column; classes without rows are allowed. `predict_y` returns the mean and
    variance of the label, [N, 1], like GPflow's `Ordinal`;
    `gpflow_bsvm.prediction.predict_probabilities` returns P(y = k) [N, C].

    :ivar num_classes: C, `num_bins` in GPflow.
    :ivar thresholds: theta, [C-1], a parameter, `bin_edges` in GPflow.
    """

    bin_edges = property(attrgetter("thresholds"))
    num_bins = property(attrgetter("num_classes"))

    def __init__(
        self,
        num_classes: int | Sequence[float] | AnyNDArray,
        penalty: float = 2.0,
        bound: str = "exact",
        levels: Levels | None = None,
        link: str = "integral",
        *,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        """
        :param num_classes: C, at least 2; or, as in GPflow, the bin edges (`thresholds`).
        :param penalty: as in `LevelHinge`; so are `bound`, `levels` and `link`.
        :param thresholds: [C-1], increasing initial values; if None, two margins apart.
        :raise ValueError: for invalid values.
        """
        C: Any = num_classes
        if np.ndim(C):
            if thresholds is not None:
                raise ValueError("bin edges define the thresholds: leave out thresholds=...")
            thresholds = C
            C = np.size(C) + 1
        check_whole(2, num_classes=C)
        number = C - 1
        about = {"levels": levels, "link": link, "latent_dim": 1, "num_thresholds": number}
        super().__init__(C, penalty, bound, about=about)
        start = 2.0 * np.arange(number) - (number - 1) if thresholds is None else thresholds
        theta = np.asarray(start, np.float64)
        if theta.shape != (number,) or not (
            np.isfinite(theta).all() and (np.diff(theta) > 0).all()
        ):
            raise ValueError(f"thresholds must be {number} increasing numbers, got {start}")
        self.thresholds = Parameter(theta, transform=tfp.bijectors.Ascending())

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """As in `CategoricalLikelihood`, but classes may be absent: their order is known."""
        super().check_labels(Y, minibatch=True)

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: class numbers, [..., 1]; NaN for invalid labels."""
        hot = self.one_hot(Y, F)
        numbers = hot * tf.range(self.num_classes, dtype=hot.dtype)
        return tf.reduce_sum(numbers, axis=-1, keepdims=True)

    @inherit_check_shapes
    def terms(self, y: tf.Tensor) -> Terms:
        """:return: the hinges of all thresholds and levels, [..., 1, (C-1) T]."""
        number = self.num_classes - 1
        T = len(self.levels.t)
        k = np.repeat(np.arange(number), T)
        t = tf.constant(np.tile(self.levels.t, number), y.dtype)
        sign = tf.sign(y - tf.constant(k + 0.5, y.dtype))
        theta = tf.repeat(tf.convert_to_tensor(self.thresholds), T)
        return Terms((1 + sign * (1 - 2 * t)) / T, 1 + sign * theta, sign)

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = k) at q(g) = N(Fmu, Fvar), [..., C]."""
        Fmu, Fvar = (part[..., None, :] for part in map(tf.convert_to_tensor, (Fmu, Fvar)))
        # log odds of y >= k, [..., C-1], which fall with k
        odds = self.scale * self._odds(Fmu, Fvar, tf.convert_to_tensor(self.thresholds))
        # Subtract at the nearer end, so that small probabilities are accurate.
        above = tf.sigmoid(odds)
        below = tf.sigmoid(-odds)
        inner = tf.where(
            odds[..., 1:] > 0, below[..., 1:] - below[..., :-1], above[..., :-1] - above[..., 1:]
        )
        return tf.concat([below[..., :1], inner, above[..., -1:]], axis=-1)

    @inherit_check_shapes
    def favoured(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(theta_k < f_t < theta_k+1) at t = 1/2: P(class k is the median of y | f)."""
        mean, variance = self.decisions(Fmu, Fvar)
        below = normal_cdf((self.thresholds - mean) / tf.sqrt(variance))
        edge = tf.zeros_like(mean)
        cdf = tf.concat([edge, below, edge + 1], axis=-1)
        return cdf[..., 1:] - cdf[..., :-1]

    @inherit_check_shapes
    def label_moments(self, p: tf.Tensor) -> MeanAndVariance:
        """:return: mean and variance of the label, [..., 1]."""
        k = tf.range(self.num_classes, dtype=p.dtype)
        mean = tf.reduce_sum(p * k, axis=-1, keepdims=True)
        return mean, tf.reduce_sum(p * tf.square(k - mean), axis=-1, keepdims=True)
