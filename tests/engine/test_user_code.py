"""Kernels, means and likelihoods of users: what fits and predicts is the code as it is now."""

import gc
import weakref
from functools import partial
from types import SimpleNamespace

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import all_traces, make_data, make_model

import gpflow_bsvm as gb
from gpflow_bsvm.engine.shared_graph import Compiled, one_fit
from gpflow_bsvm.inference import CAVI, ML2, SVI, VEM
from gpflow_bsvm.sampling import HMC

DATA = make_data(60, 2)
SE = k.SquaredExponential
LEVEL = 1.0


class Scaled(SE):
    """`times` [] times a squared exponential, `times` read from anywhere."""

    @property
    def times(self):
        raise NotImplementedError

    def K_r2(self, r2):
        return super().K_r2(r2) * self.times

    def K_diag(self, X):
        return super().K_diag(X) * self.times


class ByClass(Scaled):
    times = 1.0


class ByGlobal(Scaled):
    times = property(lambda self: LEVEL)


class ByObject(Scaled):
    def __init__(self, settings):
        super().__init__(4.0)
        self.settings = settings

    times = property(lambda self: self.settings.times)


def by_class():
    def change():
        ByClass.times = 0.2

    ByClass.times = 1.0
    return lambda: {"kernel": ByClass(4.0)}, change


def by_global():
    def change():
        global LEVEL
        LEVEL = 0.2

    global LEVEL
    LEVEL = 1.0
    return lambda: {"kernel": ByGlobal(4.0)}, change


def by_object():
    settings = SimpleNamespace(times=1.0)
    return lambda: {"kernel": ByObject(settings)}, lambda: setattr(settings, "times", 0.2)


def by_attribute_of_a_library_class():
    """A method of the object itself, which hides that of its class."""
    times = [1.0]

    def make():
        kernel = SE(4.0)
        kernel.K_r2 = lambda r2: times[0] * SE.K_r2(kernel, r2)
        kernel.K_diag = lambda X: times[0] * SE.K_diag(kernel, X)
        return {"kernel": kernel}

    return make, lambda: times.__setitem__(0, 0.2)


def by_closure():
    times = 1.0

    class Local(Scaled):
        @property
        def times(self):
            return times

    def change():
        nonlocal times
        times = 0.2

    return lambda: {"kernel": Local(4.0)}, change


def by_mean():
    slope = 1.0

    def change():
        nonlocal slope
        slope = -3.0

    mean = lambda X: slope * X[:, :1]  # noqa: E731
    return lambda: {"mean_function": mean}, change


def by_likelihood():
    class Own(gb.likelihoods.Hinge):
        power = 1.0

        def variational_expectations(self, *arguments):
            return self.power * super().variational_expectations(*arguments)

        def sites(self, *arguments):
            return gb.likelihoods.Sites(*(self.power * s for s in super().sites(*arguments)))

        def probabilities(self, Fmu, Fvar):
            return super().probabilities(self.power * Fmu, Fvar)

    return lambda: {"likelihood": Own()}, lambda: setattr(Own, "power", 0.3)


READS = [
    by_class,
    by_attribute_of_a_library_class,
    by_mean,
    by_likelihood,
    *(pytest.param(read, marks=pytest.mark.slow) for read in (by_global, by_object, by_closure)),
]


def check_fit(model, algorithm) -> float:
    """The model's own ELBO, op by op, is that of the fit; and so are predictions."""
    bound = algorithm.run(model, DATA).elbo[-1]
    np.testing.assert_allclose(bound, model.elbo(DATA), rtol=1e-8)
    check_predictions(model)
    return bound


def check_predictions(model) -> None:
    found = gb.prediction.predict_probabilities(model, DATA[0])
    np.testing.assert_allclose(found, model.predict_y(DATA[0])[0], rtol=1e-8)


@pytest.mark.parametrize("read", READS)
def test_a_fit_is_of_the_code_as_it_is(read):
    make, change = read()
    model = make_model(DATA, **make())
    first = check_fit(model, CAVI())
    change()
    check_predictions(model)
    changed = check_fit(model, CAVI())  # the same model
    assert abs(first - changed) > 0.1


def test_a_new_model_is_of_the_code_as_it_is():
    make, change = by_class()
    first = check_fit(make_model(DATA, **make()), CAVI())
    change()
    changed = check_fit(make_model(DATA, **make()), CAVI())
    assert abs(first - changed) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "read", [by_class, by_likelihood, pytest.param(by_mean, marks=pytest.mark.drill)]
)
def test_learning_is_of_the_code_as_it_is(read):
    make, change = read()
    for _ in range(2):
        check_fit(make_model(DATA, **make()), VEM(max_steps=2))
        change()


@pytest.mark.parametrize("read", [by_class, by_likelihood])
def test_a_step_is_of_the_code_as_it_is(read):
    """`natgrad_step` and GPflow's natural gradients, before and after."""
    make, change = read()
    ours, gpflows = make_model(DATA, **make()), make_model(DATA, **make())
    q = [(gpflows.q_mu, gpflows.q_sqrt)]
    for _ in range(2):
        ours.natgrad_step(DATA, 0.3)
        loss = gpflows.training_loss_closure(DATA, compile=False)
        gpflow.optimizers.NaturalGradient(0.3).minimize(loss, q)
        np.testing.assert_allclose(ours.q_mu, gpflows.q_mu, rtol=1e-6, atol=1e-8)
        change()


@pytest.mark.slow
def test_svi_ml2_and_hmc_take_a_users_kernel():
    for algorithm in (SVI(batch_size=20, max_steps=4), ML2(batch_size=20, max_steps=4)):
        model = make_model(DATA, kernel=ByClass(4.0))
        assert np.isfinite(algorithm.run(model, DATA).elbo[-1])
        check_predictions(model)
    samples = HMC(num_draws=5, burn_in=5, num_chains=2).run(model, DATA)
    assert np.isfinite(samples.predict_y(DATA[0])[0]).all()


# --- how often it is traced, and what is kept ----------------------------------------------------


def test_a_fit_traces_once_however_many_steps():
    counts = []
    for steps in (2, 2, 20):
        before = all_traces()
        CAVI(max_steps=steps, tol=0).run(make_model(DATA, kernel=ByClass(4.0)), DATA)
        counts.append(all_traces() - before)
    assert counts[1] == counts[2] > 0


def test_a_fit_of_library_classes_is_not_traced_anew():
    CAVI(max_steps=2).run(make_model(DATA), DATA)
    before = all_traces()
    with one_fit():
        CAVI(max_steps=2).run(make_model(DATA), DATA)
    assert all_traces() == before


def num_graphs() -> int:
    return sum(len(c._graphs) for c in gc.get_objects() if type(c) is Compiled)


@pytest.mark.slow
def test_nothing_of_a_users_is_kept():
    def fit():
        class Own(ByClass):
            pass

        model = make_model(DATA, kernel=Own(4.0))
        check_fit(model, CAVI(max_steps=3, tol=0))
        model.natgrad_step(DATA, 0.5)
        return weakref.ref(model.kernel)

    fit()
    before = num_graphs()
    kernels = [fit() for _ in range(3)]
    gc.collect()
    assert num_graphs() == before
    assert [kernel() for kernel in kernels] == [None] * 3


def test_of_fits_in_a_fit_the_outermost_counts():
    compiled = Compiled(lambda kernel, X: kernel(X))
    with one_fit():
        with one_fit():
            compiled.bind(ByClass(4.0))(DATA[0])
        compiled.bind(ByClass(3.0))(DATA[0])
    assert compiled.num_traces == 1
    compiled.bind(ByClass(4.0))(DATA[0])
    assert compiled.num_traces == 1


# --- modules that hold parameters out of sight ---------------------------------------------------


class PerColumn(SE):
    """A squared exponential, divided by the number of columns that the code reads."""

    def K(self, X, X2=None):
        return super().K(X, X2) / range(X.shape[-1])[-1]

    def K_diag(self, X):
        return super().K_diag(X) / range(X.shape[-1])[-1]


def test_a_users_code_may_read_the_number_of_columns(in_one_fit):
    compiled = Compiled(lambda kernel, X: kernel(X))
    for number in (2, 3):
        X = np.random.default_rng(0).normal(size=(4, number))
        kernel = PerColumn(4.0, np.ones(number))
        np.testing.assert_allclose(compiled.bind(kernel)(X), kernel(X), rtol=1e-12)
    assert compiled.num_traces == 2


class Swallows(SE):
    """A setter that lets its parameter fall: TensorFlow alone remembers it."""

    @property
    def slope(self):
        return tf.ones([], tf.float64)

    @slope.setter
    def slope(self, value):
        pass

    def __init__(self):
        super().__init__(4.0)
        self.slope = gpflow.Parameter(3.0)


def swallowing():
    identity = gpflow.functions.Identity(2)
    levels = {"likelihood": gb.likelihoods.LevelHinge(), "num_latent_gps": 2}
    return {"identity": {"mean_function": identity} | levels, "own": {"kernel": Swallows()}}


@pytest.mark.parametrize("name", ["own", pytest.param("identity", marks=pytest.mark.slow)])
def test_a_parameter_that_no_attribute_holds(name):
    model = make_model(DATA, **swallowing()[name])
    check_fit(model, CAVI(max_steps=5, tol=0))
    model.natgrad_step(DATA, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("identity", marks=pytest.mark.drill), "own"])
def test_learning_with_a_parameter_that_no_attribute_holds(name):
    model = make_model(DATA, **swallowing()[name])
    check_fit(model, VEM(max_steps=2))
    for algorithm in (SVI(batch_size=20, max_steps=2), ML2(batch_size=20, max_steps=2)):
        assert np.isfinite(algorithm.run(model, DATA).elbo[-1])


@pytest.mark.parametrize("attribute", [lambda k: k, lambda k: [k], lambda k: {"owner": k}])
def test_a_kernel_that_holds_itself_is_told(attribute, tmp_path):
    data = make_data()
    kernel = gpflow.kernels.SquaredExponential()
    model = make_model(data, kernel=kernel)
    kernel.me = attribute(kernel)
    what = r"a part of \w+ \(kernel, .*\) contains itself, directly"
    for fit in (gb.fit, VEM(max_steps=1).run, partial(CAVI().run, checkpoint=tmp_path)):
        with pytest.raises(ValueError, match=what):
            fit(model, data)
    with pytest.raises(TypeError, match="a part of model contains itself, which a file cannot"):
        gb.save(model, tmp_path / "model")
