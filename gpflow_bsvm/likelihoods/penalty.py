"""Likelihoods of a loss with a slope: what training maximises of them, and what is learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.likelihoods import Likelihood
from gpflow.utilities import positive

from .base import VARIANCE_FLOOR, Sites, differentiate
from .labels import signs


class Seen(NamedTuple):
    """What a bound is told of a row."""

    y: tf.Tensor  #: [..., L], labels: signs, or one-hot for `CrammerSinger`
    Fmu: tf.Tensor  #: [..., L]
    Fvar: tf.Tensor  #: [..., L], positive
    penalty: tf.Tensor  #: []


@dataclass(frozen=True)
class Bound:
    """
    What training maximises: E_q log L, or something that bounds it. To try your own, write a
    frozen dataclass (models with equal ones share compiled graphs) with an `expectation`, and give
    it to a likelihood in the place of a name.

    :cvar name: by which a likelihood of the package is asked for it.
    :cvar has_point_sites: see `gpflow_bsvm.likelihoods.Hook`.
    """

    name: ClassVar[str]
    has_point_sites: ClassVar[bool] = False

    def expectation(self, seen: Seen) -> tf.Tensor:
        """:return: a column for every loss of a row: [..., L], or [..., 1] for `CrammerSinger`."""
        raise NotImplementedError

    def sites(self, seen: Seen) -> Sites:
        """:return: the Gaussian sites of `expectation`; here by automatic differentiation."""
        return differentiate(
            lambda Fmu, Fvar: self.expectation(seen._replace(Fmu=Fmu, Fvar=Fvar)),
            *(seen.Fmu, seen.Fvar),
        )


def check_penalty(penalty: float) -> float:
    """
    :return: the number.
    :raise ValueError: for anything but a positive and finite number.
    """
    value = np.asarray(penalty)
    if value.ndim or value.dtype.kind not in "iuf" or not 0 < value < math.inf:
        raise ValueError(f"penalty must be positive and finite, a number, got {penalty!r}")
    return float(value)


def make_penalty(penalty: float) -> Parameter:
    """
    :return: a parameter, not trainable.
    :raise ValueError: for anything but a positive and finite number.
    """
    return Parameter(check_penalty(penalty), transform=positive(), trainable=False)


class Penalized(Likelihood):
    r"""
    A likelihood L = exp(-penalty loss(y, f)), of which training maximises a `Bound` and may count a
    normaliser:

        kappa L(y | f),   1 / kappa = max_f sum_y L(y | f),

    the largest factor that leaves no more than 1 to all labels together (Gold & Sollich 2003,
    eq. 6; the rest is the probability of having no label at all). For a loss 1 + max_{t != y} f_t -
    f_y, cut off at 0, of C classes 1 / kappa = max(C exp(-penalty), 1 + (C - 1) exp(-2 penalty)):
    the sum is convex between the places where classes are tied, or separated by the margin. It
    changes neither sites nor predictions, only the evidence, by the same number for each datum.

    :ivar penalty: a parameter, not trainable by default.
    :ivar bound: the `Bound` in use.
    :ivar normalizer: whether kappa counts. Without it the evidence always prefers a smaller
        penalty; with it, a large one on clean rows and a small one on noisy ones.
    :cvar bounds: those that have a name.
    """

    bounds: ClassVar[tuple[Bound, ...]]

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str | Bound = "exact",
        *,
        normalizer: bool = False,
        **kwargs: Any,
    ) -> None:
        """
        :param penalty: slope of the loss, positive.
        :param bound: one of `bounds` by its name, or a `Bound`.
        :param normalizer: whether training counts kappa.
        :param kwargs: of the other base class: `link` for two classes, see `BinaryLikelihood`.
        :raise ValueError: for other values.
        """
        super().__init__(**kwargs)
        names = tuple(known.name for known in self.bounds)
        if not isinstance(bound, Bound) and bound not in names:
            raise ValueError(f"bound must be one of {names} or a Bound, got {bound!r}")
        self.bound = bound if isinstance(bound, Bound) else self.bounds[names.index(bound)]
        self.penalty, self.normalizer = make_penalty(penalty), normalizer

    @property
    def has_point_sites(self) -> bool:
        """:return: whether sites at variance 0 are those of expectation maximisation."""
        return self.bound.has_point_sites

    @property
    def sites_are_slopes(self) -> bool:
        """:return: see `Hook`; a bound without sites of its own may have a precision set to 0."""
        return type(self.bound).sites is not Bound.sites

    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: labels as the loss has them, as F: here in {-1, +1}."""
        return signs(Y, F)

    def losses(self, y: tf.Tensor, F: TensorType) -> tf.Tensor:
        """:return: a column for every loss of a row, which the penalty multiplies."""
        raise NotImplementedError

    @property
    def num_labels(self) -> int:
        """:return: how many labels share a loss."""
        return 2

    def log_kappa(self) -> tf.Tensor:
        """:return: log of the normaliser of a loss, []; 0 if it does not count."""
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
            raise ValueError(
                "without its normaliser a trainable penalty runs to 0: make the likelihood with "
                "normalizer=True, or choose by gpflow_bsvm.model_selection"
            )

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(self._scalar_log_prob(X, F, Y), axis=-1)

    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self.log_kappa() - self.penalty * self.losses(self.targets(Y, F), F)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        terms = self.bound.expectation(self._seen(Fmu, Fvar, Y))
        return tf.reduce_sum(self.log_kappa() + terms, axis=-1)

    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """The Gaussian sites (`gpflow_bsvm.likelihoods.sites`) of the bound, see there."""
        return self.bound.sites(self._seen(Fmu, Fvar, Y))

    def _seen(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Seen:
        y = self.targets(Y, Fmu)
        Fmu, Fvar = (tf.convert_to_tensor(part, y.dtype) for part in (Fmu, Fvar))
        return Seen(y, Fmu, tf.maximum(Fvar, VARIANCE_FLOOR), tf.convert_to_tensor(self.penalty))
