"""Arrays that are mapped from files: by number and piece by piece, as if they were in memory."""

import numpy as np
import pytest
from helpers import make_data

from gpflow_bsvm.data.opening import open_source
from gpflow_bsvm.data.readers import MappedArrays

N, D, CHUNK = 20_000, 4, 3000


class Check:
    """A model that takes any rows."""

    def rows(self, X, Y, origin, /):
        return X, Y

    def labels(self, Y):
        return


@pytest.fixture(scope="module")
def data():
    return make_data(N, D)


@pytest.fixture
def saved(tmp_path, data):
    """A function that maps X from a file."""

    def load(mode="r", order="C"):
        path = tmp_path / "X.npy"
        np.save(path, np.asarray(data[0], order=order))
        return np.load(path, mmap_mode=mode)

    return load


def source(X, Y):
    return open_source((X, Y), Check(), CHUNK)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_pass_has_the_rows_in_their_order(data, saved, order):
    rows = source(saved(order=order), data[1])
    assert isinstance(rows, MappedArrays)
    for column, of in enumerate("XY"):
        parts = [np.asarray(getattr(chunk, of)) for chunk in rows.chunks()]
        assert max(map(len, parts)) == CHUNK
        np.testing.assert_array_equal(np.concatenate(parts), data[column])


def test_minibatches_by_number_in_any_order(data, saved, rng):
    index = rng.permutation(N).reshape(4, -1)
    rows, where = source(saved(), data[1]).gather(index)
    np.testing.assert_array_equal(np.asarray(rows.X)[where], data[0][index])


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_what_was_written_to_a_mapping_is_there(data, saved, mode):
    X = saved(mode)
    X[:] = 7.0
    assert np.all(np.concatenate([chunk.X for chunk in source(X, data[1]).chunks()]) == 7.0)
