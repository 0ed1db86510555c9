"""`fit`: choose an algorithm by the amount of data."""

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
from ..engine.contracts import Model, open_data
from .cavi import CAVI
from .minibatches import SVI
from .run import Callback, History, Reports

#: Sweeps over _TIMES * _FIRST_ROWS rows or more start from a fit to _FIRST_ROWS rows.
_FIRST_ROWS = 20_000
_TIMES = 10
#: The largest affordable work of a sweep: rows * latent functions * inducing points^2.
_SWEEP_LIMIT = 5e10
#: For data that may be endless: assumed batch size, fewest and most steps.
_BATCH = 100
_FEWEST_STEPS = 1000
_MOST_STEPS = 5000


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
    Fit a model's q at its current hyperparameters, with `CAVI` if sweeps over the data are
    affordable (up to 5e10 for rows * latent functions * inducing points^2), else with `SVI` in
    batches of 1000, for one epoch and at least 1000 steps. The same holds for finite data that are
    read piece by piece: each sweep reads them again. Arrays on disk and Parquet files store their
    number of rows; a pass counts the rows of CSV files and of lists of blocks. Data that may be
    endless (a `tf.data.Dataset`, or other blocks without `num_rows`) need the model's `num_data`;
    `SVI` then takes batches of 100, for one epoch, but at least 1000 and at most 5000 steps. The
    kernel does not change, even if trainable; `VEM` learns it.

    With at least 200 000 rows, if q is the prior, `CAVI` starts from a fit to 20 000 random rows,
    weighted to stand for all rows: this halves the number of sweeps.

    Arguments and errors are as in `gpflow_bsvm.inference.CAVI.run`.
    """
    source = open_data(model, data, sample_weight)
    reports = Reports(callback, monitor, progress, checkpoint, every)
    num_latents, num_inducing = model.q_shape
    algorithm: CAVI | SVI = CAVI()
    if not source.counted:
        steps = int(np.clip(float(model.num_data or 0) / _BATCH, _FEWEST_STEPS, _MOST_STEPS))
        algorithm = SVI(max_steps=steps)
    elif source.num_rows * float(num_latents) * num_inducing**2 > _SWEEP_LIMIT:
        batch_size = 1000
        steps = max(1000, source.num_rows // batch_size)
        algorithm = SVI(batch_size=batch_size, max_steps=steps)
    elif source.num_rows >= _TIMES * _FIRST_ROWS and not np.any(model.natural().h):
        _begin(model, source, reports)
    history = History()
    algorithm.run_on(model, source, history, reports)
    history.kernel_as_given = any(name.startswith(".kernel") for name in model.hyperparameters())
    return history


def _begin(model: Model, source: Source, reports: Reports) -> None:
    """Fit q to a subset that is weighted to stand for all rows."""
    rows = sample(source, _FIRST_ROWS, seed=0)
    if model.num_data is None:  # else the subset counts as `num_data` rows
        rows = rows.scaled(source.num_rows / rows.num_rows)
    place = None if reports.checkpoint is None else Path(reports.checkpoint) / "first rows"
    unseen = reports._replace(callback=None, monitor=None, checkpoint=place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows repeats them
        CAVI().run_on(model, open_data(model, rows), History(), unseen)
