"""`gpflow-bsvm compare --report` leaves a page, and costs no result."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from comparisons import Reader

from gpflow_bsvm import cli
from gpflow_bsvm.compare import page, report
from gpflow_bsvm.compare.protocol import Comparison

FAST = ["--target", "kind", "--folds", "2", "--num-inducing", "5", "--no-progress"]


@pytest.fixture
def compare(stand_ins, tmp_path):
    """:return: exit code of the command, whose report is `page.html` unless told otherwise."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": X[:, 0] > 0})
    table.to_csv(tmp_path / "ro ws.csv", index=False)

    def run(*options, report=tmp_path / "page.html", names="bsvm", plots="--no-plots"):
        options = [*options, plots] if plots else options
        how = ["--models", names, "--output", tmp_path / "out", "--report", report, *options]
        try:
            return cli.main(["compare", str(tmp_path / "ro ws.csv"), *FAST, *map(str, how)])
        except SystemExit as end:
            return end.code

    return run


def one_line(capsys):
    err = capsys.readouterr().err
    assert err.startswith("gpflow-bsvm: error: ") and err.count("\n") == 1
    return err


@pytest.mark.slow
def test_the_command_writes_a_page_with_itself_on_it(compare, tmp_path, capsys):
    assert compare("--seed", 3, plots=None) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"\nwritten to {tmp_path / 'out'} and {tmp_path / 'page.html'}\n")
    read = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert (
        f"gpflow-bsvm compare '{tmp_path / 'ro ws.csv'}' --target kind --folds 2 "
        f"--num-inducing 5 --no-progress --models bsvm --output {tmp_path / 'out'} "
        f"--report {tmp_path / 'page.html'} --seed 3"
    ) in read.text
    assert "img" in {tag for tag, _ in read.tags}


def test_a_page_in_the_directory_of_results(compare, tmp_path):
    assert compare(report=tmp_path / "out" / "page.HTML") == 0
    assert (tmp_path / "out" / "page.HTML").stat().st_size > 1000


@pytest.mark.parametrize(
    "name, message",
    [
        ("report", "expected a name that ends in .html, got"),
        ("report.pdf", "expected a name that ends in .html, got"),
        ("nowhere/report.html", "there is no directory"),
        ("folder.html", "is a directory, but a file name is needed"),
    ],
)
def test_a_bad_place_ends_before_training(name, message, compare, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Comparison, "run", lambda *args, **kw: pytest.fail("trained"))
    (tmp_path / "folder.html").mkdir()
    assert compare(report=tmp_path / name) == 2
    assert message in one_line(capsys)


def test_without_matplotlib_only_without_pictures(compare, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert compare(plots=None) == 2
    assert 'pip install "gpflow_bsvm[compare]"' in one_line(capsys)
    assert not (tmp_path / "page.html").exists()
    assert compare() == 0
    assert "<svg" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_report_that_fails_costs_no_result(compare, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(page, "_wins", lambda sets: 1 / 0)
    assert compare() == 1
    line = one_line(capsys)
    assert f"cannot write {tmp_path / 'page.html'}: ZeroDivisionError: division by zero" in line
    assert json.loads((tmp_path / "out" / "results.json").read_text())["summary"]
    assert not (tmp_path / "page.html").exists()


def test_a_disk_that_is_full_holds_no_results(compare, tmp_path, capsys, monkeypatch):
    """After the error about the results, it was said that the folder holds them."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write", full)
    monkeypatch.setattr(page, "_wins", lambda sets: 1 / 0)
    assert compare() == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "error: cannot write results: [Errno 28]" in first
    assert f"error: cannot write {tmp_path / 'page.html'}: Zero" in second


def test_an_interrupt_leaves_a_page_of_what_is_done(compare, tmp_path):
    assert compare(names="bsvm,svc") == 130
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "ro ws ended early" in text


def test_an_interrupt_before_the_first_row_spares_an_old_page(compare, tmp_path):
    (tmp_path / "page.html").write_text("old")
    assert compare(names="svc") == 130
    assert (tmp_path / "page.html").read_text() == "old"


def test_a_page_where_all_models_crash(compare, tmp_path, capsys):
    assert compare(names="svgp") == 1
    assert "no model could be fitted" in one_line(capsys)
    assert "failed: RuntimeError: out of luck" in (tmp_path / "page.html").read_text()
