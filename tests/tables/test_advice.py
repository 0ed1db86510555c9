"""Errors about tables: they name the right place, all problems at once, and advice that works."""

import ast
import re

import numpy as np
import pytest
from tables_as_read import read, table, values

from gpflow_bsvm.files import Files
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = {
    "durations": ["36:15", "12:30", "40:01"],
    "long durations": ["100:15:10", "12:30:11"],
    "many durations": [f"{25 + n // 60}:{n % 60:02}" for n in range(1200)],
    "times": ["06:15", "12:30"],
    "dates": ["2020-01-05", "2020-02-06"],
    "masses": ["12 kg", "13 kg", "14", "15 kg", "16 kg"],
    "percent": ["5 %", "6%", "7 %", "8%", "9%"],
    "currency": ["€ 5", "€ 6", "€ 7,50", "€ 8", "€ 1.000"],
    "parentheses": ["(5)", "6", "(7.5)", "8"],
    "minus behind": ["5-", "6", "7-"],
    "Swiss": ["1'234.5", "2'345", "3"],
    "Swiss commas": ["1'234,5", "2'345", "3"],
    "spaces": ["1 234", "2 345", "3"],
    "underscores": ["1_234", "2_345", "3"],
    "two ways": ["1,234", "2,345", "945"],
    "a word": ["1", "lots", "3"],
    "several ways": ["1,5", "1.5", "2"],
    "texts": [f"w{n}" for n in range(60)],
}


def of_texts(folder, texts, name="t.csv"):
    path = folder / name
    rows = [f"{text}\t{n}\t{'uv'[n % 2]}" for n, text in enumerate(texts * 2)]
    path.write_text("\n".join(["a\tb\ty", *rows, ""]))
    return path


def advised(message):
    """:return: the options that an error advises, one set for each alternative."""
    found = re.findall(r"(\w+)=(\[[^\]]*\]|'[^']*'|\"[^\"]*\")( with)?", message)
    sets, joined = [], {}
    for option, value, more in found:
        joined[option] = ast.literal_eval(value)
        if not more:
            sets.append(joined)
            joined = {}
    return sets


@pytest.mark.parametrize("name", TEXTS)
def test_all_that_an_error_advises_works(tmp_path, name):
    path = of_texts(tmp_path, TEXTS[name])
    with pytest.raises(ValueError) as error:
        read(path, classes="auto", words=True)
    options = advised(str(error.value))
    assert {"drop": ["a"]} in options
    for one in options:
        features = read(path, **({"classes": "auto", "words": True} | one)).columns.features
        assert ("a" in features) == ("words" not in one and "drop" not in one)


def test_durations_are_no_times_of_day(tmp_path):
    path = of_texts(tmp_path, TEXTS["durations"])
    message = r"times beyond 24:00 such as '36:15' \(row 0\): write numbers .*words=\['a'\]"
    with pytest.raises(ValueError, match=message):
        read(path, classes="auto", words=True)
    with pytest.raises(ValueError, match=r"such as 36.25 for 36:15, or correct the file$"):
        Table([str(path)], Reading(features=["a"], words=[], marks={}))


def test_units_are_no_signs_between_thousands(tmp_path):
    for name in ("masses", "percent", "currency", "parentheses"):
        with pytest.raises(ValueError, match=r"signs or units .*: write plain numbers") as error:
            read(of_texts(tmp_path, TEXTS[name]), classes="auto", words=True)
        assert "thousands" not in str(error.value) and "na_values" not in str(error.value)


LONG = "a" * 30 + "b" * 200 + "c" * 30


def test_long_texts_have_dots_in_their_middle(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,w,y\n" + f"1,{LONG},{LONG}\n2,z,v\n" * 2)
    found = read(path, classes="auto", words=True)
    short = "'" + "a" * 17 + "..." + "c" * 18 + "'"
    assert f"words of w: {short}, 'z'" in found.notes()
    assert f"labels, y: {short}, 'v'" in found.notes()
    assert found.columns.classes[0] == LONG and found.columns.features[1] == f"w={LONG}"
    path.write_text(f"a\n1\n{LONG}\n")
    for features in (["a"], ["a=1", f"a={'x' * 99}"]):
        with pytest.raises(ValueError, match=re.escape(short)) as error:
            values(Table([str(path)], Reading(features=features, marks={})))
        assert len(str(error.value)) < 400 and LONG not in str(error.value)


def test_names_with_commas_are_quoted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"Q1, age",b,"Q2, sum",y\n' + "1,2,5,u\n2,3,5,v\n" * 2)
    notes = read(path, classes="auto").notes()
    assert notes[0] == "numbers: 'Q1, age', b, 'Q2, sum'"
    assert ": 'Q2, sum'; leave it out with drop=['Q2, sum']" in notes[-1]
    with pytest.raises(ValueError, match="it has 'Q1, age', b, 'Q2, sum', y"):
        Table([str(path)], Reading("z"), labelled=True)


SECOND = {
    "a number": ("5,x,u", r"such as 'x' \(row 1 of "),
    "no label": ("5,6,", r"the label is empty \(row 1 of "),
    "a doubtful label": ("5,6,?", r"the label '\?' \(row 1 of "),
}


@pytest.mark.parametrize("name", SECOND)
def test_errors_name_the_file_of_a_row(tmp_path, name):
    """They named the first file, and counted rows over all of them."""
    row, message = SECOND[name]
    paths = [tmp_path / "1.csv", tmp_path / "2.csv"]
    paths[0].write_text("a,b,y\n1,2,u\n3,4,v\n1,2,u\n3,4,v\n")
    paths[1].write_text(f"a,b,y\n1,2,u\n{row}\n")
    with pytest.raises(ValueError, match=message + re.escape(str(paths[1]))):
        Table([*map(str, paths)], Reading("y", classes="auto", words=True))
    paths[1].write_text("a,b,y\n1,2,u\n5,,v\n")
    found = Table([*map(str, paths)], Reading("y", classes="auto", words=True))
    assert found.holes == {"b": f"row 1 of {paths[1]}"}
    again = Table([str(paths[1])] * 2, Reading("y", classes="auto", words=True))
    assert again.holes == found.holes


def test_problems_are_told_together(tmp_path):
    path = tmp_path / "t.csv"
    row = ",".join(["1 kg"] * 7)
    path.write_text(f"a,b,c,d,e,f,g,y\n1,1,1,1,1,1,1,u\n{row},v\n{row},\n")
    with pytest.raises(ValueError, match=r"column 'e' holds .*; 2 more$") as error:
        read(path, classes="auto", words=True)
    assert "column 'f'" not in str(error.value)
    path.write_text("a,b,y\n" + "1,2,u\n3,4,v\n" * 20_000 + "1 kg,2,u\n3,4,\n")  # not in the first
    with pytest.raises(ValueError, match=r"column 'a' holds .*; the label is empty"):
        read(path, classes="auto", words=True)


def test_points_of_any_file_are_in_doubt_beside_semicolons(tmp_path):
    """It was decided by the first file alone."""
    paths = [tmp_path / "1.csv", tmp_path / "2.csv"]
    paths[0].write_text("a,y\n1.234,u\n2.345,v\n")
    paths[1].write_text("a;y\n1.234;u\n2.345;v\n")
    with pytest.raises(ValueError, match="two ways"):
        Table([*map(str, paths)], Reading("y", classes="auto"))


def test_types_of_several_files_are_equal(tmp_path):
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for numbers, path in zip(([1, 2], ["3", "4"]), paths):
        parquet.write_table(pa.table({"a": numbers, "y": ["u", "v"]}), path)
    for order in (paths, paths[::-1]):
        with pytest.raises(ValueError, match=r"'a' is of type .*: save all with the same"):
            Table([*map(str, order)], Reading("y", classes="auto"))
    parquet.write_table(pa.table({"a": pa.nulls(2), "y": ["u", "v"]}), paths[0])
    found = Table([*map(str, paths[::-1])], Reading("y", classes="auto"))
    np.testing.assert_array_equal(values(found)[:, 0], [3, 4, np.nan, np.nan])


QUOTES = {
    "open": ("1,u\n2,v\n" * 9 + '3,"u\n4,v\n5,u\n', "line 22: unexpected end of data"),
    "inside": ('1,"5" pipe"\n2,v\n', "line 2: ',' expected after"),
    "escaped": ('1,"5\\" pipe"\n2,v\n', "line 2: ',' expected after"),
}


@pytest.mark.parametrize("name", QUOTES)
def test_quotation_marks_that_change_texts_are_refused(tmp_path, name):
    """Rows behind an open one became a text, and others lost signs."""
    text, message = QUOTES[name]
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + text)
    with pytest.raises(ValueError, match=rf"t\.csv: {message}.* close every quotation mark"):
        read(path, classes="auto", drop=())


def test_a_quotation_mark_that_stays_open_in_a_long_file(tmp_path):
    """Rows behind it were lost without a word, as its column was dropped."""
    path = tmp_path / "t.csv"
    path.write_text("a,y,note\n" + "1,u,x\n2,v,x\n" * 100_000 + '3,u,"x\n4,v,x\n5,u,x\n')
    with pytest.raises(ValueError, match=r"t\.csv: line 200004: unexpected end of data"):
        read(path, classes="auto", drop=["note"])


@pytest.mark.parametrize("text", ["inf", "-Infinity", "1e400"])
def test_what_is_not_finite_is_told_with_its_row(tmp_path, text):
    """With `impute`, the error was about an argument, with a row of a part of the table."""
    found = table(tmp_path, ["1", "2", "3", "4", "5", text])
    with pytest.raises(ValueError, match=rf"t\.csv, row 5: '{text}' in column 'a' is not finite: "):
        list(Files(found).pieces(4))
    assert table(tmp_path, ["1", "2", text] * 2, na_values=[text]).holes == {"a": "row 2"}


LATE = {
    "open": ('3,u,"x\n4,v,"x"\n', "line 200003: ',' expected after"),  # two rows became one
    "inside": ('3,u,"x" y\n', "line 200002: ',' expected after"),
    "inside, behind spaces": ('3,u, "x" y\n', "line 200002: ',' expected after"),
    "long": (f'3,u,"{"x" * 2**21}"\n', ".*field larger than field limit"),  # Arrow: straddling
    "another encoding": ("3,\udcfc,x\n", "it is not utf-8: give its encoding, such as"),
}


@pytest.mark.parametrize("name", LATE)
def test_what_no_row_may_hold_is_told_behind_a_megabyte_too(tmp_path, name):
    path, (late, message) = tmp_path / "t.csv", LATE[name]
    note = ' "x"' if "spaces" in name else "x"
    rows = f"1,u,{note}\n2,v,{note}\n" * 100_000
    path.write_text("a,y,note\n" + rows + late, errors="surrogateescape")
    with pytest.raises(ValueError, match=rf"t\.csv: {message}"):
        read(path, classes="auto", drop=["note"])


def test_an_unread_text_may_have_another_encoding(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y,note\n" + b"1,u,x\n2,v,x\n" * 100_000 + b"3,u,\xfc\n")
    assert read(path, classes="auto", drop=["note"]).rows == 200_001


def test_quoted_texts_behind_spaces(tmp_path):
    """Their header was cut at the spaces, and a name kept its quotation marks."""
    path = tmp_path / "t.csv"
    path.write_text('"a", "b, c", "y"\n' + '1, "x, z", "u"\n2, "w", "v"\n' * 2)
    found = read(path, classes="auto", words=True)
    assert found.columns.features == ("a", "b, c=w", "b, c=x, z")
    np.testing.assert_array_equal(values(found)[:2], [[1, 0, 1], [2, 1, 0]])


def test_half_precision_and_lists_have_texts(tmp_path):
    path = tmp_path / "t.parquet"
    half = pa.array(np.array([1, 2.5], np.float16))
    parquet.write_table(pa.table({"a": half, "k": [[1, 2], None], "y": ["u", "v"]}), path)
    found = read(path, classes="auto", drop=["k"])
    np.testing.assert_array_equal(values(found), [[1], [2.5]])
    assert [*Files(found).texts("k")] == ["[1, 2]", None]


def test_classes_of_typed_fractions(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1, 2, 3, 4], "y": [1.5, 2.0, 1.5, 2.0]}), path)
    found = read(path, classes="any")
    assert found.columns.classes == ["1.5", "2"] and values(found).shape == (4, 1)


def test_numbers_that_training_had_otherwise_are_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,c,y\n"1,234.5",1.234,1.5,u\n5.25,2.345,2,v\n')
    marks = {one.name: one.mark for one in read(path, classes="auto").columns.kinds}

    def doubtful(rows, **options):
        path.write_text("a,b,c\n" + rows)
        told = {"features": ["a", "b", "c"], "words": [], "marks": marks}
        return Table([str(path)], Reading(**(told | options))).in_doubt

    assert doubtful("5.399,5.399,5.399\n1.234,1.234,1.234\n") == ["a", "c"]
    assert doubtful("5.399,5.399,5.399\n1.2,1.234,2.25\n") == []
    assert doubtful("5,1,1\n1,2,2\n") == []
    for told in ({"thousands": "."}, {"decimal": "."}, {"marks": None}):
        assert doubtful("5.399,5.399,5.399\n", **told) == []


AS_IN_TRAINING = [
    # rows in training, a row to be predicted, its number
    (["1.234.567", "12.345"], "12.345", 12345),  # was read as 12.345
    (["1.234,50", "3"], "3.456", 3456),
    (['"1,234.5"', "12"], '"1,234"', 1234),  # was refused, as were these
    (["1,5", "2"], '"12,345"', 12.345),
    (["1,5", "2"], "1.5", 1.5),  # does not fit
    (["1,5", "2"], "12.345", None),
]


@pytest.mark.parametrize("rows, new, number", AS_IN_TRAINING)
def test_numbers_are_read_as_in_training(tmp_path, rows, new, number):
    [column] = table(tmp_path, rows * 3, ";").columns.kinds
    (tmp_path / "t.csv").write_text(f"a\n{new}\n")
    told = Reading(features=["a"], words=[], marks={"a": column.mark})
    if number is None:
        with pytest.raises(ValueError, match=r"read in two ways such as .12\.345. .row 0."):
            Table([str(tmp_path / "t.csv")], told)
    else:
        found = Table([str(tmp_path / "t.csv")], told)
        assert values(found).tolist() == [[number]] and not found.in_doubt


def test_numbers_against_the_option_are_told_as_such(tmp_path):
    path = of_texts(tmp_path, ["1.5", "2.25"])
    with pytest.raises(ValueError, match=r"the options decimal and thousands, such as '1.5'"):
        read(path, classes="auto", decimal=",")


HEADERS = {
    "numbers": "a,b,y\n" + "1,2,u\n3,4,v\n" * 3,
    "words": "a,b,y\n" + "w,x,u\nx,w,v\n" * 3,
    "many": "a,b,y\n" + "".join(f"{n}.5,{n}.25,{'uv'[n % 2]}\n" for n in range(1200)),
    "labels": "a,y\n" + "1,u\n2,v\n" * 3,
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_between_rows_is_named(tmp_path, name):
    """Its words became words of the columns and a class of the labels."""
    path, text = tmp_path / "t.csv", HEADERS[name]
    path.write_text(text * 2)
    row = text.count("\n") - 1
    with pytest.raises(ValueError, match=f"row {row} repeats the header: delete such rows"):
        read(path, classes="auto", words=True)


def test_a_word_that_is_also_a_name_is_a_word(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "a,c,u\nd,b,v\nd,c,u\n" * 3)
    features = read(path, classes="auto", words=True).columns.features
    assert features == ("a=a", "a=d", "b=b", "b=c")


def test_a_row_in_place_of_the_header_is_told(tmp_path):
    """A public table of words has no header; its first row was taken for one, without a word."""
    path = tmp_path / "t.csv"
    path.write_text("40-49,left,no\n" + "50-59,left,no\n40-49,right,yes\n" * 3)
    with pytest.raises(ValueError, match=r"values of its columns .*names \(40-49, left, no\)"):
        Table([str(path)], Reading("no", classes="auto", words=True))
    named = Reading("y", classes="auto", words=True, names=["age", "side", "y"])
    assert Table([str(path)], named).rows == 7


def test_further_lines_of_a_header_are_offered_to_be_deleted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n(mm),\nfloat,\n" + "1,u\n2,v\n" * 5)
    with pytest.raises(ValueError, match="delete the first rows if they belong to the header"):
        read(path, classes="auto", words=True)


def test_decimal_commas_where_points_were_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "1,5;u\n2,25;v\n" * 5)
    with pytest.raises(ValueError, match=r"decimal and thousands, such as .*: give decimal=',', "):
        read(path, classes="auto", decimal=".")


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "t.csv"
    for encoding, told in (("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("utf-8-sig", None)):
        path.write_text("a,y\n1,u\n2,v\n", encoding=encoding)
        assert read(path, classes="auto", encoding=told).columns.features == ("a",)


def test_weights_of_arff_and_words_of_svmlight_are_told(tmp_path):
    path = tmp_path / "t.arff"
    head = "@relation r\n@attribute x real\n@attribute y {u,v}\n@data\n"
    path.write_text(head + "1,u, {2}\n2,v\n")
    with pytest.raises(ValueError, match=r"line 5 has a weight, \{2\}: make it a column"):
        read(path, classes="auto")
    path = tmp_path / "t.svm"
    path.write_text("good 1:1\nbad 1:2\n")
    with pytest.raises(ValueError, match="labels and values must be numbers"):
        read(path, classes="auto")
    path.write_text("1 3:1 2:4\n2 1:1\n")
    with pytest.raises(ValueError, match=r"should be sorted and unique$"):
        read(path, classes="auto")


@pytest.mark.skipif(pandas.__version__ < "3", reason="dates are nanoseconds, from 1677 to 2262")
def test_dates_of_all_four_digit_years(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1500-01-01,u\n9999-12-31,v\n2020-01-01 12:00,u\n")
    found = read(path, classes="auto", dates=["a"])
    assert values(found)[:, 0].tolist() == [-171664, 2932896, 18262.5]


@pytest.mark.parametrize("names", [["a", "a", "y"], ["a", " a", "y"]])
def test_columns_of_the_same_name(tmp_path, names):
    path = tmp_path / "t.parquet"
    columns = [pa.array([1, 2]), pa.array([3, 4]), pa.array(["u", "v"])]
    parquet.write_table(pa.Table.from_arrays(columns, names), path)
    with pytest.raises(ValueError, match=r"several columns named 'a': rename .* or drop=\['a'\]"):
        read(path, classes="auto")
    parquet.write_table(pa.Table.from_arrays([*columns, columns[0]], [*names, "b"]), path)
    assert read(path, classes="auto", drop=["a"]).columns.features == ("b",)
