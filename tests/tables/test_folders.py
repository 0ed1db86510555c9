"""Files of a directory, compressed or not: none is left out, or read, without a word."""

import bz2
import gzip
import lzma
import re

import pytest
from tables_as_read import read, values

from gpflow_bsvm.tables.paths import about_folder, find_files
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table

pa = pytest.importorskip("pyarrow")

ROWS = b"x,y\n1,u\n2,v\n3,u\n"
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


@pytest.fixture
def folder(tmp_path):
    for stem in ("a.csv", "b.tab", "c.txt", "d.dat", "sub/e.tsv"):
        for ending, pack in PACKED.items():
            path = tmp_path / (stem + ending)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pack(ROWS))
    for name in ("f.csv.zip", "g.xlsx", "_SUCCESS", ".hidden.csv", "._a.csv"):
        (tmp_path / name).write_bytes(b"PK\3\4")
    return tmp_path


def test_files_that_can_be_read_are_read_and_others_are_named(folder):
    for name in ("_temporary/0/h.csv", "_log/i.csv"):  # of Spark and the like
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(ROWS)
    found = find_files(folder)
    assert len(found) == 5 * len(PACKED)
    assert about_folder(str(folder), found) == (
        f"20 files of {folder} are read, including subdirectories: a.csv to sub/e.tsv.xz; left "
        "out: _SUCCESS, _log/i.csv, _temporary/0/h.csv, f.csv.zip, g.xlsx"
    )


@pytest.mark.parametrize("pack", [*PACKED.values(), zstd])
@pytest.mark.parametrize("name", ["t.csv", "t.dat.xz", "t"])
def test_compression_is_told_by_the_content(tmp_path, pack, name):
    (tmp_path / name).write_bytes(pack(ROWS))
    found = read(tmp_path / name, classes="auto")
    assert values(found)[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["t.arff.gz", "t.svm.gz"])
def test_other_formats_may_be_compressed(tmp_path, name):
    arff = b"@relation r\n@attribute x real\n@attribute y {u,v}\n@data\n1,u\n2,v\n"
    content = arff if "arff" in name else b"1 1:1\n2 1:2\n"
    (tmp_path / name).write_bytes(gzip.compress(content))
    assert values(read(tmp_path / name, classes="auto"))[:, 0].tolist() == [1, 2]


def test_what_to_do_with_a_zip_is_said(tmp_path):
    (tmp_path / "t.csv.zip").write_bytes(b"PK\3\4 and more")
    with pytest.raises(ValueError, match="unpack it, or compress it with gzip"):
        read(tmp_path / "t.csv.zip")


def test_a_workbook_is_no_text_whatever_its_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"PK\3\4 and more")
    with pytest.raises(ValueError, match="is neither CSV nor Parquet: save it"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("pack", [*PACKED.values()][1:])
def test_a_file_cut_short_is_refused(tmp_path, pack):
    (tmp_path / "t.csv").write_bytes(pack(ROWS * 9)[:-12])
    with pytest.raises(ValueError, match=r"cannot read .*t\.csv"):
        read(tmp_path / "t.csv", classes="auto")


def write_parts(folder, values, ending="csv"):
    """Files in folders site=..., with x from 0 on, and labels that site and x decide."""
    for number, value in enumerate(values):
        path = folder / f"site={value}" / f"part.{ending}"
        path.parent.mkdir(parents=True)
        x = [number, number + 10]
        if ending == "csv":
            path.write_text("x,y\n" + "".join(f"{one},{'uv'[one % 2]}\n" for one in x))
        else:
            frame = pa.table({"x": x, "y": ["uv"[one % 2] for one in x]})
            pytest.importorskip("pyarrow.parquet").write_table(frame, path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_of_folders_are_a_column(tmp_path, ending):
    """The column was dropped without a word."""
    write_parts(tmp_path, ["a b%2F", "north"], ending)
    found = Table(find_files(tmp_path), Reading("y", classes="auto", words=True))
    assert found.columns.features == ("x", "site=a b/", "site=north")
    assert values(found).tolist() == [[0, 1, 0], [10, 1, 0], [1, 0, 1], [11, 0, 1]]
    part = find_files(tmp_path / "site=north")
    new = Table(part, Reading(features=found.columns.features, words=["site"], marks={}))
    assert values(new).tolist() == [[1, 0, 1], [11, 0, 1]]
    left = Table(find_files(tmp_path), Reading("y", classes="auto", drop=["site"]))
    assert left.columns.features == ("x",)
    assert Table(part, Reading("y", classes=["u", "v"])).columns.features == ("x",)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_of_folders_may_be_labels_or_numbers(tmp_path, ending):
    write_parts(tmp_path, [3, 12], ending)
    labels = Table(find_files(tmp_path), Reading("site", classes="auto", words=True, drop=["y"]))
    assert labels.columns.classes == [3, 12]
    assert values(labels)[:, 0].tolist() == [1, 11, 0, 10]
    (texts,) = labels.files[0].batches(["site"], 5)
    assert texts.column(0).to_pylist() == ["12", "12"]
    numbers = Table(find_files(tmp_path), Reading("y", classes="auto"))
    assert values(numbers)[:, 1].tolist() == [12, 12, 3, 3]


def test_a_folder_without_a_value_is_a_gap(tmp_path):
    write_parts(tmp_path, ["__HIVE_DEFAULT_PARTITION__", "b"])
    found = Table(find_files(tmp_path), Reading("y", classes="auto", words=True))
    assert "row 0 of " in found.holes["site"]


def test_a_column_of_the_files_is_read_from_them(tmp_path):
    for site in "ab":
        (tmp_path / f"x={site}").mkdir()
        (tmp_path / f"x={site}" / "t.csv").write_text(ROWS.decode())
    found = Table(find_files(tmp_path), Reading("y", classes="auto"))
    assert values(found)[:, 0].tolist() == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(("text", "told"), [("See wiki.\n", True), ("x,z\n1,2\n", False)])
def test_a_file_that_is_another_table_can_be_left_out(tmp_path, text, told):
    (tmp_path / "a.csv").write_text("x,y\n1,u\n2,v\n")
    (tmp_path / "readme.txt").write_text(text)
    with pytest.raises(ValueError, match=r"readme\.txt lacks") as error:
        Table(find_files(tmp_path), Reading(target="y", classes="auto"))
    assert ("leave out files of another table" in str(error.value)) == told


def test_columns_left_out_of_any_file_are_told(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n2 1:2\n")
    (tmp_path / "b.svm").write_text("1 qid:1 1:1\n2 qid:2 1:2\n")
    found = Table(find_files(tmp_path), Reading("y", classes="auto"))
    assert found.notes()[1] == "left out: qid, the groups of rows"
    rows = "x,y\n1,u\n2,v\n"
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text(rows)
    (tmp_path / "csv" / "b.csv").write_text("," + rows.replace("\n", "\n1,", 2))
    found = Table(find_files(tmp_path / "csv"), Reading("y", classes="auto"))
    assert "left out: column 1, ''" in found.notes()[1] and found.left_out == ("",)


@pytest.mark.parametrize("path", [[], (), None, 3, b"x", [None], {}])
def test_what_is_no_path_is_shown(path):
    shown = "None" if path == [None] else re.escape(repr(path))
    with pytest.raises(
        ValueError, match=f"expected a file, a directory or a list of .*, got {shown}"
    ):
        find_files(path)
