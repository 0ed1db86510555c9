"""A Bayesian SVM on a network: the initial model, and its head on frozen features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.likelihoods import Likelihood
from sklearn.metrics import pairwise_distances

from ..data.checks import as_matrix
from ..data.sampling import random_rows
from ..inducing_points import kmeans
from ..models import BSVM
from ..models.sparse import SparseOptions
from .kernel import DeepKernel, FeaturePoints
from .network import normalised

if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack

#: Number of rows whose features determine inducing points and lengthscale.
_SOME_ROWS = 10_000
#: Number of these rows whose distances determine the lengthscale.
_FEW_ROWS = 1000


def hybrid(
    features: Any,
    likelihood: Likelihood,
    X: Any,
    num_inducing: int = 100,
    *,
    kernel: Kernel | None = None,
    input_shape: Any = None,
    normalize: bool = True,
    seed: int = 0,
    **kwargs: Unpack[SparseOptions],
) -> BSVM:
    """
    A Bayesian SVM on the outputs of a network (the hybrid of Wistuba & Rawat 2018, section 3.4),
    ready for `ML2`. K-means of the features gives the inducing points; `num_data` is N. The
    kernel's lengthscale is the mean distance between features of different rows, so that gradients
    neither vanish nor depend on single rows.

    A good start is a network trained with a softmax layer, without this layer; an untrained network
    works too, but takes longer.

    :param features: a layer or model of tf_keras or Keras 3 that returns a vector for each row.
    :param likelihood: for an untrained network `LevelHinge()` or `OneVsRestLevelHinge(C)`; for a
        trained network any likelihood. (Without a majority class, equal features of all rows
        minimize `Hinge` and `CrammerSinger`; new networks can get stuck there.)
    :param X: [N, D], the training rows, or some of them with `num_data=N`.
    :param num_inducing: M.
    :param kernel: kernel on the features; None: the above `SquaredExponential`, of variance 4.
    :param input_shape: see `DeepKernel`.
    :param normalize: end the network with batch normalization without parameters. Otherwise, in a
        few steps, a new network's small features can leave the points' reach, where the kernel and
        its gradient are 0.
    :param seed: seed for choosing rows, and for k-means.
    :param kwargs: as for `BSVM`.
    :raise ValueError: for bad X (see `DeepKernel.features_of`), or M not between 1 and N.
    """
    X = as_matrix(X, "X")
    deep = DeepKernel(features, kernel or SquaredExponential(4.0), input_shape)
    some = _some(X, max(_SOME_ROWS, num_inducing), seed)
    F = deep.features_of(some)
    if normalize:
        features = normalised(features, F, deep.input_shape)
        deep = DeepKernel(features, deep.kernel, deep.input_shape)
        F = deep.features_of(some)
    if kernel is None:
        distances = pairwise_distances(_some(F, _FEW_ROWS, seed))
        pairs = len(distances) * (len(distances) - 1)
        deep.kernel.lengthscales.assign(float(distances.sum() / max(1, pairs)) or 1.0)
    variable = FeaturePoints(kmeans(F, num_inducing, seed=seed))
    kwargs.setdefault("num_data", len(X))
    return BSVM(deep, likelihood, variable, **kwargs)


def head(model: BSVM) -> BSVM:
    """
    The same model as a function of the features g(x) [N, Q], instead of x [N, D]. It shares kernel,
    points, likelihood and q with `model`, so that CAVI, VEM and calibration of the head fit `model`
    too, without evaluating the network in each pass:

        F = model.kernel.features_of(X)
        CAVI().run(head(model), (F, Y))

    :param model: a model with `DeepKernel` and `FeaturePoints`, without mean function.
    :raise TypeError: for any other model.
    """
    kernel = model.kernel
    points = model.inducing_variable
    if not isinstance(kernel, DeepKernel) or not isinstance(points, FeaturePoints):
        raise TypeError(
            "head takes a model with a DeepKernel and FeaturePoints, such as from hybrid; this one "
            f"has {type(kernel).__name__} and {type(points).__name__}"
        )
    if not isinstance(model.mean_function, gpflow.functions.Zero):
        raise TypeError("a head sees only features, not x: use a model without a mean function")
    made = BSVM(
        kernel.kernel,
        model.likelihood,
        InducingPoints(points.Z),
        num_latent_gps=model.num_latent_gps,
        whiten=model.whiten,
        num_data=model.num_data,
    )
    made.q_mu = model.q_mu
    made.q_sqrt = model.q_sqrt
    return made


def _some(X: AnyNDArray, number: int, seed: int) -> AnyNDArray:
    return X[np.sort(random_rows(len(X), number, seed))]
