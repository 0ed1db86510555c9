"""TensorFlow's log does not reach users who have not asked for it, and all else does."""

import importlib
import os
import subprocess
import sys

import check_shapes
import pytest

import gpflow_bsvm as gb
from gpflow_bsvm.notices import LEVEL, quiet
from gpflow_bsvm.quiet import plain_docstrings

NOISE = b"I0000 00:00:1795.982 7454 port.cc:153] oneDNN custom operations are on.\n"


def test_lines_of_the_log_are_dropped_and_others_are_not(capfd, monkeypatch):
    monkeypatch.setenv(LEVEL, "2")
    with quiet():
        os.write(2, NOISE + b"chatter\n" + b"WARNING: All log messages before absl::Init\n")
    assert capfd.readouterr().err == "chatter\n"


def test_all_of_it_is_shown_after_an_error_or_where_it_is_wanted(capfd, monkeypatch):
    monkeypatch.delenv(LEVEL, raising=False)
    with pytest.raises(ImportError), quiet():
        os.write(2, NOISE)
        raise ImportError
    assert capfd.readouterr().err == NOISE.decode()
    assert os.environ[LEVEL] == "2"
    monkeypatch.setenv(LEVEL, "0")
    with quiet():
        os.write(2, NOISE)
    assert capfd.readouterr().err == NOISE.decode()


def test_without_room_for_what_is_dropped_nothing_is(capfd, monkeypatch):
    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setenv(LEVEL, "2")
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with quiet():
        os.write(2, NOISE)
    assert capfd.readouterr().err == NOISE.decode()


def test_only_docstrings_of_an_import_stay_as_they_are(monkeypatch):
    def imported(name, package):
        return check_shapes.get_rewrite_docstrings()

    monkeypatch.setattr(importlib, "import_module", imported)
    before = check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings("sphinx")
    during, after = gb.__getattr__("models"), check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings(before)
    assert (during.value, after.value) == ("none", "sphinx")


def test_imports_in_two_threads_restore_the_setting():
    before = check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings("sphinx")
    first, second = plain_docstrings(), plain_docstrings()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    after = check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings(before)
    assert after.value == "sphinx"


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "from gpflow_bsvm import BSVMClassifier",
        pytest.param("import gpflow_bsvm as gb; gb.likelihoods", marks=pytest.mark.drill),
        pytest.param("from gpflow_bsvm.models import BSVM", marks=pytest.mark.drill),
    ],
)
def test_an_import_says_nothing(line):
    """As in a worker: a process of its own."""
    code = f"{line}; import tensorflow as tf; tf.constant(1.0)"
    own = {name: value for name, value in os.environ.items() if name != LEVEL}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=own)
    assert (done.returncode, done.stderr) == (0, "")
