"""Parts of a model that are replaced later, or that a fit cannot learn, are told at once."""

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.functions import Constant, Linear
from gpflow.kernels import SeparateIndependent, SharedIndependent, SquaredExponential
from helpers import make_data, make_model

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge
from gpflow_bsvm.papers.seeger2000 import FactorVGP
from gpflow_bsvm.papers.wenzel2017 import DualBSVM

DATA = make_data(20)
SE = SquaredExponential
MODELS = {
    "BSVM": lambda: make_model(DATA),
    "BatchBSVM": lambda: gb.models.BatchBSVM(DATA, SE(), Hinge()),
    "LinearBSVM": lambda: gb.models.LinearBSVM(2, Hinge()),
    "DualBSVM": lambda: DualBSVM(DATA, SE(), Hinge(), DATA[0][:5]),
    "FactorVGP": lambda: FactorVGP(DATA, SE(), Hinge(), rank=2),
}
KERNELS = [
    (SE(lengthscales=[1.0, 1.0, 1.0]), ValueError, "cannot be called with inputs of 2 columns"),
    (SE(active_dims=[5]), ValueError, "has active_dims up to 5, but Z has columns 0 to 1"),
    (SharedIndependent(SE(), 2), ValueError, "needs independent latent functions with a Kuf"),
    (SeparateIndependent([SE(), SE()]), ValueError, "needs independent latent functions"),
    (SE, TypeError, "expected a kernel of GPflow"),
    (None, TypeError, "expected a kernel of GPflow, .*, got None"),
]
MEANS = [
    (Constant([1.0, 2.0]), "the mean function Constant gives 2 columns: it must give one"),
    (Linear(np.ones((3, 1)), [0.0]), "Linear cannot be called with inputs of 2 columns"),
]


@pytest.mark.parametrize("kernel, kind, text", KERNELS)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "LinearBSVM"])
def test_a_later_kernel_is_checked_and_the_old_one_stays(name, kernel, kind, text):
    model = MODELS[name]()
    before = model.kernel
    with pytest.raises(kind, match=text):
        model.kernel = kernel
    assert model.kernel is before


PARTS = [
    ("likelihood", "hinge", TypeError, "expected a likelihood, .*, got 'hinge'"),
    ("likelihood", CrammerSinger(3), ValueError, "needs a model with num_latent_gps=3, got 1"),
    ("inducing_variable", DATA[0][:6], ValueError, r"ndarray: use one kernel with InducingPoints"),
]


@pytest.mark.parametrize("part, value, kind, text", PARTS)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "LinearBSVM"])
def test_a_later_likelihood_or_inducing_variable_is_checked(name, part, value, kind, text):
    model = MODELS[name]()
    before = getattr(model, part)
    with pytest.raises(kind, match=text):
        setattr(model, part, value)
    assert getattr(model, part) is before


@pytest.mark.parametrize("mean, text", MEANS)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "LinearBSVM"])
def test_a_mean_function_is_checked_at_once(name, mean, text):
    model = MODELS[name]()
    before = model.mean_function
    with pytest.raises(ValueError, match=text):
        model.mean_function = mean
    assert model.mean_function is before
    model.mean_function = Constant([1.0])


def test_a_linear_model_keeps_its_kernel():
    with pytest.raises(ValueError, match="needs independent latent functions with a Kuf"):
        MODELS["LinearBSVM"]().kernel = SE()


@pytest.mark.parametrize("mean, text", MEANS)
def test_so_does_the_constructor(mean, text):
    for likelihood in (Hinge(), CrammerSinger(3)):
        with pytest.raises(ValueError, match=text):
            gb.models.BSVM(SE(), likelihood, DATA[0][:5].copy(), mean_function=mean)


@pytest.mark.parametrize("name", ["q_mu", "q_sqrt"])
@pytest.mark.parametrize("algorithm", [CAVI(), VEM(), SVI(), ML2(), None])
def test_a_prior_of_q_is_refused(algorithm, name):
    """Before, it was ignored, although GPflow's own optimizers respect it."""
    model = make_model(DATA)
    getattr(model, name).prior = tfp.distributions.Normal(np.float64(0), np.float64(0.01))
    fit = model.natgrad_step if algorithm is None else lambda data: algorithm.run(model, data)
    with pytest.raises(ValueError, match=f"{name} has a prior, which closed-form steps of q ignor"):
        fit(DATA)
    model.predict_f(DATA[0])


class Stopped(SquaredExponential):
    """A kernel with a parameter that TensorFlow does not differentiate."""

    def __init__(self):
        super().__init__(2.0)
        self.factor = gpflow.Parameter(1.0)

    def K_r2(self, r2):
        return super().K_r2(r2) * tf.stop_gradient(self.factor)

    def K_diag(self, X):
        return super().K_diag(X) * tf.stop_gradient(self.factor)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("algorithm", [VEM(max_steps=4), ML2(max_steps=8, record_every=2)])
def test_a_parameter_without_a_gradient_is_told(algorithm, alone):
    model = gb.models.BSVM(Stopped(), Hinge(), DATA[0][:5].copy())
    gpflow.set_trainable(model.inducing_variable, False)
    if alone:
        gpflow.set_trainable((model.kernel.variance, model.kernel.lengthscales), False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        algorithm.run(model, DATA)
    told = [str(one.message) for one in found if "has not changed" in str(one.message)]
    # Minibatches alone do not show whether a lone parameter has no gradient.
    assert len(told) == (0 if alone and isinstance(algorithm, ML2) else 1)
    for text in told:
        assert text.startswith(
            "the fit has not changed .kernel.factor: the ELBO does not depend on"
        )
