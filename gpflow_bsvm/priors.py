r"""Default priors of kernel parameters. They make ARD safe with few rows, and do no harm with many.

With few rows, the evidence alone easily overfits a separate lengthscale for every input. On
standardized inputs, relevant lengthscales are of the order of sqrt(D), and f varies by a few units.
The priors are therefore

    log lengthscale ~ N(log sqrt(D), 0.4^2 / penalty),   log variance ~ N(log 4, 1 / penalty)

and, for a constant kernel (an offset of f), log variance ~ N(0, 3^2 / penalty) (MAP-II). A hinge's
log-likelihood is proportional to its penalty. So are, with these standard deviations, the log
densities of the *logarithms*: their weight relative to the data is constant. GPflow adds the log
density of the parameter x itself; its extra -log x does not scale with the penalty.
"""

from __future__ import annotations

from . import quiet  # isort: skip  # noqa: F401 - imports GPflow before others do

import math

import gpflow
import numpy as np
import tensorflow_probability as tfp
from gpflow.config import default_float

from .checks import check_whole
from .engine.projection import check_is_kernel
from .likelihoods.base import check_penalty

__all__ = ["ard_kernel", "default_kernel", "set_default_priors"]

#: Median of a variance. (The median of a lengthscale is sqrt(D), that of an offset's variance 1.)
VARIANCE = 4.0
#: Standard deviations of logarithms. An offset may be large if one class surrounds the others.
LENGTHSCALE_DEVIATION = 0.4
VARIANCE_DEVIATION = 1.0
OFFSET_DEVIATION = 3.0


def log_normal(median: float, deviation: float) -> tfp.distributions.LogNormal:
    """:return: exp N(log median, deviation^2), in GPflow's default float."""
    dtype = default_float()
    return tfp.distributions.LogNormal(dtype(math.log(median)), dtype(deviation))


def set_default_priors(
    kernel: gpflow.kernels.Kernel, num_features: int, *, penalty: float = 1.0
) -> None:
    """
    Set default priors on all `lengthscales` and `variance` of `kernel` without a prior.

    :param kernel: any GPflow kernel for standardized inputs; it is changed in place.
    :param num_features: D, for kernels that use all inputs.
    :param penalty: the likelihood's penalty; 1 for a likelihood without a penalty.
    :raise ValueError: for an invalid number of features, or a penalty that is not positive and
        finite.
    """
    check_is_kernel(kernel)
    check_whole(1, num_features=num_features)
    root = math.sqrt(check_penalty(penalty))
    for part in (kernel, *kernel.submodules):
        if not isinstance(part, gpflow.kernels.Kernel):
            continue
        dims = part.active_dims
        number = len(range(num_features)[dims]) if isinstance(dims, slice) else np.size(dims)
        defaults = {
            "lengthscales": (math.sqrt(number), LENGTHSCALE_DEVIATION),
            "variance": (VARIANCE, VARIANCE_DEVIATION),
        }
        if isinstance(part, gpflow.kernels.Constant):
            defaults = {"variance": (1.0, OFFSET_DEVIATION)}
        for name, (median, deviation) in defaults.items():
            parameter = getattr(part, name, None)
            if isinstance(parameter, gpflow.Parameter) and parameter.prior is None:
                parameter.prior = log_normal(median, deviation / root)


def ard_kernel(num_features: int, *, penalty: float = 1.0) -> gpflow.kernels.Kernel:
    """
    :return: a squared exponential with a lengthscale for every input; all parameters start at their
        priors' medians.
    :raise ValueError: as in `set_default_priors`.
    """
    check_whole(1, num_features=num_features)
    lengthscales = np.full(num_features, math.sqrt(num_features))
    kernel = gpflow.kernels.SquaredExponential(VARIANCE, lengthscales=lengthscales)
    set_default_priors(kernel, num_features, penalty=penalty)
    return kernel


def default_kernel(num_features: int, *, penalty: float = 1.0) -> gpflow.kernels.Kernel:
    """
    :return: the sum of `ard_kernel` and a `Constant`, an offset of f. Without an offset, f is 0 far
        from all rows, and both classes are equally probable.
    :raise ValueError: as in `set_default_priors`.
    """
    kernel = ard_kernel(num_features, penalty=penalty) + gpflow.kernels.Constant(1.0)
    set_default_priors(kernel, num_features, penalty=penalty)
    return kernel
