"""How tables are written: separators, headers, encodings, svmlight."""

import gzip
import os
import sys
import warnings

import numpy as np
import pytest
from tables_as_read import read, values

pytest.importorskip("pyarrow")

from gpflow_bsvm.files import CSVFiles
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table
from gpflow_bsvm.tables.text import open_format

DIALECTS = [
    ("a,b\n1,2\n", ",", ["a", "b"]),
    ('"a;b",c\n1,2\n', ",", ["a;b", "c"]),
    ("a;b\n1,5;2\n", ";", ["a", "b"]),
    ("a\tb\n1.5\t2\n", "\t", ["a", "b"]),
    ("Größe, cm;kg, all;y\n1,5;2,5;u\n", ";", ["Größe, cm", "kg, all", "y"]),
    (" a   b  y\n 1  2   u\n", " ", ["a", "b", "y"]),
    ('"a" "b"\n"1" 2 3\n', " ", ["row.names", "a", "b"]),
    ("a,b,\n1,2,\n", ",", ["a", "b", ""]),
    ("a,b\n1,2,\n", ",", ["a", "b", ""]),
    ("\n\n a , b \n1,2\n", ",", ["a", "b"]),
    ("a\n1\n", ",", ["a"]),
]


@pytest.mark.parametrize("text, separator, names", DIALECTS)
def test_how_a_table_is_written(tmp_path, text, separator, names):
    path = tmp_path / "t.csv"
    for content, file in (
        (text.encode(), path),
        (gzip.compress(text.encode()), tmp_path / "t.csv.gz"),
    ):
        file.write_bytes(content)
        found = open_format(str(file), Reading())
        assert (found.separator, found.names) == (separator, names)


def test_one_space_after_a_comma_is_no_part_of_the_text_and_others_are(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,  u\n2, u\n3, v\n4, v \n" * 3)
    assert read(path, classes="auto").columns.classes == [" u", "u", "v", "v "]
    path.write_text('a, y\n1, "u, w"\n2, "v"\n')
    assert read(path, classes="auto").columns.classes == ["u, w", "v"]


def test_times_with_a_zone_and_without_are_not_compared(tmp_path):
    path = tmp_path / "t.csv"
    zoned, named = ("12:00:00+02:00", "12:30:00+01:00"), ("12:00Z", "13:00Z")
    for one, other in (zoned, named, ("12:00", "12:30")):
        path.write_text(f"c,y\n2024-03-31T{one},u\n2024-03-31T{other},v\n")
        read(path, classes="auto", dates=["c"])
    path.write_text("c,y\n2024-03-31T12:00:00+02:00,u\n2024-03-31 12:00:00,v\n")
    with pytest.raises(ValueError, match=r"'c' holds dates with a time zone and dates"):
        read(path, classes="auto", dates=["c"])


@pytest.mark.parametrize(("first", "told"), [("-5.1,x,u", True), ("a,b,kind", False)])
def test_a_first_line_that_may_be_a_row_is_told(tmp_path, first, told):
    path = tmp_path / "t.csv"
    path.write_text(f"{first}\n4.9,z,v\n4.8,z,w\n")
    with pytest.raises(ValueError, match="which column of") as error:
        Table([str(path)], Reading(classes="auto"), labelled=True)
    assert ("if these are the values of the first row, give names=" in str(error.value)) == told
    reading = Reading(first.split(",")[2], classes="auto", words=True)
    notes = Table([str(path)], reading, labelled=True).notes()
    assert any("the first row names the columns" in note for note in notes) == told


def test_a_file_of_another_encoding_or_kind_says_so(tmp_path):
    path = tmp_path / "t.csv"
    for content, message in [
        (
            "ä,y\n1,u\n".encode("latin-1"),
            r"cannot read .*t.csv: it is not utf-8: .*encoding='cp1252'",
        ),
        ("a,y\n1,u\n".encode("utf-16-le"), "it is not text"),
        (b"", "it is empty"),
        (b'a,y\n"' + b"x" * 200_000 + b'",1\n', "field larger than field limit"),
        (b"5.1,3.5,u\n4.9,3,v\n", "has numbers instead of the columns' names"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read(path)
    with pytest.raises(ValueError, match=r"no encoding is called 'latin-one': try encoding="):
        read(path, encoding="latin-one")


@pytest.mark.parametrize("header", ["\n\na,y\n", '"a","y"\n', '"a\n",y\n'])
def test_no_line_of_the_header_is_a_row(tmp_path, header):
    path = tmp_path / "t.csv"
    path.write_text(header + "".join(f"w{n % 2},{n % 2}\n" for n in range(6)))
    found = read(path, classes="auto", words=True)
    assert found.columns.features == ("a=w0", "a=w1") and found.columns.classes == [0, 1]
    assert len(values(found)) == 6


def test_svmlight_stays_sparse(tmp_path):
    """Columns that no row has are zeros; none of its values is looked at beforehand."""
    path = tmp_path / "t.svm"
    path.write_text("+1 1:0.5 3:2  # first\n\n-1 2:1\n")
    found = read(path, classes="auto", features=["x1", "x3", "x5"])
    np.testing.assert_array_equal(values(found), [[0.5, 2, 0], [0, 0, 0]])
    assert found.files[0].X.shape == (2, 6) and found.files[0].X.nnz == 3
    assert found.columns.classes == ["+1", "-1"] and found.files[0].num_rows == 2
    assert read(path, classes="auto").columns.features == ("x1", "x2", "x3")
    words = read(path, classes="auto", words=["x2"]).columns.features
    assert words == ("x1", "x2=0", "x2=1", "x3")
    found = Table([str(path)], Reading(features=["x2=0", "x2=1", "x9=0", "x9=1"]))
    np.testing.assert_array_equal(values(found), [[1, 0, 1, 0], [0, 1, 1, 0]])


def test_what_svmlight_may_hide(tmp_path):
    """Indices from 0 where the model knows them from 1, and groups of rows."""
    path = tmp_path / "t.svm"
    path.write_text("1 qid:3 0:0.5 1:2\n2 qid:4 1:1\n")
    assert read(path, classes="auto").notes()[1] == "left out: qid, the groups of rows"
    with pytest.raises(ValueError, match=r"t\.svm count from 0, but in the training file"):
        Table([str(path)], Reading(features=["x1", "x2"]))
    for features in (["x0", "x1"], ["x1", "x0"]):
        assert Table([str(path)], Reading(features=features)).columns.features == (*features,)
    path.write_text("1 1:0.5 2:2\n2 2:1\n")
    with pytest.raises(ValueError, match=r"t\.svm count from 1, but in the training file"):
        Table([str(path)], Reading(features=["x0", "x1"]))
    assert "x0" in Table([str(path)], Reading(features=["x0", "x1", "x2"])).names


@pytest.mark.parametrize("text", ["a\n1\n\n3\n", '"a"\n "1"\n\n "3"\n'])
def test_a_blank_line_of_one_column_is_a_missing_value(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    found = values(Table([str(path)], Reading(features=["a"])))
    np.testing.assert_array_equal(found, [[1], [np.nan], [3]])


@pytest.mark.parametrize(
    "text", ["a, y\n1, u\n2\n3, v\n", "a  y\n1  u\n2\n3 v\n", "a,y\n1,u\n2\n3,v\n", "a,y\n1,u\n2\n"]
)
def test_short_rows_are_refused_wherever_spaces_are(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"t.csv: line 3: Expected 2 columns, got 1"):
        read(path, separator=text[1])


def test_a_line_of_excel_tells_the_separator(tmp_path):
    path = tmp_path / "t.csv"
    for line in ("sep=;\n", '"sep=;"\r\n'):
        path.write_text(line + "a;y\n1,5;u\n2,5;v\n", newline="")
        found = read(path, classes="auto")
        assert found.names == ["a", "y"] and values(found).tolist() == [[1.5], [2.5]]
    path.write_text("sep=|\n1,5|u\n2,5|v\n")
    assert values(read(path, classes="auto", names=["a", "y"])).tolist() == [[1.5], [2.5]]


PREAMBLES = {
    "comments": "# exported 2024\n# by someone, else\na,b,y\n1,2,u\n3,4,v\n",
    "a title": "Survey 2024\n\na;b;y\n1,5;2,5;u\n3,5;4,5;v\n",
    "a sign": "# a b y\n1 2 3\n4 5 6\n",
}


@pytest.mark.parametrize("name", PREAMBLES)
def test_lines_before_the_header_are_told(tmp_path, name):
    path, text = tmp_path / "t.csv", PREAMBLES[name]
    path.write_text(text)
    first = text.split("\n")[0]
    message = f"{first}', does not have the names of 3 columns: delete the lines before the header"
    with pytest.raises(ValueError, match=message):
        read(path)
    path.write_text(text[text.index("a") :] if name == "a sign" else "a" + text.partition("\na")[2])
    assert read(path, classes="auto").columns.features == ("a", "b")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
def test_a_name_of_a_file_that_is_not_utf8_is_told(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text("a,y\n1,u\n2,v\n")
    with pytest.raises(ValueError, match="the name of the file is not UTF-8: rename it"):
        read(path)


def test_an_index_beyond_all_integers_is_told_with_its_file(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:3\n2 4000000000:1\n")
    with pytest.raises(ValueError, match=r"cannot read .*t\.svm: value too large"):
        read(tmp_path / "t.svm")


def test_values_of_columns_that_a_model_lacks_are_counted(tmp_path):
    paths = [tmp_path / "t.svm", tmp_path / "u.svm"]
    for path in paths:
        path.write_text("1 1:1 2:2 7:1 9:4\n2 1:1 7:1\n")
    found = Table([*map(str, paths)], Reading(features=["x1", "x2=2", "x2=0"]))
    told = ["3 values of columns that the model does not have, x7, x9"]
    assert [file.left_out for file in found.files] == [told, told]
    whole = Table([str(path)], Reading(features=["x1", "x2", "x7", "x9"]))
    assert whole.files[0].left_out == read(path, classes="auto").files[0].left_out == []


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_spaces_before_quotes_are_skipped_and_others_are_text(tmp_path, separator):
    """One text in quotes after a space took the leading spaces of all others."""
    path = tmp_path / "t.csv"
    rows = ["1,fine, yes", '2, "ok, ""it"", \n  is",yes', "3,fine,no", "4,,  no"] * 2
    path.write_text("x,note,y\n".replace(",", separator) + "\n".join(rows).replace(",", separator))
    found = read(path, classes="auto", words=True)
    assert found.columns.classes == ["  no", " yes", "no", "yes"]
    told = 'ok, "it", \n  is'.replace(",", separator)
    assert found.columns.features == ("x", "note=fine", f"note={told}")
    path.write_text('x, note, y\n1, "a, b", u\n2, c,  v\n')
    found = read(path, classes="auto", words=True)
    assert found.columns.classes == [" v", "u"]
    assert found.columns.features == ("x", "note=a, b", "note=c")
    path.write_text('x, note, y\n1, " a", u\n2, "a", v\n')
    assert read(path, words=True, classes="auto").columns.features == ("x", "note= a", "note=a")


def test_svmlight_files_may_be_of_different_widths(tmp_path):
    """A file ends with the last index that it has; before, the files were refused."""
    paths = [tmp_path / "t.svm", tmp_path / "u.svm"]
    paths[0].write_text("1 1:1 2:2\n2 1:1\n")
    paths[1].write_text("1 1:1 4:2\n2 2:1\n")
    for order in (paths, paths[::-1]):
        rows = CSVFiles([*map(str, order)], target="y", classes="auto", na_values=["-99"])
        assert rows.features == ("x1", "x2", "x3", "x4")
        found = {piece.origin.file: piece.X.tolist() for piece in rows.pieces(10)}
        assert found[str(paths[0])] == [[1, 2, 0, 0], [1, 0, 0, 0]]
        assert found[str(paths[1])] == [[1, 0, 0, 2], [0, 1, 0, 0]]
        assert [file.X.shape for file in rows.table.files] == [(2, 5), (2, 5)]
    paths[1].write_text("1 0:1 1:2\n2 1:1\n")  # counts from 0
    with pytest.raises(ValueError, match="x0"):
        Table([*map(str, paths)], Reading("y", classes="auto"))


@pytest.mark.parametrize("encoding", ["latin-1", "iso-8859-15", "cp1252"])
def test_quotation_marks_of_windows_are_told_in_latin_1(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("x,y\n1,it’s\n2,no\n".encode("cp1252"))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        labels = read(path, classes="auto", encoding=encoding).columns.classes
    if encoding == "cp1252":
        assert labels == ["it’s", "no"] and not found
        return
    assert labels == ["it\x92s", "no"]
    (told,) = {str(one.message) for one in found}
    assert told == (
        f"{path} has '\\x92', which is invisible in {encoding}: if it should be a quotation mark, "
        "a dash or a sign such as the euro's, give encoding='cp1252'"
    )
