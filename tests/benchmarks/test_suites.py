"""Suites go on where they were, count what fails, and their statistics are the textbook's."""

import hashlib
import importlib
import os
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

if sys.platform == "win32":
    pytest.skip("suites limit processes by resource and signals", allow_module_level=True)

ROOT = Path(__file__).parents[2]
#: Fits of a suite that does not learn: each method is a way to end.
FITS = """
import os, signal, time
import numpy as np
from gpflow_bsvm.compare.baselines import Skipped
from types import SimpleNamespace

ERROR = 0.25

def cut(name, split):
    if name == "heavy":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "missing":
        raise FileNotFoundError("no such set\\nand more lines")
    X = np.zeros((4, 2))
    return SimpleNamespace(number=split, X=X, y=np.arange(4) % 3, y_test=np.zeros(2), name=name)

def measure(method, fold):
    with open(FITTED, "a") as file:
        file.write(f"{fold.name} {fold.number} {method}\\n")
    if method == "raises":
        raise ArithmeticError("out of luck\\nand more lines")
    if method == "skips":
        raise Skipped("not for this")
    if method == "lacks":
        raise ImportError("no module x")
    if method == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    while method == "spins":
        pass
    while method == "sleeps":
        time.sleep(0.01)
    return {"error": ERROR, "seconds": 1.0}
"""


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def run(benchmarks, tmp_path, monkeypatch):
    """A function that runs stages and returns the rows, and what was fitted since the last time."""
    import store
    import suite
    from suites._contract import Stage, Suite

    fitted, module = tmp_path / "fitted", f"fits_{tmp_path.name}"  # one server for all tests
    (tmp_path / f"{module}.py").write_text(f"FITTED = {str(fitted)!r}\n{FITS}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    folder = tmp_path / "rows"
    folder.mkdir()

    def runs(*stages, seconds=1e6, limit=100.0):
        fitted.write_text("")
        plan = Suite(module, tuple(Stage(*stage) for stage in stages), (), limit)
        runner = suite.Runner(plan, folder, time.monotonic() + seconds, limit)
        try:
            runner.run(smoke=False)
        finally:
            runs.fitted = fitted.read_text().split("\n")[:-1]
        return store.gathered(folder)

    runs.folder, runs.module = folder, module
    return runs


@pytest.mark.slow
def test_a_suite_goes_on_where_it_was(run):
    first = run((("a", "b"), (0, 1), ("m",)))
    assert run.fitted == ["a 0 m", "a 1 m", "b 0 m", "b 1 m"]
    assert (first["status"] == "ok").all() and (first["error"] == 0.25).all()
    assert (first[["n", "n_test", "d", "classes"]] == [4, 2, 2, 3]).all(axis=None)
    again = run((("a", "b"), (0, 1), ("m", "more")))
    assert run.fitted == ["a 0 more", "a 1 more", "b 0 more", "b 1 more"]
    assert len(again) == 8
    (run.folder / "b.csv").unlink()
    assert len(run((("a", "b"), (0, 1), ("m",)))) == 6
    assert run.fitted == ["b 0 m", "b 1 m"]


@pytest.mark.slow
def test_what_fails_has_a_row_and_the_rest_goes_on(run, capsys):
    ways = ("raises", "skips", "lacks", "dies", "spins", "m")
    rows = run((("missing", "heavy", "a"), (0,), ways), limit=1.0)
    assert dict(zip(rows["method"], rows["status"])) == {
        "raises": "failed: ArithmeticError: out of luck",
        "skips": "skipped: not for this",
        "dies": "failed: its process ended by SIGKILL",
        "spins": "failed: over 1 processor seconds",
        "m": "ok",
    }
    assert "heavy: no data: its process ended by SIGKILL\n" in capsys.readouterr().out
    run((("a",), (0,), ways))
    assert run.fitted == ["a 0 lacks"]  # what could not be had is tried again, failures are not


def test_what_cannot_be_had_is_said_in_a_line(run, capsys, monkeypatch):
    from suites import _worker

    monkeypatch.setattr(_worker, "bound", lambda limit: None)  # this is no process of its own
    for data, method in {"missing": "m", "a": "lacks"}.items():
        _worker.work(run.module, run.folder / f"{data}.csv", data, [(3, method)], 1.0)
    assert capsys.readouterr().out.splitlines() == [
        "missing, split 3: no data: no such set",
        "a, split 3, lacks: left out: no module x",
    ]
    assert not list(run.folder.iterdir())


def test_constants_are_others_in_small(run, monkeypatch):
    import suite
    from suites import _worker

    monkeypatch.setattr(_worker, "bound", lambda limit: None)
    path, name = run.folder / "a.csv", f"{run.module}.ERROR"
    _worker.work(run.module, path, "a", [(0, "m")], 1.0, {name: 0.5})
    assert pd.read_csv(path)["error"].tolist() == [0.5]
    for plan in (importlib.import_module(f"suites.{name}").SUITE for name in suite.NAMES):
        for home, _, constant in (name.rpartition(".") for name in plan.short):
            text = (ROOT / "benchmarks" / home.replace(".", "/")).with_suffix(".py").read_text()
            assert re.search(rf"^[\w, ]*\b{constant}\b[\w, ]* = ", text, flags=re.M)


def test_every_method_of_a_suite_runs_in_small(benchmarks):
    from suites import wenzel2017, wistuba2018

    for plan in (wenzel2017.SUITE, wistuba2018.SUITE):
        large, small = (
            {method for stage in stages for method in stage.methods}
            for stages in (plan.stages, plan.smoke)
        )
        assert small == large


@pytest.mark.slow
def test_a_budget_ends_a_suite_and_leaves_no_row_of_what_was_under_way(run):
    import suite

    with pytest.raises(suite.OutOfTime):
        run((("a",), (0,), ("sleeps",)), seconds=1.0)
    assert not list(run.folder.glob("*.csv"))


def test_a_row_is_whole_and_a_fit_has_one(benchmarks, tmp_path):
    import rows_on_disk

    path = rows_on_disk.path_of(tmp_path, "binary/heart")
    row = {"data": "heart", "split": 0, "method": "m", "status": "failed: killed"}
    for _ in range(2):
        rows_on_disk.append(path, row)
    rows_on_disk.append(path, row | {"split": 1, "status": "ok", "error": 0.1, "n": 7})
    assert [file.name for file in tmp_path.iterdir()] == ["binary_heart.csv"]
    assert list(rows_on_disk.read(path)["status"]) == ["failed: killed", "ok"]
    assert rows_on_disk.missing(path, [(0, "m"), (0, "x"), (1, "m")]) == [(0, "x")]
    assert path.read_text().splitlines()[2].startswith("heart,7,,,,1,m,ok,0.1,")


def test_a_measurement_goes_on_where_it_was(benchmarks, tmp_path, monkeypatch):
    import store

    monkeypatch.setattr(store, "RESULTS", tmp_path)
    kept, fitted = store.Kept("name"), []
    for n in (2, 1, 2):
        kept.complete("part", {"n": n}, lambda n=n: fitted.append(n) or [{"error": n / 10}])
    assert fitted == [2, 1]
    assert [(row["n"], row["error"]) for row in kept.rows("n")] == [(1, 0.1), (2, 0.2)]
    monkeypatch.setenv("LIMIT", "0")
    store.Kept("name").complete("part", {"n": 3}, lambda: fitted.append(3))
    assert fitted == [2, 1]


@pytest.mark.parametrize(
    "changed, words", [("rows.csv", "digest"), ("curve.png", "gone"), ("page.md", "digest")]
)
def test_what_is_frozen_stays_as_it_was(benchmarks, tmp_path, changed, words):
    import draw

    page, shown = tmp_path / "page.md", "| 0.1 |\n![a curve](curve.png)\n"
    for name in ("rows.csv", "curve.png"):
        (tmp_path / name).write_text(name)
    digest = hashlib.sha256(f"{shown}rows.csvcurve.png".encode()).hexdigest()[:16]
    page.write_text(f"<!-- frozen rows 1234567 {digest} -->\n{shown}<!-- end -->\n")
    assert not list(draw.thawed(page, tmp_path))
    path = tmp_path / changed
    if words == "gone":
        path.unlink()
    else:
        path.write_text(path.read_text().replace("0.1", "0.2").replace("rows.csv", "others"))
    (line,) = draw.thawed(page, tmp_path)
    assert line.startswith("page.md: frozen rows: ") and words in line


def test_two_runs_of_a_suite_are_one_too_many(benchmarks, tmp_path):
    import suite

    refused = pytest.raises(SystemExit, match="another process")
    with suite.alone(tmp_path), refused, suite.alone(tmp_path):
        pass
    with suite.alone(tmp_path):  # the first has ended
        pass


def test_ranks_are_those_of_the_paper(benchmarks):
    import ranking

    # Wistuba & Rawat (2018), section 4.1: accuracies 1.0, 1.0, 0.8 have ranks 1.5, 1.5, 3.
    table = pd.DataFrame([[0.0, 0.0, 0.2], [0.1, 0.3, np.nan]], columns=list("abc"))
    assert ranking.each_rank(table).to_numpy().tolist() == [[1.5, 1.5, 3], [1, 2, 3]]
    both = pd.DataFrame([[np.nan, 0.5, np.nan]], columns=list("abc"))
    assert ranking.each_rank(both).to_numpy().tolist() == [[2.5, 1, 2.5]]


def test_friedmans_test_is_its_formula(benchmarks, rng):
    import ranking
    from scipy.stats import chi2

    table = pd.DataFrame(rng.normal(size=(12, 4)) + 0.4 * np.arange(4), columns=list("abcd"))
    means, p_value = ranking.ranks(table)
    n, k = table.shape
    statistic = 12 * n / (k * (k + 1)) * (np.sum(means**2) - k * (k + 1) ** 2 / 4)
    np.testing.assert_allclose(p_value, chi2.sf(statistic, k - 1), rtol=1e-10)


@pytest.mark.slow
def test_paired_differences(benchmarks, rng):
    pytest.importorskip("baycomp")
    import ranking

    x = rng.uniform(size=20)
    table = pd.DataFrame({"a": x, "b": x + 0.1, "c": x + 0.001 * rng.normal(size=20), "d": x - 0.1})
    b, c, d = ranking.pairs(table, "a", "bcd", rope=0.01)
    # All differences are beyond the rope, or all within it.
    assert b.better > 0.99 and c.equal > 0.99 and d.worse > 0.99
    for pair in (b, c, d):
        np.testing.assert_allclose(pair.difference, (table["a"] - table[pair.second]).mean())
        np.testing.assert_allclose(pair.better + pair.equal + pair.worse, 1)
        assert pair.low - 1e-12 <= pair.difference <= pair.high + 1e-12


@pytest.mark.slow
def test_sets_count_where_all_methods_were_fitted(benchmarks):
    from tables.suite_means import by_source, complete

    rows = pd.DataFrame(
        [
            *(("one", 0, "a", 0.1), ("one", 0, "b", 0.2), ("one", 1, "a", 0.9)),
            *(("two", 0, "a", 0.3), ("two", 0, "b", np.nan)),
            *(("three", 0, "a", 0.3), ("three", 0, "c", 0.1)),
        ],
        columns=["data", "split", "method", "error"],
    ).assign(status="ok", nll=0.0, brier=0.0, ece=0.0, seconds=1.0, first_seconds=1.0)
    means = complete(rows, ("a", "b")).set_index(["data", "method"])["error"]
    assert means.loc[[("one", "a"), ("one", "b"), ("two", "a")]].tolist() == [0.1, 0.2, 0.3]
    assert np.isnan(means[("two", "b")]) and len(means) == 4
    rows["data"] = rows["data"].replace({"one": "mfeat-pixel", "two": "mfeat-zernike"})
    merged = by_source(complete(rows[rows["error"].notna()], ("a",)))
    assert merged.set_index("data")["error"].to_dict() == pytest.approx(
        {"mfeat": (0.5 + 0.3) / 2, "three": 0.3}
    )


def test_a_plan_has_no_set_twice_and_waits_for_no_tensorflow(benchmarks):
    from suites import wenzel2016, wenzel2017, wistuba2018

    assert len(set(wistuba2018.SETS)) == len(wistuba2018.SETS) >= 50
    assert len(wistuba2018.SMALL) >= 10 and set(wistuba2018.SMALL) < set(wistuba2018.SETS)
    assert not set(wistuba2018.SAME_AS) & set(wistuba2018.SETS)
    for plan in (wistuba2018.SUITE, wenzel2017.SUITE, wenzel2016.SUITE):
        fits = [(name, *fit) for name, some in plan.work(smoke=False) for fit in some]
        assert len(set(fits)) == len(fits)
        heavy = sys.modules[plan.__class__.__module__].__dict__.keys() & {"tensorflow", "gpflow"}
        assert not heavy


@pytest.mark.data
def test_every_multi_class_set_is_in_or_out_for_a_reason(benchmarks, data_directory):
    from suites import wistuba2018

    found = {path.name.split(".")[0] for path in data_directory.glob("multiclass/*.csv*")}
    out = {*wistuba2018.SAME_AS, *wistuba2018.TWO_CLASSES}
    assert found == {*wistuba2018.SETS, *out}
