"""`gpflow-bsvm train` and `gpflow-bsvm predict`."""

import numpy as np
import pytest

import gpflow_bsvm as gb
from gpflow_bsvm import cli, commands

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def run(*argv):
    """:return: exit code, however the command ends."""
    try:
        return cli.main([str(arg) for arg in argv])
    except SystemExit as end:
        return end.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 60 rows as CSV, as Parquet in two files, and a model of it."""
    folder = tmp_path_factory.mktemp("commands")
    X = np.random.default_rng(0).normal(size=(60, 2))
    table = pandas.DataFrame(X, columns=["a", "b"])
    table["kind"] = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "good", "bad")
    table.to_csv(folder / "rows.csv")  # with the index: it is no column of its own
    (folder / "parts").mkdir()
    table[:25].to_parquet(folder / "parts" / "0.parquet")
    table[25:].to_parquet(folder / "parts" / "1.parquet")
    assert train(folder, "rows.csv", "--output", folder / "model.npz") == 0
    return folder


def train(folder, data, *options):
    """Fewer than 100 rows: nothing is chosen."""
    how = ("--target", "kind", "--num-inducing", 5, "--no-progress")
    return run("train", folder / data, *how, *options)


def test_predictions_are_those_of_the_classifier(folder, monkeypatch):
    monkeypatch.setattr(commands, "_ROWS", 17)  # several parts
    output = folder / "p.csv"
    assert run("predict", folder / "model.npz", folder / "rows.csv", "--output", output) == 0
    found, table = pandas.read_csv(output), pandas.read_csv(folder / "rows.csv")
    classifier = gb.load(folder / "model.npz")
    assert classifier.feature_names_in_.tolist() == ["a", "b"]
    p = classifier.predict_proba(table[["a", "b"]])
    np.testing.assert_allclose(found[["p(bad)", "p(good)"]], p, rtol=1e-9)
    assert found["label"].tolist() == classifier.predict(table[["a", "b"]]).tolist()


@pytest.mark.slow
def test_parquet_gives_the_model_that_csv_does(folder):
    assert train(folder, "parts", "--output", folder / "same.npz") == 0
    table = pandas.read_csv(folder / "rows.csv")[["a", "b"]]
    one, two = (gb.load(folder / name).predict_proba(table) for name in ("model.npz", "same.npz"))
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_columns_by_name_in_any_order(folder, capsys):
    table = pandas.read_csv(folder / "rows.csv")
    table[["b", "kind", "a"]].assign(more="text").to_csv(folder / "other.csv", index=False)
    run("predict", folder / "model.npz", folder / "rows.csv", "--output", folder / "p.csv")
    run("predict", folder / "model.npz", folder / "other.csv", "--output", folder / "q.csv")
    assert (folder / "p.csv").read_text() == (folder / "q.csv").read_text()
    assert "60 rows written to" in capsys.readouterr().out


def test_what_is_left_out(folder):
    rows = commands._files(str(folder / "rows.csv"), target="kind", classes="auto")
    assert rows.left_out == ("",) and rows.features == ("a", "b")
    asked = commands._files(str(folder / "rows.csv"), features=["", "a"])
    assert asked.left_out == () and asked.features == ("", "a")


BAD = {
    "lacks 'b'": ("predict", "model.npz", "short.csv"),
    "there is no file": ("predict", "model.npz", "nowhere.csv"),
    "no such file|No such file|there is no": ("predict", "nowhere.npz", "rows.csv"),
    "rows.csv": ("predict", "rows.csv", "rows.csv"),
    "lacks 'colour'": ("train", "rows.csv", "--target", "colour", "--output", "m.npz"),
    "column 'kind' of .* holds string": ("train", "rows.csv", "--target", "a", "--output", "m.npz"),
    "there is no directory": ("train", "rows.csv", "--target", "kind", "--output", "no/m.npz"),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line(folder, capfd, monkeypatch, message):
    monkeypatch.chdir(folder)
    (folder / "short.csv").write_text("a\n1\n")
    assert run(*BAD[message]) == 2
    out, error = capfd.readouterr()
    assert out == "" and error.count("\n") == 1 and error.startswith("gpflow-bsvm: error: ")
    import re

    assert re.search(message, error)


def test_an_interrupted_prediction_leaves_no_file(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpflow_bsvm.BSVMClassifier.predict_proba", interrupted)
    output = folder / "never.csv"
    assert run("predict", folder / "model.npz", folder / "rows.csv", "--output", output) == 130
    assert not list(folder.glob("never*"))
