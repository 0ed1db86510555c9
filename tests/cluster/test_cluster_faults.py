"""Workers of their own processes, which die, and files that cannot be read there."""

import os
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from faults import Vanishing
from helpers import make_data, make_model, state

from gpflow_bsvm.cluster import DaskFrame
from gpflow_bsvm.cluster.dask_data import DaskReader
from gpflow_bsvm.inference import CAVI, VEM

#: Processes of a cluster take long to start.
pytestmark = [pytest.mark.slow, pytest.mark.drill]

N = 2000
X, Y = make_data(N)
SWEEPS, ROUNDS = CAVI(max_steps=12, tol=0), VEM(max_steps=2, tol=0)


@pytest.fixture(scope="module")
def client():
    options = {"threads_per_worker": 1, "dashboard_address": None}
    # A client that loses its cluster leaves itself behind as everybody's scheduler.
    with (
        dask.config.set(scheduler=None),
        distributed.LocalCluster(2, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def on_cluster():
    return tuple(da.from_array(c, chunks=(250, c.shape[1])) for c in (X, Y))


def make():
    return make_model((X, Y))


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


@pytest.fixture
def parts(tmp_path):
    """Files of a Dask data frame, opened while all is well."""
    for number in range(3):
        rows = slice(100 * number, 100 * number + 100)
        table = pd.DataFrame(X[rows], columns=["a", "b"]).assign(y=Y[rows, 0])
        table.to_parquet(tmp_path / f"part-{number}.parquet")
        table.to_csv(tmp_path / f"part-{number}.csv", index=False)
    return tmp_path


def read(folder, ending):
    how = dd.read_parquet if ending == "parquet" else dd.read_csv
    return DaskFrame(how(f"{folder}/*.{ending}"), target="y")


@pytest.mark.parametrize("on_workers", [True, False])
def test_a_file_that_is_damaged_is_named(client, parts, on_workers):
    rows, model = read(parts, "parquet"), make()
    (parts / "part-1.parquet").write_bytes(b"no such thing as a table")
    before = state(model)
    message = r"^partition 1.* cannot be read: Parquet magic bytes"
    with pytest.raises(ValueError, match=message):
        if on_workers:
            SWEEPS.run(model, rows)
        else:
            next(rows.pieces(50))
            list(rows.pieces(50))
    for one, other in zip(state(model), before):
        np.testing.assert_array_equal(one, other)


def test_a_file_that_cannot_be_opened_is_named_by_the_system(client, parts):
    rows = read(parts, "csv")
    (parts / "part-1.csv").unlink()
    (parts / "part-1.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"partition 1 cannot be read: .*part-1\.csv"):
        SWEEPS.run(make(), rows)


def test_a_column_that_one_partition_lacks_is_told_with_its_partition(client):
    table = pd.DataFrame(X[:50], columns=["a", "b"]).assign(y=Y[:50, 0])
    parts = [dask.delayed(part) for part in (table, table.drop(columns="b"))]
    rows = DaskFrame(dd.from_delayed(parts, meta=table, verify_meta=False), target="y")
    with pytest.raises(ValueError, match=r"^partition 1 lacks 'b'; it has a, y; columns"):
        SWEEPS.run(make(), rows)


@pytest.mark.parametrize(
    "error",
    [
        OSError("the disk is gone"),
        KeyError("no key"),
        TimeoutError("the disk is slow"),
        MemoryError("all is full"),
    ],
)
def test_errors_of_reading_are_their_own(client, tmp_path, error):
    reads = dask.delayed(Vanishing((X, Y), error, str(tmp_path / "reads"), 2))
    rows = DaskReader([reads(part) for part in range(3)])
    kind = OSError if isinstance(error, OSError) else type(error)
    message = rf"partition \d cannot be read: .*{error.args[0]}"
    with pytest.raises(kind, match=message) as caught:
        SWEEPS.run(make(), rows)
    assert not isinstance(caught.value, ConnectionError)  # which is an OSError too
    (tmp_path / "reads").unlink()
    with pytest.raises(kind, match=message):
        list(rows.pieces(50))


def test_a_cluster_that_is_gone_leaves_a_checkpoint(client, tmp_path):
    """The last of them all: it closes the cluster."""
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
