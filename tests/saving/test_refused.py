"""What cannot be saved, or read: one clear error, and nothing in a file is executed."""

import json
import os
import pickle
import re
import zipfile
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from gpflow import kernels as k
from helpers import ard, make_model
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from what_is_saved import of_a_kernel_of_ones_own

import gpflow_bsvm as gb


@pytest.fixture
def scaled(rows):
    return of_a_kernel_of_ones_own(rows)


def test_a_kernel_that_is_not_known_is_refused_and_the_old_file_stays(rows, path, scaled):
    gb.save(ard(), path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"model\.kernel\.kernels\[1\] is a .*Scaled.*register"):
        gb.save(scaled, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_register_takes_classes(scaled):
    with pytest.raises(TypeError, match="takes a class"):
        gb.saving.register(scaled)


def test_methods_are_not_saved_and_all_data_are(rows, path):
    model = make_model(rows)
    model.note = "mine"
    gb.save(model, path)
    assert gb.load(path).note == "mine"
    model.elbo = 3.0
    with pytest.raises(TypeError, match=r"'elbo' of a .*BSVM may not be set by a file"):
        gb.save(model, path)
    assert gb.load(path).note == "mine"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda m: setattr(m, "mean_function", lambda X: X[:, :1]), r"model\.mean_function"),
        (
            lambda m: setattr(
                m.kernel, "variance", gpflow.Parameter(2.0, transform=tfp.bijectors.Sinh())
            ),
            r"model\.kernel\.variance\.transform .*one of Identity",
        ),
        (
            lambda m: setattr(m.kernel.variance, "prior", tfp.distributions.Zipf(np.float64(2))),
            r"model\.kernel\.variance\.prior .*one of .*Normal",
        ),
        (lambda m: setattr(m, "num_data", object()), r"model\.num_data is a builtins\.object"),
        (
            lambda m: setattr(m, "mean_function", lambda X: X[:, :1]),
            r"model\.mean_function is a builtins\.function, .* registered class with __call__",
        ),
        (
            lambda m: setattr(m, "seed", np.random.default_rng(0)),
            r"model\.seed is a .*Generator, .* instead, use a whole number as seed",
        ),
    ],
)
def test_other_parts_that_are_refused(rows, path, change, place):
    model = make_model(rows)
    change(model)
    with pytest.raises(TypeError, match=place):
        gb.save(model, path)


def test_posteriors_and_estimators_with_generators_are_refused(rows, path):
    with pytest.raises(TypeError, match=r"after load model\.posterior\(\)"):
        gb.save(make_model(rows).posterior(), path)
    with pytest.raises(TypeError, match=r"classifier.random_state .* use a whole number as seed"):
        gb.save(gb.BSVMClassifier(random_state=np.random.RandomState(0)), path)


def a_search(estimator, found):
    search = GridSearchCV(estimator, {})
    search.best_estimator_ = found
    return search


OURS = gb.BSVMClassifier()
PIPELINE = make_pipeline(StandardScaler(), OURS)


@pytest.mark.parametrize(
    ("estimator", "what", "works"),
    [
        (PIPELINE, "Pipeline", "gb.save(pipeline[-1], path), or joblib.dump for the whole"),
        (a_search(OURS, OURS), "GridSearchCV", "gb.save(search.best_estimator_, path), or joblib"),
        (a_search(PIPELINE, PIPELINE), "GridSearchCV", "gb.save(search.best_estimator_[-1], path)"),
        (make_pipeline(OURS, SVC()), "Pipeline", "instead, use joblib.dump for"),
        (OneVsRestClassifier(OURS), "OneVsRestClassifier", "instead, use joblib.dump for"),
    ],
)
def test_what_scikit_learn_makes_is_told_in_its_words(path, estimator, what, works):
    with pytest.raises(TypeError, match=f"classifier is a {what}, .*{re.escape(works)}") as error:
        gb.save(estimator, path)
    assert "gpflow.utilities" not in str(error.value)


class Malicious:
    def __init__(self, flag):
        self.flag = str(flag)

    def __reduce__(self):
        return (Path.touch, (Path(self.flag),))


def bad_files(folder, good):
    """Contents of files that are none, by name."""
    flag = folder / "flag"
    objects = folder / "objects.npz"
    np.savez(objects, header=np.array([Malicious(flag)], dtype=object))
    np.savez(folder / "foreign.npz", X=np.ones(3))
    np.save(folder / "array.npy", np.ones(3))
    text = folder / "archive.zip"
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    middle = bytearray(good)
    middle[good.index(b"\x93NUMPY") + 100] ^= 255  # headers of the archive are not summed
    return {
        "pickle": pickle.dumps(Malicious(flag)),
        "objects": objects.read_bytes(),
        "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "empty": b"",
        "start": good[:100],
        "truncated": good[:-100],
        "flipped": bytes(middle),
        "foreign": (folder / "foreign.npz").read_bytes(),
        "array": (folder / "array.npy").read_bytes(),
        "archive": text.read_bytes(),
    }


def test_files_of_another_kind_are_refused_and_nothing_in_them_runs(rows, path):
    gb.save(make_model(rows), path)
    files = bad_files(path.parent, path.read_bytes())
    for content in files.values():
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"model\.bsvm (is not a complete file|cannot be loaded)"
        ):
            gb.load(path)
    assert not (path.parent / "flag").exists()
    pickle.loads(files["pickle"])  # would have
    assert (path.parent / "flag").exists()
    with pytest.raises(FileNotFoundError):
        gb.load(path.parent / "nothing")
    with pytest.raises(FileNotFoundError, match=r"there is no directory .*nowhere: make it first"):
        gb.save(ard(), path.parent / "nowhere" / "model")


def rewrite(path, change):
    """Another description in the same file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    change(header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda header: header.update(format=1), "has format 1.*reads format 5"),
        (lambda header: header["content"].update({"class": "os.system"}), "holds a os.system"),
        (lambda header: header["content"].update({"kind": "code"}), "cannot be loaded"),
        (lambda header: header.pop("format"), "complete file from"),
    ],
)
def test_descriptions_that_fit_nothing(path, change, what):
    gb.save(ard(), path)
    rewrite(path, change)
    with pytest.raises(ValueError, match=rf"model\.bsvm.*{what}"):
        gb.load(path)


def test_a_file_sets_no_method_of_an_estimator(path):
    gb.save(gb.BSVMClassifier(), path)
    for name in ("fit", "__dict__"):
        state = {name: {"kind": "dict"}}
        rewrite(path, lambda header, state=state: header["content"].update(state=state))
        with pytest.raises(ValueError, match=f"'{name}' of a .* may not be set"):
            gb.load(path)


def test_settings_that_differ(rows, path):
    gb.save(make_model(rows), path)
    gpflow.config.set_default_jitter(1e-5)
    with pytest.warns(UserWarning, match="differ: jitter was 1e-06, is now 1e-05"):
        gb.load(path)
    gpflow.config.set_default_float(np.float32)
    with pytest.raises(ValueError, match=r"saved in float64.*set_default_float\(np.float64\)"):
        gb.load(path)


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    gb.save(ard(), path)
    before = path.read_bytes()

    def fail(file, *_, **options):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        gb.save(k.Matern32(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
