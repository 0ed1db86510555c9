"""Base classes of likelihoods: hooks, Gaussian sites, and a penalty."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow import Parameter
from gpflow.base import TensorType
from gpflow.likelihoods import Likelihood
from gpflow.utilities import positive

from ..checks import check_choice, may_hold
from .labels import check_rows


class Sites(NamedTuple):
    """Gaussian factors exp(r f - w f^2 / 2) that stand in for the likelihoods of labels."""

    w: tf.Tensor  #: [..., L], precisions, not negative
    r: tf.Tensor  #: [..., L], precision-means


class Moments(NamedTuple):
    """E b and E b^2 under q(f) for losses cost * max(0, b), [..., K], and their costs."""

    mean: tf.Tensor
    square: tf.Tensor
    cost: tf.Tensor  #: penalty included


#: For each hook that functions require: a description for users, and likelihoods that have it.
_NEEDED = {
    "sites": ("sites in closed form", "Hinge, OneVsRest or CrammerSinger"),
    "point_sites": ("sites at a point", "Hinge, OneVsRest or EpsilonInsensitive"),
    "draw_sites": ("augmentation to draw from", "Hinge or OneVsRest"),
    "local_sites": ("sites for given local variables", "Hinge or OneVsRest"),
    "moments": ("local variables", "Hinge, OneVsRest or CrammerSinger"),
    "link_parameters": (
        "link to calibrate",
        "a likelihood of classes, such as Hinge or CrammerSinger",
    ),
}


#: Attributes from which others are computed, or on which a model depends.
_FIXED = (
    *("input_dim", "latent_dim", "observation_dim", "num_classes", "normalizer"),
    *("W", "b", "levels", "tied", "scale", "weight"),
)
#: GPflow's methods that define p(y | f).
_DEFINING = (
    *("_scalar_log_prob", "_log_prob", "log_prob", "losses"),
    *("_variational_expectations", "variational_expectations"),
)


class Hooks(Likelihood):
    """
    Base class of the package's likelihoods. By default, checks do nothing, and other hooks (methods
    beyond GPflow's) raise an error. A custom likelihood needs only methods with these names, not
    this base class. As in GPflow, F, Fmu and Fvar are [..., L], and Y is [..., P].

    :ivar sites_are_slopes: whether `sites` equal the derivatives of `variational_expectations`
        everywhere (no precision is replaced by 0), and can serve as gradients.
    :ivar shift_invariant: whether only differences between latent functions matter.
    :ivar link_parameters: parameters of predictions that calibration sets, by name.
    :ivar lacking: hooks of this class that do not work with its current options.
    """

    sites_are_slopes: Any = False
    shift_invariant: Any = False
    link_parameters: Any = MappingProxyType({})
    lacking: Any = ()

    def __setattr__(self, name: str, value: Any) -> None:
        """
        :raise AttributeError: after construction, for an attribute that cannot change, and for a
            parameter, unless another parameter of valid values replaces it.
        :raise ValueError: for an invalid `bound`.
        """
        if name == "bound":
            check_choice(getattr(self, "bounds", (value,)), bound=value)
        old = vars(self).get(name)
        if isinstance(old, Parameter):
            if not (isinstance(value, Parameter) and may_hold(old, value)):
                raise AttributeError(
                    f"{name} is a parameter: use likelihood.{name}.assign(value), or replace it by "
                    f"a gpflow.Parameter of shape {tuple(old.shape)} with valid values"
                )
        elif name in _FIXED and name in vars(self):
            raise AttributeError(
                f"{name} cannot change, because other attributes depend on it: construct another "
                f"{type(self).__name__}"
            )
        super().__setattr__(name, value)

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[all]: [batch..., L]")
    def sites(self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Sites:
        """:return: Gaussian sites in closed form, see `gpflow_bsvm.likelihoods.sites`."""
        raise _lacks(self, "sites")

    @check_shapes("F: [batch..., L]", "Y: [broadcast batch..., P]", "return.r: [batch..., L]")
    def point_sites(self, F: TensorType, Y: TensorType) -> Sites:
        """
        :return: sites of a lower bound of log p(Y | f) that is tight at f = F, for `inference.ECM`;
            precisions are [..., L, L] if a loss depends on several latent functions.
        """
        raise _lacks(self, "point_sites")

    @check_shapes("F: [batch..., L]", "Y: [broadcast batch..., P]", "return[all]: [batch..., L]")
    def draw_sites(self, F: TensorType, Y: TensorType, seed: TensorType) -> Sites:
        """
        :param seed: [2], for TensorFlow's stateless random numbers.
        :return: sites of p(Y, lambda | F), which is Gaussian in F, for a lambda drawn given F.
        """
        raise _lacks(self, "draw_sites")

    @check_shapes("w: [batch..., K]", "Y: [broadcast batch..., P]", "return[all]: [batch..., L]")
    def local_sites(self, w: TensorType, Y: TensorType) -> Sites:
        """:return: sites of p(Y, lambda | f), which is Gaussian in f, where w = 1 / lambda."""
        raise _lacks(self, "local_sites")

    @check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[all]: [batch..., K]")
    def moments(self, Fmu: TensorType, Fvar: TensorType, Y: TensorType) -> Moments:
        """:return: the moments of b for all losses max(0, b) of a row."""
        raise _lacks(self, "moments")

    @inherit_check_shapes
    def variational_expectations(
        self, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
    ) -> tf.Tensor:
        """As in GPflow, but the numbers of rows of X, f and Y must agree."""
        check_rows(X, Fmu, Y)
        return super().variational_expectations(X, Fmu, Fvar, Y)

    def check_labels(self, Y: Any, *, minibatch: bool = False) -> None:
        """
        :param minibatch: whether classes may be absent.
        :raise ValueError: for invalid labels, or a class without rows.
        """

    def check_learnable(self) -> None:
        """:raise ValueError: for a trainable parameter that the evidence cannot determine."""


def has_hook(likelihood: Likelihood, hook: str) -> bool:
    """:return: True if the likelihood, with its options, has this method, flag or parameters."""
    default = getattr(Hooks, hook)
    if hook in getattr(likelihood, "lacking", ()) or getattr(type(likelihood), hook, 0) is default:
        return False
    found = getattr(likelihood, hook, False)
    return found is True or callable(found) or (isinstance(found, Mapping) and bool(found))


def check_closed_form(likelihood: Likelihood) -> None:
    """
    :raise ValueError: if a user's subclass changes p(y | f) by overriding one of GPflow's methods,
        but inherits closed forms (such as `sites`) that would ignore the change.
    """
    if not has_hook(likelihood, "sites"):
        return
    for kind in type(likelihood).__mro__:
        ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours or {"sites", "terms"} & vars(kind).keys():
            return
        if changed := [name for name in _DEFINING if name in vars(kind)]:
            raise ValueError(
                f"{kind.__name__} overrides {' and '.join(changed)}, but inherits closed forms "
                "that would ignore this: override `terms` (a sum of hinges) or `sites` too, or "
                "derive the class from BinaryLikelihood or GPflow's ScalarLikelihood"
            )


def check_hook(likelihood: Likelihood, hook: str, instead: str = "") -> None:
    """
    :param instead: alternatives without this hook, which the error names.
    :raise ValueError: if the likelihood lacks this hook.
    """
    if not has_hook(likelihood, hook):
        raise _lacks(likelihood, hook, instead and f", or {instead}")


def _lacks(likelihood: Likelihood, hook: str, instead: str = "") -> ValueError:
    what, owners = _NEEDED[hook]
    options = " with these options" if hook in getattr(likelihood, "lacking", ()) else ""
    return ValueError(
        f"{type(likelihood).__name__}{options} has no {what} (`{hook}`); use {owners}{instead}"
    )


#: Floor of variances: the square root has no gradient at 0. The floor also bounds every site
#: precision by about penalty / sqrt(floor), small enough for Cholesky factors.
VARIANCE_FLOOR = 1e-14


@check_shapes(
    "X: [broadcast batch..., D]",
    "Fmu: [batch..., L]",
    "Fvar: [batch..., L]",
    "Y: [broadcast batch..., P]",
    "return[0]: [batch..., L]",
    "return[1]: [batch..., L]",
)
def sites(
    likelihood: Likelihood, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> Sites:
    r"""
    The Gaussian sites of a likelihood at q(f) = N(Fmu, Fvar): the natural parameters that a
    natural-gradient step on E_q log p(Y | f) adds to the prior,

        w = -2 dV/dFvar,    r = dV/dFmu + w Fmu,    V = E_q log p(Y | f).

    Sites are in closed form if the likelihood has a method `sites`. Otherwise its
    `variational_expectations` are differentiated automatically (Bonnet's and Price's theorems). If
    the likelihood is not log-concave, a precision can be negative (GPflow's `Bernoulli` in its
    tails). A precision that is negative or not finite is set to 0: the posterior precision then
    stays positive definite, but steps settle where the ELBO is not maximal.

    :param likelihood: any GPflow likelihood.
    """
    if has_hook(likelihood, "sites"):
        w, r = likelihood.sites(X, Fmu, Fvar, Y)
        return Sites(w, r)
    return sites_by_autodiff(likelihood, X, Fmu, Fvar, Y)


@check_shapes("Fmu: [batch..., L]", "Fvar: [batch..., L]", "return[all]: [batch..., L]")
def sites_by_autodiff(
    likelihood: Likelihood, X: TensorType, Fmu: TensorType, Fvar: TensorType, Y: TensorType
) -> Sites:
    """`sites` by automatic differentiation, whether or not the likelihood has a closed form."""
    d_mean, d_var = slopes(partial(likelihood.variational_expectations, X, Y=Y), Fmu, Fvar)
    # A second derivative that is not finite counts as 0: a step along the first still ascends.
    precision = tf.where(tf.math.is_finite(d_var), tf.maximum(-2 * d_var, 0), tf.zeros_like(d_var))
    return Sites(precision, d_mean + precision * Fmu)


def slopes(expectation: Callable[..., Any], Fmu: TensorType, Fvar: TensorType) -> Any:
    """:return: the derivatives of an expectation with respect to Fmu and Fvar."""
    Fmu = tf.convert_to_tensor(Fmu)
    Fvar = tf.convert_to_tensor(Fvar)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch((Fmu, Fvar))
        expectations = expectation(Fmu, Fvar)
    return tape.gradient(
        expectations, (Fmu, Fvar), unconnected_gradients=tf.UnconnectedGradients.ZERO
    )


def probabilities(
    likelihood: Likelihood, X: TensorType, F: TensorType, Fvar: TensorType | None = None
) -> tf.Tensor:
    """
    :param F: f, or its mean if Fvar is given.
    :return: class probabilities if the likelihood defines them, else the mean of y.
    """
    if hasattr(likelihood, "probabilities"):
        return likelihood.probabilities(F, tf.zeros_like(F) if Fvar is None else Fvar)
    if Fvar is None:
        return likelihood.conditional_mean(X, F)
    return likelihood.predict_mean_and_var(X, F, Fvar)[0]


def check_penalty(penalty: float, name: str = "penalty") -> float:
    """
    :return: the value of the option `name`.
    :raise ValueError: unless it is a positive, finite number.
    """
    value = np.asarray(penalty)
    if value.ndim or value.dtype.kind not in "iuf" or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {penalty!r}")
    return float(value)


class Penalized(Hooks):
    r"""
    A likelihood L = exp(-penalty loss(y, f)), optionally multiplied by its normalizer kappa in
    training:

        kappa L(y | f),   1 / kappa = max_f sum_y L(y | f).

    Kappa is the largest factor for which the sum of kappa L over labels is at most 1 (Gold &
    Sollich 2003, eq. 6; the remainder is the probability of no label). For C classes with loss
    max(0, 1 + max_{t != y} f_t - f_y), 1 / kappa = max(C exp(-penalty), 1 + (C - 1) exp(-2
    penalty)). These are the sums if all classes are tied, or one leads by the margin; between, the
    sum is convex. Kappa does not change sites or predictions, only the evidence, by a constant per
    datum.

    If the loss is a sum of max(0, b_k), the likelihood has local variables, whatever its `bound`
    (see `gpflow_bsvm.prediction.local_variables`).

    :ivar penalty: slope of the loss, a parameter, not trainable by default.
    :ivar bound: the training objective, one of `bounds`.
    :cvar has_normalizer: whether kappa is known.
    :ivar normalizer: whether to include kappa. Without kappa, the evidence always prefers a smaller
        penalty; with kappa, a large penalty if rows are clean, a small penalty if they are noisy.
    """

    bounds: ClassVar[tuple[str, ...]] = ("exact", "augmented")
    has_normalizer: ClassVar[bool] = True
    sites_are_slopes: Any = True
    #: The number of labels y in the sum that defines the kappa of one loss.
    num_labels: Any = 2

    def __init__(
        self,
        penalty: float = 2.0,
        bound: str = "exact",
        *,
        normalizer: bool = False,
        **shape: int | None,
    ) -> None:
        """
        Options become attributes; `shape` holds arguments of `gpflow.likelihoods.Likelihood`.

        :raise ValueError: for invalid values.
        """
        super().__init__(**shape)
        if normalizer and not self.has_normalizer:
            raise ValueError(f"{type(self).__name__} has no normalizer: leave out normalizer=...")
        self.penalty = Parameter(check_penalty(penalty), transform=positive(), trainable=False)
        self.bound = bound
        self.normalizer = normalizer

    @check_shapes("return: []")
    def log_kappa(self) -> tf.Tensor:
        """:return: the log of the normalizer of a loss, []; 0 if `normalizer` is False."""
        penalty = tf.convert_to_tensor(self.penalty)
        return self._log_kappa(penalty) if self.normalizer else tf.zeros_like(penalty)

    def _log_kappa(self, penalty: tf.Tensor) -> tf.Tensor:
        apart = tf.math.log1p((self.num_labels - 1) * tf.exp(-2 * penalty))
        return -tf.maximum(math.log(self.num_labels) - penalty, apart)

    def check_learnable(self) -> None:
        """:raise ValueError: if the penalty is trainable without its normalizer."""
        parameter: Any = self.penalty
        if parameter.trainable and not self.normalizer:
            how = "make the likelihood with normalizer=True, or " if self.has_normalizer else ""
            raise ValueError(
                f"without its normalizer, a trainable penalty goes to 0: {how}choose a "
                "penalty with gpflow_bsvm.model_selection"
            )

    @check_shapes("F: [broadcast batch..., L]", "return: [batch..., G]")
    def losses(self, Y: TensorType, F: TensorType) -> tf.Tensor:
        """:return: [..., G], the losses of each row, without the penalty."""
        raise NotImplementedError

    @inherit_check_shapes
    def _log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return tf.reduce_sum(self._scalar_log_prob(X, F, Y), axis=-1)

    @check_shapes("F: [broadcast batch..., L]", "return: [batch..., G]")
    def _scalar_log_prob(self, X: TensorType, F: TensorType, Y: TensorType) -> tf.Tensor:
        return self.log_kappa() - self.penalty * self.losses(Y, F)
