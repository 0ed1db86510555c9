"""The command line as a newcomer meets it: help at once, one line for an error, results on disk."""

import errno
import gc
import io
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import run
from sklearn.datasets import make_moons

import gpflow_bsvm
from gpflow_bsvm import cli
from gpflow_bsvm.cli import shared
from gpflow_bsvm.compare import report
from gpflow_bsvm.compare.protocol import Comparison, Settings
from gpflow_bsvm.compare.registry import BASELINES, default_baselines

FAST = ["--folds", "2", "--num-inducing", "10", "--no-progress", "--fixed-kernel"]


@pytest.fixture
def table(tmp_path):
    X, y = make_moons(60, noise=0.2, random_state=0)
    path = tmp_path / "moons.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": y}).to_csv(path, index=False)
    return str(path)


def error_line(capsys):
    err = capsys.readouterr().err
    assert err.startswith("gpflow-bsvm: error: ")
    assert err.count("\n") == 1
    return err


# --- good input ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_end_to_end(table, tmp_path, capsys):
    output = tmp_path / "out"
    models = "bsvm,svc"
    code = run("compare", table, "--target", "kind", "--models", models, "--output", output, *FAST)
    assert code == 0
    out, err = capsys.readouterr()
    assert "moons: N = 60, D = 2, 2 folds, M = 10" in out
    assert err == ""
    assert sorted(path.name for path in output.iterdir()) == [
        "moons.png",
        "results.csv",
        "results.json",
    ]
    rows = pd.read_csv(output / "results.csv")
    assert list(rows.model) == ["bsvm", "svc"] * 2
    assert set(rows.status) == {"ok"}


@pytest.mark.slow
def test_three_classes_with_words_for_labels(tmp_path, capsys):
    random = np.random.default_rng(0)
    kind = np.repeat(["circle", "line", "square"], 20)
    X = random.normal(size=(60, 2)) + np.repeat([[0, 0], [3, 0], [0, 3]], 20, axis=0)
    path = tmp_path / "shapes.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": kind}).to_csv(path, index=False)
    models = "bsvm,probit-engine,svc"
    arguments = [path, "--target", "kind", "--models", models, "--output", tmp_path / "out"]
    assert run("compare", *arguments, *FAST) == 0
    out = capsys.readouterr().out
    assert "shapes: N = 60, D = 2, C = 3, 2 folds, M = 10" in out
    assert "probit-engine   skipped: for two classes only" in out
    rows = pd.read_csv(tmp_path / "out" / "results.csv").set_index("model")
    assert set(rows.loc["probit-engine"].status) == {"skipped: for two classes only"}
    assert (rows.loc[["bsvm", "svc"]].error < 0.3).all()  # at random: 2/3
    assert (tmp_path / "out" / "shapes.png").is_file()


def test_options_arrive(stand_ins, table, tmp_path):
    arguments = [table, "--target", "kind", "--models", "bsvm", "--no-plots", "--seed", "7", *FAST]
    assert run("compare", *arguments, "--output", tmp_path) == 0
    settings = json.loads((tmp_path / "results.json").read_text())["settings"]
    assert settings.pop("task") == "classification"
    assert settings == {"folds": 2, "num_inducing": 10, "fixed_kernel": True, "seed": 7}
    assert not list(tmp_path.glob("*.png"))


def test_default_data_and_all_models(stand_ins, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Comparison, "run", lambda self, *how: seen.append(self))
    run("compare", "--output", tmp_path, "--jobs", "1")
    names = [comparison.dataset.name for comparison in seen]
    assert names == ["breast-cancer", "banana-like", "even-digits", "iris"]
    assert [comparison.models for comparison in seen] == [
        ["bsvm", "svgp", "BSVMClassifier", "svc"]
    ] * 4
    assert seen[-1].settings == Settings(folds=3, num_inducing=50)
    run("compare", "digits", "--fixed-kernel", "--output", tmp_path)
    assert seen[-1].models == default_baselines(10, fixed_kernel=True)
    assert seen[-1].settings == Settings(folds=10, fixed_kernel=True)
    run("compare", "digits", "--models", "bsvm,svc", "--output", tmp_path)
    assert seen[-1].models == ["bsvm", "svc"]


def test_what_was_done_to_the_columns_is_told(stand_ins, table, tmp_path, capsys):
    frame = pd.read_csv(table).assign(colour=["red", "green", "blue"] * 20)
    frame.to_csv(tmp_path / "moons.csv", sep=";")  # and an index without a name
    arguments = [tmp_path / "moons.csv", "--target", "kind", "--models", "bsvm", *FAST]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "moons: left out: column 1, '': an index, " in out
    assert "moons: words of colour: 'blue', 'green', 'red'\n" in out
    assert "moons: N = 60, D = 5" in out


def test_earlier_results_are_not_replaced_without_a_word(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Comparison, "run", lambda self, *how: None)
    run("compare", "iris", "--no-plots", "--output", tmp_path / "out")
    assert "earlier" not in capsys.readouterr().out
    assert (tmp_path / "out" / "results.json").is_file()
    run("compare", "iris", "--no-plots", "--output", tmp_path / "out")
    assert f"earlier comparison in {tmp_path / 'out'} will be replaced" in capsys.readouterr().out


@pytest.mark.slow
def test_two_files_of_one_name_are_kept_apart(stand_ins, table, tmp_path):
    (tmp_path / "Moons.csv").write_bytes(pathlib.Path(table).read_bytes())  # as some systems say
    arguments = [
        table,
        tmp_path / "Moons.csv",
        "--target",
        "kind",
        "--models",
        "bsvm",
        "--jobs",
        "1",
        *FAST,
    ]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 0
    rows = pd.read_csv(tmp_path / "out" / "results.csv")
    assert list(rows.dataset) == ["moons"] * 2 + ["Moons#2"] * 2
    assert len(list((tmp_path / "out").glob("*.png"))) == 2


def test_help_knows_all_models(capsys):
    assert run("compare", "--help") == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in BASELINES)


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"gpflow-bsvm {gpflow_bsvm.__version__}\n"


@pytest.mark.parametrize("argument", ["--help", "--bogus"])
def test_arguments_are_read_without_tensorflow(argument):
    """The module by itself: its package is left out, which may import what it likes."""
    folder = pathlib.Path(gpflow_bsvm.__file__).parent
    script = f"""
import sys, types
package = types.ModuleType("gpflow_bsvm")
package.__path__ = [{str(folder)!r}]
sys.modules["gpflow_bsvm"] = package
from gpflow_bsvm import cli
try:
    cli.main(["compare", {argument!r}])
finally:
    assert not {{"tensorflow", "sklearn", "pandas"}} & set(sys.modules), "heavy imports"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "heavy imports" not in done.stderr
    assert done.returncode == (0 if argument == "--help" else 2)


def test_the_first_line_comes_before_tensorflow(tmp_path):
    """As above; what comes after that line does not matter."""
    folder = pathlib.Path(gpflow_bsvm.__file__).parent
    script = f"""
import sys, types
package = types.ModuleType("gpflow_bsvm")
package.__path__ = [{str(folder)!r}]
sys.modules["gpflow_bsvm"] = package
from gpflow_bsvm.cli import compare, main
def first(text):
    print(text, "tensorflow" in sys.modules)
    raise ValueError("enough")
compare.show = first
main(["compare", "iris", "--output", {str(tmp_path)!r}])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "comparing on iris; TensorFlow takes a few seconds to start False\n"


def test_graphs_are_not_collected_when_the_process_ends(monkeypatch):
    registered = []
    monkeypatch.setattr(cli.atexit, "register", registered.append)
    run("--version")
    assert registered == [gc.freeze]


@pytest.mark.slow
def test_a_job_has_one_bar_and_ends_with_its_time(stand_ins, table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    fast = [option for option in FAST if option != "--no-progress"]
    arguments = [table, "iris", "--target", "kind", "--models", "bsvm", "--jobs", "1", *fast]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 0
    out, err = capsys.readouterr()
    assert "4/4" in err and "2/2" not in err
    assert re.search(r"\ntook \d+ s\nwritten to ", out)


def test_ascii_terminals_get_ascii(monkeypatch):
    for encoding, expected in [("ascii", b"1+-2 us\n"), ("utf-8", "1±2 µs\n".encode())]:
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        shared.show("1±2 µs")
        assert raw.getvalue() == expected


# --- bad input and bad luck ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv, message",
    [
        ([], "COMMAND"),
        (["comapre"], "invalid choice: 'comapre'"),
        (["compare", "--bogus"], "--bogus"),
        (["compare", "--folds", "1"], "no integer from 2 to 999999999: '1'"),
        (["compare", "--folds", "two"], "no integer from 2 to 999999999: 'two'"),
        (["compare", "--seed", "4294967295"], "no integer from 0 to 999999999: '42949"),
        (["compare", "--num-inducing", "0"], "no integer from 1 to"),
        (["compare", "--seed", "-1"], "no integer from 0 to"),
        (["compare", "--models", "bsvm,foo"], "'bsvm,foo': choose from bsvm,"),
        (["compare", "--models", ","], "choose from bsvm,"),
    ],
)
def test_bad_arguments(argv, message, capsys):
    assert run(*argv) == 2
    assert message in error_line(capsys)


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,y\n1,0.5\n2,1.5\n3,2.5\n", "such as 0.5: they look like numbers"),
        ("a,y\n1,x\n2,z\n3,z\n", "1 row(s) of class x"),
        (
            "a,y\n1,0\nfemale,1\n",
            "column 'a' holds numbers and words such as 'female' (row 1): give --na-values female",
        ),
        ("a,b\n1,0\n", "--target"),
    ],
)
def test_bad_data_end_before_training(content, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Comparison, "run", lambda *args: pytest.fail("trained"))
    path = tmp_path / "some.csv"
    path.write_text(content)
    assert run("compare", "breast-cancer", path, "--output", tmp_path) == 2
    assert message in error_line(capsys)


def test_unwritable_output_ends_before_training(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Comparison, "run", lambda *args: pytest.fail("trained"))
    (tmp_path / "file").touch()
    assert run("compare", "--output", tmp_path / "file") == 2
    assert f"cannot write to {tmp_path}" in error_line(capsys)


def test_a_missing_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("compare", "--output", tmp_path) == 2
    assert 'pip install "gpflow_bsvm[compare]"' in error_line(capsys)


def test_a_crashing_model_among_others(stand_ins, table, tmp_path, capsys):
    arguments = [table, "--target", "kind", "--models", "svgp,bsvm", *FAST]
    assert run("compare", *arguments, "--output", tmp_path / "new" / "out") == 0
    assert "failed: RuntimeError: out of luck" in capsys.readouterr().out
    assert (tmp_path / "new" / "out" / "moons.png").is_file()


def test_all_models_crash(stand_ins, table, tmp_path, capsys):
    arguments = [table, "--target", "kind", "--models", "svgp", *FAST]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 1
    out, err = capsys.readouterr()
    assert "written to" not in out
    assert err == f"gpflow-bsvm: error: no model could be fitted, see {tmp_path / 'out'}\n"
    assert len(pd.read_csv(tmp_path / "out" / "results.csv")) == 2
    assert not list((tmp_path / "out").glob("*.png"))  # there is nothing to draw


def test_an_interrupt_leaves_what_is_done(stand_ins, table, tmp_path, capsys):
    arguments = [table, "--target", "kind", "--models", "bsvm,svc", *FAST]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 130
    out, err = capsys.readouterr()
    assert "gpflow-bsvm: interrupted" in err
    assert "bsvm " in out
    assert list(pd.read_csv(tmp_path / "out" / "results.csv").model) == ["bsvm"]


def test_an_interrupt_before_the_first_row(stand_ins, table, tmp_path):
    arguments = [table, "--target", "kind", "--models", "svc", *FAST]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 130


def test_a_disk_that_fills_up(stand_ins, table, tmp_path, capsys, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write", full)
    arguments = [table, "--target", "kind", "--models", "bsvm", "--no-plots", *FAST]
    assert run("compare", *arguments, "--output", tmp_path / "out") == 1
    assert "No space left" in error_line(capsys)


def test_no_picture_of_former_results_is_left(stand_ins, table, tmp_path):
    """Only those that the results there say to be theirs; nothing else is removed."""
    output, other = tmp_path / "out", tmp_path / "other.csv"
    other.write_text(pathlib.Path(table).read_text())
    how = ["--target", "kind", "--models", "bsvm", "--output", output, *FAST]
    assert run("compare", table, *how) == 0
    (output / "mine.png").touch()
    assert run("compare", other, *how) == 0
    assert {path.name for path in output.glob("*.png")} == {"mine.png", "other.png"}
    assert run("compare", other, *how, "--no-plots") == 0
    assert {path.name for path in output.glob("*.png")} == {"mine.png"}
    record = json.loads((output / "results.json").read_text())
    assert record["pictures"] == []
    for pictures in ["../moons.csv", "mine.png.txt"], []:
        (output / "results.json").write_text(json.dumps(record | {"pictures": pictures}))
        assert run("compare", other, *how, "--no-plots") == 0
    assert pathlib.Path(table).exists()


def test_what_takes_part_is_explained_and_nothing_else(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Comparison, "run", lambda self, *how: None)
    both = "bsvm and svgp have the same kernel"
    for models, there in (("svc", ["SVC"]), ("bsvm,svgp", ["VEM", "Adam", both])):
        run("compare", table, "--target", "kind", "--models", models, "--output", tmp_path / "out")
        out = capsys.readouterr().out
        told = [one for one in ("SVC", "VEM", "Adam", both, "BSVMClassifier") if one in out]
        assert told == there


def test_output_to_a_full_disk_is_named(monkeypatch, capsys, table):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert run("train", table, "--target", "kind", "--output", f"{table}.npz") == 2
    assert "No space left on device: 'standard output'" in error_line(capsys)
