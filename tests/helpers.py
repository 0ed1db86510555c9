"""What the tests share: small seeded data, ready models, how states are compared."""

import copy
import functools
import gc
import threading

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

import gpflow_bsvm as gb
from gpflow_bsvm.data.batch import Batch
from gpflow_bsvm.data.sources import ArraySource
from gpflow_bsvm.engine import natural, projection, statistics
from gpflow_bsvm.engine.projection import Features, Projected
from gpflow_bsvm.engine.shared_graph import Compiled
from gpflow_bsvm.inference import cavi, minibatches
from gpflow_bsvm.inference.vem import SiteBound
from gpflow_bsvm.likelihoods import CrammerSinger
from gpflow_bsvm.likelihoods.base import Sites
from gpflow_bsvm.models import sparse

Data = tuple[np.ndarray, np.ndarray]
#: Means and variances to try binary likelihoods on.
MU = np.array([-50.0, -3.0, -1.0, -0.2, 0.0, 0.7, 1.0, 1.3, 4.0, 50.0])
V = np.array([1e-12, 1e-4, 0.3, 1.0, 25.0, 1e4])


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and labels in {-1, +1}, each [N, 1]."""
    columns = np.meshgrid(MU, V, [-1.0, 1.0])
    mu, v, y = (column.reshape(-1, 1) for column in columns)
    return mu, v, y


def expectations(likelihood, mu, v, y):
    mu, v, y = (np.asarray(values, float) for values in (mu, v, y))
    return likelihood.variational_expectations(None, mu, v, y).numpy()


def make_data(num_rows: int = 60, num_columns: int = 2, seed: int = 0) -> Data:
    """Two classes with a curved border and some noise; labels in {0, 1}."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, num_columns))
    score = X[:, :1] + 0.5 * np.square(X[:, -1:]) - 0.5 + 0.4 * rng.normal(size=(num_rows, 1))
    return X, (score > 0).astype(float)


def make_model(
    data: Data,
    *,
    kernel: gpflow.kernels.Kernel | None = None,
    likelihood: gpflow.likelihoods.Likelihood | None = None,
    num_inducing: int = 8,
    **kwargs: object,
) -> gb.models.BSVM:
    Z = data[0][:num_inducing].copy()
    if kernel is None and likelihood is None and _are_numbers(kwargs) and _is_plain(Z):
        model = copy.deepcopy(_plain(Z.shape, gpflow.config.default_float(), **kwargs))
        model.inducing_variable.Z.assign(Z)
        return model
    return gb.models.BSVM(
        gpflow.kernels.SquaredExponential(variance=2.0) if kernel is None else kernel,
        gb.likelihoods.Hinge(bound="augmented") if likelihood is None else likelihood,
        Z,
        **kwargs,
    )


def _are_numbers(options: dict[str, object]) -> bool:
    return all(isinstance(value, (int, float)) or value is None for value in options.values())


def _is_plain(Z: np.ndarray) -> bool:
    return Z.dtype == gpflow.config.default_float() and bool(np.isfinite(Z).all())


@functools.cache
def _plain(shape: tuple[int, ...], dtype: type, **kwargs: object) -> gb.models.BSVM:
    """A model to be copied, which takes a tenth of the time of GPflow's parameters made anew."""
    kernel = gpflow.kernels.SquaredExponential(variance=2.0)
    Z = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="augmented"), Z, **kwargs)


def as_svgp(model: gb.models.BSVM) -> gpflow.models.SVGP:
    """A plain SVGP with the same parts and the same q."""
    return gpflow.models.SVGP(
        model.kernel,
        model.likelihood,
        model.inducing_variable,
        mean_function=model.mean_function,
        num_latent_gps=model.num_latent_gps,
        q_mu=model.q_mu.numpy(),
        q_sqrt=model.q_sqrt.numpy(),
        whiten=model.whiten,
        num_data=model.num_data,
    )


def fixed_classifier(**options: object) -> gb.BSVMClassifier:
    """A classifier at a fixed kernel and penalty: faster, and what depends on it is exact."""
    return gb.BSVMClassifier(
        **{"loss": "hinge", "penalty": 2.0, "learn_kernel": False, "calibrate": False} | options
    )


#: A graph, where it is not the user's own: AutoGraph rewrites sources for half of the time.
in_a_graph = functools.partial(tf.function, autograph=False)


def minimise(loss, variables, **options):
    """GPflow's L-BFGS, without AutoGraph: to rewrite GPflow's sources takes half of the time."""
    return gpflow.optimizers.Scipy().minimize(
        loss, variables, tf_fun_args={"autograph": False}, options=options
    )


def source_of(data: Data, weight: np.ndarray | None = None, chunk_rows: int = 1000) -> ArraySource:
    """The rows, as `open_data` would give them."""
    weight = np.ones((len(data[0]), 1)) if weight is None else weight
    return ArraySource(*data, weight, chunk_rows)


def projected(X, Y, weight, phi, residual, mean) -> Projected:
    """Rows seen through a model, from arrays."""
    batch = Batch(*map(tf.convert_to_tensor, (X, Y, weight)))
    return Projected(batch, Features(*map(tf.convert_to_tensor, (phi, residual, mean))))


def ard(num_columns=2):
    return gpflow.kernels.SquaredExponential(2.0, lengthscales=np.linspace(0.8, 1.5, num_columns))


def kernel_with_offset():
    """Its offset is the bias of a support vector machine."""
    smooth = gpflow.kernels.SquaredExponential(2.0, lengthscales=[0.7, 1.2])
    return smooth + gpflow.kernels.Constant(0.1)


def log_normal(median, deviation):
    return tfp.distributions.LogNormal(np.float64(np.log(median)), np.float64(deviation))


def some_sites(num_rows, num_latents=1, seed=0):
    random = np.random.default_rng(seed)
    w = tf.constant(random.uniform(0.1, 1, size=(num_rows, num_latents)))
    return Sites(w, tf.constant(random.normal(size=(num_rows, num_latents))))


def bound_of(model, data, weight=None, chunk_rows=1000):
    return SiteBound(model, source_of(data, weight, chunk_rows))


def three_classes(data):
    X, _ = data
    Y = np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)
    model = gb.models.BSVM(ard(), CrammerSinger(3), X[:8].copy(), num_latent_gps=3)
    return model, (X, Y)


def randomise(model: gpflow.models.SVGP, seed: int = 0) -> None:
    """Move q away from the prior, to some full covariance."""
    rng = np.random.default_rng(seed)
    model.q_mu.assign(rng.normal(size=model.q_mu.shape))
    root = np.tril(0.2 * rng.normal(size=model.q_sqrt.shape))
    model.q_sqrt.assign(root + 0.7 * np.eye(root.shape[-1]))


def state(model: gpflow.models.SVGP) -> Data:
    """q as arrays, with the covariance in the place of its (not unique) root."""
    root = model.q_sqrt.numpy()
    return model.q_mu.numpy(), root @ np.swapaxes(root, -1, -2)


def assert_same_state(one: Data, two: Data, tolerance: float) -> None:
    for a, b in zip(one, two):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def readers() -> list[threading.Thread]:
    """Threads that read ahead."""
    return [t for t in threading.enumerate() if t.name.startswith("gpflow_bsvm-reader")]


def all_traces() -> int:
    """:return: how often TensorFlow has traced."""
    modules = (sparse, natural, projection, statistics, cavi, minibatches)
    found = {id(v): v for m in modules for v in vars(m).values() if isinstance(v, Compiled)}
    assert len(found) >= 6
    return sum(function.num_traces for function in found.values())


def every_trace() -> int:
    """:return: how often any compiled function of this package was traced."""
    found = {id(one): one for one in gc.get_objects() if type(one) is Compiled}
    return sum(one.num_traces for one in found.values())


class BaseRate:
    """A quick baseline of `gpflow_bsvm.compare`."""

    note, last_gain = "", float("nan")

    def fit(self, X, y, Z, kernel, seed):
        self.p = np.bincount(y) / len(y)

    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1))


class Crash(BaseRate):
    def fit(self, *args):
        raise RuntimeError("out of luck\nand more lines")


class Interrupt(Crash):
    def fit(self, *args):
        raise KeyboardInterrupt
