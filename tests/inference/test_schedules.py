"""Learning rates."""

import gpflow
import numpy as np
import pytest

from gpflow_bsvm.inference import SVI, Adaptive, RobbinsMonro
from gpflow_bsvm.inference.minibatches import rates


@pytest.mark.parametrize("delay, forgetting", [(1.0, 0.6), (1.0, 1.0), (10.0, 0.51)])
def test_robbins_monro(delay, forgetting):
    schedule = RobbinsMonro(delay, forgetting)
    rates = np.array([schedule(step) for step in range(2000)])
    np.testing.assert_allclose(rates, (np.arange(2000) + delay) ** -forgetting, rtol=1e-14)
    assert ((rates > 0) & (rates <= 1)).all()
    assert (np.diff(rates) < 0).all()
    assert schedule(0) == delay**-forgetting


def test_robbins_monro_sums_as_convergence_needs():
    schedule = RobbinsMonro(delay=1.0, forgetting=0.6)
    rates = np.array([schedule(step) for step in range(200_000)])
    halves = rates[:100_000].sum(), rates.sum()
    assert halves[1] > 1.3 * halves[0]  # sum grows like T^0.4, 2^0.4 = 1.32
    squares = np.square(rates)
    assert squares.sum() < 5.6  # zeta(1.2) = 5.59


@pytest.mark.parametrize("delay", [0.99, 0.0, -1.0, np.nan])
def test_bad_delay(delay):
    with pytest.raises(ValueError, match="delay must be at least 1"):
        RobbinsMonro(delay=delay)


@pytest.mark.parametrize("forgetting", [0.5, 1.01, 0.0, np.nan, None])
def test_bad_forgetting(forgetting):
    with pytest.raises(ValueError, match=r"forgetting must be in \(0.5, 1\]"):
        RobbinsMonro(forgetting=forgetting)


def test_a_schedule_may_be_one_of_keras_but_no_class():
    decay = gpflow.keras.tf_keras.optimizers.schedules.ExponentialDecay(0.5, 2, 0.25)
    np.testing.assert_allclose(rates(decay, 2, 3), [0.125, 0.0625, 0.03125])
    for kind in (Adaptive, RobbinsMonro):
        with pytest.raises(ValueError, match=rf"use {kind.__name__}\(\)"):
            SVI(learning_rate=kind)
