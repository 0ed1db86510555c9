"""The linear Bayesian SVM: weights instead of inducing points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, TensorType
from gpflow.config import default_float
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import positive, triangular
from scipy.stats import norm

from ..checks import check_choice, check_whole
from ..engine.structure import check_process
from .sparse import BSVM, SparseOptions

if TYPE_CHECKING:  # no dependency of this package
    from typing_extensions import Unpack


class WeightKernel(Kernel):
    r"""
    k(x, x') = x^T Sigma x', the covariance of f(x) = x^T beta with beta ~ N(0, Sigma); with a bias,
    a 1 is appended to x.

    :ivar variance: prior variance of independent weights, [] or [D'].
    :ivar root: for dependent weights, Sigma's lower Cholesky factor, [D', D']; not trainable.
    """

    def __init__(self, num_inputs: int, prior_covariance: Any = 1.0, bias: bool = True) -> None:
        """
        :param num_inputs: D.
        :param prior_covariance: Sigma of the D' = D + `bias` weights (bias last): a number, a
            diagonal [D'] or a matrix [D', D'].
        :raise ValueError: for other shapes, or a Sigma that is not positive definite.
        """
        super().__init__()
        self.num_inputs = num_inputs
        self.bias = bias
        values: AnyNDArray = np.asarray(prior_covariance, default_float())
        number = self.num_weights
        if values.shape not in ((), (number,), (number, number)):
            of = f"{num_inputs} inputs" + " and a bias" * bias
            raise ValueError(
                f"prior_covariance of the weights of {of} must be a number, or have shape "
                f"[{number}] or [{number}, {number}], got {list(values.shape)}"
            )
        if values.ndim < 2:
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ValueError(f"prior variances must be positive and finite, got {values}")
            self.variance = gpflow.Parameter(values, transform=positive())
        else:
            self.root = gpflow.Parameter(_root(values), transform=triangular(), trainable=False)

    @property
    def num_weights(self) -> int:
        """:return: D' = D + `bias`."""
        return self.num_inputs + self.bias

    @check_shapes("columns: [batch..., W, K]", "return: [batch..., W, K]")
    def scale(self, columns: tf.Tensor) -> tf.Tensor:
        """:return: root times columns."""
        if hasattr(self, "root"):
            return tf.matmul(self.root, columns)
        return tf.reshape(tf.sqrt(self.variance), [-1, 1]) * columns

    @check_shapes("X: [batch..., D]", "return: [batch..., W]")
    def features(self, X: TensorType) -> tf.Tensor:
        """:return: root^T x for each row of X."""
        X = tf.convert_to_tensor(X)
        if self.bias:
            X = tf.concat([X, tf.ones_like(X[..., :1])], axis=-1)
        return tf.matmul(X, self.root) if hasattr(self, "root") else tf.sqrt(self.variance) * X

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """:return: [N, N2]."""
        left = self.features(X)
        return tf.matmul(left, left if X2 is None else self.features(X2), transpose_b=True)

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        """:return: [N]."""
        return tf.reduce_sum(tf.square(self.features(X)), axis=-1)


def _root(covariance: AnyNDArray) -> AnyNDArray:
    if not (np.isfinite(covariance).all() and np.allclose(covariance, covariance.T)):
        raise ValueError(
            "prior_covariance must be symmetric and finite; to undo rounding, use (S + S.T) / 2"
        )
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(covariance).min()
        raise ValueError(
            f"prior_covariance is not positive definite: its smallest eigenvalue is {least:.3g}; "
            "add a small multiple of the identity"
        ) from None


class Weights(InducingVariables):
    """The standardized weights root^-1 beta as inducing variables: they determine f."""

    def __init__(self, kernel: WeightKernel) -> None:
        super().__init__()
        self.num_inputs = kernel.num_inputs
        self._number = kernel.num_weights

    @property
    def num_inducing(self) -> tf.Tensor:
        """:return: D'."""
        return tf.constant(self._number)

    @property
    def shape(self) -> tuple[int, int, int]:
        """:return: D', D, 1, as GPflow counts them."""
        return self._number, self.num_inputs, 1


@Kuu.register(Weights, WeightKernel)
def _kuu(weights: Weights, kernel: WeightKernel, *, jitter: Any = 0.0) -> tf.Tensor:
    return tf.eye(kernel.num_weights, dtype=default_float())  # no jitter is needed


@Kuf.register(Weights, WeightKernel, object)
def _kuf(weights: Weights, kernel: WeightKernel, Xnew: TensorType) -> tf.Tensor:
    features = kernel.features(Xnew)  # [..., N, W]; in GPflow, the first axis is W
    return tf.transpose(features, [features.shape.rank - 1, *range(features.shape.rank - 1)])


class LinearBSVM(BSVM):
    r"""
    Linear Bayesian SVM (Wenzel et al. 2017, section 4.5; Polson & Scott 2011), in the primal:

        f(x) = x^T beta,   beta ~ N(0, Sigma),   q(beta) Gaussian,

    where the bias is an additional weight. Only q is approximate: the ELBO uses all data, at a cost
    of O(N D^2 + D^3) per sweep. For a scalar Sigma = s^2 I and `Hinge(penalty)`, the mode is the
    SVM with C = penalty s^2.

    It is a `BSVM` with the weights as inducing variables, and works wherever a `BSVM` does, as in
    `gpflow_bsvm.fit`, `CAVI`, `SVI` and calibration. `VEM` and `ML2` learn Sigma: a scalar Sigma is
    the regularization constant, a diagonal one gives the relevance of inputs. X may be a SciPy
    sparse matrix; it is read chunk by chunk.
    """

    def __init__(
        self,
        num_features: int,
        likelihood: gpflow.likelihoods.Likelihood,
        prior_covariance: Any = 1.0,
        bias: bool = True,
        **kwargs: Unpack[SparseOptions],
    ) -> None:
        """
        :param num_features: D, columns of X.
        :param likelihood: any likelihood of GPflow or this package.
        :param prior_covariance: Sigma, see `WeightKernel`.
        :param bias: whether to add a bias.
        :param kwargs: as in `BSVM`.
        :raise ValueError: if Sigma has the wrong shape or is not positive definite.
        """
        check_process()
        check_whole(1, num_features=num_features)
        check_choice((True, False), bias=bias)
        kernel = WeightKernel(num_features, prior_covariance, bias)
        super().__init__(kernel, likelihood, Weights(kernel), **kwargs)

    @check_shapes("return[0]: [W, L]", "return[1]: [L, W, W]")
    def weights(self) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: mean and covariance of beta under q (bias last); W = D'."""
        root = self.kernel.scale(tf.convert_to_tensor(self.q_sqrt))
        covariance = tf.matmul(root, root, transpose_b=True)
        return self.kernel.scale(tf.convert_to_tensor(self.q_mu)).numpy(), covariance.numpy()

    @check_shapes("return[all]: [W, L]")
    def credible_intervals(self, level: float = 0.95) -> tuple[AnyNDArray, AnyNDArray]:
        """
        :param level: probability of each interval, in (0, 1).
        :return: lower and upper ends of each weight's central interval, [D', L] each.
        :raise ValueError: for a level outside (0, 1).
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be in (0, 1), got {level}")
        mean, covariance = self.weights()
        deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T
        reach = norm.ppf(0.5 + level / 2) * deviation
        return mean - reach, mean + reach
