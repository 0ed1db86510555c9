"""Any number of fits shares all traces, and keeps nothing."""

import os

import numpy as np
import pytest
from compiled_kernels import SE
from helpers import all_traces, as_svgp, every_trace, make_data, make_model, state

from gpflow_bsvm.inference import CAVI, SVI, VEM
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.prediction import leave_one_out_density, predict_marginals


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


@pytest.mark.parametrize("whiten", [True, pytest.param(False, marks=pytest.mark.slow)])
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
    for num_inducing in (12, 1):
        fit_all(num_inducing)
    assert every_trace() == before


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
