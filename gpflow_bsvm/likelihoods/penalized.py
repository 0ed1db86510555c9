"""Likelihoods of a loss with a slope: what training maximises of them, and what is learned."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.likelihoods import Likelihood
from gpflow.utilities import positive


class Moments(NamedTuple):
    """E b and E b^2 under q(f), [..., K], of losses max(0, b), and the factor of each."""

    mean: tf.Tensor
    square: tf.Tensor
    cost: tf.Tensor  #: penalty included


def check_penalty(penalty: float, name: str = "penalty") -> float:
    """
    :return: the number, of an option of this name.
    :raise ValueError: for anything but a positive and finite number.
    """
    value = np.asarray(penalty)
    if value.ndim or value.dtype.kind not in "iuf" or not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, a number, got {penalty!r}")
    return float(value)


def make_penalty(penalty: float) -> Parameter:
    """
    :return: a parameter, not trainable.
    :raise ValueError: for anything but a positive and finite number.
    """
    return Parameter(check_penalty(penalty), transform=positive(), trainable=False)


class Penalized(Likelihood):
    r"""
    A likelihood L = exp(-penalty loss(y, f)), which training may count with its normaliser:

        kappa L(y | f),   1 / kappa = max_f sum_y L(y | f),

    the largest factor that leaves no more than 1 to all labels together (Gold & Sollich 2003,
    eq. 6; the rest is the probability of having no label at all). For a loss 1 + max_{t != y} f_t -
    f_y, cut off at 0, of C classes 1 / kappa = max(C exp(-penalty), 1 + (C - 1) exp(-2 penalty)):
    the sum is convex between the places where classes are tied, or separated by the margin. It
    changes neither sites nor predictions, only the evidence, by the same number for each datum.

    Where the loss is a sum of max(0, b_k), it has local variables lambda (Polson & Scott 2011):
    with a = penalty / 2,

        exp(-penalty max(0, b)) = int_0^inf p(y, lambda | f) dlambda,
        p(y, lambda | f) = a (2 pi lambda)^(-1/2) exp(-a b - (a^2 lambda + b^2 / lambda) / 2).

    `alpha` and `bound_at` hold for any q(f), whichever bound is trained.

    :ivar penalty: a parameter, not trainable by default.
    :ivar bound: what training maximises, one of `bounds`.
    :cvar has_normalizer: whether kappa is known.
    :ivar normalizer: True if kappa counts. Without it the evidence always prefers a smaller
        penalty; with it, a large one on clean rows and a small one on noisy ones.
    """

    bounds: ClassVar[tuple[str, ...]] = ("exact", "augmented")
    has_normalizer: ClassVar[bool] = True
    #: See `gpflow_bsvm.likelihoods.hooks.Hook`.
    sites_are_slopes: Any = True

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        :param penalty: slope of the loss, positive.
        :param bound: one of `bounds`.
        :param normalizer: whether training counts kappa.
        :param kwargs: of the other base class: `link` for two classes, see `BinaryLikelihood`.
        :raise ValueError: for other values.
        """
        super().__init__(**kwargs)
        if bound not in self.bounds:
            raise ValueError(f"bound must be one of {self.bounds}, got {bound!r}")
        if normalizer and not self.has_normalizer:
            raise ValueError(f"{type(self).__name__} has no normaliser: leave normalizer out")
        self.penalty, self.bound, self.normalizer = make_penalty(penalty), bound, normalizer

    @property
    def has_point_sites(self) -> bool:
        """:return: True if sites at variance 0 are those of expectation maximisation."""
        return self.bound == "augmented"

    @property
    def num_labels(self) -> int:
        """:return: the number of labels that share a loss."""
        return 2

    def log_kappa(self) -> tf.Tensor:
        """:return: the log of the normaliser of a loss, []; 0 if it does not count."""
        penalty = tf.convert_to_tensor(self.penalty)
        return self._log_kappa(penalty) if self.normalizer else tf.zeros_like(penalty)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        apart = tf.math.log1p((self.num_labels - 1) * tf.exp(-2 * penalty))
        return -tf.maximum(math.log(self.num_labels) - penalty, apart)

    def check_learnable(self) -> None:
        """
        :raise ValueError: if the penalty is trainable without its normaliser.
        """
        parameter: Any = self.penalty
        if parameter.trainable and not self.normalizer:
            how = "make the likelihood with normalizer=True, or " if self.has_normalizer else ""
            raise ValueError(
                f"without its normaliser a trainable penalty runs to 0: {how}choose by "
                "gpflow_bsvm.model_selection"
            )

    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: [..., G], a column for each loss of a row, which the penalty multiplies."""
        raise NotImplementedError

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(self._scalar_log_prob(X, F, Y), axis=-1)

    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self.log_kappa() - self.penalty * self.losses(Y, F)

    def moments(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Moments:
        """:return: the moments of the b of all losses max(0, b) of a row, [..., K]."""
        raise NotImplementedError

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return: [batch..., K]")
    def alpha(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tf.Tensor:
        """
        :return: alpha = E b^2 of each loss, the parameter of the best local variable
            q(lambda) = GIG(1/2, (penalty/2)^2, alpha): for two classes b = 1 - y f and alpha =
            (1 - y Fmu)^2 + Fvar (Wenzel et al. 2017, section 4.1).
        """
        return self.moments(Fmu, Fvar, Y).square

    @check_shapes(
        "alpha: [batch..., K]",
        "Fmu: [batch..., L]",
        "Fvar: [batch..., L]",
        "return: [batch...]",
    )
    def bound_at(
        self, alpha: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        """
        The augmented bound at local variables of any parameter (Wenzel et al. 2017, eq. 8; Wistuba
        & Rawat 2018, eq. 12 with the sign mended), q(lambda) = GIG(1/2, a^2, alpha):

            E_q [log p(y, lambda | f) - log q(lambda)]
                = -a E b - (a / 2) (sqrt(alpha) + E b^2 / sqrt(alpha)),

        summed over the losses of a row. It is largest at alpha = E b^2, `alpha`, where it is what
        bound="augmented" trains: -a E b - a sqrt(E b^2).

        :param alpha: positive.
        """
        mean, square, cost = self.moments(Fmu, Fvar, Y)
        root = tf.sqrt(tf.cast(alpha, mean.dtype))
        terms = -cost / 2 * (mean + (root + square / root) / 2)
        return self._log_kappas(Y, Fmu) + tf.reduce_sum(terms, axis=-1)

    def _log_kappas(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: the logs of the normalisers of a row together, []."""
        return self.log_kappa()
