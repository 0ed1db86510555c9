"""What the package may ask of a likelihood beside GPflow's own interface."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from gpflow.likelihoods import Likelihood

from .labels import check_gpflows_labels


class Hook(enum.Enum):
    """
    A method or attribute that any likelihood may have, yours too. An algorithm names those that it
    cannot do without (`check_hooks`), the others are used where they are. Shapes as in GPflow: F,
    Fmu and Fvar are [..., L], Y is [..., P].

    :ivar attribute: its name in the likelihood.
    :ivar what: what a likelihood without it does not have, and
    :ivar owners: who has it: for errors.
    """

    #: `sites(X, Fmu, Fvar, Y) -> Sites`, as Fmu: the Gaussian sites in closed form. Without it
    #: `gpflow_bsvm.likelihoods.sites` differentiates `variational_expectations`.
    SITES = "sites", "sites in closed form", "Hinge, OneVsRest or CrammerSinger"
    #: Bool: whether `sites` are the derivatives of `variational_expectations` at all Fmu and Fvar,
    #: with no precision set to 0: gradients are taken from them then, see `local_slopes`.
    SITE_SLOPES = "sites_are_slopes"
    #: Bool: whether sites at Fvar = 0 touch log p(Y | F) from below at F = Fmu, as expectation
    #: maximisation needs them. It may depend on the bound.
    POINT_SITES = "has_point_sites", "sites at a point", 'Hinge or OneVsRest, bound="augmented"'
    #: `draw_sites(F, Y, seed) -> Sites`, as F: sites of local variables that are drawn given F and
    #: make p(Y | F) Gaussian in F, for Gibbs sampling. `seed` [2] is of stateless draws.
    DRAW_SITES = "draw_sites", "augmentation to draw from", "Hinge or OneVsRest"
    #: `alpha(Fmu, Fvar, Y)`, [..., K], a column for each loss of a row: of the local variables' q,
    #: small near the margin.
    ALPHA = "alpha", "local variables", "Hinge, OneVsRest or CrammerSinger"
    #: `bound_at(alpha, Fmu, Fvar, Y)`, [...]: the bound of such local variables at any alpha.
    BOUND_AT = "bound_at", "bound at given alpha", "Hinge, OneVsRest or CrammerSinger"
    #: `local_sites(w, Y) -> Sites`, [..., L], of w [..., K]: the Gaussian of F at local variables
    #: 1 / w.
    LOCAL_SITES = "local_sites", "sites of given local variables", "Hinge or OneVsRest"
    #: `link_parameters`, by name the gpflow.Parameters that calibration may set: of the prediction
    #: only, never trained with the model. With it `neutral_link`, numbers by the same names: the
    #: link before calibration.
    LINK = "link_parameters", "link to calibrate", "a likelihood of gpflow_bsvm"
    #: `check_labels(Y, *, minibatch=False)` raises ValueError for labels that it does not know, and
    #: for classes without a row, which a minibatch may have.
    CHECK_LABELS = "check_labels"
    #: `check_learnable()` raises ValueError for a trainable parameter that evidence cannot learn.
    CHECK_LEARNABLE = "check_learnable"
    #: Bool: whether adding the same to all latent functions changes nothing, which fits can use.
    SHIFT_INVARIANT = "shift_invariant"

    def __init__(self, attribute: str, what: str = "", owners: str = "") -> None:
        self.attribute, self.what, self.owners = attribute, what, owners


def has_hook(likelihood: Likelihood, hook: Hook) -> bool:
    """:return: True if the likelihood, as it is, has a method, a True, or parameters there."""
    found = getattr(likelihood, hook.attribute, False)
    return found is True or callable(found) or isinstance(found, Mapping)


def check_hooks(likelihood: Likelihood, needs: Iterable[Hook], instead: str = "") -> None:
    """
    :param instead: what would do with this likelihood as it is, for the error.
    :raise ValueError: for the first of `needs` that it does not have.
    """
    for hook in needs:
        if not has_hook(likelihood, hook):
            raise ValueError(
                f"{type(likelihood).__name__} as it is has no {hook.what} (`{hook.attribute}`); "
                f"use {hook.owners}{instead and f', or {instead}'}"
            )


def check_labels(likelihood: Likelihood, Y: Any, *, minibatch: bool = False) -> None:
    """
    :raise ValueError: if the likelihood's own `check_labels`, where it has one, objects to Y; for
        labels that a classifier of GPflow does not know.
    """
    if has_hook(likelihood, Hook.CHECK_LABELS):
        likelihood.check_labels(Y, minibatch=minibatch)
    else:
        check_gpflows_labels(likelihood, Y, partial(check_labels, minibatch=True))


def check_learnable(likelihood: Likelihood) -> None:
    """:raise ValueError: if the likelihood's own `check_learnable`, where it has one, objects."""
    if has_hook(likelihood, Hook.CHECK_LEARNABLE):
        likelihood.check_learnable()


def is_shift_invariant(likelihood: Likelihood) -> bool:
    """:return: True if the likelihood says that it is `shift_invariant`."""
    return has_hook(likelihood, Hook.SHIFT_INVARIANT)
