"""Labels, link and prediction that all binary likelihoods of the package share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import MeanAndVariance, TensorType
from gpflow.likelihoods import ScalarLikelihood
from gpflow.utilities import positive, to_default_float

LINKS = ("probit", "published")

_Sites = TypeVar("_Sites", bound=Callable[..., Any])


def normal_log_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: log Phi(x), accurate in both tails; NaN for NaN (`logerfc` gives a number)."""
    return tf.where(tf.math.is_nan(x), x, tfp.math.logerfc(-x * np.sqrt(0.5)) - np.log(2))


def normal_cdf(x: tf.Tensor) -> tf.Tensor:
    """:return: Phi(x), accurate in the left tail."""
    return 0.5 * tf.math.erfc(-x * np.sqrt(0.5))


def normal_pdf(x: tf.Tensor) -> tf.Tensor:
    """:return: phi(x), the standard normal density."""
    return tf.exp(-0.5 * tf.square(x)) / np.sqrt(2 * np.pi)


def signs(Y: TensorType) -> tf.Tensor:
    """
    Labels in {0, 1} or {-1, +1} as y in {-1, +1}. Any other label becomes NaN: inside a graph
    nothing can be raised cheaply, and a NaN objective is better than a silent wrong answer.
    """
    Y = to_default_float(Y)
    one = tf.ones_like(Y)
    negative = tf.where((Y == 0) | (Y == -1), -one, np.nan * one)
    return tf.where(Y == 1, one, negative)


def expected_ramp(m: tf.Tensor, s: tf.Tensor) -> tf.Tensor:
    """:return: E max(0, b), b ~ N(m, s^2)."""
    return m * normal_cdf(m / s) + s * normal_pdf(m / s)


def check_site_shapes(sites: _Sites) -> _Sites:
    """:return: a method `sites` of one label per latent function, with its shapes checked."""
    return check_shapes(
        "Fmu: [batch..., L]",
        "Fvar: [batch..., L]",
        "Y: [batch..., L]",
        "return[0]: [batch..., L]",
        "return[1]: [batch..., L]",
    )(sites)


class BinaryLikelihood(ScalarLikelihood):
    r"""
    Base of the binary likelihoods: one latent function per column of Y, labels in {0, 1} (as
    GPflow's `Bernoulli`) or {-1, +1}.

    A pseudo-likelihood such as the hinge is not normalised: L(+1|f) + L(-1|f) is not constant in
    f. `log_prob` and `variational_expectations` therefore speak of the pseudo-likelihood, which
    is what training maximises, while prediction is a proper Bernoulli distribution by a link:

        "probit":      p(y=1) = Phi(Fmu / sqrt(1 + Fvar)),
        "published":   p(y=1) = Phi(Fmu / (1 + Fvar)), as eq. 13 of Wenzel et al. (2017) prints it,
                       without the root; only for reproducing that paper's tables.

    `predict_mean_and_var` returns p and p - p^2, the mean and variance of y in {0, 1}, whichever
    encoding the labels have.

    Both links are of g f + d in the place of f, with slope g = 1 and offset d = 0 unless
    `gpflow_bsvm.prediction.calibrate` has set them.

    :ivar slope: g, and
    :ivar offset: d: of the prediction only, never trained with the model.
    """

    def __init__(self, link: str = "probit", **kwargs: Any) -> None:
        """
        :param link: "probit" or "published".
        :raise ValueError: for any other link.
        """
        super().__init__(**kwargs)
        if link not in LINKS:
            raise ValueError(f"link must be one of {LINKS}, got {link!r}")
        self.link = link
        self.slope = Parameter(1.0, transform=positive(), trainable=False)
        self.offset = Parameter(0.0, trainable=False)

    @property
    def link_parameters(self) -> dict[str, Parameter]:
        """:return: what calibration may set, by name."""
        return {"slope": self.slope, "offset": self.offset}

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        Check the labels of a training set, or of a minibatch: that may hold one class only.

        :raise ValueError: unless Y holds both classes, in one encoding: {0, 1} or {-1, +1}.
        """
        labels = np.unique(np.asarray(Y))
        if not any(np.isin(labels, encoding).all() for encoding in ((0, 1), (-1, 1))):
            shown = ", ".join(str(label) for label in labels[:5])
            raise ValueError(
                f"binary labels must be in {{0, 1}} or in {{-1, +1}}, got {{{shown}"
                f"{', ...' if len(labels) > 5 else ''}}}; recode Y, or use "
                "gpflow_bsvm.BSVMClassifier, which takes any labels, or CrammerSinger for "
                "several classes"
            )
        if len(labels) < 2 and not minibatch:
            raise ValueError(
                f"Y holds one class only ({labels[0]}); a classifier needs rows of both classes"
            )

    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """
        :param Fmu: [..., L], and Fvar: [..., L].
        :return: z [..., L] with p(y = 1) = Phi(z).
        """
        variance = tf.square(self.slope) * Fvar
        scale = 1 + variance if self.link == "published" else tf.sqrt(1 + variance)
        return (self.slope * Fmu + self.offset) / scale

    @inherit_check_shapes
    def _conditional_mean(self, X: TensorType, F: TensorType) -> tf.Tensor:
        return normal_cdf(self.slope * F + self.offset)

    @inherit_check_shapes
    def _conditional_variance(self, X: TensorType, F: TensorType) -> tf.Tensor:
        p = self._conditional_mean(X, F)
        return p - tf.square(p)

    @inherit_check_shapes
    def _predict_mean_and_var(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType
    ) -> MeanAndVariance:
        p = normal_cdf(self.probit_argument(Fmu, Fvar))
        return p, p - tf.square(p)

    @inherit_check_shapes
    def _predict_log_density(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        log_p = normal_log_cdf(signs(Y) * self.probit_argument(Fmu, Fvar))
        return tf.reduce_sum(log_p, axis=-1)
