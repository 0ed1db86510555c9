"""Files of checkpoints that are not whole, crafted or of another fit are refused by name."""

import functools
import json
import os

import numpy as np
import pytest
from dying import ALGORITHMS, SAMPLERS, assert_equal, interrupt_at, resumed, whole
from helpers import make_data, make_model, state

from gpflow_bsvm.inference import (
    CAVI,
)


def test_nothing_is_pickled(stored):
    for path in stored.iterdir():
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype.kind in "biuf" for name in arrays.files)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(bytes(content))


def foreign(path):
    np.savez(path, weights=np.ones(3))


class Executed:
    """Its pickle makes a directory when it is loaded."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return os.mkdir, (self._path,)


def pickled(path):
    np.savez(path, header=np.array([Executed(path.parent / "executed")], dtype=object))


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [truncate, flip, foreign, pickled, empty])
def test_a_bad_file_is_refused_by_name(data, stored, spoil):
    path = stored / "checkpoint-000000004.npz"
    spoil(path)
    with pytest.warns(UserWarning, match=f"{path} is not a complete checkpoint") as warned:
        assert resumed(data, stored) == 4
    assert sum("not a complete checkpoint" in str(one.message) for one in warned) == 1
    assert not (stored / "executed").exists()


def crafted(path, change):
    """Another content in the same file; `change` is given it and the arrays by name."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes())
    content = dict(header["content"]["pairs"])
    change(content, arrays)
    header["content"]["pairs"] = list(content.items())
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, header=text, **arrays)


def on_arrays(change):
    return lambda content, arrays: arrays.update({n: change(a) for n, a in arrays.items()})


def another_type(content, arrays):
    content["state"]["kind"] = "tuple"


def other_lengths(content, arrays):
    number = dict(content["history"]["pairs"])["elbo"]["value"]
    arrays[str(number)] = arrays[str(number)][:1]


def no_proper_q(content, arrays):
    """A precision that no Gaussian has."""
    for name, array in arrays.items():
        if array.ndim == 3:
            arrays[name] = -array


CRAFTED = {
    "NaN": on_arrays(lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a),
    "other numbers": on_arrays(lambda a: a * 1.01 if a.dtype.kind == "f" else a),
    "transposed": on_arrays(np.transpose),
    "empty": on_arrays(lambda a: a[:0] if a.ndim else a),
    "float32": on_arrays(lambda a: a.astype(np.float32)),
    "objects": on_arrays(lambda a: a.astype(str)),
    "no history": lambda content, arrays: content.pop("history"),
    "no state": lambda content, arrays: content.pop("state"),
    "no number": lambda content, arrays: content.update(converged="x"),
    "another type": another_type,
    "other lengths": other_lengths,
    "no proper q": no_proper_q,
    "brackets": lambda content, arrays: content.update(state="["),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_file_is_refused_by_name(data, stored, what):
    path = stored / "checkpoint-000000004.npz"
    crafted(path, CRAFTED[what])
    with pytest.warns(UserWarning, match=f"{path} is not a complete checkpoint") as warned:
        assert resumed(data, stored) == 4
    assert sum("not a complete checkpoint" in str(one.message) for one in warned) == 1


@functools.cache
def undisturbed_draws():
    data = make_data()
    return SAMPLERS["Gibbs"].run(make_model(data), data).s


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("what", ["NaN", "transposed", "empty", "float32", "no state"])
def test_crafted_draws_are_refused_by_name(data, tmp_path, monkeypatch, what):
    sampler, model = SAMPLERS["Gibbs"], make_model(data)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_at(patch, 3)
        sampler.run(model, data, checkpoint=tmp_path)
    path = max(tmp_path.iterdir())
    crafted(path, CRAFTED[what])
    with pytest.warns(UserWarning, match=f"{path} is not a complete checkpoint"):
        again = sampler.run(model, data, checkpoint=tmp_path).s
    np.testing.assert_array_equal(again, undisturbed_draws())


def test_a_fit_begins_anew_where_no_file_is_whole(data, stored):
    for path in stored.iterdir():
        truncate(path)
    with pytest.warns(UserWarning, match="not a complete checkpoint") as warned:
        assert resumed(data, stored) == 1
    assert sum("not a complete checkpoint" in str(one.message) for one in warned) == 2


def test_a_full_disk_costs_a_warning(data, stored, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before, model = sorted(stored.iterdir()), make_model(data)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(
            UserWarning, match="No space left on device.*the fit continues"
        ) as warned:
            ALGORITHMS["CAVI"].run(model, data, checkpoint=stored)
    assert sum("No space left" in str(one.message) for one in warned) == 1
    assert_equal(state(model), whole())
    assert sorted(stored.iterdir()) == before
    assert resumed(data, stored) == 5


def test_bad_places_and_numbers(data, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    for place in (path, True):
        with pytest.raises(ValueError, match=f"must be an existing or new directory, got {place}"):
            CAVI().run(make_model(data), data, checkpoint=place)
    with pytest.raises(ValueError, match="every must be at least 1"):
        CAVI().run(make_model(data), data, checkpoint=tmp_path, every=0)
