"""`fit`: the algorithm that suits the amount of data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData

from ..checkpoints.directory import Directory
from ..data.sampling import sample
from ..data.sources import Source
from ..engine.contracts import Model
from ..engine.open import open_data
from .cavi import CAVI
from .history import Callback, History
from .svi import SVI

#: Sweeps over so many times as many rows begin with what these say.
_FIRST_ROWS, _TIMES = 20_000, 10
#: Up to this many rows times latent functions times inducing points squared, whole sweeps are
#: affordable.
_SWEEP_LIMIT = 5e10
#: Rows of a batch that the data bring, as a guess, and steps over data that may have no end.
_BATCH, _STEPS = 100, (1000, 5000)


def fit(
    model: Model,
    data: RegressionData | tf.data.Dataset | None = None,
    *,
    sample_weight: Any = None,
    callback: Callback | None = None,
    monitor: Callable[[int], Any] | None = None,
    progress: bool | None = None,
    checkpoint: Directory | None = None,
    every: int = 1,
) -> History:
    """
    Fit q of a model at its present hyperparameters: `CAVI` where a sweep over the data is
    affordable (N L M^2 up to 5e10), else `SVI` in batches of 1000, for one epoch and 1000 steps at
    least. The same for data that are read piece by piece, if they have a known end: arrays on
    disk and Parquet files say how many rows they have, those of CSV files are counted by a pass;
    a sweep reads all of them. What may have no end, a `tf.data.Dataset` or blocks without
    `num_rows`, gets `SVI` for one epoch in batches of 100, though 1000 steps at least and 5000 at
    most, and the model must know `num_data`. A trainable kernel stays as it is: `VEM` learns it.

    From 200 000 rows on, and where q is the prior, `CAVI` begins with the q of 20 000 rows at
    random, each counted as often as it stands for: that halves the number of sweeps.

    Arguments and errors are those of `gpflow_bsvm.inference.CAVI.run`.
    """
    source = open_data(model, data, sample_weight)
    how: dict[str, Any] = {"progress": progress, "every": every}
    num_latents, num_inducing = model.num_features
    algorithm: CAVI | SVI = CAVI()
    if not source.counted:
        steps = int(np.clip(float(model.num_data or 0) / _BATCH, *_STEPS))
        algorithm = SVI(max_steps=steps)
    elif source.num_rows * float(num_latents) * num_inducing**2 > _SWEEP_LIMIT:
        batch_size = 1000
        steps = max(1000, source.num_rows // batch_size)
        algorithm = SVI(batch_size=batch_size, max_steps=steps)
    elif source.num_rows >= _TIMES * _FIRST_ROWS and not np.any(model.natural().h):
        _begin(model, source, checkpoint, how)
    how |= {"callback": callback, "monitor": monitor, "checkpoint": checkpoint}
    history = History()
    algorithm.run_on(model, source, history, **how)
    history.kernel_as_given = any(name.startswith(".kernel") for name in model.hyperparameters())
    return history


def _begin(model: Model, source: Source, checkpoint: Directory | None, how: Any) -> None:
    """Fit q to some rows, as if they were all."""
    rows = sample(source, _FIRST_ROWS, seed=0)
    if model.num_data is None:  # else they count as a sample of that many
        rows = rows.scaled(source.num_rows / rows.num_rows)
    place = None if checkpoint is None else Path(checkpoint) / "first rows"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows says what is wrong
        CAVI().run(model, rows, checkpoint=place, **how)
