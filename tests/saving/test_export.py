"""Models for elsewhere: a SavedModel, and a file in another process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import kernels as k
from helpers import ard, make_data, make_model
from what_is_saved import (
    LABELS,
    OPTIONS,
    classifier_of,
    exported,
    of_a_kernel_of_ones_own,
    unwhitened,
)

import gpflow_bsvm as gb
from gpflow_bsvm import likelihoods as lik
from gpflow_bsvm.papers import wenzel2017


@pytest.fixture(scope="module")
def rows():
    return make_data(24)


@pytest.fixture
def scaled(rows):
    return of_a_kernel_of_ones_own(rows)


@pytest.fixture(scope="module")
def classifiers(rows):
    return {name: classifier_of(rows[0], LABELS[name]) for name in ("strings", "bools")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["strings", pytest.param("bools", marks=pytest.mark.slow)])
def test_exported_classifiers(rows, classifiers, tmp_path, name):
    model, X = classifiers[name], rows[0]
    found = exported(model, tmp_path / "out")
    for number in (1, len(X)):  # a batch of any size
        p = found.predict_proba(X[:number])["probabilities"]
        np.testing.assert_allclose(p, model.predict_proba(X[:number]), rtol=0, atol=1e-10)
    signature = found.signatures["predict_f"](X=tf.constant(X))
    mean, variance = model.model_.predict_f(model.scaler_.transform(X))
    np.testing.assert_allclose(signature["mean"], mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(signature["variance"], variance, rtol=0, atol=1e-10)
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["classes"] == model.classes_.tolist()
    assert about["version"] == gb.__version__


@pytest.mark.slow
def test_columns_of_ordered_words_are_sorted(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    words = pandas.Categorical.from_codes(np.arange(24) % 3, ["low", "mid", "high"], ordered=True)
    model = gb.BSVMClassifier(**OPTIONS | {"loss": "levels"}, multi_class="ordinal")
    p = model.fit(rows[0], words).predict_proba(rows[0])
    found = exported(model, tmp_path / "out")
    q = found.predict_proba(rows[0])["probabilities"]
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-10)
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["classes"] == ["high", "low", "mid"]


@pytest.mark.slow
def test_exported_models(rows, tmp_path):
    model = unwhitened(rows)
    model.mean_function = gpflow.functions.Constant(0.3)
    dual = wenzel2017.DualBSVM(rows, ard(), lik.Hinge(), rows[0][:5].copy())
    for number, one in enumerate((model, dual)):
        found = exported(one, tmp_path / str(number))
        p = found.predict_proba(rows[0])["probabilities"]
        np.testing.assert_allclose(p, one.predict_y(rows[0])[0], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_kernel_of_ones_own_is_exported(rows, scaled, tmp_path):
    found = exported(scaled, tmp_path / "out")
    p = found.predict_proba(rows[0])["probabilities"]
    np.testing.assert_allclose(p, scaled.predict_y(rows[0])[0], rtol=0, atol=1e-10)


@pytest.mark.drill
@pytest.mark.slow
def test_a_regressor_is_exported(rows, tmp_path):
    X, y = rows[0], np.sin(3 * rows[0][:, 0]) * 5 + 2
    regressor = gb.BSVMRegressor(penalty=2.0, epsilon=0.1, learn_kernel=False, num_inducing=9)
    module = exported(regressor.fit(X, y), tmp_path / "out")
    found = module.predict(X)
    mean, std = regressor.predict(X, return_std=True)
    np.testing.assert_allclose(found["mean"], mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["std"], std, rtol=0, atol=1e-9)
    f = module.predict_f(X)
    for part, expected in zip(("mean", "variance"), gb.prediction.predict_marginals(regressor, X)):
        np.testing.assert_allclose(f[part], expected, rtol=0, atol=1e-9)
    assert json.loads((tmp_path / "out" / "about.json").read_text())["classes"] is None
    with pytest.raises(ValueError, match="cannot impute"):
        gb.export(gb.BSVMRegressor(impute=True, num_inducing=5).fit(X, y), tmp_path / "no")


def test_export_refuses(rows, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="export to a new directory"):
        gb.export(make_model(rows), tmp_path)
    with pytest.raises(TypeError, match=r"got Matern32"):
        gb.export(k.Matern32(), tmp_path / "new")
    with pytest.raises(ValueError, match="not fitted"):
        gb.export(gb.BSVMClassifier(), tmp_path / "new")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.slow
def test_a_folder_is_whole_or_not_there(rows, tmp_path, monkeypatch):
    model, save, out = make_model(rows), tf.saved_model.save, tmp_path / "out"

    def fail(*arguments, **options):
        save(*arguments, **options)
        assert len(os.listdir(tmp_path)) == 1 and not out.exists()
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(tf.saved_model, "save", fail)
        with pytest.raises(OSError, match="disk full"):
            gb.export(model, out)
    assert os.listdir(tmp_path) == []
    out.mkdir()
    found = exported(model, out)
    p = found.predict_proba(rows[0])["probabilities"]
    np.testing.assert_allclose(p, model.predict_y(rows[0])[0], rtol=0, atol=1e-10)
    assert os.listdir(tmp_path) == ["out"]


def in_a_fresh_process(code, folder):
    """What the code writes, to the folder that it runs in."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gb.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)
    return np.load(folder / "p.npy")


@pytest.mark.drill
@pytest.mark.slow
def test_an_exported_model_needs_tensorflow_only(rows, classifiers, tmp_path):
    model = classifiers["strings"]
    gb.export(model, tmp_path / "out")
    np.save(tmp_path / "X.npy", rows[0])
    code = """
import sys, numpy as np, tensorflow as tf
model = tf.saved_model.load("out")
np.save("p.npy", model.predict_proba(np.load("X.npy"))["probabilities"])
assert not {"gpflow", "gpflow_bsvm", "tensorflow_probability"} & set(sys.modules)
"""
    p = in_a_fresh_process(code, tmp_path)
    np.testing.assert_allclose(p, model.predict_proba(rows[0]), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_file_is_loaded_in_a_fresh_process(rows, classifiers, tmp_path):
    gb.save(classifiers["strings"], tmp_path / "model.bsvm")
    np.save(tmp_path / "X.npy", rows[0])
    code = """
import numpy as np, gpflow_bsvm as gb
np.save("p.npy", gb.load("model.bsvm").predict_proba(np.load("X.npy")))
"""
    p = in_a_fresh_process(code, tmp_path)
    np.testing.assert_array_equal(p, classifiers["strings"].predict_proba(rows[0]))
