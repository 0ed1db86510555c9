r"""Sums of hinges of affine functions of f: `Hinge`, `OneClass` and `OneVsRest`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, TensorType

from .base import VARIANCE_FLOOR, Moments, Penalized, Sites, check_hook
from .classes import (
    BinaryLikelihood,
    CategoricalLikelihood,
    expected_ramp,
    normal_cdf,
    normal_log_cdf,
    normal_pdf,
)
from .labels import check_binary_labels, check_columns, check_latents, signs


class Terms(NamedTuple):
    """The hinges cost * max(0, offset - sign h) of a row; all fields broadcast to [..., G, T]."""

    cost: Any  #: positive
    offset: Any
    sign: Any  #: 1 or -1


class HingeSum(Penalized):
    r"""
    The pseudo-likelihood of G groups of T hinges,

        L(y | f) = exp(-penalty sum_gk c_k(y_g) max(0, b_gk)),
        b_gk = o_k(y_g) - s_k(y_g) h_gk,    h_gk = b0_k + sum_q W_kq f_gq,

    with costs c, offsets o and signs s. The latent functions f_gq are split, in order, into groups
    of Q. With m = E b, v = Var h = sum_q W_kq^2 Fvar_gq, z = m / sqrt(v) and penalty included in c,

        bound="exact":        E log L  = -sum c (m Phi(z) + sqrt(v) phi(z))
        bound="augmented":    E log L >= -sum c / 2 (m + sqrt(m^2 + v))

    The sites follow from the hinges' own sites by the chain rule. With u = Phi(z) and w = phi(z) /
    sqrt(v) (exact), or u = (1 + m / sqrt(m^2 + v)) / 2 and w = 1 / (2 sqrt(m^2 + v)) (augmented),

        w_q = sum_k W_kq^2 c_k w_k,    r_q = sum_k W_kq s_k c_k u_k + w_q Fmu_q.

    A subclass defines `targets` and `terms`.

    :ivar W: [T, Q], coefficients of f in h.
    :ivar b: [T], b0, the constants in h.
    """

    has_normalizer = False

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        W: Any = ((1.0,),),
        b: Any = (0.0,),
        normalizer: bool = False,
        **shape: int | None,
    ) -> None:
        """:param penalty: positive; for bound, normalizer and shape see `Penalized`."""
        super().__init__(penalty, bound, normalizer=normalizer, **shape)
        self.W = np.asarray(W, np.float64)
        self.b = np.asarray(b, np.float64)

    @check_shapes("F: [broadcast batch..., L]", "return: [broadcast batch..., G]")
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: labels as `terms` takes them, [..., G], here in {-1, +1}."""
        return signs(Y, F)

    @check_shapes("y: [batch..., G, 1]")
    def terms(self, y: tf.Tensor) -> Terms:
        """:return: the hinges of each of `targets`; here a single hinge with b = 1 - y f."""
        return Terms(1.0, 1.0, y)

    def _checked(self, terms: Terms) -> Terms:
        """:raise ValueError: unless the terms have as many hinges as W has rows, or one hinge."""
        for name, part in terms._asdict().items():
            last = tf.TensorShape(getattr(part, "shape", ()))[-1:]
            if last.rank and not any(last.is_compatible_with([n]) for n in (1, len(self.W))):
                raise ValueError(
                    f"{type(self).__name__}.terms gives {name} for {last[0]} hinges, but W has "
                    f"shape {self.W.shape}; pass a W and b of {last[0]} rows to the constructor"
                )
        return terms

    @property
    def is_alone(self) -> bool:
        """:return: True if no hinge depends on more than one latent function."""
        return bool((np.count_nonzero(self.W, axis=1) <= 1).all())

    @check_shapes("F: [batch..., L]", "return: [batch..., G, T]")
    def functions(self, F: TensorType) -> tf.Tensor:
        """:return: h of all hinges."""
        h = self._seen_through(F, self.W)
        return h + tf.constant(self.b, h.dtype) if self.b.any() else h

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[1]: [batch..., G, T]")
    def margins(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> tuple[tf.Tensor, ...]:
        """:return: m, v > 0, c and the signs s of all hinges at q(f) = N(Fmu, Fvar)."""
        y = self.targets(Y, Fmu)[..., None]
        Fmu, Fvar = (tf.convert_to_tensor(part, y.dtype) for part in (Fmu, Fvar))
        cost, offset, sign = self._checked(self.terms(y))
        v = self._seen_through(tf.maximum(Fvar, VARIANCE_FLOOR), np.square(self.W))
        sign = tf.convert_to_tensor(sign, y.dtype)
        return offset - sign * self.functions(Fmu), v, self.penalty * cost, sign

    @inherit_check_shapes
    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: sum_k c_k max(0, b_gk)."""
        y = self.targets(Y, F)[..., None]
        cost, offset, sign = self.terms(y)
        F = tf.convert_to_tensor(F, y.dtype)
        return tf.reduce_sum(cost * tf.nn.relu(offset - sign * self.functions(F)), axis=-1)

    @inherit_check_shapes
    def _variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        m, v, cost, _ = self.margins(Fmu, Fvar, Y)
        exact = self.bound == "exact"
        ramp = expected_ramp(m, tf.sqrt(v)) if exact else (m + tf.sqrt(tf.square(m) + v)) / 2
        return tf.reduce_sum(self.log_kappa() - tf.reduce_sum(cost * ramp, axis=-1), axis=-1)

    @inherit_check_shapes
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """:return: the Gaussian sites of the bound, see `gpflow_bsvm.likelihoods.sites`."""
        m, v, cost, sign = self.margins(Fmu, Fvar, Y)
        if self.bound == "exact":
            s = tf.sqrt(v)
            u = normal_cdf(m / s)
            w = normal_pdf(m / s) / s
        else:
            root = tf.sqrt(tf.square(m) + v)
            u = (1 + m / root) / 2
            w = 0.5 / root
        precision = self._back(cost * w, np.square(self.W))
        return Sites(precision, self._back(cost * u * sign, self.W) + precision * Fmu)

    @inherit_check_shapes
    def moments(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Moments:
        """:return: the moments of b."""
        m, v, cost, _ = self.margins(Fmu, Fvar, Y)
        return Moments(_flat(m), _flat(tf.square(m) + v), _flat(cost + tf.zeros_like(m)))

    @property
    def lacking(self) -> tuple[str, ...]:
        """:return: hooks missing because a hinge depends on several latent functions."""
        return () if self.is_alone else ("draw_sites", "local_sites")

    @inherit_check_shapes
    def local_sites(self, w: TensorType, Y: TensorType) -> Sites:
        """
        :return: sites of p(y, lambda | f), which is Gaussian in f, where w = 1 / lambda; every
            hinge must depend on a single latent function. For two classes: precision w and
            precision-mean y (penalty / 2 + w).
        """
        check_hook(self, "local_sites")
        w = tf.convert_to_tensor(w)
        w = tf.reshape(w, tf.concat([tf.shape(w)[:-1], [-1, len(self.W)]], axis=0))
        like_f = _flat(w[..., : self.W.shape[1]])
        cost, offset, sign = self.terms(self.targets(Y, like_f)[..., None])
        b = tf.constant(self.b, w.dtype)
        slope = sign * (self.penalty * cost / 2 + w * (offset - sign * b))
        return Sites(self._back(w, np.square(self.W)), self._back(slope, self.W))

    @inherit_check_shapes
    def point_sites(self, F: TensorType, Y: TensorType) -> Sites:
        """
        :return: the sites for known f, in the notation of `HingeSum`, with penalty included in c:

                w_qp = sum_k W_kq W_kp c_k / (2 |b_k|),    r = sum_k W_k s_k c_k [b_k > 0] + w F.
        """
        F = tf.convert_to_tensor(F)
        b, _, cost, sign = self.margins(F, tf.zeros_like(F), Y)
        # In single precision, sums of larger precisions would lose the other rows.
        least = max(VARIANCE_FLOOR**0.5, np.finfo(b.dtype.as_numpy_dtype).eps ** 0.5)
        distance = tf.maximum(tf.abs(b), least)
        slope = self._back(cost / 2 * (1 + b / distance) * sign, self.W)
        if self.is_alone:
            precision = self._back(cost / (2 * distance), np.square(self.W))
            return Sites(precision, slope + precision * F)
        precision = self._joint(cost / (2 * distance))
        return Sites(precision, slope + tf.linalg.matvec(precision, F))

    @inherit_check_shapes
    def draw_sites(self, F: TensorType, Y: TensorType, seed: TensorType) -> Sites:
        """
        :return: `local_sites` at lambda drawn given f: 1 / lambda ~ inverse Gaussian(a / |b|, a^2),
            where a is half of penalty times cost (Polson & Scott 2011); valid for either bound.
        """
        check_hook(self, "draw_sites")
        m, _, cost, _ = self.margins(F, tf.zeros_like(F), Y)
        a = cost / 2 + tf.zeros_like(m)
        distance = tf.maximum(tf.abs(m), VARIANCE_FLOOR**0.5)
        w = tfp.distributions.InverseGaussian(a / distance, tf.square(a)).sample(seed=seed)
        return self.local_sites(_flat(w), Y)

    @check_shapes("F: [batch..., L]", "W: [T, Q]", "return: [batch..., G, T]")
    def _seen_through(self, F: TensorType, W: AnyNDArray) -> tf.Tensor:
        """:return: sum_q W_kq f_gq."""
        F = tf.convert_to_tensor(F)
        check_latents(self, F.shape[-1])
        return _product(F, W.T, 1)

    @check_shapes("values: [batch..., G, T]", "W: [T, Q]", "return: [batch..., L]")
    def _back(self, values: tf.Tensor, W: AnyNDArray) -> tf.Tensor:
        """:return: sum_k W_kq values_gk."""
        return _product(values, W, 2)

    @check_shapes("values: [batch..., G, T]", "return: [batch..., L, L]")
    def _joint(self, values: tf.Tensor) -> tf.Tensor:
        """:return: sum_k W_kq W_kp values_gk, in a block for each group, and 0 elsewhere."""
        W = tf.constant(self.W, values.dtype)
        own = tf.einsum("...gk,kq,kp->...gqp", values, W, W)
        num_groups = tf.shape(values)[-2]
        blocks = tf.einsum("...gqp,gh->...gqhp", own, tf.eye(num_groups, dtype=values.dtype))
        side = num_groups * self.W.shape[1]
        return tf.reshape(blocks, tf.concat([tf.shape(values)[:-2], [side, side]], axis=0))


def _product(values: tf.Tensor, W: AnyNDArray, axes: Literal[1, 2]) -> tf.Tensor:
    """
    :param values: [..., G A] if `axes` is 1, [..., G, A] if 2.
    :param W: [A, B].
    :return: sum_a values_ga W_ab, [..., G, B] if `axes` is 1, [..., G B] if 2. (`tf.tensordot`
        would add three times as many operations to a graph.)
    """
    A, B = W.shape
    rows = tf.reshape(values, [-1, A])
    if W.size > 1 or W.item() != 1:  # else W = 1, the usual case
        rows = tf.matmul(rows, tf.constant(W, values.dtype))
    entries = values.shape[-axes:].num_elements()
    if entries is None or len(values.shape) != axes + 1:
        batch = tf.shape(values)[:-axes]
        return tf.reshape(rows, tf.concat([batch, [-1, B] if axes == 1 else [-1]], axis=0))
    groups = entries // A
    return tf.reshape(rows, [-1, groups, B] if axes == 1 else [-1, groups * B])


def _flat(values: tf.Tensor) -> tf.Tensor:
    """:return: [..., A, B] as [..., A B]."""
    if values.shape[-1] == 1:
        return tf.squeeze(values, -1)
    return tf.reshape(values, tf.concat([tf.shape(values)[:-2], [-1]], axis=0))


class Hinge(HingeSum, BinaryLikelihood):
    r"""
    The pseudo-likelihood whose posterior mode is the support vector machine,

        L(y | f) = exp(-penalty max(0, 1 - y f)),

    (Wenzel et al. 2017, eq. 2, with penalty = 2; Polson & Scott 2011). Each latent function has one
    hinge, with b = 1 - y f. The bounds are as in `HingeSum`. "exact" (Seeger 2000) is tighter than
    "augmented" by up to 0.125 penalty sqrt(Fvar) per datum, and its Newton-like steps need a tenth
    of the sweeps. The natural-gradient step of "augmented" (Wenzel et al., eq. 8, with alpha = m^2
    + v) is the papers' coordinate ascent.

    See `BinaryLikelihood` for labels, link and normalization, and `Penalized` for `normalizer` and
    `penalty` (the SVM's C for a unit prior variance).
    """

    has_normalizer = True


class OneClass(HingeSum, BinaryLikelihood):
    r"""
    The one-class support vector machine (Schoelkopf et al. 2001): f should be at least 1 at all
    training rows, and its prior keeps it at 0 far from these rows:

        L(1 | f) = exp(-penalty max(0, 1 - f)).

    The mode is scikit-learn's `OneClassSVM` with the same kernel: f = (decision_function + rho) /
    rho, and penalty = 1 / rho in scikit-learn's scale. The `nu` of `OneClassSVM` is the largest
    fraction of rows with f below 1; a larger penalty corresponds to a smaller `nu`.

    f(x) is a score with a variance. P(y = 1 | x), the probability that x resembles the training
    rows, is

        Phi(scale Fmu + offset),    scale = 1,    offset = -1,

    which is 1/2 at the margin, Fmu = 1. This probability ignores Fvar: averaged over f, as for two
    classes, it would approach 1/2 far from all rows, where Fvar is largest. The probability is a
    guess until `gpflow_bsvm.prediction.calibrate(model, (X, Y), held_out=True)` fits scale and
    offset to rows that include outliers. It is then the probability that a row is not an outlier,
    if outliers are as frequent as in the calibration. Outliers have label 0 or -1; other rows,
    including all training rows, have label 1.
    """

    neutral_link: ClassVar = {"scale": 1.0, "offset": -1.0}

    @inherit_check_shapes
    def probit_argument(self, Fmu: TensorType, Fvar: TensorType) -> tf.Tensor:
        """:return: z with p(y = 1) = Phi(z), [..., L]."""
        return self.scale * Fmu + self.offset

    @inherit_check_shapes
    def targets(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """
        :return: labels, [..., L]; NaN for outliers, from which nothing is learned.
        :raise ValueError: outside of graphs, for outliers.
        """
        if tf.executing_eagerly():
            self.check_labels(Y)
        y = super().targets(Y, F)
        return tf.where(y > 0, y, np.nan)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether to allow outliers, as outside of fits and in parts of the data.
        :raise ValueError: for labels other than 1 in a fit, or other than 0, -1 and 1 elsewhere.
        """
        Y = np.asarray(Y)
        check_columns(Y, 1, "one-class labels must form a single column")
        if minibatch:
            check_binary_labels(Y, minibatch=True)
        elif not (Y == 1).all():
            raise ValueError(
                f"OneClass learns from rows of one class, all with label 1, got {Y[Y != 1][0]}: "
                "leave outliers out, and use them only in gpflow_bsvm.prediction.calibrate"
            )


class OneVsRest(CategoricalLikelihood, HingeSum):
    r"""
    C binary hinges, one per class against all others,

        L(y | f) = prod_c exp(-penalty max(0, 1 - t_c f_c)),   t_c = +1 if c = y, else -1,

    the baseline of Wistuba & Rawat (2018), section 4, with the hinges of `Hinge`. The C models
    share features. They are fitted together, but do not affect each other. Prediction divides the
    binary probabilities by their sum:

        P(y = c) = p_c / sum_j p_j,   p_c = Phi(Fmu_c / sqrt(1 + Fvar_c)).

    This is not the mean over f of any p(y | f). In contrast, `conditional_mean`, means over draws
    and mutual information normalize at each f. The results differ most if f is uncertain.

    See `CategoricalLikelihood` for labels and normalization, and `Penalized` for `penalty` and
    `normalizer`; kappa is the product over classes of the kappa of `Hinge`.
    """

    has_normalizer = True

    @inherit_check_shapes
    def class_probabilities(self, Fmu: tf.Tensor, Fvar: tf.Tensor) -> tf.Tensor:
        """
        :return: binary probabilities divided by their sum, computed from logarithms so that even
            tiny probabilities can be ranked. A negative Fvar (rounding) counts as 0.
        """
        log_p = normal_log_cdf(Fmu / tf.sqrt(1 + tf.maximum(Fvar, 0)))
        return tf.nn.softmax(log_p, axis=-1)
