r"""Default priors of kernel parameters: ARD that is safe on small data and harmless on large.

Evidence alone gives every input its own lengthscale readily, and overfits where rows are few. On
standardised inputs a relevant lengthscale is of the order of sqrt(D), and margins of a few units,
so that

    log lengthscale ~ N(log sqrt(D), 0.4^2 / penalty),   log variance ~ N(log 4, 1 / penalty)

(MAP-II). The log-likelihood of a hinge is proportional to its penalty; with the deviations above
the priors are too, so that their weight against the data does not depend on it.
"""

from __future__ import annotations

import math
from typing import Any

import gpflow
import numpy as np
import tensorflow_probability as tfp
from gpflow.config import default_float

#: Medians: of a lengthscale over sqrt(D), and of a variance. Deviations: of their logarithms.
LENGTHSCALE, LENGTHSCALE_DEVIATION = 1.0, 0.4
VARIANCE, VARIANCE_DEVIATION = 4.0, 1.0


def log_normal(median: float, deviation: float) -> tfp.distributions.LogNormal:
    """:return: exp N(log median, deviation^2), in GPflow's default float."""
    dtype = default_float()
    return tfp.distributions.LogNormal(dtype(math.log(median)), dtype(deviation))


def set_default_priors(
    kernel: gpflow.kernels.Kernel, num_features: int, *, penalty: float = 1.0
) -> None:
    """
    Give every trainable `lengthscales` and `variance` in `kernel` that has no prior the default.

    :param kernel: any GPflow kernel, for standardised inputs; it is changed.
    :param num_features: D, for kernels that look at all inputs.
    :param penalty: of the likelihood; 1 for one that has none.
    :raise ValueError: for a penalty that is not positive and finite.
    """
    if not 0 < penalty < math.inf:
        raise ValueError(f"penalty must be positive and finite, got {penalty}")
    root = math.sqrt(penalty)
    for part in _parts(kernel):
        for name in ("lengthscales", "variance"):
            parameter = getattr(part, name, None)
            if not isinstance(parameter, gpflow.Parameter) or parameter.prior is not None:
                continue
            if name == "lengthscales":
                median = LENGTHSCALE * math.sqrt(_num_inputs(part, num_features))
                parameter.prior = log_normal(median, LENGTHSCALE_DEVIATION / root)
            else:
                parameter.prior = log_normal(VARIANCE, VARIANCE_DEVIATION / root)


def ard_kernel(num_features: int, *, penalty: float = 1.0) -> gpflow.kernels.Kernel:
    """:return: squared exponential, a lengthscale for every input, where its default priors are."""
    lengthscales = np.full(num_features, LENGTHSCALE * math.sqrt(num_features))
    kernel = gpflow.kernels.SquaredExponential(VARIANCE, lengthscales=lengthscales)
    set_default_priors(kernel, num_features, penalty=penalty)
    return kernel


def _parts(kernel: gpflow.kernels.Kernel) -> list[Any]:
    """:return: `kernel` and all kernels inside it."""
    return [part for part in kernel.submodules if isinstance(part, gpflow.kernels.Kernel)] + [
        kernel
    ]


def _num_inputs(kernel: Any, num_features: int) -> int:
    dims = kernel.active_dims
    if isinstance(dims, slice):
        return len(range(*dims.indices(num_features)))
    return int(np.size(dims))
