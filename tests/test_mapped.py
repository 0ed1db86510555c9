"""Arrays that are mapped from files: what was read takes no memory."""

import mmap
import pathlib
import re

import numpy as np
import pytest
from conftest import make_data

from gpflow_bsvm.data import MappedArrays, open_source
from gpflow_bsvm.data.mapped import give_back

N, D, CHUNK = 20_000, 4, 3000
SMAPS = pathlib.Path("/proc/self/smaps")
TYPES = [np.float64, np.float32]

needs_linux = pytest.mark.skipif(
    not (SMAPS.is_file() and hasattr(mmap, "MADV_DONTNEED")),
    reason="resident pages of a mapping are in /proc/self/smaps, which Linux has",
)


class Check:
    """Of a model that takes any rows."""

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

    def load(mode="r", dtype=np.float64, order="C"):
        path = tmp_path / "X.npy"
        np.save(path, np.asarray(data[0], dtype, order=order))
        return np.load(path, mmap_mode=mode)

    return load


def resident():
    """Kilobytes of the file that are in memory."""
    parts = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", SMAPS.read_text())
    ours = (part for part in parts if "X.npy" in part.split("\n")[0])
    return sum(int(re.search(r"Rss: +(\d+) kB", part)[1]) for part in ours)


def source(X, Y):
    return open_source((X, Y), Check(), CHUNK)


@needs_linux
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_a_pass_has_read_is_not_resident(data, saved, dtype, order):
    X, Y = saved(dtype=dtype, order=order), data[1]
    whole = X.nbytes / 2**10
    assert float(X.sum()) != 0  # all pages are
    assert resident() > 0.9 * whole
    found = np.concatenate([chunk.X for chunk in source(X, Y).chunks()])
    assert resident() < 0.1 * whole
    np.testing.assert_array_equal(found, data[0].astype(dtype))


@needs_linux
@pytest.mark.parametrize("order", ["C", "F"])
def test_nor_are_those_of_a_sample(tmp_path, rng, order):
    """The system brings up to 2 MB of pages with one, of these 16."""
    values = rng.normal(size=(2**19, D))
    np.save(tmp_path / "X.npy", np.asarray(values, order=order))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert float(X.sum()) != 0
    index = np.sort(rng.choice(len(X), 500, replace=False))
    rows, where = source(X, np.zeros((len(X), 1))).gather(index)
    assert resident() < 0.3 * X.nbytes / 2**10
    np.testing.assert_array_equal(np.asarray(rows.X)[where], values[index])


def test_minibatches_by_number_in_any_order(data, saved, rng):
    index = rng.permutation(N).reshape(4, -1)
    rows, where = source(saved(), data[1]).gather(index)
    np.testing.assert_array_equal(np.asarray(rows.X)[where], data[0][index])


@needs_linux
def test_rows_that_are_kept_are_their_own(data, saved):
    """They could be views of the file otherwise, and bring its pages again."""
    X = saved()
    pieces = list(MappedArrays(X, data[1]).pieces(CHUNK))
    assert sum(float(np.sum(piece.X)) for piece in pieces) == pytest.approx(data[0].sum())
    assert resident() == 0
    assert all(not np.shares_memory(piece.X, X) for piece in pieces)
    assert all(np.shares_memory(piece.Y, data[1]) for piece in pieces)  # in memory: no copy


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_what_was_written_to_a_mapping_is_there(data, saved, mode):
    X = saved(mode)
    X[:] = 7.0
    give_back(X)
    assert np.all(np.concatenate([chunk.X for chunk in source(X, data[1]).chunks()]) == 7.0)


def test_of_any_part_of_any_array(data, saved):
    X = saved()
    for part in (X[5:3], X[::-7, 1:], X[17], np.asarray(X)[3:], data[0], X * 2):
        before = np.array(part)
        give_back(part)
        np.testing.assert_array_equal(part, before)
