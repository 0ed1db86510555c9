"""What `predict` says of a table that may be read otherwise than that of the training."""

import numpy as np
import pytest
from command_line import run

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
LONG = "für " + "x" * 90
NAMES = ("--names", "a,b,k,y")


@pytest.fixture(scope="module")
def model(tmp_path_factory, quick_training):
    """Of a table in Latin-1 without a header, with points and commas and a long label."""
    folder = tmp_path_factory.mktemp("hints")
    a = np.random.default_rng(0).integers(1000, 4000, 40)
    rows = [f'"{n:,}.5";{n % 7};x;{LONG if n > 2500 else "nö"}\n' for n in a]
    (folder / "t.csv").write_text("".join(rows), encoding="latin-1")
    how = (*NAMES, "--encoding", "latin-1", "--drop", "k", "--num-inducing", 4, "--no-progress")
    assert run("train", folder / "t.csv", *how, "--output", folder / "m.npz") == 0
    return folder / "m.npz"


def test_predict_names_what_to_repeat(model, capsys):
    """Of a file alone are its encoding and the names of its columns."""
    data, output = model.with_name("t.csv"), model.with_name("p.csv")
    given = ("predict", model, data, "--output", output)
    assert run(*given) == 2
    error = capsys.readouterr().err
    assert "t.csv: it is not utf-8" in error
    assert "; training had --names a,b,k,y --encoding latin-1: repeat options that" in error
    assert run(*given, "--encoding", "latin-1") == 2
    assert "; training had --names a,b,k,y: repeat" in capsys.readouterr().err
    assert run(*given, "--encoding", "latin-1", *NAMES) == 0
    found = pandas.read_csv(output)
    assert {*found["label"]} == {LONG, "nö"}  # in full
    assert [*found] == [f"p({LONG})", "p(nö)", "label"]


def test_messages_are_short(model, capsys):
    how = (*NAMES, "--encoding", "latin-1", "--drop", "k", "--num-inducing", 4, "--no-progress")
    output = model.with_name("again.npz")
    assert run("train", model.with_name("t.csv"), *how, "--output", output) == 0
    out = capsys.readouterr().out
    assert LONG not in out and out.count("'für xxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxx', 'nö'") == 2


def test_whole_thousands_are_asked_about(model, capsys):
    data = model.with_name("new.csv")
    told = "three digits after each point, unlike in training: a; if 1.234 means 1234, give --thous"
    for rows, hint in (("3.125,1\n1.250,2\n", True), ("3.5,1\n1.250,2\n", False)):
        data.write_text("a,b\n" + rows)
        assert run("predict", model, data, "--output", model.with_name("q.csv")) == 0
        assert (told in capsys.readouterr().out) == hint


def test_a_key_is_one_column(model, capsys):
    data = model.with_name("keys.csv")
    data.write_text("a,b,k,k\n3.5,1,u,v\n")
    given = ("predict", model, data, "--id", "k", "--output", model.with_name("k.csv"))
    assert run(*given) == 2
    assert "keys.csv has several columns 'k': rename" in capsys.readouterr().err


def test_all_columns_with_holes_are_named(tmp_path, capsys):
    names = "abcdefg"
    holes = "," * len(names) + "u\n"
    (tmp_path / "t.csv").write_text(",".join([*names, "y"]) + "\n" + holes + "1,2,3,4,5,6,7,v\n")
    for command in ("train", "compare"):
        assert run(command, tmp_path / "t.csv", "--output", tmp_path / "m.npz") == 2
        error = capsys.readouterr().err
        assert "column 'a' has no value in row 0, 'b' has no value in row 0, " in error
        assert "'e' has no value in row 0: --impute" in error
        assert "--drop a,b,c,d,e,f,g leaves the columns out" in error


@pytest.fixture(scope="module")
def of_a_folder(tmp_path_factory, quick_training):
    """A model of two files with names of rows by R, and -99 where a value is missing."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "rows" / "sub").mkdir(parents=True)
    for number, name in enumerate(("a.csv", "sub/b.tab")):
        rows = [f"r{n},{n % 7 or -99.0},{n % 5},{'uv'[n % 2]}\n" for n in range(number, 20)]
        (folder / "rows" / name).write_text("a,b,y\n" + "".join(rows))
    (folder / "rows" / "notes.docx").write_text("?")
    how = ("--na-values", "-99,none", "--impute", "--num-inducing", 4, "--no-progress")
    assert run("train", folder / "rows", *how, "--output", folder / "m.npz") == 0
    return folder / "m.npz"


def test_files_of_a_folder_are_told(of_a_folder, capsys):
    folder, output = of_a_folder.parent / "rows", of_a_folder.with_name("p.csv")
    told = f"2 files of {folder} are read, including subdirectories: a.csv to sub/b.tab; left out: "
    assert run("predict", of_a_folder, folder, "--output", output) == 0
    assert told in capsys.readouterr().out
    assert run("compare", folder, "--na-values", "-99,x", "--output", folder / "out") == 2
    assert told in capsys.readouterr().out


def test_missing_values_of_training_are_missing_beside_those_given(of_a_folder, capsys):
    data, output = of_a_folder.with_name("new.csv"), of_a_folder.with_name("p.csv")
    data.write_text("a,b\n-99,1\nunknown,1\n,1\n")
    given = ("predict", of_a_folder, data, "--na-values", "unknown", "--output", output)
    assert run(*given) == 0
    told = capsys.readouterr().out
    assert "medians replace 3 missing values" in told
    assert "only one of this table and the training table has row names" in told
    found = pandas.read_csv(output)
    assert found.nunique().tolist() == [1] * found.shape[1]
    data.write_text('"a","b"\n' + "".join(f'"r{n}",{n},1\n' for n in range(3)))
    assert run("predict", of_a_folder, data, "--output", output) == 0
    assert "names of rows" not in capsys.readouterr().out.replace("index, names of rows", "")


@pytest.mark.parametrize(("text", "key"), [("a,b\n3.5,1\n", ("--id", "name")), ("a,b\n", ())])
def test_a_single_file_is_not_to_be_left_out(model, capsys, text, key):
    data = model.with_name("single.csv")
    data.write_text(text)
    assert run("predict", model, data, *key, "--output", model.with_name("s.csv")) == 2
    error = capsys.readouterr().err
    assert "lacks 'name'" in error if key else "has no rows; at least one is needed" in error
    assert "leave it out" not in error
