"""`gpflow-bsvm train` and `gpflow-bsvm predict`."""

import sys

import numpy as np
import pytest
from command_line import run

import gpflow_bsvm as gb
from gpflow_bsvm import cli

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, quick_training):
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
    monkeypatch.setattr(cli.predict, "PART_ROWS", 17)  # several parts
    output = folder / "p.csv"
    assert run("predict", folder / "model.npz", folder / "rows.csv", "--output", output) == 0
    found, table = pandas.read_csv(output), pandas.read_csv(folder / "rows.csv")
    classifier = gb.load(folder / "model.npz")
    assert classifier.feature_names_in_.tolist() == ["a", "b"]
    p = classifier.predict_proba(table[["a", "b"]])
    np.testing.assert_allclose(found[["p(bad)", "p(good)"]], p, rtol=1e-9)
    assert found["label"].tolist() == classifier.predict(table[["a", "b"]]).tolist()
    del classifier.reading_, classifier.feature_names_in_  # as a fit to arrays has none
    gb.save(classifier, folder / "numbered.npz")
    table[["a", "b"]].set_axis(["x0", "x1"], axis=1).to_csv(folder / "numbered.csv")
    given = (folder / "numbered.npz", folder / "numbered.csv", "--output", folder / "n.csv")
    assert run("predict", *given) == 0
    assert (folder / "n.csv").read_text() == output.read_text()


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


def test_the_output_is_none_of_the_inputs(folder, capsys):
    """It was overwritten."""
    data, model = folder / "again.csv", folder / "again.npz"
    for one, other in ((data, "rows.csv"), (model, "model.npz")):
        one.write_bytes((folder / other).read_bytes())
    before = data.read_bytes(), model.read_bytes()
    assert train(folder, "again.csv", "--output", data) == 2
    assert "again.csv is an input and would be overwritten" in capsys.readouterr().err
    for output in (data, model, folder / "parts" / ".." / "again.csv"):
        assert run("predict", model, data, "--output", output) == 2
    assert run("predict", model, data, "--output", folder / "p.parquet") == 2
    assert "must end in .csv" in capsys.readouterr().err
    assert (data.read_bytes(), model.read_bytes()) == before


@pytest.mark.parametrize("missing", ["", "N/A", "None"])
def test_a_missing_label_is_no_class(folder, capsys, missing):
    text = (folder / "rows.csv").read_text().splitlines()
    text[4] = text[4].rsplit(",", 1)[0] + "," + missing
    (folder / "gap.csv").write_text("\n".join(text))
    assert train(folder, "gap.csv", "--output", folder / "gap.npz") == 2
    error = capsys.readouterr().err
    shown = f"{missing!r} (row 3) in column 'kind' may" if missing else "is empty (row 3, column"
    assert f"gap.csv: the label {shown}" in error and error.count("\n") == 1
    assert not (folder / "gap.npz.partial").exists()


def test_missing_values_are_named_and_leave_nothing_behind(folder, capsys):
    text = (folder / "rows.csv").read_text().splitlines()
    text[4] = "3,,0.5,good"
    (folder / "hole.csv").write_text("\n".join(text))
    output = folder / "hole-p.csv"
    assert run("predict", folder / "model.npz", folder / "hole.csv", "--output", output) == 2
    error = capsys.readouterr().err
    assert "hole.csv, rows 0 to 59: X holds nan (row 3, column 'a')" in error
    assert error.count("\n") == 1 and not list(folder.glob("*hole-p.csv*"))


@pytest.mark.usefixtures("small_parts")
def test_predictions_begin_with_a_key(folder):
    table = pandas.read_csv(folder / "rows.csv")[["a", "b"]]
    table["id"] = [f"{n:03}" for n in range(60)]
    table.to_csv(folder / "keyed.csv", index=False)
    table[:25].to_parquet(folder / "keyed.parquet")
    for name in ("keyed.csv", "keyed.parquet"):
        given = ("predict", folder / "model.npz", folder / name, "--id", "id")
        assert run(*given, "--output", folder / "k.csv") == 0
        found = pandas.read_csv(folder / "k.csv", dtype={"id": str})
        assert found.columns.tolist() == ["id", "p(bad)", "p(good)", "label"]
        assert found["id"].tolist() == table["id"].tolist()[: len(found)]
    table.rename(columns={"id": "label"}).to_csv(folder / "keyed.csv", index=False)
    given = ("predict", folder / "model.npz", folder / "keyed.csv", "--id", "label")
    assert run(*given, "--output", folder / "l.csv") == 2 and not (folder / "l.csv").exists()


def test_bytes_that_are_no_text_are_told_with_their_column(folder, capsys):
    table = pandas.read_csv(folder / "rows.csv")[["a", "b"]]
    table["id"] = [bytes([255, n]) for n in range(60)]
    table.to_parquet(folder / "bytes.parquet")
    given = ("predict", folder / "model.npz", folder / "bytes.parquet")
    assert run(*given, "--id", "id", "--output", folder / "b.csv") == 2
    assert "bytes.parquet: column 'id' holds bytes that are not UTF-8" in capsys.readouterr().err
    assert not (folder / "b.csv").exists() and run(*given, "--output", folder / "b.csv") == 0


@pytest.mark.slow
def test_what_is_compared_can_be_trained(folder, capsys):
    """Semicolons, a decimal comma, truth values, a target that needs no name, words."""
    table = pandas.read_csv(folder / "rows.csv").rename(columns={"kind": "label"})
    words = np.where(np.arange(60) % 3 == 0, "red", "blue")
    table = table[["a", "b", "label"]].assign(flag=table.a > 0, row=range(60), colour=words)
    table.to_csv(folder / "german.csv", sep=";", decimal=",", index=False)
    how = ("--num-inducing", 5, "--no-progress", "--output", folder / "german.npz")
    assert run("train", folder / "german.csv", *how) == 0
    out = capsys.readouterr().out
    assert "different in each row: row; if this is a row number or an identifier" in out
    found = gb.load(folder / "german.npz")
    assert found.feature_names_in_.tolist() == [
        *("a", "b", "flag", "row", "colour=blue", "colour=red")
    ]
    np.testing.assert_allclose(found.scaler_.mean_[:2], table[["a", "b"]].mean(), rtol=1e-12)
    np.testing.assert_allclose(found.scaler_.mean_[2], table.flag.mean())
    np.testing.assert_allclose(found.scaler_.mean_[-2:], [2 / 3, 1 / 3])
    given = ("predict", folder / "german.npz", folder / "german.csv", "--output", folder / "g.csv")
    assert run(*given) == 0
    table.loc[7, "colour"] = "green"
    table.to_csv(folder / "german.csv", sep=";", decimal=",", index=False)
    assert run(*given) == 2
    error = capsys.readouterr().err
    assert "german.csv, row 7: 'green' in column 'colour' is not one of the words 'blue'" in error
    assert "give --na-values to treat it as missing, or fit again to rows that hold it" in error


def test_errors_about_files_come_before_tensorflow(folder):
    import subprocess
    import sys

    (folder / "hole.csv").write_text("a,b,y\n1,2,u\n3,,v\n1,2,u\n3,4,v\n")
    hole, more = str(folder / "hole.csv"), ["--task", "regression", "--impute"]
    short, odd = str(folder / "short.csv"), str(folder / "odd.csv")
    (folder / "short.csv").write_text("a\n1\n")
    (folder / "odd.csv").write_text("a,b\n1,2\n3,many\n")
    said = [
        (["train", "nowhere.csv"], "nowhere.csv"),
        (["compare", "nowhere.csv"], "nowhere.csv"),
        (["train", hole], "column 'b' has no value in row 1: --impute"),
        (["compare", hole], "column 'b' has no value in row 1: --impute"),
        (["train", hole, *more], "hole.csv: column 'y' holds"),
        (["compare", hole, *more], "hole.csv: column 'y' holds"),
        (["train", hole, "--target", "z"], "hole.csv lacks 'z'; it has a, b, y"),
        (["predict", str(folder / "model.npz"), short], "short.csv lacks 'b'; it has a"),
        (["predict", str(folder / "model.npz"), odd], "column 'b' holds numbers and words"),
        (["predict", str(folder / "model.npz"), hole, "--id", "no"], "hole.csv lacks 'no'; it has"),
    ]
    script = f"""
import sys
from gpflow_bsvm import cli
for command in {[command for command, _ in said]!r}:
    assert cli.main([*command, "--output", {str(folder / "out.csv")!r}]) == 2
    assert "tensorflow" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(said)
    assert all(what in line for line, (_, what) in zip(lines, said))


def test_closed_streams(folder, monkeypatch):
    """Python has None in their place, for instance after `>&-` in a shell."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{name}", None)
    output = folder / "unseen.csv"
    done = run("predict", folder / "model.npz", folder / "rows.csv", "--output", output)
    monkeypatch.undo()
    assert done == 0 and output.exists()


def test_what_is_left_out(folder):
    rows = gb.files.CSVFiles(folder / "rows.csv", target="kind", classes="auto")
    assert rows.left_out == ("",) and rows.features == ("a", "b")
    asked = gb.files.CSVFiles(folder / "rows.csv", features=["", "a"])
    assert asked.left_out == () and asked.features == ("", "a")


def test_a_file_without_an_estimator_is_no_model(folder, capsys):
    gb.save(gb.likelihoods.Hinge(), folder / "part.npz")
    gb.save(gb.BSVMClassifier(), folder / "new.npz")
    novelty = gb.OneClassBSVM()
    novelty.n_features_in_ = 2
    gb.save(novelty, folder / "novelty.npz")
    kinds = {"part.npz": "Hinge", "new.npz": "BSVMClassifier", "novelty.npz": "OneClassBSVM"}
    for name, kind in kinds.items():
        assert run("predict", folder / name, folder / "rows.csv", "--output", folder / "p.csv") == 2
        error = capsys.readouterr().err
        assert f"{name} holds a {kind}, but predict needs a fitted classifier" in error


BAD = {
    "lacks 'b'": ("predict", "model.npz", "short.csv"),
    "there is no file": ("predict", "model.npz", "nowhere.csv"),
    "no such file|No such file|there is no": ("predict", "nowhere.npz", "rows.csv"),
    "rows.csv": ("predict", "rows.csv", "rows.csv"),
    "rows.csv lacks 'colour'; it has ": (
        "train",
        "rows.csv",
        "--target",
        "colour",
        "--output",
        "m.npz",
    ),
    "column 'a' holds 60 different labels in 60 rows, .*regressed.* is --target the right": (
        *("train", "rows.csv", "--target", "a", "--output", "m.npz"),
    ),
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


def test_no_error_is_a_traceback(folder, capsys, monkeypatch):
    def broken(*_, **__):
        raise KeyError("two\nlines")

    output = folder / "broken.npz"
    monkeypatch.setattr(gb.BSVMClassifier, "fit", broken)
    assert train(folder, "rows.csv", "--output", output) == 2
    error = capsys.readouterr().err
    assert "KeyError" in error and error.count("\n") == 1
    assert not output.exists() and not output.with_name("broken.npz.partial").exists()
    monkeypatch.setenv(cli.TRACEBACK, "1")
    with pytest.raises(KeyError):
        train(folder, "rows.csv", "--output", output)


def test_what_cannot_be_saved_is_told_before_the_fit(folder, capsys, monkeypatch):
    monkeypatch.setattr(gb.BSVMClassifier, "fit", lambda *_, **__: pytest.fail("fitted"))
    for output, message in [
        (folder / "no" / "m.npz", "there is no directory"),
        (folder / "parts", "is a directory"),
        (folder / "rows.csv", "is an input and would be overwritten"),
    ]:
        assert train(folder, "rows.csv", "--output", output) == 2
        assert message in capsys.readouterr().err


def test_a_pipe_is_no_table(folder, capsys):
    import os

    os.mkfifo(folder / "pipe")
    assert train(folder, "pipe", "--output", folder / "p.npz") == 2
    assert "pipe is a pipe or a device" in capsys.readouterr().err
    (folder / "pipe").unlink()


def test_a_folder_of_other_files_is_not_deleted(folder, capsys):
    (mine := folder / "other.npz.partial").mkdir()
    (mine / "notes.txt").touch()
    assert train(folder, "rows.csv", "--output", folder / "other.npz") == 2
    assert "other.npz.partial holds other files than checkpoints: give" in capsys.readouterr().err
    assert [*mine.iterdir()] == [mine / "notes.txt"]


def test_numbers_that_may_be_classes_are_asked_about(folder, capsys):
    table = pandas.DataFrame({"a": range(60), "y": [n % 30 for n in range(60)]})
    table.to_csv(folder / "counts.csv", index=False)
    for command in ("train", "compare"):
        how = ("--output", folder / "counts.npz")
        assert run(command, folder / "counts.csv", *how) == 2
        error = capsys.readouterr().err
        assert "holds 30 different numbers in 60 rows: give --task regression, or" in error


@pytest.mark.usefixtures("small_parts")
def test_texts_that_a_spreadsheet_would_calculate(folder):
    table = pandas.read_csv(folder / "rows.csv")[["a", "b"]]
    table["=id"] = ["=1+1", "+2", "-3", "@x", "5"] * 12
    table.to_csv(folder / "formulas.csv", index=False)
    given = ("predict", folder / "model.npz", folder / "formulas.csv", "--id", "=id")
    assert run(*given, "--output", folder / "f.csv", "--spreadsheet") == 0
    found = pandas.read_csv(folder / "f.csv", dtype=str)
    assert found.columns[0] == "'=id"
    assert found["'=id"].tolist() == ["'=1+1", "'+2", "'-3", "'@x", "5"] * 12
    assert run(*given, "--output", folder / "g.csv") == 0
    assert pandas.read_csv(folder / "g.csv", dtype=str)["=id"].tolist() == table["=id"].tolist()


class Death(BaseException):
    """Of a process."""


def dies_at(monkeypatch, home, name, call):
    """The so-manieth call of a method is the end of the process."""
    function, calls = getattr(home, name), iter(range(1000))

    def dying(*arguments, **options):
        if next(calls) == call:
            raise Death
        return function(*arguments, **options)

    monkeypatch.setattr(home, name, dying)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(cli.predict, "PART_ROWS", 7)  # 25 and 35 rows in two files: 9 parts


@pytest.mark.usefixtures("small_parts")
def test_a_table_is_there_as_a_whole_or_not_at_all(folder, monkeypatch):
    output, given = folder / "died.csv", ("predict", folder / "model.npz", folder / "parts")
    output.write_text("of before")
    files = sorted(folder.iterdir())
    with monkeypatch.context() as patch, pytest.raises(Death):
        dies_at(patch, gb.BSVMClassifier, "predict_proba", 3)
        run(*given, "--output", output)
    assert output.read_text() == "of before" and sorted(folder.iterdir()) == files
    assert run(*given, "--output", output) == 0
    assert len(pandas.read_csv(output)) == 60


@pytest.mark.slow
def test_a_training_that_dies_goes_on(folder, capsys):
    from gpflow_bsvm.inference import cavi

    output = folder / "died.npz"
    for call in (1, 3):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Death):
            dies_at(patch, cavi, "sum_over", call)
            train(folder, "rows.csv", "--output", output)
    assert train(folder, "rows.csv", "--output", output, "--seed", 1) == 2
    assert "option random_state was 0, is 1" in capsys.readouterr().err
    assert train(folder, "rows.csv", "--output", output) == 0
    assert f"continues from {output}.partial" in capsys.readouterr().out
    assert not (folder / "died.npz.partial").exists()
    one, two = (gb.load(folder / name).model_ for name in ("died.npz", "model.npz"))
    for a, b in zip(one.parameters, two.parameters, strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_its_extra_compare_tells_of_that_extra_and_no_other(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("a,label\n1,0\n2,1\n")
    for module in ("pandas", "pyarrow", "pyarrow.csv"):
        monkeypatch.setitem(sys.modules, module, None)
    assert run("compare", path, "--output", tmp_path) == 2
    assert 'pip install "gpflow_bsvm[compare]"' in capsys.readouterr().err


def test_weights_that_are_all_zero_are_told(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a,y,w\n" + "1,u,0\n2,v,0\n" * 10)
    how = ["--target", "y", "--weight", "w", "--output", tmp_path / "m.npz"]
    assert run("train", path, *how) == 2
    assert "all weights are 0 (sample_weight" in capsys.readouterr().err
