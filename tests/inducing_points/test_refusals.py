"""What the choices of inducing points refuse, and how the errors name it."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model

from gpflow_bsvm.inducing_points import exchange, greedy_variance, kmeans, reselect
from gpflow_bsvm.papers.wenzel2017 import gaussian_mixture

DATA = make_data(30)
X = DATA[0]
Kernel = gpflow.kernels.SquaredExponential


@pytest.mark.parametrize("subsample, text", [(0, "at least 1"), (10.0, "a whole number")])
def test_the_size_of_a_subsample(subsample, text):
    calls = [(kmeans, X, 3), (gaussian_mixture, X, 3), (reselect, make_model(DATA), DATA)]
    for choose, *given in calls:
        with pytest.raises(ValueError, match=f"subsample must be {text}"):
            choose(*given, subsample=subsample)


def test_greedy_variance_names_its_own_options():
    with pytest.raises(ValueError, match="max_inducing must be between 1 and the 30 rows of X"):
        greedy_variance(X, 31, Kernel())


@pytest.mark.parametrize(
    "kernel, error, text",
    [
        (Kernel, TypeError, r"expected a kernel of GPflow, such as .*\(\), got <class"),
        (None, TypeError, r"expected a kernel of GPflow, such as .*\(\), got None"),
        (Kernel(active_dims=[5]), ValueError, "SquaredExponential cannot be called .* 2 columns"),
        (Kernel(lengthscales=np.ones(3)), ValueError, "SquaredExponential cannot be called"),
    ],
)
def test_greedy_variance_refuses_what_is_no_kernel_of_these_rows(kernel, error, text):
    with pytest.raises(error, match=text):
        greedy_variance(X, 5, kernel)


def test_exchange_takes_what_the_constructor_takes():
    one, two = make_model(DATA), make_model(DATA)
    exchange(one, X[:4].astype(np.float32))
    exchange(two, X[:4].astype(np.float32).astype(float))
    np.testing.assert_array_equal(one.predict_f(X)[1], two.predict_f(X)[1])
    with pytest.raises(ValueError, match=r"Z must have shape \[N, .\], .* use Z\[:, None\]"):
        exchange(one, X[0])
