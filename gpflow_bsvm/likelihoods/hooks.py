"""Optional methods of a likelihood, beyond GPflow's interface, that the package uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.likelihoods import Likelihood

from .labels import check_gpflows_labels, check_rows


class Sites(NamedTuple):
    """Gaussian sites of f."""

    w: tf.Tensor  #: [..., L], precisions, not negative
    r: tf.Tensor  #: [..., L], precision-means


class Moments(NamedTuple):
    """E b and E b^2 under q(f), [..., K], for losses max(0, b), and their factors."""

    mean: tf.Tensor
    square: tf.Tensor
    cost: tf.Tensor  #: penalty included


#: Hooks required by some functions: a description for users, and likelihoods that have the hook.
_NEEDED = {
    "sites": ("sites in closed form", "Hinge, OneVsRest or CrammerSinger"),
    "point_sites": ("sites at a point", "Hinge, OneVsRest or EpsilonInsensitive"),
    "draw_sites": ("augmentation to draw from", "Hinge or OneVsRest"),
    "local_sites": ("sites of given local variables", "Hinge or OneVsRest"),
    "moments": ("local variables", "Hinge, OneVsRest or CrammerSinger"),
    "link_parameters": (
        "link to calibrate",
        "a likelihood of classes, such as Hinge or CrammerSinger",
    ),
}


class Hooks(Likelihood):
    """
    Base of the package's likelihoods: all hooks, with defaults. Optional hooks do nothing by
    default; required hooks raise a clear error. A custom likelihood does not need this base, only
    methods of these names. Shapes are as in GPflow: F, Fmu and Fvar are [..., L], Y is [..., P].

    :ivar sites_are_slopes: whether `sites` are the derivatives of `variational_expectations` at all
        Fmu and Fvar, with no precision set to 0, so that they serve as gradients.
    :ivar shift_invariant: whether adding a constant to all latent functions changes nothing.
    :ivar link_parameters: prediction parameters set by calibration, by name.
    :ivar lacking: hooks of this class that do not work with its current options.
    """

    sites_are_slopes: Any = False
    shift_invariant: Any = False
    link_parameters: Any = MappingProxyType({})
    lacking: Any = ()

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
        :return: sites for local variables drawn given F; they make p(Y | F) Gaussian in F.
        """
        raise _lacks(self, "draw_sites")

    @check_shapes("w: [batch..., K]", "Y: [broadcast batch..., P]", "return[all]: [batch..., L]")
    def local_sites(self, w: TensorType, Y: TensorType) -> Sites:
        """:return: p(Y, lambda | f) as a Gaussian in f, where w = 1 / lambda."""
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
        :raise ValueError: for invalid labels, or a class without a row.
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


def check_hook(likelihood: Likelihood, hook: str, instead: str = "") -> None:
    """
    :param instead: alternatives for this likelihood, named in the error.
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


def check_labels(likelihood: Likelihood, Y: Any, *, minibatch: bool = False) -> None:
    """
    :raise ValueError: if the likelihood's own `check_labels`, if any, rejects Y; for labels that
        are invalid for a GPflow classifier.
    """
    if hasattr(likelihood, "check_labels"):
        likelihood.check_labels(Y, minibatch=minibatch)
    else:
        check_gpflows_labels(likelihood, Y, partial(check_labels, minibatch=True))
