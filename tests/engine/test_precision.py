"""Single precision: not on a GPU that rounds the factors of its products to ten bits."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, make_model, state

from gpflow_bsvm.engine import projected_data
from gpflow_bsvm.engine.projected_data import product_dtype
from gpflow_bsvm.inference import CAVI, SVI


@pytest.fixture
def gpu(monkeypatch):
    """Pretend to have a GPU of this compute capability."""

    def pretend(*capability):
        details = {"compute_capability": capability} if capability else {}
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])
        monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _: details)

    return pretend


@pytest.mark.parametrize(
    ("capability", "dtype"),
    [((), tf.float32), ((7, 5), tf.float32), ((8, 0), tf.float64), ((9, 0), tf.float64)],
)
def test_products_are_single_where_they_have_its_precision(gpu, capability, dtype):
    assert product_dtype(10**9, 1e-4) == tf.float32
    gpu(*capability)
    assert product_dtype(10**9, 1e-4) == dtype


def test_whoever_turns_the_rounding_off_gets_single_precision(gpu):
    gpu(9, 0)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        assert product_dtype(10**9, 1e-4) == tf.float32
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(True)


@pytest.mark.parametrize("algorithm", [CAVI(), SVI(batch_size=20, max_steps=20, learning_rate=0.3)])
def test_big_fits_are_in_double_precision_there(gpu, algorithm, monkeypatch):
    data = make_data()

    def fitted():
        model = make_model(data)
        algorithm.run(model, data)
        return np.concatenate([np.ravel(part) for part in state(model)])

    double = fitted()
    monkeypatch.setattr(projected_data, "BIG_PASS", 0)
    monkeypatch.setattr("gpflow_bsvm.inference.minibatches._BIG_BATCH", 0)
    assert abs(fitted() - double).max() > 0
    gpu(9, 0)
    np.testing.assert_array_equal(fitted(), double)
