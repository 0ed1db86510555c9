"""Workers of their own processes, which die."""

import os
import signal

import dask.array as da
import distributed
import numpy as np
import pytest
from conftest import make_data, make_model, state

from gpflow_bsvm.data import cluster as cluster_module
from gpflow_bsvm.inference import CAVI, VEM

pytestmark = pytest.mark.slow

N = 2000
X, Y = make_data(N)
SWEEPS, ROUNDS = CAVI(max_steps=12, tol=0), VEM(max_steps=2, tol=0)


@pytest.fixture(scope="module")
def client():
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(2, **options) as cluster, distributed.Client(cluster) as client:
        yield client


def on_cluster():
    return tuple(da.from_array(c, chunks=(250, c.shape[1])) for c in (X, Y))


def make():
    return make_model((X, Y))


@pytest.mark.drill
def test_a_worker_that_dies_changes_nothing(client):
    left_alone, disturbed = make(), make()
    expected = ROUNDS.run(left_alone, on_cluster())
    killed = []

    def kill(step, history):
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = ROUNDS.run(disturbed, on_cluster(), callback=kill)
    assert killed
    assert found.elbo == expected.elbo
    for one, other in zip(state(left_alone), state(disturbed)):
        np.testing.assert_array_equal(one, other)


def test_a_cluster_that_is_gone_leaves_a_checkpoint(client, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    monkeypatch.setattr(cluster_module, "_LOOK", 0.5)
    left_alone, broken, resumed = make(), make(), make()
    expected = SWEEPS.run(left_alone, on_cluster())

    def close(step, history):
        if step == 2:
            client.cluster.close()

    with pytest.raises(ConnectionError, match=r"Dask cluster .* is gone"):
        SWEEPS.run(broken, on_cluster(), callback=close, checkpoint=tmp_path)
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None):
        found = SWEEPS.run(resumed, on_cluster(), checkpoint=tmp_path)
    assert found.elbo == expected.elbo
    for one, other in zip(state(left_alone), state(resumed)):
        np.testing.assert_array_equal(one, other)
