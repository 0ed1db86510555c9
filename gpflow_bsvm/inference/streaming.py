"""Fits to new rows only; a Gaussian summarizes earlier rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..checks import check_number
from ..data.sources import Source
from ..engine.contracts import Model
from ..engine.natural import scaled_sites
from ..engine.open import open_data
from ..engine.projected_data import ProjectedData
from .cavi import CAVI, Sweeps
from .run import Run


@dataclass(frozen=True)
class Streaming(CAVI):
    r"""
    Streaming variational Bayes (Broderick et al. 2013) for q, at fixed hyperparameters. The model's
    q represents the earlier rows, which are not read again:

        q_new(u) ~ p(u) (q_old(u) / p(u))^forget  prod_n p(y_n | f_n),

    with n over the new rows, by the sweeps of `CAVI`. In natural parameters the earlier rows are a
    sum of frozen sites. The result equals the batch fit if sites do not depend on q; otherwise it
    differs as much as frozen sites differ from current sites. Every new row counts once, for any
    `num_data` of the model.

    To place inducing points among the new rows, call `gpflow_bsvm.inducing_points.exchange` first.

    :ivar forget: in [0, 1], the weight of earlier rows. With 1 they count like new rows. With 0.9,
        for data that drift, rows from k calls ago have weight .9^k.

    Options and errors as in `CAVI`, to which `forget` = 0 reduces.
    """

    takes_q = True
    weighs = False

    forget: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(0, forget=self.forget)
        if self.forget > 1:
            raise ValueError(f"forget must be in [0, 1], got {self.forget}")

    def _open(self, model: Model, data: Any, sample_weight: Any) -> Source:
        return open_data(model, data, sample_weight, part=True)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        # The earlier rows' part of q, without the prior N(0, I), reduced by `forget`.
        known = scaled_sites(model.natural(), self.forget)
        return Sweeps(self, model, ProjectedData(model, source), known)
