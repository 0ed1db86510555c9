"""Files as Weka writes them: declared columns, quotation marks of two kinds, escapes."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from gpflow_bsvm.data.batch import Origin
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table

HEADER = """% one's table
@RELATION r
@attribute ' grade\\'s 50\\%' numeric
@attribute	"a \\"b\\"" {'don\\'t know','50\\% off',"say \\"hi\\"",' c:\\\\d',"x,y"}
  @Attribute day date "yyyy-MM-dd"
@attribute y{u,v}

@DATA
"""
ROWS = """1,'don\\'t know', 1970-01-02 ,u
% between
 2 , '50\\% off',1970-01-03,v

3,"say \\"hi\\"",1970-01-02,u
4,' c:\\\\d',1970-01-02,v
5, "x,y" ,1970-01-02,u,
"""


def table(folder, content, target="y", **options):
    path = folder / "t.arff"
    path.write_text(content)
    return Table([str(path)], Reading(target, **{"words": True, "classes": "auto"} | options))


def values(found):
    (file,) = found.files
    batches = file.batches(found.columns.read, 2)
    return np.concatenate([found.columns.piece(one, Origin())[0] for one in batches])


def test_names_and_values_are_what_was_escaped(tmp_path):
    found = table(tmp_path, HEADER + ROWS, dates=["day"])
    words = [" c:\\d", "50% off", "don't know", 'say "hi"', "x,y"]
    assert found.names == ["grade's 50%", 'a "b"', "day", "y"]
    assert found.columns.features == ("grade's 50%", *(f'a "b"={one}' for one in words), "day")
    expected = np.column_stack([np.arange(1, 6), np.eye(5)[[2, 1, 3, 0, 4]], [1, 2, 1, 1, 1]])
    np.testing.assert_array_equal(values(found), expected)
    labels = table(tmp_path, HEADER + ROWS + ROWS, target='a "b"', drop=["day"])
    assert labels.columns.classes == words


def test_unseen_signs(tmp_path):
    found = table(
        tmp_path,
        HEADER + "1,'a\\n\\tb\\u0041\\\\n',1970-01-02,u\n",
        classes=["u", "v"],
        drop=["day"],
    )
    assert 'a "b"=a\n\tbA\\n' in found.columns.features


def test_a_question_mark_is_no_value_of_any_type(tmp_path):
    found = table(tmp_path, HEADER + ROWS + "?,?,?,v\n6,'?',1970-01-02,v\n", dates=["day"])
    assert found.holes == dict.fromkeys(found.names[:3], "row 5")
    assert np.isnan(values(found)[5]).all() and not np.isnan(values(found)[6]).any()
    assert 'a "b"=?' in found.columns.features  # which somebody has quoted


def test_a_column_of_declared_words_may_be_empty(tmp_path):
    """It was an error: "also has 'm'". It is read as an empty column of a CSV file is."""
    rows = "a,m,y\n1,?,u\n2,?,v\n"
    head = "@relation r\n@attribute a real\n@attribute m {Y}\n@attribute y {u,v}\n@data\n"
    (tmp_path / "t.csv").write_text(rows)
    of_text = Table([str(tmp_path / "t.csv")], Reading("y", words=True, classes="auto"))
    found = table(tmp_path, head + rows.split("\n", 1)[1])
    assert found.columns.features == of_text.columns.features == ("a", "m")
    np.testing.assert_array_equal(values(found), values(of_text))
    np.testing.assert_array_equal(values(found), [[1, np.nan], [2, np.nan]])


COMMENTS = {
    "plain": "1,x,1970-01-02,u % note",
    "an apostrophe": "1,x,1970-01-02,u % it's a note",
    "quoted": "1,'a % b',1970-01-02,u\t% \"a note",
}


@pytest.mark.parametrize("name", COMMENTS)
def test_a_comment_after_a_row_is_no_part_of_it(tmp_path, name):
    """It became part of the label."""
    head = HEADER.replace("y{u,v}", "y{u,v,50%}").replace("{'", "{x,'")
    found = table(
        tmp_path, head + f"{COMMENTS[name]}\n2,'50\\% off',1970-01-02,50%\n" * 2, drop=["day"]
    )
    assert found.columns.classes == ["50%", "u"]
    assert found.columns.features[-1].endswith("a % b" if name == "quoted" else "=x")


def test_errors_name_the_line_of_the_file(tmp_path):
    head, last = HEADER + ROWS, (HEADER + ROWS).count("\n") + 1
    for row, message in [
        ("1,2,3", f"line {last}: Expected 4 columns, got 3"),
        ("1,'x,1970-01-02,u", f"line {last} may lack a closing quotation mark"),
        ("{0 1, 3 v}", f"line {last} is sparse"),
    ]:
        with pytest.raises(ValueError, match=f"t.arff: {message}"):
            table(tmp_path, f"{head}{row}\n")
    for header, message in [
        ("@attribute a relational", "'@attribute a relational' does not declare a column"),
        ("@attribute a", "its type must be a list"),
    ]:
        with pytest.raises(ValueError, match=message):
            table(tmp_path, f"@relation r\n{header}\n@data\n1\n")


@pytest.mark.parametrize("sign", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_no_row_is_lost_to_a_sign_that_is_no_line_end(tmp_path, sign):
    header = f"% page 1{sign}\n% page{sign} 2\n{HEADER}"
    found = table(tmp_path, header + ROWS, drop=["day"])
    np.testing.assert_array_equal(values(found)[:, 0], np.arange(1, 6))


@pytest.mark.parametrize("order", ["'yyyy-dd-MM'", '"dd.MM.yyyy"'])
def test_dates_declared_in_another_order_are_refused(tmp_path, order):
    head = HEADER.replace('"yyyy-MM-dd"', order)
    with pytest.raises(ValueError, match=f"dates, declared as {order[1:-1]}: dates"):
        table(tmp_path, head + ROWS, dates=["day"])
    table(tmp_path, head + ROWS, drop=["day"])


@pytest.mark.parametrize("order", ["", "\"yyyy-MM-dd'T'HH:mm:ss\"", "'yyyy-MM-dd HH:mm'"])
def test_dates_declared_in_the_order_of_iso(tmp_path, order):
    head = HEADER.replace('"yyyy-MM-dd"', order)
    assert values(table(tmp_path, head + ROWS, dates=["day"]))[:, -1].tolist() == [1, 2, 1, 1, 1]


def test_dates_of_another_order_in_any_file_are_refused(tmp_path):
    for name, order in (("a", '"yyyy-MM-dd"'), ("b", '"yyyy-dd-MM"')):
        (tmp_path / f"{name}.arff").write_text(HEADER.replace('"yyyy-MM-dd"', order) + ROWS)
    paths = [str(tmp_path / f"{name}.arff") for name in "ab"]
    with pytest.raises(ValueError, match="dates, declared as yyyy-dd-MM"):
        Table(paths, Reading("y", words=True, classes="auto", dates=["day"]))
