"""A compiled kernel is the kernel."""

import numpy as np
import pytest
from gpflow import kernels as k

from gpflow_bsvm.engine.shared_graph import Compiled

SE = k.SquaredExponential
X = np.random.default_rng(0).normal(size=(7, 3))
IN_ONE_FIT = pytest.mark.usefixtures("in_one_fit")


def check(compiled: Compiled, kernel: k.Kernel, inputs: np.ndarray = X) -> int:
    """The compiled kernel matrix is the kernel matrix; how many traces there were up to here."""
    np.testing.assert_allclose(
        compiled.bind(kernel)(inputs), kernel(inputs), rtol=1e-12, atol=1e-12
    )
    return compiled.num_traces
