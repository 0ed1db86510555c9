"""What makes saving fail is told before a fit, and by one error with the file's name."""

import datetime
import errno
import gc
import io
import os
import sys
import uuid
from decimal import Decimal

import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import ard, make_data, make_model

import gpflow_bsvm as gb
from gpflow_bsvm import atomic
from gpflow_bsvm.saving import check_can_save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bsvm"


DAY = datetime.date(2020, 1, 5)
LABELS = {
    "dates": [DAY, datetime.date(1, 1, 1)],
    "times": [datetime.time(12, 30), datetime.time(0, 0, 1, 5)],
    "moments": [datetime.datetime(2020, 1, 5, 1), datetime.datetime.max],
    "with zones": [datetime.datetime(2020, 1, 5, tzinfo=datetime.timezone.utc)],
    "decimals": [Decimal("1.0"), Decimal("1.00"), Decimal("1E+30")],
    "bytes": [b"a\0", b""],
    "large": [2**63 + 1, -1, 2**70],
    "of all kinds": ["a", 1, 1.5, True, None, "\ud800"],
}
ARRAYS = {
    "uint64": np.array([2**63 + 1, 1], np.uint64),
    "days": np.array(["2020-01-05", "1600-01-01"], "M8[D]"),
    "nanoseconds": np.array([1, -(2**60)], "M8[ns]"),
    "durations": np.array([1, 2], "m8[s]"),
    "truth": np.array([True, False]),
    "fixed bytes": np.array([b"a", b"bc"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_type_come_back(path, name):
    check_can_save(path, classes=LABELS[name])
    column = np.empty(len(LABELS[name]), object)
    column[:] = LABELS[name]
    estimator = gb.BSVMClassifier()
    estimator.classes_ = column
    gb.save(estimator, path)
    assert repr(gb.load(path).classes_.tolist()) == repr(LABELS[name])


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_labels_come_back(path, name):
    estimator = gb.BSVMClassifier()
    estimator.classes_ = ARRAYS[name]
    gb.save(estimator, path)
    found = gb.load(path).classes_
    assert found.dtype == ARRAYS[name].dtype
    np.testing.assert_array_equal(found, ARRAYS[name])


def test_timestamps_of_pandas_come_back(path):
    Timestamp = pytest.importorskip("pandas").Timestamp
    moments = [Timestamp("2020-01-05 12:30:00.000000001"), Timestamp("2020-01-05", tz="UTC")]
    gb.save(moments, path)
    assert gb.load(path) == moments
    assert [type(one) for one in gb.load(path)] == [Timestamp] * 2


def test_a_label_that_no_file_holds_is_told_before_the_fit(path):
    with pytest.raises(TypeError, match=r"classes\[1\] is a uuid\.UUID, which gpflow_bsvm can"):
        check_can_save(path, columns=["a"], classes=["x", uuid.UUID(int=1)])
    check_can_save(path, classes=["x", "y"], columns=["a", "b"])
    assert os.listdir(path.parent) == []


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def saves(path):
    gb.save(ard(), path)


@pytest.mark.parametrize("write", [saves, check_can_save])
def test_places_where_nothing_can_be_written(path, write, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"there is no directory .*nowhere: make it first"):
        write(path.parent / "nowhere" / path.name)
    with pytest.raises(IsADirectoryError, match=rf"'{path.parent}'"):
        write(path.parent)
    (path.parent / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"/file/model\.bsvm'"):
        write(path.parent / "file" / path.name)

    def read_only(place, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    monkeypatch.setattr("builtins.open", read_only)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda dir: read_only(dir / "tmp"))
    with pytest.raises(PermissionError, match=rf"Permission denied: '{path}'"):
        write(path)
    monkeypatch.undo()
    assert os.listdir(path.parent) == ["file"]


def test_a_full_disk_is_told_by_the_name_that_was_given(path, monkeypatch):
    gb.save(ard(), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=rf"the disk is full .*'{path}'") as error:
        gb.save(k.Matern32(), path)
    assert error.value.errno == errno.ENOSPC and ".part" not in str(error.value)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_room_is_tried_before_the_fit(path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, content):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(OSError, match=rf"the disk is full .*'{path}'"):
        atomic.check_room(path)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("reason", ["No space left on device", "Bad file descriptor"])
def test_export_to_a_full_disk_is_told_by_the_name_that_was_given(path, monkeypatch, reason):
    def fails(module, place, **_):
        os.mkdir(place)
        raise tf.errors.ResourceExhaustedError(None, None, f"{place}/x.tempstate1; {reason}")

    monkeypatch.setattr(tf.saved_model, "save", fails)
    with pytest.raises(OSError, match=rf"{reason}.*'{path}'") as error:
        gb.export(make_model(make_data(10)), path)
    full = reason.startswith("No space")
    assert (error.value.errno == errno.ENOSPC) == ("the disk is full" in str(error.value)) == full
    assert os.listdir(path.parent) == []


def test_export_to_a_folder_that_is_read_only(path, monkeypatch):
    def fails(place, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    monkeypatch.setattr(os, "mkdir", fails)
    with pytest.raises(PermissionError, match=rf"Permission denied: '{path}'"):
        gb.export(make_model(make_data(10)), path)


def test_a_checkpoint_that_is_no_directory_is_told_by_the_name_that_was_given(path):
    path.touch()
    X, Y = make_data(10)
    for place in (path, True):
        with pytest.raises(ValueError, match=rf"existing or new directory, got {place}"):
            gb.BSVMClassifier().fit(X, Y[:, 0], checkpoint=place)


def test_an_unfinished_archive_is_let_go_of_in_silence(path, monkeypatch):
    complaints = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="the disk is full"):
        gb.save(ard(), path)
    gc.collect()
    assert not complaints


def test_a_link_stays_and_what_it_leads_to_is_written(path):
    (path.parent / "there").mkdir()
    target = path.parent / "there" / "target"
    path.symlink_to(target)
    for kernel in (k.Matern32(), k.Matern52()):
        gb.save(kernel, path)
        assert path.is_symlink() and os.listdir(target.parent) == [target.name]
        assert type(gb.load(target)) is type(kernel)
