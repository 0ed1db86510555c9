"""Searches for the best value of a criterion."""

import gpflow
import numpy as np
import pytest
from helpers import make_data
from sklearn.exceptions import ConvergenceWarning

from gpflow_bsvm.papers.gold2003 import (
    GACV,
    LaplaceEvidence,
    LeaveOneOut,
    SmoothedSpan,
    Span,
    optimise,
    random_starts,
    svm_mode,
)
from gpflow_bsvm.papers.gold2003.criterion import Criterion


@pytest.fixture(scope="module")
def data():
    return make_data(40)


def narrow_kernel():
    return gpflow.kernels.SquaredExponential(1.0, lengthscales=0.3)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "L-BFGS-B"])
def test_optimise_finds_a_best_place(data, method):
    kernel, criterion = narrow_kernel(), LaplaceEvidence("quadratic")
    before = criterion(kernel, data, 1.0)
    found = optimise(criterion, kernel, data, 1.0, method=method)
    assert found.best.converged and found.best.value > before + 0.05
    again = criterion(kernel, data, found.penalty)  # its terms, of order 1, nearly cancel
    np.testing.assert_allclose(again, found.best.value, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(kernel.variance.numpy(), found.best.parameters[".variance"])
    gradient = criterion.gradient(kernel, data, found.penalty)
    logarithmic = [
        gradient.kernel[".variance"] * kernel.variance.numpy(),
        gradient.kernel[".lengthscales"] * kernel.lengthscales.numpy(),
        gradient.penalty * found.penalty,
    ]
    np.testing.assert_allclose(logarithmic, 0, atol=2e-3)  # nats per row: where searches stop


def test_what_is_smaller_is_better_is_minimised(data):
    kernel = narrow_kernel()
    before = GACV()(kernel, data, 1.0)
    found = optimise(GACV(), kernel, data, 1.0, max_evaluations=60)
    assert found.best.value < before
    assert found.penalty == 1.0 and "penalty" not in found.best.parameters  # only C K counts
    assert (
        "penalty"
        in optimise(
            GACV(), kernel, data, 1.0, learn_penalty=True, max_evaluations=5
        ).best.parameters
    )


@pytest.mark.slow
def test_starts_and_what_they_disagree_about(data):
    kernel = narrow_kernel()
    starts = random_starts(kernel, 1.0, 2, width=1.0, seed=1)
    far = {".lengthscales": 5.0}
    found = optimise(SmoothedSpan(), kernel, data, 1.0, starts=[*starts, far], max_evaluations=40)
    assert len(found.optima) == 4
    values = [optimum.value for optimum in found.optima]
    assert found.best.value == min(values) == SmoothedSpan()(kernel, data, found.penalty)
    assert "4 starts" in str(found) and str(found).count(".lengthscales: ") == 4
    again = random_starts(narrow_kernel(), 1.0, 2, width=1.0, seed=1)
    assert all(one[name] == two[name] for one, two in zip(starts, again) for name in one)


@pytest.mark.slow
def test_a_search_tells_that_it_ends_at_its_edge(data):
    kernel = gpflow.kernels.SquaredExponential(2.0, lengthscales=0.1)  # too small by far
    gpflow.set_trainable(kernel.variance, False)
    with pytest.warns(ConvergenceWarning, match=r"edge of the search in .lengthscales: "):
        found = optimise(LeaveOneOutHinge(), kernel, data, 1.0, reach=2.0, max_evaluations=40)
    assert found.best.at_edge == (".lengthscales",)
    assert "at the edge of the search: .lengthscales" in str(found)
    np.testing.assert_allclose(kernel.lengthscales.numpy(), 0.2, rtol=1e-3)


class LeaveOneOutHinge(Criterion):
    """One of a user's own."""

    greater_is_better = False
    looks_at_penalty = False

    def __call__(self, kernel, data, penalty):
        margins = LeaveOneOut().left_out_margins(svm_mode(kernel, data, penalty))
        return np.maximum(1 - margins, 0).mean()


class Broken(Criterion):
    greater_is_better = False

    def __init__(self, after):
        self.left = after

    def __call__(self, kernel, data, penalty):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return float(kernel.variance.numpy())


def test_an_interrupted_search_leaves_the_kernel_as_it_was(data):
    kernel = narrow_kernel()
    before = gpflow.utilities.read_values(kernel)
    with pytest.raises(KeyboardInterrupt):
        optimise(Broken(5), kernel, data, 1.0)
    assert gpflow.utilities.read_values(kernel) == before


def test_bad_searches(data):
    kernel = narrow_kernel()
    for options, match in (
        ({"method": "BFGS"}, "method must be one of"),
        ({"method": "L-BFGS-B"}, 'Span has no gradient: use method="Nelder-Mead"'),
        ({"reach": 1.0}, "reach must be at least"),
        ({"max_evaluations": 0}, "max_evaluations must be at least 1"),
        ({"starts": [{".length": 1.0}]}, r"a start has \['.length'\], but only .*variance"),
        ({"starts": [{".lengthscales": -1.0}]}, r"a start's .lengthscales must be positive"),
    ):
        with pytest.raises(ValueError, match=match):
            optimise(Span(), kernel, data, 1.0, **options)
    gpflow.set_trainable(kernel, False)
    with pytest.raises(ValueError, match="there is nothing to search"):
        optimise(Span(), kernel, data, 1.0)
