"""Labels, links and predictions for two or more classes; the probit and logistic likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import ScalarLikelihood
from gpflow.utilities import positive, to_default_float

from ..checks import check_whole
from ..notices import warn
from .base import Hooks, Sites
from .labels import (
    as_column,
    check_binary_labels,
    check_class_column,
    check_class_labels,
    check_latents,
    signs,
)

#: Phi(x / 1.702) is within .0095 of the logistic function (Camilli 1994).
LOGISTIC_SCALE = 1.702
#: For c below this, tanh(c / 2) / (2 c) is 1/4 up to rounding.
_SMALL = 1e-6


@check_shapes("x: [batch...]", "return: [batch...]")
def normal_log_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: log Phi(x), accurate in the left tail; NaN for NaN, unlike `logerfc`."""
    return tf.where(tf.math.is_nan(x), x, tfp.math.logerfc(-x * np.sqrt(0.5)) - np.log(2))


@check_shapes("x: [batch...]", "return: [batch...]")
def normal_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: Phi(x), accurate in the left tail."""
    return 0.5 * tf.math.erfc(-x * np.sqrt(0.5))


@check_shapes("x: [batch...]", "return: [batch...]")
def normal_pdf(x: tf.Tensor) -> tf.Tensor:
    """:return: phi(x), the standard normal density."""
    return tf.exp(-0.5 * tf.square(x)) / np.sqrt(2 * np.pi)


@check_shapes("m: [batch...]", "s: [batch...]", "return: [batch...]")
def expected_ramp(m: tf.Tensor, s: tf.Tensor) -> tf.Tensor:
    """:return: E max(0, b), b ~ N(m, s^2)."""
    return m * normal_cdf(m / s) + s * normal_pdf(m / s)


@check_shapes("mean: [batch..., 1]", "variance: [batch..., 1]", "return: [batch..., 2]")
def both_sides(mean: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    """:return: P(b < 0) and P(b > 0), b ~ N(mean, variance), both accurate if small."""
    z = mean / tf.sqrt(variance)
    return normal_cdf(tf.concat([-z, z], axis=-1))


class Classification(Hooks):
    """
    Base class of the package's classification likelihoods. A link turns f into the predicted
    probabilities p. Its parameters affect only predictions, and are never trained with the model.
    `predict_mean_and_var` returns p and p - p^2, the mean and variance of y in {0, 1}, or of each
    column of one-hot labels.

    :cvar neutral_link: the link's parameters before `gpflow_bsvm.prediction.calibrate` sets them.
    """

    neutral_link: ClassVar[Mapping[str, float]] = {"scale": 1.0}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments are as in the other base classes."""
        super().__init__(*args, **kwargs)
        for name, value in self.neutral_link.items():
            transform = positive() if name == "scale" else None
            setattr(self, name, Parameter(value, transform=transform, trainable=False))

    @property
    def link_parameters(self) -> dict[str, Parameter]:
        """:return: the parameters that calibration may set, by name."""
        return {name: getattr(self, name) for name in self.neutral_link}

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., C]")
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: p at q(f) = N(Fmu, Fvar) with the current link: P(y = 1), or all P(y = c)."""
        raise NotImplementedError

    @check_shapes("F: [batch..., L]", "return: [batch..., C]")
    def invlink(self, F: TensorType) -> tf.Tensor:
        """:return: p given f with the current link, as in GPflow's `Bernoulli.invlink`."""
        F = to_default_float(F)
        return self.probabilities(F, tf.zeros_like(F))

    @check_shapes("p: [batch..., C]", "return[all]: [batch..., P]")
    def label_moments(self, p: tf.Tensor) -> MeanAndVariance:
        """:return: mean and variance of y."""
        return p, p - tf.square(p)

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self.label_moments(self.invlink(F))[0]

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return self.label_moments(self.invlink(F))[1]

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        return self.label_moments(self.probabilities(Fmu, Fvar))


class BinaryLikelihood(Classification, ScalarLikelihood):
    r"""
    Base class of the binary likelihoods: one latent function per column of Y, and labels in {0, 1}
    (as for GPflow's `Bernoulli`) or {-1, +1}.

    A pseudo-likelihood such as the hinge is not normalized: L(+1|f) + L(-1|f) varies with f.
    Training maximizes it through `log_prob` and `variational_expectations`; prediction uses a
    proper Bernoulli distribution,

        p(y = 1) = E Phi(g f + d) = Phi((g Fmu + d) / sqrt(1 + g^2 Fvar)).

    :ivar scale: g of the link.
    :ivar offset: d of the link, see `Classification`.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": 0.0}
    scale: Any
    offset: Any

    check_labels = staticmethod(check_binary_labels)

    def __init__(self, *, quadrature: Any = None) -> None:
        """:param quadrature: a `gpflow.quadrature.GaussianQuadrature`; if None, with 20 points."""
        super().__init__(quadrature=quadrature)

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., P]")
    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), [..., L]."""
        # At a huge prior variance, cancellation may make Fvar negative.
        variance = 1 + tf.square(self.scale) * tf.maximum(Fvar, 0)
        return (self.scale * Fmu + self.offset) / tf.sqrt(variance)

    @check_shapes("Fmu: [batch..., 1]", "Fvar: [batch..., 1]", "return: [batch..., 2]")
    def favoured(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(g f + d < 0) and P(g f + d > 0), f ~ N(Fmu, Fvar)."""
        return both_sides(self.scale * Fmu + self.offset, tf.square(self.scale) * Fvar)

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: p(y = 1) at q(f) = N(Fmu, Fvar), [..., L]."""
        return normal_cdf(self.probit_argument(Fmu, Fvar))

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        log_p = normal_log_cdf(signs(Y, Fmu) * self.probit_argument(Fmu, Fvar))
        return tf.reduce_sum(log_p, axis=-1)


class Probit(BinaryLikelihood):
    r"""
    p(y | f) = Phi(y f): GPflow's `Bernoulli` without its floor of 1e-3 on the probability. With the
    floor, the log-likelihood is not concave, and natural-gradient steps can make the precision
    indefinite; without the floor, they cannot.

    Expectations use GPflow's Gauss-Hermite quadrature, and sites use automatic differentiation.
    """

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return normal_log_cdf(signs(Y, F) * F)


class Logistic(BinaryLikelihood):
    r"""
    p(y | f) = 1 / (1 + exp(-y f)), trained with the bound of its Polya-Gamma augmentation (Polson,
    Scott & Windle 2013; Wenzel et al. 2019; the bound itself is from Jaakkola & Jordan 2000). With
    optimal local variables and c = sqrt(Fmu^2 + Fvar),

        E log p >= y Fmu / 2 - c / 2 - log(1 + exp(-c)).

    This likelihood is meant for comparisons.

    Prediction uses the probit link of `BinaryLikelihood` with scale 1 / 1.702, the best
    approximation of the logistic function by a normal distribution function.
    """

    sites_are_slopes = True
    neutral_link: ClassVar = {"scale": 1 / LOGISTIC_SCALE, "offset": 0.0}

    @inherit_check_shapes
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return -tf.nn.softplus(-signs(Y, F) * F)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        c = self._root(Fmu, Fvar)
        return tf.reduce_sum(0.5 * (signs(Y, Fmu) * Fmu - c) - tf.nn.softplus(-c), axis=-1)

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """
        The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) have a closed form:

            w = tanh(c / 2) / (2 c) = E omega, omega ~ PG(1, c),    r = y / 2.
        """
        c = self._root(Fmu, Fvar)
        return Sites(tf.tanh(c / 2) / (2 * c), signs(Y, Fmu) / 2 + tf.zeros_like(c))

    @inherit_check_shapes
    def point_sites(self, F: TensorType, Y: TensorType) -> Sites:
        """:return: the sites at Fvar = 0, as in expectation maximization."""
        return self.sites(F, F, tf.zeros_like(F), Y)

    def _root(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        return tf.sqrt(tf.maximum(tf.square(Fmu) + Fvar, _SMALL**2))


class CategoricalLikelihood(Classification):
    """
    Base class of the multi-class likelihoods, with labels 0..C-1 in one column of any numeric
    dtype, and by default one latent function per class, `num_latent_gps=C`.

    Training maximizes a pseudo-likelihood that is not normalized, as with `BinaryLikelihood`;
    prediction uses a proper categorical distribution. A subclass defines this distribution by
    `class_probabilities`, which is called with g f in place of f, or by its own `probabilities`.

    :ivar num_classes: C.
    :ivar scale: g of the link (an inverse temperature), see `Classification`.
    """

    scale: Any

    def __init__(
        self,
        num_classes: int,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        invlink: Any = None,
        about: Any = None,
    ) -> None:
        """
        :param num_classes: C, at least 2.
        :param penalty: slope of the loss, positive.
        :param bound: one of `bounds`.
        :param normalizer: see `Penalized`.
        :param invlink: for compatibility with GPflow's `MultiClass`; ignored with a warning.
        :param about: further arguments, by name, of the other base class.
        :raise ValueError: for invalid values.
        """
        check_whole(2, num_classes=num_classes)
        if invlink is not None:
            warn(f"{type(self).__name__} has its own link, and ignores invlink={invlink!r}")
        shape = {"input_dim": None, "observation_dim": None, "latent_dim": num_classes}
        super().__init__(penalty, bound, normalizer=normalizer, **(shape | (about or {})))
        self.num_classes = num_classes

    @check_shapes("Fmu: [batch..., C]", "Fvar: [batch..., C]", "return: [batch..., C]")
    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """:return: P(y = c), with rows that sum to 1, for Fvar >= 0."""
        raise NotImplementedError

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether classes may be absent.
        :raise ValueError: unless Y is one column of integers 0..C-1 that contains every class.
        """
        check_class_column(np.asarray(Y))
        found = check_class_labels(Y, self.num_classes)
        absent = np.setdiff1d(np.arange(self.num_classes), found)
        if len(absent) and not minibatch:
            raise ValueError(
                f"Y has no row of class {absent[0]}, but num_classes is {self.num_classes}; labels "
                "must be 0..C-1 without gaps"
            )

    @check_shapes("F: [batch..., L]", "return: [batch..., L]")
    def latents(self, F: TensorType) -> tf.Tensor:
        """
        :return: F, with a static number of latent functions L.
        :raise ValueError: for another number of latent functions.
        """
        F = tf.convert_to_tensor(F)
        check_latents(self, F.shape[-1])
        return tf.ensure_shape(F, [*F.shape[:-1], self.latent_dim])

    @check_shapes("F: [broadcast batch..., L]", "return: [broadcast batch..., C]")
    def one_hot(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """
        :param F: [..., L] or [N, L], latent functions of the same rows.
        :param Y: [..., 1], or [N] if F is [N, L].
        :return: one-hot rows in F's dtype; NaN for an invalid label, to make it visible.
        :raise ValueError: if Y has the wrong shape, as in `latents`, and, outside of graphs, for an
            invalid label.
        """
        like = self.latents(F)
        column = as_column(self, tf.convert_to_tensor(Y), like)
        check_class_column(column)
        if tf.executing_eagerly():
            check_class_labels(column, self.num_classes)
        classes = tf.range(self.num_classes, dtype=like.dtype)
        hot = tf.equal(tf.cast(column, like.dtype), classes)
        return tf.where(tf.reduce_any(hot, -1, keepdims=True), tf.cast(hot, like.dtype), np.nan)

    @check_shapes("F: [broadcast batch..., L]", "return: [broadcast batch..., G]")
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: labels of the C hinges, [..., C]: +1 for the row's class, -1 for all others."""
        return 2 * self.one_hot(Y, F) - 1

    @inherit_check_shapes
    def probabilities(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: P(y = c) at q(f) = N(Fmu, Fvar): `class_probabilities` of g f."""
        Fmu = self.scale * self.latents(Fmu)
        Fvar = tf.square(self.scale) * self.latents(Fvar)
        return self.class_probabilities(Fmu, Fvar)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        p = self.probabilities(Fmu, Fvar)
        tiny = np.finfo(p.dtype.as_numpy_dtype).tiny
        return tf.math.log(tf.reduce_sum(self.one_hot(Y, Fmu) * p, axis=-1) + tiny)
