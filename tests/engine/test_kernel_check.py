"""What is wrong with a kernel or a mean function is told before any graph, by its name."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import fixed_classifier, make_data, make_model

import gpflow_bsvm as gb
from gpflow_bsvm.engine import contracts
from gpflow_bsvm.engine.projection import check_kernel, no_covariance
from gpflow_bsvm.inference import CAVI, SVI

TWO_ROWS = np.array([[0.0, -1.0], [1.0, 2.0]])
SE = k.SquaredExponential()


class Wrong(k.Kernel):
    """Of a function of the values of another kernel."""

    def __init__(self, change, diagonal=1.0):
        super().__init__()
        self.change, self.diagonal = change, diagonal

    def K(self, X, X2=None):
        return self.change(SE(X, X2), X, X if X2 is None else X2)

    def K_diag(self, X):
        return self.diagonal * tf.ones_like(X[..., 0])


REFUSED = {
    "change points": (
        k.Sum([SE, k.ChangePoints([SE, k.Matern32()], [0.0])]),
        "kernel ChangePoints cannot be called with inputs of 2 columns.*requires a 1D input space",
    ),
    "lengthscales": (
        k.White() + k.SquaredExponential(lengthscales=[1.0, 1.0, 1.0]),
        "kernel SquaredExponential cannot be called with inputs of 2 columns: Incompatible shapes",
    ),
    "codes": (
        SE * k.Coregion(2, 1, active_dims=[1]),
        r"kernel Coregion cannot be called with inputs of 2 columns: indices.* is not in \[0, 2\)",
    ),
    "of several": (
        k.SeparateIndependent([SE, k.SquaredExponential(lengthscales=[1.0, 1.0, 1.0])]),
        "kernel SquaredExponential cannot be called",
    ),
    "diagonal": (Wrong(lambda K, X, X2: K, 0.1), r"K_diag\(x\) is 0.1, but K\(x, x\) is 1"),
    "negative": (Wrong(lambda K, X, X2: -K, -1.0), "has the negative eigenvalue -"),
    "unsymmetric": (
        Wrong(lambda K, X, X2: tf.exp(X[:, :1] - tf.transpose(X2[:, :1]))),
        r"K\(x, x'\) is not K\(x', x\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_kernel_is_named(name):
    kernel, match = REFUSED[name]
    prior = make_model((TWO_ROWS, 0), kernel=SE, num_inducing=2).prior._replace(kernel=kernel)
    with pytest.raises(ValueError, match=match):
        check_kernel(prior.kernel, TWO_ROWS)


@pytest.mark.parametrize("algorithm", [CAVI(), SVI(max_steps=2)])
@pytest.mark.parametrize("name", ["change points", "lengthscales", "diagonal"])
def test_so_by_fits_of_arrays_and_of_blocks(data, algorithm, name):
    kernel, match = REFUSED[name]
    for rows in (data, [data]):
        with pytest.raises(ValueError, match=match):
            algorithm.run(make_model(data, kernel=kernel, num_data=60), rows)


@pytest.mark.parametrize("name", ["change points", "lengthscales", "codes", "of several"])
def test_so_by_the_constructor(data, name):
    kernel, match = REFUSED[name]
    points = gpflow.inducing_variables.InducingPoints(np.array([[0.0, 2.0], [1.0, 2.0]]))
    if isinstance(kernel, k.MultioutputKernel):
        points = gpflow.inducing_variables.SharedIndependentInducingVariables(points)
    with pytest.raises(ValueError, match=match):
        gb.models.BSVM(kernel, gb.likelihoods.Hinge(), points)


class HidesAMethod(k.SquaredExponential):
    """Of an attribute with the name of a method."""

    def __init__(self):
        super().__init__()
        self.K_diag = 3.0


def no_error_of_shapes(K, X, X2):
    raise RuntimeError("no table of distances")


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (HidesAMethod(), "HidesAMethod .*: TypeError: 'float' object is not callable"),
        (SE + Wrong(no_error_of_shapes), "Wrong .*: RuntimeError: no table of distances"),
    ],
)
def test_an_error_that_is_not_of_shapes_is_shown(data, kernel, why):
    with pytest.raises(ValueError, match=f"the kernel {why}$"):
        CAVI().run(make_model(data, kernel=kernel), data)


@pytest.mark.parametrize("far", [1e7, 1e9])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_column_far_from_0_is_named(data, far, columns):
    X = data[0][:, :columns].copy()
    X[:, -1] += far
    model = gb.models.BSVM(k.SquaredExponential(), gb.likelihoods.Hinge(), X[:15])
    with pytest.raises(ValueError, match=rf"column {columns - 1} is near 1e\+.*its mean"):
        gb.fit(model, (X, data[1]))


def test_what_is_wrong_at_the_inducing_points_only(data):
    kernel = Wrong(lambda K, X, X2: K * (1 - 3 * tf.cast(X[:, :1] > 5, K.dtype)))
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), data[0][:5] + 9)
    with pytest.raises(ValueError, match=r"no Cholesky.*points, for the kernel Wrong, .*-"):
        CAVI().run(model, data)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_library_kernels_are_covariances(dtype):
    X = make_data(10)[0].astype(dtype) + 30
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        kernels = (SE.__class__(), k.Polynomial(), k.ArcCosine(), k.Periodic(k.Matern12()))
        for kernel in (*kernels, k.White() + k.Constant()):
            K, diagonal = kernel(X).numpy(), kernel(X, full_cov=False).numpy()
            assert no_covariance(K, diagonal) == ""


@pytest.mark.parametrize(
    ("mean", "match"),
    [
        (gpflow.functions.Identity(2), "Identity gives 2 columns: it must give one"),
        (
            gpflow.functions.Linear(np.ones((3, 1))),
            "Linear cannot be called with inputs of 2",
        ),
    ],
)
def test_a_mean_function_of_another_width(data, mean, match):
    with pytest.raises(ValueError, match=match):
        CAVI().run(make_model(data, mean_function=mean), data)


def test_so_once_in_each_fit_of_a_model(data, monkeypatch):
    seen = []
    monkeypatch.setattr(contracts, "check_kernel", lambda kernel, X: seen.append(kernel))
    classifier = fixed_classifier(num_inducing=5).fit(data[0], data[1][:, 0])
    assert len(seen) == 0  # it checks a user's kernel alone, before all fits
    for number in (1, 2):
        CAVI().run(classifier.model_, classifier.as_model_sees((data[0], data[1]), labelled=True))
        assert len(seen) == number


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("code, advice", [(4.0, ": construct it"), (-1.0, "$"), (1.5, "$")])
def test_a_code_that_coregion_does_not_have(code, advice, several, data):
    """TensorFlow fails with 71 lines, or on a GPU takes another code."""
    kernel = k.SquaredExponential(active_dims=[0]) * k.Coregion(4, 1, active_dims=[1])
    X = np.column_stack([data[0][:, 0], np.arange(len(data[0])) % 4.0])
    Z = gpflow.inducing_variables.InducingPoints(X[:8].copy())
    if several:
        kernel = k.SharedIndependent(kernel, 1)
        Z = gpflow.inducing_variables.SharedIndependentInducingVariables(Z)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), Z)
    wrong = np.where(np.arange(len(X))[:, None] == [-1, 7], code, X)
    told = rf"row 7 of X has code {code:g}, .* whole numbers from 0 to 3 as codes{advice}"
    for ask in (
        lambda: gb.prediction.predict_marginals(model, wrong),
        lambda: model.predict_f(wrong),
        lambda: gb.fit(model, (wrong, data[1])),
    ):
        with pytest.raises(ValueError, match=told):
            ask()


def test_a_sum_of_kernels_of_several_outputs_is_refused(data):
    """GPflow takes it for a kernel of one output, and fails to add matrices."""
    kernel = k.SharedIndependent(SE, 2) + k.SharedIndependent(k.Matern52(), 2)
    with pytest.raises(ValueError, match=r"independent latent functions .* got Sum with Ind"):
        gb.models.BSVM(kernel, gb.likelihoods.LevelHinge(), data[0][:8], num_latent_gps=2)
