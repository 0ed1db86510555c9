"""The batch Bayesian SVM: q over the function at all training points."""

from __future__ import annotations

import os
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import RegressionData
from gpflow.config import default_float
from gpflow.kernels import Kernel

from ..data.checks import check_data
from ..engine.structure import check_process
from ..likelihoods.labels import num_latents
from .sparse import BSVM

#: Number of N x N matrices in memory per latent function at the peak of a fit, as measured.
_MATRICES = 20


class BatchBSVM(BSVM):
    r"""
    Batch Bayesian support vector machine (B-BSVM, Wenzel et al. 2017, section 4.1): q over f at all
    N training points instead of inducing points,

        f ~ GP(m, k),   q(f_1..f_N) Gaussian,   ELBO = sum_n E_q log L(y_n | f_n) - KL(q || p),

    at a cost of O(N^3) per sweep and O(N^2) memory: 5 000 points need about 5 GB and a few minutes.

    It is a `BSVM` with Z = X that stores its data, like `gpflow.models.VGP`: call `model.elbo()`,
    `model.training_loss()`, `gpflow_bsvm.fit(model)`, `CAVI().run(model)` or `VEM().run(model)`
    without data, or with other data.

    As in every `BSVM`, q leaves out the noise of a `gpflow.kernels.White`. Only with such a kernel,
    f at the rows and the bound differ from those of GPflow's VGP, which takes our likelihoods too.
    """

    _warns_of_duplicates = False  # equal rows are separate points that differ by the jitter

    def __init__(
        self,
        data: RegressionData,
        kernel: Kernel,
        likelihood: gpflow.likelihoods.Likelihood,
        mean_function: gpflow.functions.MeanFunction | None = None,
        num_latent_gps: int | None = None,
    ) -> None:
        """
        :param data: X [N, D] and Y [N, P].
        :param num_latent_gps: L; if None, what the likelihood needs, or Y's number of columns.
        :raise ValueError: as in `BSVM`, for bad data, and if N is too large for the memory.
        """
        check_process()
        X, Y = check_data(likelihood, data)
        num_latent_gps = num_latents(likelihood, Y.shape[1], num_latent_gps)
        check_memory(type(self).__name__, len(X), num_latent_gps)
        super().__init__(
            kernel,
            likelihood,
            np.array(X),
            mean_function=mean_function,
            num_latent_gps=num_latent_gps,
        )
        gpflow.set_trainable(self.inducing_variable, False)
        self.data = tf.convert_to_tensor(X), tf.convert_to_tensor(Y)

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self, data: RegressionData | None = None) -> tf.Tensor:
        """:return: the ELBO."""
        return self.elbo(data)

    @inherit_check_shapes
    def elbo(self, data: RegressionData | None = None) -> tf.Tensor:
        """
        :param data: X [N, D] and Y [N, P]; if None, the data stored in the model.
        :return: the ELBO, [].
        """
        return super().elbo(self.data if data is None else data)

    def training_loss(self, data: RegressionData | None = None) -> tf.Tensor:
        """:return: the negative ELBO minus the log density of priors, []."""
        return super().training_loss(self.data if data is None else data)

    def training_loss_closure(self, data: Any = None, *, compile: bool = True) -> Any:
        """:return: a function that computes `training_loss`."""
        return super().training_loss_closure(self.data if data is None else data, compile=compile)


def check_memory(name: str, num_rows: int, num_latents: int = 1) -> None:
    """
    :param name: the model's name in the error.
    :raise ValueError: if the N x N matrices of a fit do not fit into memory.
    """
    gigabytes = _MATRICES * num_latents * num_rows**2 * default_float()(0).itemsize / 2**30
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):  # unknown on this system
        return
    if gigabytes > available:
        raise ValueError(
            f"{name} of {num_rows} rows would need {gigabytes:.3g} GB, but {available:.3g} GB are "
            "available; use gpflow_bsvm.models.BSVM with inducing points"
        )
