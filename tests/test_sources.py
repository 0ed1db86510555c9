"""Rows that are not in memory: the same fits from all sources, one clear error for bad ones."""

import importlib
import itertools
import threading
import weakref

import gpflow
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import tensorflow as tf
from conftest import assert_same_state, make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks, CSVFiles, ParquetFiles
from gpflow_bsvm.data.minibatches import blocks
from gpflow_bsvm.data.passes import map_over, sum_over
from gpflow_bsvm.data.prefetch import prefetched
from gpflow_bsvm.engine.contracts import open_data
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger

N = 200
CUTS = [0, 30, 31, 150, N]


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(N)
    return X.astype(np.float32).astype(float), Y  # as it comes back from single precision


@pytest.fixture(scope="module")
def weight():
    return np.linspace(0.5, 2, N)


@pytest.fixture(autouse=True)
def chunks_of_64_rows(small_chunks):
    small_chunks(cached=True)


def readers():
    return [t for t in threading.enumerate() if t.name.startswith("gpflow_bsvm-reader")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert not readers()


def table_of(data, weight=None, labels=None):
    X, Y = data
    columns = {f"x{n}": column for n, column in enumerate(X.T)}
    columns["y"] = Y[:, 0] if labels is None else labels
    return pa.table(columns if weight is None else columns | {"w": weight})


def parts_of(table):
    return [table[a:b] for a, b in itertools.pairwise(CUTS)]


def parquet(folder, table, name="rows"):
    """Files of several row groups."""
    (folder / name).mkdir()
    for number, part in enumerate(parts_of(table)):
        pq.write_table(part, folder / name / f"part-{number}.parquet", row_group_size=40)
    return folder / name


def csv(folder, table, name="texts"):
    (folder / name).mkdir()
    for number, part in enumerate(parts_of(table)):
        pa.csv.write_csv(part, folder / name / f"part-{number}.csv")
    return folder / name


def mapped(folder, values, name="X.npy"):
    np.save(folder / name, values)
    return np.load(folder / name, mmap_mode="r")


def block_list(data, weight=None):
    columns = data if weight is None else (*data, weight)
    return [tuple(c[a:b] for c in columns) for a, b in itertools.pairwise(CUTS)]


class Anew:
    """Anything whose `iter()` starts anew."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


def kinds(folder, data, weight):
    """The same rows in every kind of data, and the weights that are given beside them."""
    single = mapped(folder, data[0].astype(np.float32))
    columns = {"target": "y", "weight": "w"}
    table, made = table_of(data, weight), block_list(data, weight)
    return {
        "memmap": ((single, mapped(folder, data[1], "Y.npy")), weight),
        "plain view of a memmap": ((np.asarray(single)[:, :], data[1]), weight),
        "parquet": (ParquetFiles(parquet(folder, table), **columns), None),
        "csv": (CSVFiles(csv(folder, table), **columns), None),
        "list": (made, None),
        "object": (Anew(made), None),
        "function": (Blocks(lambda: (block for block in made), num_rows=N), None),
        "sparse": ([(scipy.sparse.csr_array(X), Y, w) for X, Y, w in made], None),
        "dataset": (
            tf.data.Dataset.from_tensor_slices((*data, weight)).batch(30),
            None,
        ),
    }


@pytest.fixture(scope="module")
def given(tmp_path_factory, data, weight):
    return kinds(tmp_path_factory.mktemp("rows"), data, weight)


# --- the same rows -------------------------------------------------------------------------------


def test_every_kind_gives_the_same_rows_in_the_same_chunks(data, weight, given):
    model = make_model(data)
    expected = list(open_data(model, data, weight).chunks())
    for rows, beside in given.values():
        source = open_data(model, rows, beside)
        assert source.num_rows == N
        for one, two in itertools.zip_longest(source.chunks(), expected):
            for a, b in zip(one, two):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == gpflow.default_float()


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
def test_cavi_is_the_same(data, weight, given, cached, small_chunks):
    small_chunks(cached)
    one = make_model(data)
    first = CAVI(max_steps=2).run(one, data, sample_weight=weight)
    for rows, beside in given.values():
        two = make_model(data)
        second = CAVI(max_steps=2).run(two, rows, sample_weight=beside)
        np.testing.assert_allclose(first.elbo, second.elbo, rtol=1e-10)
        assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memmap", "parquet"])
def test_the_mode_and_what_follows_a_fit_are_the_same(data, weight, given, kind):
    found = []
    for rows, beside in ((data, weight), given[kind]):
        model = make_model(data)
        ECM(max_steps=3).run(model, rows, sample_weight=beside)
        CAVI(max_steps=3).run(model, rows, sample_weight=beside)
        left_out = gb.prediction.leave_one_out(model, rows, sample_weight=beside)
        link = gb.prediction.calibrate(model, rows, sample_weight=beside)
        found.append([*left_out, *link.values()])
    for one, two in zip(*found):
        np.testing.assert_allclose(one, two, rtol=1e-10)


@pytest.mark.slow
def test_predictions_look_at_no_labels(data, given):
    model = make_model(data)
    CAVI(max_steps=2).run(model, data)
    predict, doubt = gb.prediction.predict_probabilities, gb.prediction.variation_ratio
    for rows, _ in given.values():
        rows = rows[0] if isinstance(rows, tuple) else rows
        rows = Blocks(rows) if isinstance(rows, (list, Anew)) else rows
        for options in ({}, {"chunk_rows": 7}):
            found = predict(model, rows, **options)
            np.testing.assert_array_equal(found, predict(model, data[0], **options))
        np.testing.assert_array_equal(doubt(model, rows), doubt(model, data[0]))


def test_predictions_from_rows_without_labels(data, tmp_path):
    model = make_model(data)
    CAVI(max_steps=2).run(model, data)
    expected = gb.prediction.predict_probabilities(model, data[0])
    folder = parquet(tmp_path, table_of(data).drop_columns("y"))
    for rows in (ParquetFiles(folder), Blocks([data[0][:50], data[0][50:]])):
        np.testing.assert_array_equal(gb.prediction.predict_probabilities(model, rows), expected)
        with pytest.raises(ValueError, match=r"no labels: .*\(X, Y\).*files need target=..."):
            CAVI().run(make_model(data), rows)


def test_what_needs_labels_too(data, given):
    model = make_model(data)
    CAVI(max_steps=2).run(model, data)
    for look in (gb.prediction.predict_log_density, gb.prediction.alpha):
        np.testing.assert_array_equal(look(model, given["csv"][0]), look(model, data))


def test_labels_of_any_type_become_numbers(data, tmp_path):
    Y = np.digitize(data[0][:, :1], [-0.5, 0.5]).astype(float)
    words = np.array(["low", "mid", "high"])[Y[:, 0].astype(int)]
    X = data[0]
    expected = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(), CrammerSinger(3), X[:8].copy(), num_latent_gps=3
    )
    CAVI(max_steps=2).run(expected, (X, Y))
    names = pa.array(words).dictionary_encode()
    order = {"target": "y", "classes": ["low", "mid", "high"]}
    numbers = {"target": "y", "classes": {10: 0, 20: 1, 30: 2}}
    for rows in (
        ParquetFiles(parquet(tmp_path, table_of((X, Y), labels=words)), **order),
        ParquetFiles(parquet(tmp_path, table_of((X, Y), labels=names), "names"), **order),
        CSVFiles(csv(tmp_path, table_of((X, Y), labels=words)), **order),
        CSVFiles(csv(tmp_path, table_of((X, 10 * Y + 10)), "numbers"), **numbers),
    ):
        model = gb.models.BSVM(
            gpflow.kernels.SquaredExponential(), CrammerSinger(3), X[:8].copy(), num_latent_gps=3
        )
        CAVI(max_steps=2).run(model, rows)
        assert_same_state(state(model), state(expected), 1e-10)


def test_columns_are_taken_by_name(data, tmp_path):
    table = table_of(data).append_column("name", pa.array(["a"] * N))
    pq.write_table(table, tmp_path / "one.parquet")
    rows = ParquetFiles(tmp_path / "one.parquet", target="y", features=["x1", "x0"])
    found = map_over(open_data(make_model(data), rows), lambda batch: batch.X)
    np.testing.assert_array_equal(found, data[0][:, ::-1])


# --- minibatches ---------------------------------------------------------------------------------


@pytest.mark.drill
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    "algorithm",
    [
        SVI(batch_size=30, max_steps=20, record_every=5),
        pytest.param(VEM(max_steps=2), marks=pytest.mark.slow),
    ],
)
def test_mapped_arrays_come_in_the_same_order(data, given, algorithm, cached, small_chunks):
    small_chunks(cached)
    one, two = make_model(data), make_model(data)
    algorithm.run(one, data)
    algorithm.run(two, given["memmap"][0])
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
def test_learning_by_minibatches_of_mapped_arrays(data, given):
    values = []
    for rows in (data, given["memmap"][0]):
        model = make_model(data)
        ML2(batch_size=30, max_steps=10, record_every=5).run(model, rows)
        values.append(gpflow.utilities.read_values(model))
    for name, value in values[0].items():
        np.testing.assert_allclose(value, values[1][name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("kind", ["parquet", "csv", "function"])
def test_minibatches_of_files_are_their_rows_in_order_without_end(data, given, kind):
    source = open_data(make_model(data), given[kind][0])
    some = list(itertools.islice(source.stream(0, 30), 20))
    rows = np.concatenate([batch.X for batch in some])
    np.testing.assert_array_equal(rows, np.tile(data[0], (3, 1)))
    assert {len(batch.Y) for batch in some} == {30}
    rest = list(itertools.islice(source.stream(17, 30), 3))
    np.testing.assert_array_equal(rest[0].X, some[17].X)
    for found in itertools.islice(blocks(source, 1000, 2, 0), 2):
        assert found.index.shape[1] == N  # no row twice in a minibatch, once N is known


@pytest.mark.parametrize("kind", ["parquet", "csv", "function", "memmap"])
def test_who_knows_his_rows_is_not_asked_for_num_data(data, given, kind):
    one, two = make_model(data), make_model(data, num_data=N)
    for model in (one, two):
        SVI(max_steps=4).run(model, given[kind][0])
    assert_same_state(state(one), state(two), 0)


@pytest.mark.slow
def test_learning_by_minibatches_of_files(data, given):
    model = make_model(data)
    history = ML2(max_steps=4).run(model, given["parquet"][0])
    assert history.step == [4]
    for algorithm in (SVI(), ML2()):
        with pytest.raises(ValueError, match="the model needs num_data"):
            algorithm.run(make_model(data), given["list"][0])


def test_fit_sweeps_where_the_end_is_known(data, given, monkeypatch):
    endless = ("list", "object", "dataset", "sparse")
    for limit in (5e10, 1):
        for kind, (rows, beside) in given.items():
            ran, model = [], make_model(data, num_data=N)
            with monkeypatch.context() as patch:
                patch.setattr(
                    importlib.import_module("gpflow_bsvm.inference.fit"), "_SWEEP_LIMIT", limit
                )
                for cls in (CAVI, SVI):
                    patch.setattr(cls, "run", lambda self, *_, **__: ran.append(type(self)))  # noqa: B023
                gb.fit(model, rows, sample_weight=beside)
            assert ran == [SVI if kind in endless or limit == 1 else CAVI]


# --- memory and the reader's thread --------------------------------------------------------------


def counting(alive, number):
    """Blocks of 64 rows, of which `alive` remembers how many there are and were at a time."""
    X, Y = make_data(64)
    for _ in range(number):
        block = np.array(X)
        alive["now"] += 1
        weakref.finalize(block, lambda: alive.__setitem__("now", alive["now"] - 1))
        alive["most"] = max(alive["most"], alive["now"])
        yield block, Y
        del block


def test_no_more_than_a_few_chunks_are_alive(data, small_chunks):
    small_chunks(cached=False)
    for number in (20, 60):
        alive = {"now": 0, "most": 0}
        rows = Blocks(lambda alive=alive, number=number: counting(alive, number), 64 * number)
        CAVI(max_steps=2).run(make_model(data), rows)
        assert alive["now"] == 0
        assert alive["most"] <= 5  # in use, two ahead, one that is made, one that is regrouped


def test_rows_of_a_wide_table_are_not_kept(data, monkeypatch):
    """Features would fit into the cache, and X beside them would not."""
    wide = np.random.default_rng(0).normal(size=(N, 50))
    model = make_model((wide, data[1]))
    seen = gb.engine.projected_data.ProjectedData(
        model, open_data(model, Blocks([(wide, data[1])]))
    )
    monkeypatch.setattr(gb.engine.projected_data, "CACHE_BYTES", N * 8 * (8 + 51))
    assert not seen.cached
    monkeypatch.setattr(gb.engine.projected_data, "CACHE_BYTES", N * 8 * (8 + 52))
    assert seen.cached


def test_reading_runs_ahead_and_ends_with_its_consumer():
    begun = []

    def items():
        for number in range(10):
            begun.append(number)
            yield number

    ready = prefetched(items(), ahead=2)
    assert next(ready) == 0
    assert len(readers()) == 1
    ready.close()
    assert len(begun) <= 4
    assert not readers()
    assert list(prefetched(items())) == list(range(10))


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_the_reader_ends_after_an_error_or_an_interrupt(data, given, error, small_chunks):
    small_chunks(cached=False)
    model = make_model(data)

    def stop(step, history):
        raise error

    for rows in (given["parquet"][0], given["function"][0]):
        for algorithm in (CAVI(max_steps=3), SVI(max_steps=9, record_every=3)):
            with pytest.raises(error) as caught:
                algorithm.run(model, rows, callback=stop)
            assert not readers()
            assert caught.value.__traceback__ is not None  # it would keep a generator
        with pytest.raises(error) as caught:
            sum_over(open_data(model, rows), lambda chunk: stop(0, 0))
        assert not readers()


def test_errors_of_the_reader_are_raised_in_the_fit(data):
    def broken():
        yield data[0][:50], data[1][:50]
        raise OSError("the disk is gone")

    for algorithm in (CAVI(), SVI()):
        with pytest.raises(OSError, match="the disk is gone"):
            algorithm.run(make_model(data), Blocks(broken, num_rows=N))
        assert not readers()


def test_a_fit_that_is_stopped_keeps_its_latest_step(data, small_chunks):
    steps = []

    def short_in_the_end():
        cuts = [slice(0, 50), slice(50, N)][: 1 if steps else 2]
        return ((data[0][cut], data[1][cut]) for cut in cuts)

    one, two = make_model(data), make_model(data)
    CAVI(max_steps=1).run(one, data)
    small_chunks(cached=False)
    with pytest.raises(ValueError, match=r"ended after 50 rows, .* 200: every pass must give"):
        rows = Blocks(short_in_the_end, num_rows=N)
        CAVI(max_steps=3).run(two, rows, callback=lambda step, _: steps.append(step))
    assert_same_state(state(one), state(two), 1e-10)


# --- bad input -----------------------------------------------------------------------------------


def spoiled(data, row, value, column=1):
    X = data[0].copy()
    X[row, column] = value
    return X, data[1]


def test_bad_numbers_are_named_with_file_row_and_column(data, tmp_path):
    bad = spoiled(data, 140, np.nan)  # row 109 of the third file
    model = make_model(data)
    for make, reader, end in ((parquet, ParquetFiles, "parquet"), (csv, CSVFiles, "csv")):
        where = rf"part-2.{end}, rows .*X holds nan \(row 109, column 'x1'\)"
        rows = reader(make(tmp_path, table_of(bad)), target="y")
        for algorithm in (CAVI(), SVI()):
            with pytest.raises(ValueError, match=where):
                algorithm.run(model, rows)
        with pytest.raises(ValueError, match=where):
            gb.prediction.predict_probabilities(model, rows)
    single = mapped(tmp_path, bad[0].astype(np.float32))
    where = r"X holds nan \(row 140, column 1\)"
    for fit in (CAVI().run, SVI(max_steps=10).run, gb.fit):
        with pytest.raises(ValueError, match="rows 128 to 191: " + where):
            fit(model, (single, data[1]))
    with pytest.raises(ValueError, match="rows 95 to 149: " + where):
        CAVI().run(model, Anew([(X, Y) for X, Y in block_list(bad)]))


def test_a_minibatch_names_the_rows_numbers(data, tmp_path, small_chunks):
    small_chunks(cached=False)
    single = mapped(tmp_path, spoiled(data, 140, np.inf)[0].astype(np.float32))
    with pytest.raises(ValueError, match=r"X holds inf \(row 140, column 1\)"):
        SVI(max_steps=100).run(make_model(data), (single, data[1]))


def missing_values(folder, data):
    table = table_of(data)
    column = table["x0"].to_pylist()
    column[7] = None
    return table.set_column(0, "x0", pa.array(column))


BAD_TABLES = {
    "a column of strings": (
        lambda t: t.append_column("city", pa.array(["a"] * N)),
        {"target": "y"},
        r"column 'city' of file .*part-0.* holds string, .*: leave it out by features=\[...\]",
    ),
    "labels that are strings": (
        lambda t: t.append_column("kind", pa.array(["a", "b"] * (N // 2))),
        {"target": "kind"},
        r"column 'kind' of file .*part-0.* holds string, .*: give classes=\"auto\"",
    ),
    "an unknown label": (
        lambda t: t.append_column("kind", pa.array(["a", "b"] * (N // 2 - 1) + ["a", "c"])),
        {"target": "kind", "classes": ["a", "b"], "features": ["x0", "x1"]},
        r"file .*part-3.*, row 49: label 'c' is none of the classes \['a', 'b'\]",
    ),
    "a label that is missing": (
        lambda t: t.append_column("kind", pa.array(["a", None] + ["b"] * (N - 2))),
        {"target": "kind", "classes": ["a", "b"], "features": ["x0", "x1"]},
        r"file .*part-0.*, row 1: label (None|'') is none of the classes",
    ),
    "one class": (
        lambda t: t.append_column("one", pa.array(np.ones(N))),
        {"target": "one", "features": ["x0", "x1"]},
        r"Y holds one class only \(1.0\)",
    ),
    "labels of three kinds": (
        lambda t: t.append_column("three", pa.array(np.r_[[-1.0] * 99, [0.0] * 99, [1.0] * 2])),
        {"target": "three", "features": ["x0", "x1"]},
        r"binary labels must be in .*, got \{-1.0, 0.0",
    ),
    "a negative weight": (
        lambda t: t.append_column("w", pa.array(np.r_[np.ones(N - 1), -1])),
        {"target": "y", "weight": "w"},
        r"part-3.*sample_weight must be finite and non-negative, got -1.0 \(row 49\)",
    ),
    "no weight at all": (
        lambda t: t.append_column("w", pa.array(np.zeros(N))),
        {"target": "y", "weight": "w"},
        "sample_weight must not be all zero",
    ),
    "too few columns": (
        lambda t: t,
        {"target": "y", "features": ["x0"]},
        r"part-0.*X has 1 columns, the inducing points have 2",
    ),
    "the label among the features": (
        lambda t: t,
        {"target": "y", "features": ["x0", "y"]},
        "features 'x0', 'y', target 'y' and weight None must be different columns",
    ),
    "no such column": (
        lambda t: t,
        {"target": "z"},
        r"file .*part-0.* lacks 'z'; it has 'x0', 'x1', 'y', .* choose them by features, target",
    ),
}


@pytest.mark.parametrize("make, reader", [(parquet, ParquetFiles), (csv, CSVFiles)])
@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(data, tmp_path, name, make, reader):
    change, options, message = BAD_TABLES[name]
    folder = make(tmp_path, change(table_of(data)))
    with pytest.raises(ValueError, match=message):
        CAVI(max_steps=2).run(make_model(data), reader(folder, **options))


def test_a_file_of_other_columns(data, tmp_path):
    for make, reader, write in (
        (parquet, ParquetFiles, pq.write_table),
        (csv, CSVFiles, pa.csv.write_csv),
    ):
        folder = make(tmp_path, table_of(data))
        other = next(path for path in folder.iterdir() if "part-2" in path.name)
        more = table_of(data).append_column("x7", pa.array(np.ones(N)))
        for table, message in ((more, "part-2.* has, .*'x7'"), (more.drop_columns("x0"), "lacks")):
            write(table, other)
            with pytest.raises(ValueError, match=message):
                CAVI().run(make_model(data), reader(folder, target="y"))


def test_empty_files(data, tmp_path):
    for make, reader, write in (
        (parquet, ParquetFiles, pq.write_table),
        (csv, CSVFiles, pa.csv.write_csv),
    ):
        folder = make(tmp_path, table_of(data))
        last = next(path for path in folder.iterdir() if "part-3" in path.name)
        write(table_of(data)[:0], last)
        with pytest.raises(ValueError, match=r"file .*part-3.* has no rows; leave it out"):
            CAVI().run(make_model(data), reader(folder, target="y"))
        last.write_bytes(b"")
        with pytest.raises(ValueError, match=r"file .*part-3.* (is no Parquet|cannot be read)"):
            CAVI().run(make_model(data), reader(folder, target="y"))
        (tmp_path / "empty").mkdir(exist_ok=True)
        for path, message in (("empty", "has no files"), ("nowhere", "there is no file .*nowhere")):
            with pytest.raises(FileNotFoundError, match=message):
                reader(tmp_path / path, target="y")


def test_texts_that_are_no_numbers(data, tmp_path):
    folder = csv(tmp_path, table_of(data))
    path = folder / "part-2.csv"
    lines = path.read_text().splitlines()
    for wrong, message in (
        (
            "1,abc,0",
            r"file .*part-2.csv cannot be read: 'abc' is no number \(row 20, column 'x1'\)",
        ),
        ("1,0", "part-2.csv cannot be read: .*Expected 3 columns, got 2"),
    ):
        path.write_text("\n".join([*lines[:21], wrong, *lines[22:]]))
        with pytest.raises(ValueError, match=message):
            CAVI().run(make_model(data), CSVFiles(folder, target="y"))


@pytest.mark.parametrize(
    "rows, error, message",
    [
        (
            lambda d: (block for block in block_list(d)),
            TypeError,
            "generator can be read only once",
        ),
        (lambda d: Anew(iter(block_list(d))), ValueError, "ended after 0 rows, .* had 200"),
        (lambda d: Anew([]), ValueError, "is empty"),
        (
            lambda d: Blocks(block_list(d), num_rows=250),
            ValueError,
            "after 200 .* said to have 250",
        ),
        (
            lambda d: [*block_list(d), (d[0][:, :1], d[1])],
            ValueError,
            "rows 200 to 263: X has 1 col",
        ),
        (lambda d: Anew([1, 2]), ValueError, r"a block must be \(X, Y\) or .*, got int"),
        (lambda d: [(d[0], d[1][:-1])], ValueError, "X has 200 rows and Y has 199"),
        (lambda d: [(d[0][:-9], d[1])], ValueError, "X has 191 rows and Y has 200"),
        (lambda d: [(d[0].astype(str), d[1])], ValueError, "X must hold numbers, got dtype <U"),
        (
            lambda d: (*d, np.ones(N)),
            ValueError,
            r"must be a pair .*, got 3 parts; .*sample_weight=",
        ),
        (lambda d: "rows.parquet", TypeError, r"is a name: use .*ParquetFiles .* target=..."),
        (lambda d: d[0], TypeError, "data must be arrays .*; got ndarray"),
        (lambda d: {"X": d[0]}, TypeError, "data must be arrays .*; got dict"),
        (lambda d: 3, TypeError, "data must be arrays .*; got int"),
    ],
)
def test_bad_blocks(data, rows, error, message, small_chunks):
    small_chunks(cached=False)
    with pytest.raises(error, match=message):
        CAVI(max_steps=3).run(make_model(data), rows(data))


def test_bad_mapped_arrays(data, tmp_path):
    single = mapped(tmp_path, data[0].astype(np.float32))
    for rows, beside, message in (
        ((single, data[1][:-1]), None, "X has 200 rows and Y has 199; they must be equal"),
        ((single, data[1]), np.ones(9), "X has 200 rows and sample_weight has 9"),
        ((single[:, 0], data[1]), None, r"X must have shape \[N, .\], got shape \(64,\)"),
        ((single, data[1][:, 0]), None, r"Y must have shape .* use Y\[:, None\]"),
        ((single[:, :1], data[1]), None, "X has 1 columns, the inducing points have 2"),
        ((single, np.ones((N, 1))), None, "Y holds one class only"),
    ):
        with pytest.raises(ValueError, match=message):
            CAVI().run(make_model(data), rows, sample_weight=beside)


def test_what_needs_rows_by_number_says_so(data, given):
    anew = Blocks(lambda: iter([data]), num_rows=N)  # nobody knows in which order
    with pytest.raises(ValueError, match=r"a site of every row.*give arrays .* or use ML2"):
        VEM().run(make_model(data), anew)
    for rows in (given["parquet"][0], given["list"][0]):
        model = make_model(data)
        CAVI(max_steps=2).run(model, rows)
        with pytest.raises(ValueError, match=r"by number, .* give arrays \(X, Y\), in memory or"):
            gb.inducing_points.reselect(model, rows, 5)


@pytest.mark.slow
def test_learning_from_files_is_learning_from_arrays(data, weight, given):
    here, there = make_model(data), make_model(data)
    one = VEM(max_steps=2).run(here, data, sample_weight=weight)
    two = VEM(max_steps=2).run(there, given["parquet"][0])
    np.testing.assert_allclose(two.elbo, one.elbo, rtol=1e-9)
    assert_same_state(state(here), state(there), 1e-7)  # of an optimiser


def test_weights_are_part_of_what_is_read(data, given):
    for rows in (given["parquet"][0], given["list"][0], open_data(make_model(data), data)):
        with pytest.raises(ValueError, match=r"weights are its third component .*weight=..."):
            CAVI().run(make_model(data), rows, sample_weight=np.ones(N))


@pytest.mark.parametrize(
    "classes, message",
    [
        ("ab", "must be a list of labels, got the string 'ab'"),
        (["a", "a"], "two or more different labels"),
        (["a"], "two or more different labels"),
        ({"a": 0, "b": 2}, "without gaps"),
        (["a", 1], "labels of one type"),
    ],
)
def test_bad_classes(data, tmp_path, classes, message):
    folder = parquet(tmp_path, table_of(data))
    with pytest.raises(ValueError, match=message):
        ParquetFiles(folder, target="y", classes=classes)
    with pytest.raises(ValueError, match="give target="):
        ParquetFiles(folder, classes=["a", "b"])


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "gpflow_bsvm\[files\]"'):
        ParquetFiles(tmp_path, target="y")
