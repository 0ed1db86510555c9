"""The suite of Wenzel et al. (2016): what is planned, how q is compared with draws, its tables."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def fold():
    from suites import _linear

    fold = _linear.generated(60, 0)
    return replace(fold, X_test=fold.X_test[:200], y_test=fold.y_test[:200])


def test_the_whole_table_of_the_paper_is_planned():
    from suites import wenzel2016
    from tables.scores import BATCH

    fits = [(data, *fit) for data, some in wenzel2016.SUITE.work(smoke=False) for fit in some]
    wanted = {
        (data, fold, method)
        for data in BATCH
        for fold in range(10)
        for method in (*wenzel2016.MACHINES, *wenzel2016.PEERS)
    }
    assert wanted <= set(fits) and len(fits) == len(set(fits))
    for data in wenzel2016.CONSTANT_SETS:
        assert {(data, fold, "grid-1000") for fold in range(10)} <= set(fits)


def test_all_methods_are_known_and_nearly_all_in_the_smoke_suite():
    from suites import _wenzel2016, wenzel2016

    known = {*_wenzel2016.TRACED, *_wenzel2016.OTHERS}
    assert known == {method for stage in wenzel2016.SUITE.stages for method in stage.methods}
    (smoke,) = wenzel2016.SUITE.smoke
    another_bound = {"bsvm-exact", "linear-exact", "learned-exact"}
    assert known - set(smoke.methods) == {"grid-1000", "bsvm-augmented-all", *another_bound}


def test_generated_rows_are_those_of_the_split():
    from suites import _linear

    fold, again, other = (_linear.generated(100, split) for split in (1, 1, 2))
    assert (fold.X == again.X).all() and (fold.y_test == again.y_test).all()
    assert (fold.X != other.X).all()
    assert fold.X.shape == (100, 10) and fold.X_test.shape == (10_000, 10)
    beta = np.random.default_rng(1).normal(size=10)  # the first draw
    agree = np.mean((fold.X_test @ beta > 0) == fold.y_test)
    # P(agree) = 1 - arctan(1 / |beta|) / pi for unit noise; 5 deviations of 10 000 rows.
    wanted = 1 - np.arctan(1 / np.linalg.norm(beta)) / np.pi
    np.testing.assert_allclose(agree, wanted, atol=5 * np.sqrt(wanted * (1 - wanted) / 10_000))


@pytest.mark.data
def test_folds_are_those_of_the_rows_on_disk():
    from measurements._common import numbered
    from sklearn.model_selection import StratifiedKFold
    from suites import _wenzel2016

    X, y = numbered("crabs")
    train, test = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))[3]
    fold = _wenzel2016.cut("crabs", 3)
    assert (fold.test == test).all() and (fold.y == y[train]).all() and fold.number == 3
    np.testing.assert_allclose(fold.X.std(axis=0), 1)


def test_q_is_compared_with_draws_in_their_deviations(fold):
    from suites._draws import WHOLE, compared

    n = len(fold.y_test)
    moments = {"augmented": (1.0, 0.25), "exact": (0.5, 1.0)}
    draws = SimpleNamespace(
        predict_f=lambda X: (np.zeros([n, 1]), np.full([n, 1], 4.0)),
        predict_y=lambda X: (np.full([n, 1], 0.7), None),
        effective_draws=lambda: np.array([[9.0, 7.0]]),
    )
    gibbs = SimpleNamespace(run=lambda model, data, progress: draws)
    steps = WHOLE._replace(tight=SimpleNamespace(run=lambda model, data, progress: None))

    def make_model(bound):
        return SimpleNamespace(predict_f=lambda X: [np.full([n, 1], m) for m in moments[bound]])

    predict, cells = compared(make_model, fold, steps, gibbs)
    assert (predict(fold.X_test) == 0.7).all()
    wanted = {"gap_augmented": 0.5, "ratio_augmented": 0.25, "gap_exact": 0.25, "ratio_exact": 0.5}
    assert {name: cells[name] for name in wanted} == pytest.approx(wanted, rel=1e-12)
    assert cells["effective"] == 7 and cells["seconds"] >= 0


def test_cells_of_a_suites_own_come_behind_the_others(tmp_path):
    import rows_on_disk

    path = tmp_path / "rows.csv"
    row = {"data": "a", "split": 0, "status": "ok"}
    rows_on_disk.append(path, row | {"method": "one"})
    rows_on_disk.append(path, row | {"method": "two", "C": 0.5})
    rows_on_disk.append(path, row | {"method": "three", "steps": 3})
    table = rows_on_disk.read(path)
    assert tuple(table) == (*rows_on_disk.COLUMNS, "C", "steps")
    assert table["C"].fillna(0).tolist() == [0, 0.5, 0]


ROWS = {
    "bsvm-augmented": ((0, 0.1, 2.0), (1, 0.2, 4.0)),
    "svc": ((0, 0.3, 1.0), (1, 0.1, 1.0)),
    "gpc": ((1, 0.25, 8.0),),
}


def _rows(name="sonar", **cells):
    about = {"data": name, "n": 187, "d": 60, "status": "ok"}
    fits = [(method, *fit) for method, some in ROWS.items() for fit in some]
    columns = ["method", "split", "error", "seconds"]
    return pd.DataFrame(fits, columns=columns).assign(**about, **cells)


def test_the_table_has_means_over_folds_and_times_of_the_same_folds():
    from tables.scores import BATCH
    from tables.wenzel2016 import wenzel2016

    failed = _rows("sonar").iloc[:1].assign(split=2, error=np.nan, status="failed: luck")
    rows = pd.concat([failed, *map(_rows, BATCH)])
    line = wenzel2016(rows).splitlines()[2]
    assert line == (
        "| sonar | 187 / 60 | 12.5 / 13.5 / 19.5 | 15.0 ± 7.1, 1 (2) | - | - "
        "| 20.0 ± 14.1, 0.38 (2) | 25.0, 2 (1) |"
    )


def test_growth_is_the_exponent_between_the_largest_numbers_of_rows():
    from tables.wenzel2016 import wenzel2016_linear

    methods = ("linear-augmented", "linear-exact", "linear-svi", "linear-mcmc", "linear-svc")
    rows = [
        (f"generated-{n}", n, method, 0, 0.1, 3.0 * n**power)
        for power, method in enumerate(methods)
        for n in (1000, 10_000, 100_000)
    ]
    columns = ["data", "n", "method", "split", "error", "seconds"]
    table = wenzel2016_linear(pd.DataFrame(rows, columns=columns).assign(status="ok"))
    lines = table.splitlines()
    assert lines[3].startswith("| 10000 | 1 | 10.0, 1 | 10.0, 1e+04 |")
    assert lines[-1] == "| time grows as |  | N^0.00 | N^1.00 | N^2.00 | N^3.00 | N^4.00 |"


def test_a_grid_is_compared_on_the_folds_that_it_was_run_on():
    from suites.wenzel2016 import CONSTANT_SETS, GRIDS, LEARNED
    from tables.wenzel2016 import wenzel2016_grid

    fits = [
        (data, method, split, 0.1 * (split + 1), 4.0**split)
        for data in CONSTANT_SETS
        for method in (*LEARNED, *GRIDS)
        for split in range(1 if method == GRIDS[1] else 2)
    ]
    rows = pd.DataFrame(fits, columns=["data", "method", "split", "error", "C"])
    rows = rows.assign(seconds=1.0, status="ok", error_svc=0.3)
    line = wenzel2016_grid(rows).splitlines()[2]
    cell = "10.0, 1"
    assert line == f"| heart | 1 | {cell} | {cell} | {cell} | {cell} | 30.0 | 1 | 1 |"


def test_minutes_are_those_of_the_rows_and_the_rest_is_as_on_other_splits():
    from suites import wenzel2016
    from tables.suite_times import SUITES, suite_times

    rows = _rows().assign(first_seconds=30.0)
    rows.loc[0, "status"] = "failed: luck"
    line = suite_times(*[rows] * len(SUITES)).splitlines()[2]
    fits = [fit for _, some in wenzel2016.SUITE.work(smoke=False) for fit in some]
    # Of eight more folds of "bsvm-augmented" and "svc", nine of "gpc", other splits are known.
    minutes, unknown = (8 * 3 + 8 * 1 + 9 * 8) / 60, len(fits) - len(rows) - 25
    about = f"| wenzel2016 | 5 of {len(fits)} | 1 | 0.3 | 2.5 | sonar, gpc: 0.1 |"
    assert line == f"{about} {minutes:.0f} | {unknown} |"


@pytest.mark.slow
def test_draws_by_gibbs_are_wider_than_the_papers_q(fold):
    from suites import _wenzel2016

    row = _wenzel2016.measure("linear-mcmc", fold)
    assert row["effective"] > 50 and row["seconds"] > 0 and row["first_seconds"] > 0
    # Mean field between f and its local variables is too narrow; the exact bound is less so.
    assert row["ratio_augmented"] < row["ratio_exact"] < 1.1
    assert row["gap_augmented"] < 0.5 and row["gap_exact"] < 0.5
    assert np.isfinite([row["error"], row["nll"]]).all()


@pytest.mark.slow
def test_a_learned_constant_is_twice_the_variance_of_weights(fold):
    from suites import _linear, _wenzel2016
    from suites._draws import WHOLE, pairs

    from gpflow_bsvm.likelihoods import Hinge
    from gpflow_bsvm.models import LinearBSVM

    row = _wenzel2016.measure("learned-augmented", fold)
    model = LinearBSVM(10, Hinge(2.0, bound="augmented"), 0.1)
    WHOLE.vem.run(model, pairs(fold), progress=False)
    np.testing.assert_allclose(row["C"], 2 * model.kernel.variance.numpy(), rtol=1e-8)
    svc = _linear._svc(fold, row["C"]).predict(fold.X_test)
    assert row["error_svc"] == np.mean(svc != fold.y_test)
