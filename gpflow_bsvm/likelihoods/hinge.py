"""The binary Bayesian SVM: the hinge loss, and its square, as pseudo-likelihoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import TensorType

from .augmentation import Augmented, Moments
from .base import VARIANCE_FLOOR, Sites
from .binary import BinaryLikelihood, expected_ramp, normal_cdf, normal_pdf
from .penalty import Bound, Penalized, Seen

#: Places in [0, 1] where the normaliser of the squared hinge is looked for: wrong by less than 1e-6
#: of it.
_PLACES = 1001


@dataclass(frozen=True)
class ExactHinge(Bound):
    """E log L itself, see `Hinge`."""

    name = "exact"

    def expectation(self, seen: Seen) -> tf.Tensor:
        """:return: -penalty (m Phi(z) + sqrt(v) phi(z))."""
        return -seen.penalty * expected_ramp(1 - seen.y * seen.Fmu, tf.sqrt(seen.Fvar))

    def sites(self, seen: Seen) -> Sites:
        """:return: w = penalty phi(z) / sqrt(v), r = y penalty Phi(z) + w Fmu."""
        s = tf.sqrt(seen.Fvar)
        z = (1 - seen.y * seen.Fmu) / s
        w = seen.penalty * normal_pdf(z) / s
        return Sites(w, seen.y * seen.penalty * normal_cdf(z) + w * seen.Fmu)


@dataclass(frozen=True)
class AugmentedHinge(Bound):
    """The papers' bound, see `Hinge`."""

    name = "augmented"
    has_point_sites = True

    def expectation(self, seen: Seen) -> tf.Tensor:
        """:return: -a m - a sqrt(alpha), alpha = m^2 + v."""
        return -seen.penalty / 2 * (1 - seen.y * seen.Fmu + tf.sqrt(_alpha(seen)))

    def sites(self, seen: Seen) -> Sites:
        """:return: w = a / sqrt(alpha), r = y (a + w) (Wenzel et al. 2017, eq. 9-10)."""
        a = seen.penalty / 2
        w = a / tf.sqrt(_alpha(seen))
        return Sites(w, seen.y * (a + w))


def _alpha(seen: Seen) -> tf.Tensor:
    return tf.square(1 - seen.y * seen.Fmu) + seen.Fvar


class BinaryHinges(Augmented):
    """A hinge for each latent function: what `Hinge` and `OneVsRest` have in common."""

    bounds = (ExactHinge(), AugmentedHinge())

    def losses(self, y: tf.Tensor, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 - y f), [..., L]."""
        return tf.nn.relu(1 - y * F)

    def moments(self, seen: Seen) -> Moments:
        """:return: of b = 1 - y f, both [..., L]."""
        return Moments(1 - seen.y * seen.Fmu, _alpha(seen))

    def draw_sites(self, F: tf.Tensor, Y: tf.Tensor, seed: tf.Tensor) -> Sites:
        """
        Draw the local variables given f, 1 / lambda ~ inverse Gaussian(a / |1 - y f|, a^2) (Polson
        & Scott 2011), whichever bound is trained.

        :param F: [..., N, L], and Y: [N, P].
        :param seed: of TensorFlow's stateless draws, [2].
        :return: `local_sites` of these, as F.
        """
        y, a = self.targets(Y, F), self.penalty / 2
        distance = tf.maximum(tf.abs(1 - y * F), VARIANCE_FLOOR**0.5)
        w = tfp.distributions.InverseGaussian(a / distance, tf.square(a)).sample(seed=seed)
        return self.local_sites(w, Y)

    def local_sites(self, w: TensorType, Y: TensorType) -> Sites:
        """
        :param w: 1 / lambda, the inverse local variables, [..., N, L], positive.
        :param Y: [N, P].
        :return: the Gaussian that p(y, lambda | f) is of f: precision w, precision-mean
            r = y (a + w), both as w.
        """
        w = tf.convert_to_tensor(w)
        return Sites(w, self.targets(Y, w) * (self.penalty / 2 + w))


class Hinge(BinaryHinges, BinaryLikelihood):
    r"""
    The pseudo-likelihood whose mode is the support vector machine,

        L(y | f) = exp(-penalty max(0, 1 - y f)),

    (Wenzel et al. 2017, eq. 2, with penalty = 2; Polson & Scott 2011). With b = 1 - y f,
    m = E b = 1 - y Fmu, v = Fvar, a = penalty / 2 and z = m / sqrt(v), training maximises

        bound="exact":      E log L  = -penalty (m Phi(z) + sqrt(v) phi(z))
            the expectation itself (Seeger 2000): tighter by at most 0.125 penalty sqrt(v) per
            datum, with Newton-like steps that converge in a tenth of the sweeps.
        bound="augmented":  E log L >= -a m - a sqrt(m^2 + v)
            the papers' bound with its local variables maximised out (Wenzel et al., eq. 8, with
            alpha = m^2 + v). Its natural-gradient step is the papers' coordinate ascent.

    See `BinaryLikelihood` for labels, link and what is normalised, `Penalized` for `penalty` (the
    SVM's C for a unit prior variance) and `normalizer`.
    """


@dataclass(frozen=True)
class ExactSquaredHinge(Bound):
    """E log L itself, see `SquaredHinge`."""

    name = "exact"

    def expectation(self, seen: Seen) -> tf.Tensor:
        """:return: -penalty ((m^2 + v) Phi(z) + m sqrt(v) phi(z))."""
        m, s = 1 - seen.y * seen.Fmu, tf.sqrt(seen.Fvar)
        return -seen.penalty * (seen.Fvar * normal_cdf(m / s) + m * expected_ramp(m, s))

    def sites(self, seen: Seen) -> Sites:
        """:return: w = 2 penalty Phi(z), r = 2 y penalty (m Phi(z) + sqrt(v) phi(z)) + w Fmu."""
        m, s = 1 - seen.y * seen.Fmu, tf.sqrt(seen.Fvar)
        w = 2 * seen.penalty * normal_cdf(m / s)
        return Sites(w, 2 * seen.penalty * seen.y * expected_ramp(m, s) + w * seen.Fmu)


class SquaredHinge(Penalized, BinaryLikelihood):
    r"""
    The pseudo-likelihood of the support vector machine with quadratic slack (Gold & Sollich 2003,
    p = 2), whose mode is scikit-learn's `LinearSVC(loss="squared_hinge")`:

        L(y | f) = exp(-penalty max(0, 1 - y f)^2).

    The paper's loss is max(0, 1 - y f)^2 / 2: this penalty is half of its C, which is that of
    `gpflow_bsvm.model_selection`; scikit-learn's C is this one.

    With m = 1 - y Fmu, v = Fvar and z = m / sqrt(v), training maximises the expectation itself,

        E log L = -penalty ((m^2 + v) Phi(z) + m sqrt(v) phi(z)).

    Unlike the hinge it has a slope that grows with the error, so that a few rows with wrong labels
    weigh more, and a curvature on all of the wrong side: no point is a kink.

    See `BinaryLikelihood` for labels, link and what is normalised, `Penalized` for all arguments.
    """

    bounds = (ExactSquaredHinge(),)

    def __init__(self, penalty: float = 1.0, **kwargs: Any) -> None:
        """As `Penalized`, with another default."""
        super().__init__(penalty, **kwargs)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        """L(+1 | f) + L(-1 | f) is largest somewhere in |f| <= 1."""
        f = tf.linspace(tf.zeros_like(penalty), tf.ones_like(penalty), _PLACES)
        losses = tf.stack([tf.square(1 - f), tf.square(1 + f)])
        return -tf.reduce_max(tf.reduce_logsumexp(-penalty * losses, axis=0))

    def losses(self, y: tf.Tensor, F: TensorType) -> tf.Tensor:
        """:return: max(0, 1 - y f)^2, as F."""
        return tf.square(tf.nn.relu(1 - y * F))
