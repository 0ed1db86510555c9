"""What is said of columns that may be something else than they are read as."""

import re

import numpy as np
import pytest
from tables_as_read import read, table, values

from gpflow_bsvm.tables.paths import listed
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_codes_among_numbers_are_told(tmp_path):
    found = table(tmp_path, ["00501", "02139", "10001", "00501", "02139", "10001"])
    assert found.notes()[1] == "numbers that begin with 0: a; if they are codes, give words=['a']"
    typeset = ["1\u202f953,5", "5\u202f929,5", "\u22129,9", "7", "8", "9"]
    found = table(tmp_path, typeset, "\t", thousands=" ", decimal=",")
    np.testing.assert_array_equal(values(found)[:3, 0], [1953.5, 5929.5, -9.9])


HINTS = {
    "begin with 0": (["00501", "02139"], ["words"]),
    "are written as 45E3": (["17E2", "95E5"], ["words"]),
    "begin with \\+": (["+49353454709", "+49614191760"], ["drop"]),
    "may be dates": (["20230115", "19991231"], ["dates"]),
    "may be months": (["202301", "199912"], []),
    "have too many digits for float64": (["100000000000000007", "100000000000000014"], ["drop"]),
}


@pytest.mark.parametrize("about", HINTS)
def test_numbers_that_may_be_something_else(tmp_path, about):
    """A hint is told once: not to those who have done what it says."""
    texts, options = HINTS[about]
    (hint,) = [line for line in table(tmp_path, texts * 3).notes() if "if they are" in line]
    assert re.match(rf"numbers that {about}: a; if they are", hint)
    for option in options:
        assert f"{option}=['a']" in hint
        notes = table(tmp_path, texts * 3, **{option: ["a"]}).notes() if option != "drop" else []
        assert not any("if they are" in line for line in notes)


def test_few_whole_numbers_may_be_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("site,b,c,y\n" + "".join(f"{n % 3},{n % 2},{n},{n % 4}\n" for n in range(60)))
    (hint,) = [line for line in read(path, classes=None).notes() if "few whole" in line]
    assert hint.startswith("numbers that take few whole values: site; if they stand for categ")
    told = read(path, classes=None, words=["site"]).notes()
    assert not any("few whole" in line for line in told)


def test_measurements_are_what_they_are(tmp_path):
    for texts in (["1.5e3", "2e-05"], ["2020", "1999"], ["+5", "+12"], ["0.5", "0"], ["123456"]):
        notes = table(tmp_path, (texts * 6)[:6]).notes()
        assert not any("if they are" in line for line in notes)


def keyed(folder, column):
    path = folder / "keys.csv"
    path.write_text("k,x,y\n" + "".join(f"{one},{n % 3},{n % 2}\n" for n, one in enumerate(column)))
    found = read(path, classes="auto", words=True, dates=["k"] if "-" in column[0][1:] else ())
    return [line for line in found.notes(values(found)) if "different in each row" in line]


def test_identifiers_are_asked_about_once(tmp_path):
    """They leak where the file is sorted by label."""
    rising = np.cumsum(np.random.default_rng(0).integers(1, 50, 40)) + 40_000
    for column in (rising, -rising, [f"n{n}" for n in range(40)]):
        (line,) = keyed(tmp_path, [*map(str, column)])
        assert "identifier, leave it out with drop=['k']" in line and ": k;" in line
    dates = [f"2020-01-{day:02}" for day in range(1, 32)]
    for column in (rising / 8, np.arange(40) // 2, np.arange(40) % 39, dates, rising[:9]):
        assert not keyed(tmp_path, [*map(str, column)])


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ("Yes,yes ,no", "Yes,yes "),
        ("é,e\u0301,e", "e\u0301,é"),
        ("1,1.0,01,+1,2,2.5", "+1,01,1,1.0"),  # as of joined files
        ("9007199254740993,9007199254740992", ""),
        ("Yes,no", ""),
    ],
)
def test_labels_that_may_be_one_class_are_told(tmp_path, labels, told):
    path = tmp_path / "t.csv"
    rows = "".join(f"{one},1\n{one},2\n" for one in labels.split(","))
    path.write_text(f"y,a\n{rows}", encoding="utf-8")
    found = [line for line in read(path, classes="any").notes() if "differ only" in line]
    line = f"labels that differ only in how they are written: {listed(map(repr, told.split(',')))}"
    assert found == [f"{line}; if they mean one class, write them alike"] * bool(told)


LABELS_OF_NUMBERS = {
    "numbers, decimal ','": (["1,5", "2", "3"], {}),
    "true and false, as 1 and 0": (["TRUE", "FALSE", "TRUE"], {}),
    "dates, as days since 1970": (["2020-01-31", "2020-02-01"], {"dates": ["y"]}),
}


@pytest.mark.parametrize("about", LABELS_OF_NUMBERS)
def test_labels_of_a_regression_are_told_as_are_columns(tmp_path, about):
    path, (texts, options) = tmp_path / "t.csv", LABELS_OF_NUMBERS[about]
    path.write_text("a;y\n" + "".join(f"{number};{text}\n" for number, text in enumerate(texts)))
    notes = read(path, **options).notes()
    assert notes[-1] == f"labels, y: {about}"


def test_texts_that_are_nowhere_are_told(tmp_path):
    notes = table(tmp_path, ["1", "none", "2", "3", "4", "5"], na_values=["", "none", "w"]).notes()
    assert notes[-1] == "no column has these values: na_values=['w']"


def test_a_sign_is_told_where_it_is(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;y\n" + "".join(f"{n};1.23{n};{n % 2}\n" for n in range(8)))
    notes = read(path, classes="auto", thousands=".").notes()
    assert notes[:2] == ["numbers, decimal ',': a", "numbers, decimal ',', thousands '.': b"]
    path.write_text(path.read_text().replace(".", "\u00a0"))
    notes = read(path, classes="auto", thousands=" ").notes()
    assert notes[:2] == ["numbers: a", "numbers, decimal '.', thousands ' ': b"]


def test_columns_that_say_nothing_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d,y\n" + "".join(f"3,w,{n % 2 or ''},0,{n % 2}\n" for n in range(8)))
    notes = read(path, classes="auto", words=True).notes()
    (line,) = [note for note in notes if note.startswith("constant, ")]
    assert line.endswith(": a, b, d; leave it out with drop=['a', 'b', 'd']")


@pytest.mark.parametrize("header", ["", "Unnamed: 0"])
def test_columns_without_a_name_are_told(tmp_path, header):
    path = tmp_path / "t.csv"
    path.write_text(f"a,{header},y\n" + "1,5,u\n2,7,v\n" * 4)
    told = f"left out: column 2, {header!r}: an index, names of rows, or a column without a name"
    assert told in read(path, classes="auto").notes()


def test_zeros_before_a_number_are_no_digits_of_it(tmp_path):
    padded, long = [f"{n:020}" for n in range(6)], [f"0{10**17 + n}" for n in range(6)]
    told = [line for line in table(tmp_path, padded).notes() if "digits" in line]
    assert not told
    assert any("too many digits for float64" in line for line in table(tmp_path, long).notes())


def test_nines_that_may_stand_for_nothing_are_told_where_that_can_be_said(tmp_path):
    told = "numbers that may mark missing values, such as -99 or -999: a; if they do, give them"
    texts = ["-999", "1", "2", "3", "4", "5"]
    assert table(tmp_path, texts).notes()[1] == f"{told} as na_values=[...]"
    assert not any("-999" in line for line in table(tmp_path, texts, na_values=["-999"]).notes())
    typed = {"a": pa.array([*map(int, texts)]), "y": list("uvuvuv")}
    parquet.write_table(pa.table(typed), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet", classes="auto").notes()[1] == f"{told} as na_values=[...]"
    for other in ("-999.0", " -999", "-99.00"):
        assert table(tmp_path, [other, *texts[1:]]).notes()[1] == f"{told} as na_values=[...]"


def test_rare_values_are_told_wherever_they_are(tmp_path):
    """Also after more values than are kept, and in numbers to be predicted."""
    many = np.arange(3000) + 0.5
    many[2500] = -999
    two = ["123456789012345678", "007", *map(str, many)]
    parquet.write_table(pa.table({"a": many, "y": many}), tmp_path / "t.parquet")
    texts = [*map(str, many), "0123"]
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{one},{one}\n" for one in texts))
    for name in ("t.csv", "t.parquet"):
        notes = read(tmp_path / name).notes()
        assert any("such as -99 or -999: a, y; if they do" in line for line in notes)
    notes = read(tmp_path / "t.csv", na_values=["-999"]).notes()
    assert any("begin with 0: a, y; if they are" in line for line in notes)
    assert not any("-999" in line for line in notes)
    path = tmp_path / "two.csv"  # rare values of each kind, in rows that are read together
    path.write_text("a,y\n" + "".join(f"{one},1\n" for one in two[::-1]))
    told = " ".join(read(path, words=True).notes())
    assert all(what in told for what in ("begin with 0: a", "too many digits", "-99 or -999: a"))


def test_a_usual_text_for_nothing_is_offered_beside_those_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,u\n2,v\n" * 5 + "NULL,u\n#DIV/0!,v\n")
    both = re.escape("na_values=['#DIV/0!', 'NULL'] for missing values")
    with pytest.raises(ValueError, match=both):
        Table([str(path)], Reading(target="y", classes="auto", na_values=["#DIV/0!"]))


def test_true_among_numbers_is_not_called_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,u\n0,v\n" * 5 + "FALSE,u\n")
    with pytest.raises(ValueError, match="numbers and words such as 'FALSE'") as error:
        Table([str(path)], Reading(target="y", classes="auto"))
    assert "na_values" not in str(error.value)


def test_words_where_the_training_had_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\nyes\nno\n")
    with pytest.raises(
        ValueError,
        match=r"holds words such as 'yes' .*: convert them to numbers, as in",
    ):
        Table([str(path)], Reading(features=["a"], words=[], marks={}))


def test_separators_in_texts_without_quotes_are_no_names_of_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,note,y\n" + "5,'x, z',u\n5,'x, w',v\n" * 5)
    with pytest.raises(ValueError, match="one more field than the first line: quote strings"):
        Table([str(path)], Reading(target="y", classes="auto", words=True))


NO_NAMES_OF_ROWS = {
    "decimal commas": "minute,temp,y\n" + "".join(f"{n},2{n},{n % 3},u\n" for n in range(6)),
    "decimal commas from 1": "minute,temp,y\n" + "".join(f"{n},2{n},4,u\n" for n in range(1, 6)),
    "two decimal commas": "minute,a,b,y\n" + "".join(f"{n},2{n},4,1,{n},u\n" for n in range(6)),
    "names": "name,temp,y\n" + "".join(f'"Mrs {n}",2{n},4,u\n' for n in range(6)),
    "negative": "temp,x,y\n" + "".join(f"-{n},4,0.{n},u\n" for n in range(1, 6)),
    "words of two": "x z y\n" + "".join(f"0.{n} 0 very u\n" for n in range(1, 6)),
}


@pytest.mark.parametrize("name", NO_NAMES_OF_ROWS)
def test_rows_with_a_field_more_begin_with_names_only_if_it_is_sure(tmp_path, name):
    """Distinct numbers in the first column were left out as R's names of rows."""
    (tmp_path / "t.csv").write_text(NO_NAMES_OF_ROWS[name])
    either = r"or begin the first line with row\.names if the rows|, or write decimal commas as"
    with pytest.raises(ValueError, match=either):
        read(tmp_path / "t.csv", classes="auto", words=True)


NAMES_OF_ROWS = {
    "quoted": '"a","b","y"\n' + "".join(f'"{n}",1,2,"{"uv"[n % 2]}"\n' for n in (3, 8, 4, 5)),
    "counted": "a b y\n" + "".join(f"{n} 1 2 {'uv'[n % 2]}\n" for n in range(1, 6)),
    "texts": "a,b,y\n" + "".join(f"Mazda {n},1.5,2,{'uv'[n % 2]}\n" for n in range(4)),
    "told": "row.names,a,b,y\n" + "".join(f"{n},1,2,{'uv'[n % 2]}\n" for n in (7, 2, 3)),
}


@pytest.mark.parametrize("name", NAMES_OF_ROWS)
def test_names_of_rows_by_r(tmp_path, name):
    (tmp_path / "t.csv").write_text(NAMES_OF_ROWS[name])
    found = read(tmp_path / "t.csv", classes="auto", words=True)
    assert found.names == ["row.names", "a", "b", "y"] and found.columns.features == ("a", "b")


def test_a_typographic_minus_is_a_minus_of_whole_numbers_too(tmp_path):
    found = table(tmp_path, ["\u22125", "0", "5", "\u221212", "3", " \u22127"])
    assert values(found)[:, 0].tolist() == [-5, 0, 5, -12, 3, -7]


def test_a_doubtful_number_after_many_others_is_a_doubt_and_no_crash(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{n},{n % 2}\n" for n in range(1200))
    path.write_text(f'a,y\n{rows}"1,234",1\n')
    with pytest.raises(
        ValueError, match="that can be read in two ways: give thousands=',' if the first"
    ):
        read(path, classes="auto", words=True)


@pytest.mark.parametrize("cell", ["-99", "-99.0", "   -99", "\u221299", "-99,0", "-9.9e1"])
def test_a_number_for_nothing_is_that_number_however_it_is_written(tmp_path, cell):
    decimal = "," if "," in cell else "."
    texts = [f"2{decimal}5", cell, "3", "4", "5", "-98"]
    found = table(tmp_path, texts, ";", na_values=["-99"], decimal=decimal)
    assert found.holes == {"a": "row 1"} and not any("na_values" in one for one in found.notes())
    expected = [2.5, np.nan, 3, 4, 5, -98]
    np.testing.assert_array_equal(values(found)[:, 0], expected)


NO_VALUE = {
    "int": pa.array([1, -99, 3, 1, 2, 3]),
    "double": pa.array([1, -99, 3, 1, 2, 3], pa.float64()),
    "decimal": pa.array(["1.0", "-99.0", "3.0", "1.0", "2.0", "3.0"]).cast(pa.decimal128(5, 1)),
    "text": pa.array(["1", "-99.0", "3", "1", "2", "3"]),
    "category": pa.array([1, -99, 3, 1, 2, 3]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", NO_VALUE)
def test_a_number_for_nothing_in_typed_columns(tmp_path, kind):
    typed = {"a": NO_VALUE[kind], "y": list("uvuvuv")}
    parquet.write_table(pa.table(typed), tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet", classes="auto", words=True, na_values=["-99"])
    assert found.holes == {"a": "row 1"}
    new = Table([str(tmp_path / "t.parquet")], Reading(features=["a"], na_values=["-99"], marks={}))
    np.testing.assert_array_equal(values(new)[:, 0], [1, np.nan, 3, 1, 2, 3])
    assert np.isnan(values(found)).any(axis=1).tolist() == [n == 1 for n in range(6)]


def test_a_number_for_nothing_after_many_others(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{n}.5,{n % 2}\n" for n in range(1200)) + " -99.0,1\n")
    assert read(path, classes="auto", na_values=["-99"]).holes == {"a": "row 1200"}


def test_spaces_around_a_text_for_nothing_among_numbers(tmp_path):
    found = table(tmp_path, ["1", " NA", "3", "- ", "5", "6"])
    assert found.holes == {"a": "row 1"}
    assert np.isnan(values(found)[:, 0]).tolist() == [False, True, False, True, False, False]


def test_words_are_missing_only_as_written(tmp_path):
    found = table(tmp_path, ["w", "-99", "v", "-99.0", "w", " -99"], na_values=["-99"])
    assert found.columns.features == ("a= -99", "a=-99.0", "a=v", "a=w")


@pytest.mark.parametrize("word", ["now", "today", "Now", " today"])
def test_the_day_of_the_run_is_no_date_of_a_table(tmp_path, word):
    with pytest.raises(ValueError, match=f"'a' holds words such as '{word}' .row 1."):
        table(tmp_path, ["2020-01-31", word, *["2020-02-01"] * 4], dates=["a"])


def test_numbers_are_no_dates(tmp_path):
    with pytest.raises(ValueError, match="'a' holds numbers such as '3'"):
        table(tmp_path, ["3", "4", "60", "3", "4", "60"], dates=["a"])


def test_a_number_for_nothing_in_svmlight(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:2 2:-99\n2 1:-99.0\n")
    found = read(tmp_path / "t.svm", classes="auto", na_values=["-99"])
    assert found.holes == {"x1": "row 1", "x2": "row 0"}
    np.testing.assert_array_equal(values(found), [[2, np.nan], [np.nan, 0]])
    new = Table([str(tmp_path / "t.svm")], Reading(features=["x1", "x2"], na_values=["-99"]))
    assert new.holes == found.holes
