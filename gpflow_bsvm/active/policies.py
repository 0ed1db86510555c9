"""Which rows to ask about: a policy is a plain function, so yours can be one too.

A policy is called with the model, the rows X [N, D] that have no label yet, and a `Request`. It
returns either floats [N], of which the largest are asked about, or whole numbers: rows of X.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import AnyNDArray

from ..checks import check_choice
from ..engine.contracts import Model
from ..prediction.uncertainty import (
    latent_variance,
    margin,
    mutual_information,
    predictive_entropy,
    variation_ratio,
)

#: Draws of f in the policy that needs them.
NUM_SAMPLES = 128


class Request(NamedTuple):
    """What a policy may use besides the model and the rows without labels."""

    batch_size: int  #: B, rows that are asked about together
    seed: int  #: of all that is random, a new one for every request
    X: AnyNDArray  #: [n, D], rows that have labels
    Y: AnyNDArray  #: [n, P], these


#: A function of model, X [N, D] and request: scores [N], or [B] whole numbers.
Policy = Callable[[Model, AnyNDArray, Request], AnyNDArray]


#: By name; see `gpflow_bsvm.prediction` for what they compute.
POLICIES: dict[str, Policy] = {
    "variation_ratio": lambda model, X, request: variation_ratio(model, X),
    "entropy": lambda model, X, request: predictive_entropy(model, X),
    "margin": lambda model, X, request: -margin(model, X),
    "latent_variance": lambda model, X, request: latent_variance(model, X),
    "bald": lambda model, X, request: mutual_information(
        model, X, num_samples=NUM_SAMPLES, seed=request.seed
    ),
    "random": lambda model, X, request: np.random.default_rng(request.seed).random(len(X)),
}


def as_policy(policy: str | Policy) -> Policy:
    """
    :param policy: a name in `POLICIES`, or a policy.
    :raise ValueError: for an unknown name.
    :raise TypeError: for anything that cannot be called.
    """
    if isinstance(policy, str):
        check_choice(tuple(POLICIES), policy=policy)
        return POLICIES[policy]
    if not callable(policy):
        raise TypeError(
            f"policy must be one of {', '.join(POLICIES)}, or a function (model, X, request) of "
            f"scores or rows; got {type(policy).__name__}"
        )
    return policy


def chosen(answer: Any, num_rows: int, request: Request) -> AnyNDArray:
    """
    :param answer: of a policy.
    :param num_rows: N.
    :return: [B], rows; ties are broken at random.
    :raise ValueError: for an answer that is neither N scores nor B different rows.
    """
    values, size = np.asarray(answer), request.batch_size
    if values.dtype.kind in "iu":
        known = np.unique(values[(values >= 0) & (values < num_rows)]) if values.ndim == 1 else []
        if len(known) == values.size == size:
            return values.astype(int)
    elif values.dtype.kind == "f" and values.shape == (num_rows,) and not np.isnan(values).any():
        order = np.random.default_rng(request.seed).permutation(num_rows)
        return order[np.argsort(-values[order], kind="stable")[:size]]
    raise ValueError(
        f"a policy must return {num_rows} scores (floats, no NaN), or {size} different rows "
        f"(whole numbers in 0..{num_rows - 1}); got {values.dtype} of shape {values.shape}"
    )
