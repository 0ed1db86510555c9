"""Choose inducing points again for a learned kernel (Burt et al. 2020, section 7.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.base import AnyNDArray

from ..checks import check_whole
from ..data.batch import Batch, take
from ..data.passes import map_over
from ..data.sampling import random_rows
from ..data.sources import ArraySource
from ..engine.contracts import Model, chunk_rows
from ..engine.natural import compiled_solve
from ..engine.open import open_all
from ..engine.projected_data import ProjectedData
from ..engine.statistics import compiled_localise
from .initial import SUBSAMPLE, greedy_variance
from .update import SparseModel, check_exchangeable, exchange


def reselect(
    model: SparseModel,
    data: tuple[Any, Any],
    max_inducing: int | None = None,
    *,
    sample_weight: Any = None,
    tol: float = 1e-3,
    seed: int | None = 0,
    subsample: int = SUBSAMPLE,
) -> AnyNDArray:
    """
    Choose new inducing points for a `BSVM` by `greedy_variance` with its current kernel and sites,
    and `exchange` the old ones for them. The sites' precisions w_n weight the variances, so that
    points concentrate where classes meet (heteroscedastic greedy variance).

    Continue with `gpflow_bsvm.fit` or `gpflow_bsvm.inference.VEM`; once or twice is enough (Burt et
    al. 2020, section 7.4). The cost is O(N M^2) for the N rows of a random subsample.

    :param model: a model fitted to `data`; changed in place.
    :param max_inducing: the largest M; None: the current M.
    :param sample_weight: [N], as in the fit.
    :param tol: see `greedy_variance`.
    :param subsample: the largest number of rows to choose from.
    :return: Z [M, D].
    :raise ValueError: for bad data, and as in `exchange`.
    """
    check_exchangeable(model)
    number = model.q_shape[1] if max_inducing is None else max_inducing
    check_whole(1, max_inducing=number)
    source = open_all(model, data, sample_weight)
    blocks, places = source.gather(random_rows(source.num_rows, subsample, seed))
    rows = take(blocks, places)
    X = rows.X.numpy()
    weight = rows.weight.numpy()[:, 0] * _precisions(model, rows)
    Z = greedy_variance(X, min(number, len(X)), model.prior.kernel, tol=tol, weight=weight)
    exchange(model, Z)
    return Z


def _precisions(model: Model, rows: Batch) -> AnyNDArray:
    """:return: precisions of the sites, summed over latent functions, [N]."""
    q = compiled_solve(model.natural())
    localise = compiled_localise.bind(model.likelihood)
    data = ProjectedData(model, ArraySource(*rows, chunk_rows(model)))
    return np.sum(map_over(data, lambda part: localise(q, part).sites.w), axis=1)
