"""A GPflow kernel on the outputs of a Keras network, and a Bayesian SVM with such a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import Shape, inherit_check_shapes
from gpflow.base import AnyNDArray, TensorLike, TensorType
from gpflow.config import default_float
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.inducing_variables.inducing_variables import InducingPointsBase
from gpflow.kernels import Kernel, MultioutputKernel, SquaredExponential, Stationary
from gpflow.likelihoods import Likelihood
from sklearn.metrics import pairwise_distances

from ..data.checks import as_matrix
from ..data.sampling import random_rows
from ..engine.contracts import as_variables, check_active_dims
from ..inducing_points import kmeans
from ..models import BSVM
from ..models.sparse import SparseOptions
from .network import call, check_layer, input_shape_of, is_keras_3, normalised

if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack

#: Number of rows that `features_of` passes to the network at a time.
_ROWS = 1000
#: Number of rows whose features determine inducing points and lengthscale.
_SOME_ROWS = 10_000
#: Number of these rows whose distances determine the lengthscale.
_FEW_ROWS = 1000


class DeepKernel(Kernel):
    r"""
    k(x, x') = kernel(g(x), g(x')), g a Keras network (deep kernel learning, Wilson et al. 2016; the
    hybrid of Wistuba & Rawat 2018, section 3.4).

    It is an ordinary GPflow kernel for any model. With `FeaturePoints`, the inducing points are in
    feature space, which is smaller and smoother than a space of images. The network's weights are
    ordinary variables of the model: `ML2` learns them together with kernel and points, except in
    layers with `trainable = False`.

    Networks compute in their own dtype, usually single precision; their outputs are cast to
    GPflow's default float.

    :ivar features: the network g.
    :ivar kernel: kernel on the outputs of g.
    :ivar input_shape: shape of a row in the network's format.
    """

    def __init__(
        self, features: Any, kernel: Kernel, input_shape: Sequence[int] | int | None = None
    ) -> None:
        """
        :param features: a layer or model of tf_keras or Keras 3 (on TensorFlow) that returns a
            vector for each row.
        :param kernel: any GPflow kernel with a single output.
        :param input_shape: shape of a row, such as (28, 28, 1) for images in rows of X [N, 784], or
            a number of columns; None: as the network declares.
        :raise TypeError: for another kind of `features` or `kernel`.
        :raise ValueError: for a network that does not return vectors, or rejects `input_shape`; if
            the kernel uses columns that these vectors do not have.
        """
        check_layer(features)
        if not isinstance(kernel, Kernel) or isinstance(kernel, MultioutputKernel):
            raise TypeError(
                "DeepKernel takes a kernel with a single output, got "
                f"{type(kernel).__name__}; for several outputs wrap the DeepKernel itself, as in "
                "SharedIndependent(DeepKernel(...), L)"
            )
        super().__init__()
        self.input_shape = input_shape_of(features, input_shape)
        self.kernel = kernel
        self.features = features
        self.training = False
        # Builds the network, and checks that it returns vectors.
        found = call(features, tf.zeros([1, int(np.prod(self.input_shape))]), self.input_shape)
        check_active_dims(kernel, found.shape[-1], "the network's output")
        # TensorFlow modules do not track Keras 3 layers.
        self.weights = tuple(as_variables(features.weights)) if is_keras_3(features) else ()

    def look(self, X: TensorType) -> tf.Tensor:
        """:return: g(x), [..., Q], for X [..., D]; works in a graph too."""
        return call(self.features, tf.convert_to_tensor(X), self.input_shape, self.training)

    def features_of(self, X: Any) -> AnyNDArray:
        """
        Compute g(x) once, to train a model on frozen features.

        :param X: [N, D].
        :return: [N, Q].
        :raise ValueError: if X is not finite or has a wrong width, or if the network returns
            nonfinite values.
        """
        X = as_matrix(X, "X")
        parts = [self.look(X[n : n + _ROWS]).numpy() for n in range(0, len(X), _ROWS)]
        return as_matrix(np.concatenate(parts), "the network's output")

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """See `gpflow.kernels.Kernel`."""
        return self.kernel(self.look(X), None if X2 is None else self.look(X2))

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        """See `gpflow.kernels.Kernel`; GPflow's stationary kernels do not need X."""
        if type(self.kernel).K_diag is Stationary.K_diag:
            return self.kernel.K_diag(tf.convert_to_tensor(X))
        return self.kernel(self.look(X), full_cov=False)

    def learned_weights(self) -> list[tf.Variable]:
        """:return: the weights of the network, without frozen layers."""
        return as_variables(self.features.trainable_variables)

    def all_weights(self) -> list[tf.Variable]:
        """:return: all variables of the network, including moving averages and seeds."""
        return as_variables(self.features.variables)

    def losses(self) -> list[tf.Tensor]:
        """:return: regularization losses of the network's layers, for the latest rows."""
        return [tf.cast(loss, default_float()) for loss in self.features.losses]


class FeaturePoints(InducingPointsBase):
    """
    Inducing points of a `DeepKernel` in feature space: u_m = f(x) for a (possibly nonexistent) x
    with g(x) = z_m.

    :ivar Z: [M, Q], a `gpflow.Parameter`, such as `kmeans(kernel.features_of(X), M)`.
    """

    @property
    def shape(self) -> Shape:
        """:return: (M, None, 1): Q is not the number of columns of X."""
        return self.Z.shape[0], None, 1


@Kuu.register(FeaturePoints, DeepKernel)
def _Kuu(variable: FeaturePoints, kernel: DeepKernel, *, jitter: float = 0.0) -> tf.Tensor:
    covariance = kernel.kernel(variable.Z)
    return tf.linalg.set_diag(covariance, tf.linalg.diag_part(covariance) + jitter)


@Kuf.register(FeaturePoints, DeepKernel, TensorLike)
def _Kuf(variable: FeaturePoints, kernel: DeepKernel, Xnew: TensorType) -> tf.Tensor:
    return kernel.kernel(variable.Z, kernel.look(Xnew))


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
    Make a Bayesian SVM on the outputs of a network (the hybrid of Wistuba & Rawat 2018, section
    3.4), ready for `ML2`. K-means on the features gives the inducing points; `num_data` is N. The
    kernel's lengthscale is the mean distance between features of different rows, with which
    gradients neither vanish nor depend on single rows.

    A good start is a network that was trained with a softmax layer, which is then removed. An
    untrained network works too, but takes longer.

    :param features: a layer or model of tf_keras or Keras 3 that returns a vector for each row.
    :param likelihood: for an untrained network, `LevelHinge()` or `OneVsRestLevelHinge(C)`; for a
        trained network, any likelihood. (Without a majority class, equal features of all rows
        minimize the loss of `Hinge` and `CrammerSinger`: a new network can get stuck there.)
    :param X: [N, D], the training rows, or some of these rows together with `num_data=N`.
    :param num_inducing: M.
    :param kernel: kernel on the features; None: a `SquaredExponential` as above, of variance 4.
    :param input_shape: see `DeepKernel`.
    :param normalize: end the network with a batch normalization without parameters. Else a new
        network's small features can, in a few steps, move so far from the inducing points that
        kernel and gradient are 0.
    :param seed: seed for choosing rows, and for k-means.
    :param kwargs: further arguments of `BSVM`.
    :raise ValueError: if X is bad (see `DeepKernel.features_of`), or M is not between 1 and N.
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
    kwargs.setdefault("num_data", len(X))
    return BSVM(deep, likelihood, FeaturePoints(kmeans(F, num_inducing, seed=seed)), **kwargs)


def head(model: BSVM) -> BSVM:
    """
    Make the same model as a function of the features g(x) [N, Q] instead of x [N, D]. It shares
    kernel, points, likelihood and q with `model`, so that CAVI, VEM and calibration of the head
    also change `model`, without evaluating the network in each pass:

        F = model.kernel.features_of(X)
        CAVI().run(head(model), (F, Y))

    :param model: a model with `DeepKernel` and `FeaturePoints`, without a mean function.
    :raise TypeError: for any other model.
    """
    kernel = getattr(model, "kernel", None)
    points = getattr(model, "inducing_variable", None)
    if not isinstance(kernel, DeepKernel) or not isinstance(points, FeaturePoints):
        raise TypeError(
            "head takes a model with a DeepKernel and FeaturePoints, as hybrid makes it; "
            f"{type(model).__name__} has {type(kernel).__name__} and {type(points).__name__}"
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
