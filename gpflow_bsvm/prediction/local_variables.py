r"""The local variables lambda of the augmented hinge (Polson & Scott 2011; Wenzel et al. 2017).

With a = penalty / 2 and b = 1 - y f the hinge is a scale mixture of Gaussians,

    exp(-2a max(0, b)) = int_0^inf p(y, lambda | f) dlambda,
    p(y, lambda | f) = a (2 pi lambda)^(-1/2) exp(-a b - (a^2 lambda + b^2 / lambda) / 2),

and the optimal q(lambda) is GIG(1/2, a^2, alpha), alpha = E b^2, whose inverse is an inverse
Gaussian. For several classes b = 1 + max_{t != y} f_t - f_y (Wistuba & Rawat 2018, eq. 7).
Inference needs none of this, since the bound is closed in alpha; it is here for inspection: points
with a small alpha lie near the margin, and are the soft support vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from check_shapes import check_shapes
from gpflow.base import AnyNDArray

from ..engine.contracts import Model
from ..likelihoods.hooks import check_hooks
from .estimators import takes_estimators
from .marginals import map_labelled


@takes_estimators
@check_shapes("return: [N, K]")
def alpha(model: Model, data: Any) -> AnyNDArray:
    """
    alpha_n = E b_n^2 at the model's present q: (1 - y_n mu_n)^2 + v_n for two classes (Wenzel et
    al. 2017, section 4.1), and for `papers.wistuba2018.CrammerSinger` that of b = 1 + R - f_y, R
    the largest rival, or with bound="wistuba2018" that of largest mean (their Algorithm 1).

    :param model: with a likelihood that has local variables, such as `Hinge`.
    :param data: X [N, D] and Y [N, P], or any others that a fit takes.
    :return: [N, K], K losses a row: L, or 1 for the hinge of Crammer and Singer.
    :raise ValueError: for bad data, or a likelihood without local variables.
    """
    check_hooks(model.likelihood, "moments")
    likelihood: Any = model.likelihood
    look = lambda X, Fmu, Fvar, Y: likelihood.moments(Fmu, Fvar, Y).square  # noqa: E731
    return np.asarray(map_labelled(model, data, look))


@takes_estimators
@check_shapes("return: [n]")
def soft_support_vectors(model: Model, data: Any, num: int | None = None) -> AnyNDArray:
    """
    The rows nearest to the margin (y f = 1, or f_y = 1 + the largest rival), by their alpha.

    :param num: how many; None: all with alpha below 1, which lie nearer to the margin than a
        point of f = 0 (several classes: all f equal) that is known exactly.
    :return: row numbers, smallest alpha first (over the latent functions, the smallest counts).
    """
    smallest = alpha(model, data).min(axis=-1)
    order = np.argsort(smallest, kind="stable")
    return order[: int((smallest < 1).sum()) if num is None else num]
