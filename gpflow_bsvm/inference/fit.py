"""`fit`: the algorithm that suits the amount of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from gpflow.base import RegressionData

from ..checks import check_model, data_of
from ..engine.projected_data import EngineModel
from .cavi import CAVI
from .history import Callback, History
from .svi import SVI

#: Up to this many rows times latent functions times inducing points squared, whole sweeps are
#: affordable.
_SWEEP_LIMIT = 5e10


def fit(
    model: EngineModel,
    data: RegressionData | tf.data.Dataset | None = None,
    *,
    sample_weight: Any = None,
    callback: Callback | None = None,
    monitor: Callable[[int], Any] | None = None,
    progress: bool | None = None,
) -> History:
    """
    Fit q of a model at its present hyperparameters: `CAVI` where a sweep over the data is
    affordable (N L M^2 up to 5e10), else `SVI` in batches of 1000, for one epoch and 1000 steps at
    least. A `tf.data.Dataset` gets `SVI`'s default number of steps.

    Arguments as in `gpflow_bsvm.inference.CAVI.run`.
    """
    check_model(model)
    data = data_of(model, data)
    algorithm: CAVI | SVI = CAVI()
    num_latents, num_inducing = model.num_features
    if isinstance(data, tf.data.Dataset):
        algorithm = SVI()
    elif data[0].shape[0] * float(num_latents) * num_inducing**2 > _SWEEP_LIMIT:
        batch_size = 1000
        algorithm = SVI(batch_size=batch_size, num_steps=max(1000, len(data[0]) // batch_size))
    return algorithm.run(
        model,
        data,
        sample_weight=sample_weight,
        callback=callback,
        monitor=monitor,
        progress=progress,
    )
