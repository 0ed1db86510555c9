"""What the package may ask of a likelihood beside GPflow's own interface."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from gpflow.likelihoods import Likelihood


class Hook(enum.Enum):
    """
    A method or attribute that any likelihood may have, yours too. An algorithm names those that it
    cannot do without. F, Fmu, Fvar are [..., L], Y [..., P], and so on as in GPflow.

    :ivar attribute: its name.
    :ivar what: what a likelihood without it does not have, for errors.
    :ivar owners: who has it, for errors.
    """

    #: `sites(X, Fmu, Fvar, Y) -> Sites`, [..., L] each: the Gaussian sites in closed form. Without
    #: it `gpflow_bsvm.likelihoods.sites` differentiates `variational_expectations`.
    SITES = ("sites", "sites in closed form", "all hinges but NormalizedHinge")
    #: A bool, which may depend on the bound: whether the sites at Fvar = 0 touch log p(Y | F) from
    #: below at F = Fmu, as expectation maximisation needs them.
    POINT_SITES = (
        "has_point_sites",
        "sites at a point",
        'Hinge and OneVsRest with bound="augmented", and PolyaGammaLogistic',
    )
    #: `draw_sites(F, Y, seed) -> Sites`, as F: the sites of local variables drawn given F, with
    #: which p(Y | F) is Gaussian in F. For Gibbs sampling; `seed` [2] is of stateless draws.
    DRAW_SITES = ("draw_sites", "augmentation to draw from", "Hinge and OneVsRest")
    #: `alpha(Fmu, Fvar, Y)`, [..., L]: the parameter of the local variables, small near the margin.
    ALPHA = ("alpha", "local variables", "Hinge and OneVsRest")
    #: `link_parameters`, gpflow.Parameters by name: what calibration may set. They are of the
    #: prediction only and never trained with the model.
    LINK = ("link_parameters", "link to calibrate", "the likelihoods of gpflow_bsvm")
    #: `neutral_link`, numbers by the names of `link_parameters`: an uncalibrated link.
    NEUTRAL_LINK = ("neutral_link", "neutral link to compare with", "as with link_parameters")
    #: `check_labels(Y, *, minibatch=False)`: raises ValueError for labels that it does not know, or
    #: a class without rows, which a minibatch may have. See `check_labels`.
    CHECK_LABELS = ("check_labels", "check of labels", "the likelihoods of gpflow_bsvm")
    #: `check_learnable()`: raises ValueError if a trainable parameter of its own cannot be learned
    #: by evidence. See `check_learnable`.
    CHECK_LEARNABLE = ("check_learnable", "check of what is learned", "the hinges")
    #: A bool: whether adding the same to all latent functions changes nothing; fits are faster for
    #: knowing it. See `is_shift_invariant`.
    SHIFT_INVARIANT = ("shift_invariant", "invariance under shifts", "CrammerSinger")

    def __init__(self, attribute: str, what: str, owners: str) -> None:
        self.attribute, self.what, self.owners = attribute, what, owners


def has_hook(likelihood: Likelihood, hook: Hook) -> bool:
    """:return: whether the likelihood, as it is, has a method, a True, or parameters there."""
    found = getattr(likelihood, hook.attribute, False)
    return found is True or callable(found) or isinstance(found, Mapping)


def check_hooks(likelihood: Likelihood, needs: Iterable[Hook], instead: str = "") -> None:
    """
    :param instead: what would do with this likelihood, for the error.
    :raise ValueError: for the first of `needs` that the likelihood does not have.
    """
    for hook in needs:
        if not has_hook(likelihood, hook):
            raise ValueError(
                f"{type(likelihood).__name__} as it is has no {hook.what} (`{hook.attribute}`); "
                f"use {hook.owners}{instead and f', or {instead}'}"
            )


def check_labels(likelihood: Likelihood, Y: Any, *, minibatch: bool = False) -> None:
    """
    :raise ValueError: if the likelihood's own `check_labels`, where it has one, objects to Y.
    """
    if has_hook(likelihood, Hook.CHECK_LABELS):
        likelihood.check_labels(Y, minibatch=minibatch)


def check_learnable(likelihood: Likelihood) -> None:
    """
    :raise ValueError: if the likelihood's own `check_learnable`, where it has one, objects.
    """
    if has_hook(likelihood, Hook.CHECK_LEARNABLE):
        likelihood.check_learnable()


def is_shift_invariant(likelihood: Likelihood) -> bool:
    """:return: whether the likelihood says that it is `shift_invariant`."""
    return has_hook(likelihood, Hook.SHIFT_INVARIANT)
