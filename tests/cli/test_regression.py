"""`--task regression` of `gpflow-bsvm train`, `predict` and `compare`."""

import re

import numpy as np
import pytest
from command_line import run

import gpflow_bsvm as gb
from gpflow_bsvm.compare.protocol import Comparison

#: As `quick_training` has it.
FIXED = {"learn_kernel": False, "penalty": 0.5, "epsilon": 0.1}
pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, quick_training):
    """A table of 60 rows with a column of words, and a model of it."""
    folder = tmp_path_factory.mktemp("regression")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    table["where"] = np.where(rng.random(60) > 0.5, "north", "south")
    table["price"] = 100 + 5 * np.sin(2 * table["a"]) + 3 * (table["where"] == "north")
    table.to_csv(folder / "rows.csv", index=False)
    how = ("--target", "price", "--task", "regression", "--num-inducing", 10, "--no-progress")
    assert run("train", folder / "rows.csv", *how, "--output", folder / "model.npz") == 0
    return folder


def test_the_model_is_that_of_python(folder):
    found = gb.load(folder / "model.npz")
    rows = gb.files.CSVFiles(folder / "rows.csv", target="price", words=True)
    assert rows.features == ("a", "b", "where=north", "where=south")
    expected = gb.BSVMRegressor(num_inducing=10, random_state=0, **FIXED).fit(rows)
    X = pandas.DataFrame(next(rows.pieces(100)).X, columns=rows.features)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)


def test_predictions_have_error_bars(folder):
    out = folder / "new.csv"
    model, rows = folder / "model.npz", folder / "rows.csv"
    assert run("predict", model, rows, "--output", out, "--no-progress") == 0
    table = pandas.read_csv(out)
    assert list(table) == ["mean", "std", "5%", "95%"]
    price = pandas.read_csv(rows)["price"]
    assert ((table["5%"] < table["mean"]) & (table["mean"] < table["95%"])).all()
    source = gb.files.CSVFiles(rows, target="price", words=True)
    X = pandas.DataFrame(next(source.pieces(100)).X, columns=source.features)
    quantiles = gb.load(model).predict_quantiles(X, [0.05, 0.95])
    np.testing.assert_allclose(table[["5%", "95%"]], quantiles, rtol=1e-8)  # ten digits
    assert ((table["5%"] < price) & (price < table["95%"])).mean() > 0.8


@pytest.mark.slow
def test_compare(folder, capsys):
    out, page = folder / "results", folder / "page.html"
    how = ("--task", "regression", "--target", "price", "--folds", 2, "--output", out)
    which = ("--models", "bsvm,svr,svc", "--num-inducing", 10, "--report", page)
    assert run("compare", folder / "rows.csv", *how, *which) == 0
    printed = capsys.readouterr().out
    assert "rows: N = 60, D = 4, 2 folds, M = 10, kernel learned" in printed
    assert "svc             skipped: for classes only" in printed
    assert re.search(r"bsvm is (better than|worse than|level with) svr in ", printed)
    rows = pandas.read_csv(out / "results.csv").set_index("model")
    assert len(rows) == 6
    assert rows.loc[["bsvm", "svr"], ["mse", "mae", "nll", "coverage"]].notna().all(axis=None)
    assert rows.loc["bsvm", "mse"].max() < 0.5  # of a constant: 1
    assert (out / "rows.png").is_file() and "Reliability: share of labels" in page.read_text()


@pytest.mark.parametrize("how", [["--task", "regression"], ["diabetes"]])
def test_the_default_regressors(folder, monkeypatch, how):
    seen = []
    monkeypatch.setattr(Comparison, "run", lambda self, *how: seen.append(self))
    run("compare", *how, "--output", folder / "some")
    (done,) = seen
    assert done.dataset.name == "diabetes" and done.labels.size == 0
    assert done.models == ["bsvm", "svgp", "BSVMRegressor", "svr", "boosting"]


def test_words_are_no_numbers(folder, capsys):
    out = folder / "nothing.npz"
    how = ("--target", "where", "--task", "regression")
    assert run("train", folder / "rows.csv", *how, "--output", out) == 2
    assert "leave out --task regression" in capsys.readouterr().err
    assert run("compare", folder / "rows.csv", *how, "--output", folder / "no") == 2
    assert "leave out --task regression" in capsys.readouterr().err


def test_an_option_of_classification_is_refused(folder, capsys):
    how = ("--task", "regression", "--target", "price", "--output", folder / "no")
    assert run("compare", folder / "rows.csv", *how, "--fixed-kernel") == 2
    found = capsys.readouterr().err
    assert "--task regression has no --fixed-kernel: leave it out" in found
