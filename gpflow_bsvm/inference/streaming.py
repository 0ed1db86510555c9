"""New rows without the old ones: what those said of f is kept as a Gaussian."""

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
    Streaming variational Bayes (Broderick et al. 2013) for q, at fixed hyperparameters: the model's
    q is what earlier rows have left, and these are not looked at again,

        q_new(u) ~ p(u) (q_old(u) / p(u))^forget  prod_n p(y_n | f_n),

    n over the new rows, by the sweeps of `CAVI`. In natural parameters the old rows are a sum of
    sites, as the new ones are; theirs stay as they were when they were seen last. So this is the
    batch fit where sites do not depend on q, and else as near to it as those sites are to what they
    would be now. Every row that is given counts once, whatever the model's `num_data`.

    For inducing points among the new rows call `gpflow_bsvm.inducing_points.exchange` first.

    :ivar forget: in [0, 1]: what earlier rows count now; 1: as much as new ones; 0.9: a row of k
        calls ago counts .9^k, for data that drift.

    Options and errors as `CAVI`; if a `forget` of 0 leaves nothing, this is `CAVI`.
    """

    takes_q, weighs = True, False

    forget: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(0, forget=self.forget)
        if self.forget > 1:
            raise ValueError(f"forget must be in [0, 1], got {self.forget}")

    def _open(self, model: Model, data: Any, sample_weight: Any) -> Source:
        return open_data(model, data, sample_weight, part=True)

    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        # What earlier rows have left besides the prior N(0, I), as far as it is not forgotten.
        known = scaled_sites(model.natural(), self.forget)
        return Sweeps(self, model, ProjectedData(model, source), known)
