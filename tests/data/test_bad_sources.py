"""Bad rows that are not in memory: one clear error, with file, row and column."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from helpers import make_model
from kinds_of_rows import (
    Anew,
    N,
    block_list,
    csv,
    mapped,
    parquet,
    rows_in_memory,
    table_of,
)

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks, Part
from gpflow_bsvm.files import CSVFiles, ParquetFiles
from gpflow_bsvm.inference import CAVI, SVI, VEM

pytestmark = pytest.mark.usefixtures("chunks_of_64_rows", "no_reader_is_left")


@pytest.fixture(scope="module")
def data():
    return rows_in_memory()


def spoiled(data, row, value, column=1):
    X = data[0].copy()
    X[row, column] = value
    return X, data[1]


def test_values_under_a_mask_are_not_used(data):
    X, Y = (np.ma.masked_equal(one, one[140, 0]) for one in data)
    for rows, what in (((X, data[1]), "X"), ((data[0], Y), "Y")):
        with pytest.raises(ValueError, match=f"rows .*: {what} has masked values"):
            CAVI().run(make_model(data), Blocks([rows]))


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
        r"file .*part-0.*: column 'city' holds .*'a' .row 0.: give words=True .*drop=\['city'",
    ),
    "labels that are strings": (
        lambda t: t.append_column("kind", pa.array(["a", "b"] * (N // 2))),
        {"target": "kind"},
        r"file .*part-0.*: column 'kind' holds words .*'a' .row 0.: give classes=\"auto\"",
    ),
    "an unknown label": (
        lambda t: t.append_column("kind", pa.array(["a", "b"] * (N // 2 - 1) + ["a", "c"])),
        {"target": "kind", "classes": ["a", "b"], "features": ["x0", "x1"]},
        r"file .*part-3.*, row 49: label 'c' in column 'kind' is not one of the classes 'a', 'b': ",
    ),
    "a label that is missing": (
        lambda t: t.append_column("kind", pa.array(["a", None] + ["b"] * (N - 2))),
        {"target": "kind", "classes": ["a", "b"], "features": ["x0", "x1"]},
        r"file .*part-0.*, row 1: label (None|'') in column 'kind' is not one of the classes",
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
        r"part-3.*sample_weight must be finite, non-negative .* got -1.0 \(row 49\)",
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
        r"file .*part-0.* lacks 'z'; it has x0, x1, y$",
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
        for table, message in ((more, ".* also has 'x7'"), (more.drop_columns("x0"), "lacks")):
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
        with pytest.raises(ValueError, match=r"cannot read .*part-3.*(is 0 bytes|is empty)"):
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
            r"file .*part-2.csv, row 20: 'abc' in column 'x1' does not fit the column's numbers",
        ),
        ("1,0", "cannot read .*part-2.csv: .*Expected 3 columns, got 2"),
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
        (
            lambda d: iter(tf.data.Dataset.from_tensors(d)),
            TypeError,
            "this OwnedIterator can .* a tf.data.Dataset without iter",
        ),
        (lambda d: Anew(iter(block_list(d))), ValueError, "ended after 0 rows, .* had 200"),
        (lambda d: Anew([]), ValueError, "is empty"),
        (
            lambda d: Blocks(block_list(d), num_rows=250),
            ValueError,
            "after 200 .* should have 250",
        ),
        (
            lambda d: [*block_list(d), (d[0][:, :1], d[1])],
            ValueError,
            "rows 200 to 263: X has 1 col",
        ),
        (lambda d: Anew([1, 2]), ValueError, r"a block.* must be \(X, Y\) or .*, got int"),
        (lambda d: [(d[0], d[1][:-1])], ValueError, "X has 200 rows and Y has 199"),
        (lambda d: [(d[0][:-9], d[1])], ValueError, "X has 191 rows and Y has 200"),
        (lambda d: [(d[0].astype(str), d[1])], ValueError, "X must hold numbers, got dtype <U"),
        (
            lambda d: (*d, np.ones(N)),
            ValueError,
            r"must be a pair .*, got 3 parts; .*sample_weight=",
        ),
        (lambda d: "rows.parquet", TypeError, r"is a path: use .*ParquetFiles .* target=..."),
        (lambda d: d[0], TypeError, "data must be arrays .*; got ndarray"),
        (lambda d: {"X": d[0]}, TypeError, "data must be arrays .*; got dict"),
        (lambda d: 3, TypeError, "data must be arrays .*; got int"),
    ],
)
def test_bad_blocks(data, rows, error, message, small_chunks):
    small_chunks(cached=False)
    with pytest.raises(error, match=message):
        CAVI(max_steps=3).run(make_model(data), rows(data))


def test_a_part_of_rows_in_any_order_has_no_fixed_order_either(data):
    """VEM would have kept the sites of some rows for others."""
    for rows in (Blocks(lambda: block_list(data)), Part(Blocks(lambda: block_list(data)), 10)):
        with pytest.raises(ValueError, match="needs rows in a fixed order"):
            VEM().run(make_model(data), rows)


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


LABELS = {
    "an empty label": (
        ["a", None, "b"] * 20,
        r"part-0.*: the label is empty \(row 1 of .*part-0.*, column",
    ),
    "no number among numbers": (
        [0.0, np.nan, 1.0] * 20,
        r"part-0.*: the label is empty \(row 1 of .*part-0.*, column 'kind'\)",
    ),
    "numbers to be regressed": (np.arange(60) / 8, "60 different labels in 60 rows, such as 0.125"),
    "as many labels as rows": (np.arange(60), "60 different labels in 60 rows, too many"),
    "one class": (["a"] * 60, r"part-0.* holds one class only \('a'\)"),
}


@pytest.mark.parametrize("make, reader", [(parquet, ParquetFiles), (csv, CSVFiles)])
@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_no_classes(tmp_path, name, make, reader):
    values, message = LABELS[name]
    values = [None if value != value else value for value in values] if make is csv else values
    table = pa.table({"x0": np.arange(60.0), "kind": pa.array(values)})
    with pytest.raises(ValueError, match=message):
        reader(make(tmp_path, table), target="kind", classes="auto")


def test_a_late_label_of_another_type_is_a_class_that_is_told(tmp_path):
    path = tmp_path / "late.csv"
    lines = [f"{n},{n % 2}" for n in range(200_000)]
    path.write_text("\n".join(["a,y", *lines, "3,x", "4,1"]))
    rows = CSVFiles(path, target="y", classes="auto")
    assert rows.classes == ["0", "1", "x"]
    assert rows.table.notes()[-1] == "labels, y: '0', '1', 'x'"


@pytest.mark.parametrize(
    "classes, message",
    [
        ("ab", "must be a list of labels, got the str 'ab'"),
        (["a", "a"], "two or more different labels"),
        (["a"], "two or more different labels"),
        ({"a": 0, "b": 2}, "must be a list of labels, got the dict"),
        (["a", 1], "labels of one type"),
        (2, "must be a list of labels, got the int 2"),
    ],
)
def test_bad_classes(data, tmp_path, classes, message):
    folder = parquet(tmp_path, table_of(data))
    with pytest.raises(ValueError, match=message):
        ParquetFiles(folder, target="y", classes=classes)
    with pytest.raises(ValueError, match="give target="):
        ParquetFiles(folder, classes=["a", "b"])


def test_a_dataset_without_batches_or_with_columns_by_name_is_refused_with_what_works(data):
    """Before, the advice was X[:, None], or that X is an object."""
    by_name = {"a": data[0][:, 0], "b": data[0][:, 1]}
    batches = tf.data.Dataset.from_tensor_slices((by_name, data[1])).batch(N)
    for rows in (batches, tf.data.Dataset.from_tensor_slices(data)):
        with pytest.raises(ValueError, match=r"use dataset\.batch\(1000\); for X by columns"):
            CAVI().run(make_model(data), rows)
    joined = batches.map(lambda X, Y: (tf.stack([*X.values()], -1), Y))  # as advised
    for X, _ in joined:
        np.testing.assert_array_equal(X, data[0][:, :2])


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "gpflow_bsvm\[files\]"'):
        ParquetFiles(tmp_path, target="y")
