"""One trace per structure: what shares a graph, what must not, and what falls back."""

import copy
import functools
import gc
import operator
import os
import weakref
from typing import NamedTuple

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import all_traces, as_svgp, make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.engine.shared_graph import Compiled, one_fit
from gpflow_bsvm.inference import CAVI, SVI, VEM
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.prediction import leave_one_out_density, predict_marginals

SE = k.SquaredExponential
X = np.random.default_rng(0).normal(size=(7, 3))


@pytest.fixture
def compiled() -> Compiled:
    """A function of one kernel, with no traces yet."""
    return Compiled(lambda kernel, X: kernel(X))


IN_ONE_FIT = pytest.mark.usefixtures("in_one_fit")


@pytest.fixture
def in_one_fit():
    """As in a fit: code that is no library's has graphs, too."""
    with one_fit():
        yield


def check(compiled: Compiled, kernel: k.Kernel, inputs: np.ndarray = X) -> int:
    """The compiled kernel matrix is the kernel matrix; how many traces there were up to here."""
    np.testing.assert_allclose(
        compiled.bind(kernel)(inputs), kernel(inputs), rtol=1e-12, atol=1e-12
    )
    return compiled.num_traces


# --- what shares ---------------------------------------------------------------------------------


def test_equal_structures_share_a_trace_and_keep_their_numbers(compiled):
    for kernel in (SE(1.0, 0.5), SE(3.0, 2.0), copy.deepcopy(SE(0.1, 9.0)), SE(2.0, name="other")):
        assert check(compiled, kernel) == 1
    assert not np.allclose(compiled.bind(SE(1.0))(X), compiled.bind(SE(2.0))(X))


def test_any_number_of_rows_shares_a_trace(compiled):
    for num_rows in (7, 1, 4):
        assert check(compiled, SE(), X[:num_rows]) == 1


def test_a_bound_function_follows_the_parameters(compiled):
    kernel = SE(1.0) + k.Periodic(SE(), period=2.0)
    bound = compiled.bind(kernel)
    for value in (1.0, 0.3, 5.0):
        kernel.kernels[0].variance.assign(value)
        kernel.kernels[1].period.assign(value)
        np.testing.assert_allclose(bound(X), kernel(X), rtol=1e-12, atol=1e-12)
    assert compiled.num_traces == 1


def test_trainable_or_not_is_the_same_graph(compiled):
    one, two = SE(1.0), SE(2.0)
    gpflow.set_trainable(two, False)
    check(compiled, one)
    assert check(compiled, two) == 1


def test_gradients_reach_the_parameters(compiled):
    kernel = SE(1.3, [0.5, 1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        through = tf.reduce_sum(compiled.bind(kernel)(X))
        direct = tf.reduce_sum(kernel(X))
    for a, b in zip(
        tape.gradient(through, kernel.trainable_variables),
        tape.gradient(direct, kernel.trainable_variables),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# --- what must not share -------------------------------------------------------------------------


def with_transform(transform) -> k.Kernel:
    kernel = SE()
    kernel.variance = gpflow.Parameter(1.5, transform=transform)
    return kernel


def with_third_shared(which: int) -> k.Kernel:
    parts = [SE(1.5), SE(0.3), SE(7.0)]
    parts[2].variance = parts[which].variance
    return k.Sum(parts)


def with_shared_variance() -> k.Kernel:
    one, two = SE(1.5), SE(1.5)
    two.variance = one.variance
    return one + two


DIFFERENT = {
    "class": (lambda: SE(), lambda: k.Matern32()),
    "columns": (lambda: SE(active_dims=[0]), lambda: SE(active_dims=[1])),
    "slice": (lambda: SE(active_dims=slice(0, 1)), lambda: SE(active_dims=slice(0, 2))),
    "ard": (lambda: SE(lengthscales=[1.0]), lambda: SE(lengthscales=[1.0, 2.0, 3.0])),
    "shared parameter": (lambda: SE(1.5) + SE(1.5), with_shared_variance),
    "which parameter is shared": (lambda: with_third_shared(0), lambda: with_third_shared(1)),
    "order": (
        lambda: SE(active_dims=[0]) + k.Matern32(active_dims=[1]),
        lambda: k.Matern32(active_dims=[0]) + SE(active_dims=[1]),
    ),
    "nesting": (lambda: SE() + SE() * SE(), lambda: SE() * SE() + SE()),
    "degree": (lambda: k.Polynomial(degree=2), lambda: k.Polynomial(degree=3)),
    "transform": (
        lambda: with_transform(gpflow.utilities.positive()),
        lambda: with_transform(None),
    ),
    "bound of a transform": (
        lambda: with_transform(gpflow.utilities.positive(lower=0.1)),
        lambda: with_transform(gpflow.utilities.positive(lower=0.2)),
    ),
    "number of parts": (lambda: SE() + SE(), lambda: SE() + SE() + SE()),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_structures_do_not_share(compiled, name):
    one, two = DIFFERENT[name]
    columns = 1 if name == "ard" else 3
    assert check(compiled, one(), X[:, :columns]) == 1
    assert check(compiled, two()) == 2
    assert check(compiled, one(), X[:, :columns]) == 2
    assert check(compiled, two()) == 2


def test_a_shared_parameter_stays_shared(compiled):
    kernel = with_shared_variance()
    bound = compiled.bind(kernel)
    kernel.kernels[0].variance.assign(4.0)
    np.testing.assert_allclose(bound(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(np.diag(bound(X)), 8.0, rtol=1e-12)


class Warped(k.SquaredExponential):
    """A kernel of warped inputs, the warping being any Python object."""

    def __init__(self, warp):
        super().__init__(1.3)
        self.warp = warp

    def K(self, X, X2=None):
        return super().K(self.warp(X), None if X2 is None else self.warp(X2))


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def times(self, X):
        return self.factor * X

    __call__ = times


@IN_ONE_FIT
def test_functions_are_told_apart_by_identity(compiled):
    one, two = Warped(lambda X: X), Warped(lambda X: 3 * X)
    assert check(compiled, one) == 1
    assert check(compiled, two) == 2
    assert check(compiled, Warped(one.warp)) == 2


def test_methods_partials_and_callables(compiled):
    small, large = Scaler(0.5), Scaler(2.0)
    warps = [
        small.times,
        large.times,
        functools.partial(operator.mul, 0.5),
        functools.partial(operator.mul, 3.0),
        small,
        large,
        tf.identity,
    ]
    for warp in warps:
        check(compiled, Warped(warp))


def test_classes_as_attributes_are_told_apart(compiled):
    def make(factor):
        class Local:
            @staticmethod
            def __new__(cls, X):
                return factor * X

        return Local

    for factor in (1.0, 4.0):  # two classes of one name
        check(compiled, Warped(make(factor)))


class Power(k.Kernel):
    """|x|^exponent-dependent kernel, its exponent a plain Python attribute."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self.exponent = exponent
        self.variance = gpflow.Parameter(2.0, transform=gpflow.utilities.positive())

    def K(self, X, X2=None):
        X2 = X if X2 is None else X2
        return self.variance * tf.pow(1 + tf.abs(tf.matmul(X, X2, transpose_b=True)), self.exponent)

    def K_diag(self, X):
        return tf.linalg.diag_part(self.K(X))


@pytest.mark.parametrize("exponents", [(1.0, 2.0), (1, 1.5), (np.float64(0.5), np.float64(0.7))])
@IN_ONE_FIT
def test_a_changed_attribute_is_another_structure(compiled, exponents):
    kernel = Power(exponents[0])
    check(compiled, kernel)
    kernel.exponent = exponents[1]
    check(compiled, kernel)
    kernel.exponent = exponents[0]
    assert check(compiled, kernel) == 2


# --- what falls back -----------------------------------------------------------------------------


class RawVariable(Power):
    def __init__(self, exponent: float = 1.0) -> None:
        super().__init__(exponent)
        self.scale = tf.Variable(1.5, dtype=tf.float64)

    def K(self, X, X2=None):
        return self.scale * super().K(X, X2)


@IN_ONE_FIT
def test_raw_variables_are_followed(compiled):
    one, two = RawVariable(), RawVariable()
    bound = compiled.bind(one)
    for value in (0.5, 2.5):
        one.scale.assign(value)
        one.variance.assign(value + 1)
        check(compiled, one)
        np.testing.assert_allclose(bound(X), one(X), rtol=1e-12)
    assert compiled.num_traces == 1
    assert check(compiled, two) == 2  # its own variables, its own graph
    two.scale.assign(7.0)
    check(compiled, one)
    check(compiled, two)


@IN_ONE_FIT
def test_a_changed_attribute_beside_a_raw_variable(compiled):
    kernel = RawVariable(1.0)
    check(compiled, kernel)
    kernel.exponent = 2.0
    check(compiled, kernel)
    kernel.variance = gpflow.Parameter(0.3)
    check(compiled, kernel)
    kernel.scale = tf.Variable(0.1, dtype=tf.float64)
    check(compiled, kernel)


class Deep(k.SquaredExponential):
    """A kernel on the outputs of a Keras layer."""

    def __init__(self, layer) -> None:
        super().__init__()
        self.layer = layer

    def K(self, X, X2=None):
        return super().K(self.layer(X), None if X2 is None else self.layer(X2))


def keras_kernel() -> Deep:
    layers = gpflow.keras.tf_keras.layers
    layer = layers.Dense(2, dtype="float64", kernel_initializer="ones", activation="tanh")
    layer.build((None, 3))
    return Deep(layer)


@IN_ONE_FIT
def test_layers_are_followed(compiled):
    kernel, other = keras_kernel(), keras_kernel()
    for factor in (1.0, 0.3):
        kernel.layer.kernel.assign(factor * np.ones((3, 2)))
        check(compiled, kernel)
        check(compiled, other)
    assert compiled.num_traces == 2


@pytest.mark.slow
def test_a_whole_fit_with_a_layer_in_the_kernel():
    data = make_data(60, 3)
    model = make_model(data, kernel=keras_kernel())
    history = CAVI(tol=1e-8).run(model, data)
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)
    model.kernel.layer.kernel.assign(np.random.default_rng(0).normal(size=(3, 2)))
    history = CAVI(tol=1e-8).run(model, data)
    np.testing.assert_allclose(history.elbo[-1], model.elbo(data), rtol=1e-9)


class Locked(Power):
    """A kernel with an attribute that cannot be hashed, walked or copied."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.tags = {"a", "b"}
        self.file = open(os.devnull)  # noqa: SIM115


@IN_ONE_FIT
def test_attributes_that_cannot_be_walked(compiled):
    kernel = Locked()
    check(compiled, kernel)
    kernel.variance.assign(5.0)
    assert check(compiled, kernel) == 1
    kernel.file.close()


@IN_ONE_FIT
def test_a_module_inside_itself(compiled):
    kernel = Power(1.0)
    kernel.me = kernel
    check(compiled, kernel)
    kernel.variance.assign(5.0)
    assert check(compiled, kernel) == 1


@IN_ONE_FIT
def test_a_parameter_of_open_shape(compiled):
    def points(rows):
        kernel = Power(1.0)
        kernel.points = gpflow.Parameter(X[:rows], shape=[None, 3])
        return kernel

    for rows in (2, 5):
        check(compiled, points(rows))


@IN_ONE_FIT
def test_tensors_as_attributes_are_constants_of_the_structure(compiled):
    one, two = Warped(lambda X: X), Warped(lambda X: X)
    shift = two.warp = one.warp
    assert shift is one.warp
    one.constant, two.constant = tf.constant(1.0), tf.constant(2.0)
    check(compiled, one)
    assert check(compiled, two) == 2
    two.constant = tf.constant(1.0)
    assert check(compiled, two) == 2


# --- dtypes and bookkeeping ----------------------------------------------------------------------


def test_dtypes_do_not_share(compiled):
    check(compiled, SE())
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        found = compiled.bind(SE())(X.astype(np.float32))
        assert found.dtype == tf.float32
    assert compiled.num_traces == 2
    assert check(compiled, SE()) == 2
    cast = Compiled(gpflow.utilities.to_default_float)
    assert cast(np.ones(3, int)).dtype == tf.float64
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        assert cast(np.ones(3, int)).dtype == tf.float32


def test_the_oldest_graphs_go_first(compiled, monkeypatch):
    monkeypatch.setattr(gb.engine.shared_graph, "_CACHE_SIZE", 2)
    for degree in (1, 2, 1, 3):  # 2 is the one that goes
        check(compiled, k.Polynomial(degree))
    assert compiled.num_traces == 3
    assert check(compiled, k.Polynomial(1)) == 3
    assert check(compiled, k.Polynomial(2)) == 4


def test_inside_a_graph(compiled):
    kernel = SE(1.0)
    inside = tf.function(lambda X: compiled.bind(kernel)(X))
    for value in (1.0, 3.0):
        kernel.variance.assign(value)
        np.testing.assert_allclose(inside(X), kernel(X), rtol=1e-12)
    check(compiled, SE(2.0))  # a graph first traced inside another one is as good as any
    assert compiled.num_traces == 1


@pytest.mark.slow
@IN_ONE_FIT
def test_a_kernel_may_branch_on_a_tensor(compiled):
    """Then, and only then, AutoGraph rewrites its source."""

    class Branching(SE):
        def K(self, X, X2=None):
            if tf.reduce_sum(X) > 1e6:
                return tf.ones_like(SE.K(self, X, X2))
            return SE.K(self, X, X2)

    np.testing.assert_allclose(compiled.bind(Branching())(X), SE()(X), rtol=1e-12)
    np.testing.assert_allclose(compiled.bind(Branching())(X + 1e6), np.ones((7, 7)))


def test_the_first_model_of_a_structure_is_not_kept_alive(compiled):
    kernel = SE()
    check(compiled, kernel)
    reference = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert reference() is None
    assert check(compiled, SE(3.0)) == 1


def test_tuples_travel_whole():
    class Pair(NamedTuple):
        one: tf.Tensor
        two: tuple[tf.Tensor, ...]

    swapped = Compiled(lambda kernel, pair: Pair(pair.two[0], (pair.one, kernel.variance)))
    found = swapped.bind(SE(3.0))(Pair(1.0, (2.0,)))
    assert isinstance(found, Pair)
    assert [float(x) for x in tf.nest.flatten(found)] == [2.0, 1.0, 3.0]


def test_without_modules():
    double = Compiled(lambda x: 2 * x)
    np.testing.assert_array_equal(double(np.ones(3)), 2 * np.ones(3))
    double(np.ones(3))
    assert double.num_traces == 1


# --- many fits -----------------------------------------------------------------------------------


def fit_something(seed: int) -> float:
    """A model of its own: kernel, likelihood, number of rows, seed; M is part of the structure."""
    rng = np.random.default_rng(seed)
    num_rows = rng.integers(30, 80)
    data = make_data(num_rows, seed=seed)
    model = make_model(
        data,
        kernel=SE(rng.gamma(2.0), rng.gamma(2.0, size=2)),
        likelihood=Hinge(rng.gamma(2.0)),
        num_data=num_rows,
    )
    CAVI(max_steps=3).run(model, data)
    SVI(batch_size=20, max_steps=3).run(model, data)
    model.natgrad_step(data, 0.5)
    predict_marginals(model, data[0])
    return state(model)[0].sum()


@pytest.mark.parametrize("whiten", [True, False])
def test_any_number_of_inducing_points_shares_all_traces(whiten):
    """As in folds of few rows, where M = N; fewer rows than that in a minibatch are another way."""

    def fit_all(num_inducing: int) -> None:
        data = make_data(40, 2)
        for algorithm in (CAVI(), SVI(batch_size=20, max_steps=2), VEM(max_steps=2)):
            model = make_model(data, num_inducing=num_inducing, whiten=whiten, num_data=40)
            algorithm.run(model, data)
            leave_one_out_density(model, data)
            fresh = as_svgp(model).predict_f(data[0])
            for own, other in zip(predict_marginals(model, data[0]), fresh):
                np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-8)

    fit_all(10)
    before = every_trace()
    for num_inducing in (7, 12, 1):
        fit_all(num_inducing)
    assert every_trace() == before


def every_trace() -> int:
    """:return: how often any compiled function of this package was traced."""
    found = {id(one): one for one in gc.get_objects() if type(one) is Compiled}
    return sum(one.num_traces for one in found.values())


@pytest.mark.slow
def test_many_fits_trace_no_more_than_two():
    fit_something(0)
    fit_something(1)
    before = all_traces()
    results = [fit_something(seed) for seed in range(2, 12)]
    assert all_traces() == before
    assert np.isfinite(results).all() and len(set(results)) == len(results)


def resident_megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.slow
@pytest.mark.drill
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to read the memory")
def test_memory_does_not_grow_with_the_number_of_fits():
    for seed in range(40):  # warm up
        fit_something(seed)
    traces, before = all_traces(), resident_megabytes()
    for seed in range(40, 100):
        fit_something(seed)
    assert all_traces() == traces
    # One traced graph alone is some 0.5 MB: 60 fits that leak one each are 30 MB.
    assert resident_megabytes() - before < 15
