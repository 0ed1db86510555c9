"""Options that say how a table is read: their names, and what errors advise."""

import numpy as np
import pytest
from tables_as_read import read, table, values

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import parquet

from gpflow_bsvm.data.batch import Origin
from gpflow_bsvm.tables.reading import Reading
from gpflow_bsvm.tables.table import Table


def test_names_and_identifiers_are_dropped_by_name(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("who,a,y\n" + "".join(f"n{n},{n},{n % 2}\n" for n in range(99)))
    message = r"more than 50 different words such as 'n0'.*words=\['who'\].*drop=\['who'"
    with pytest.raises(ValueError, match=message):
        read(path, classes="auto", words=True)
    assert len(read(path, classes="auto", words=["who"]).columns.features) == 100
    found = read(path, classes="auto", words=True, drop=["who"])
    assert found.columns.features == ("a",)
    assert found.notes() == ["numbers: a", "labels, y: 0, 1"]


def test_lists_of_names_may_be_arrays_but_no_strings_and_no_sets_if_their_order_counts(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("ab,a,b,y\n1,2,3,u\n4,5,6,v\n")
    how = {"classes": "auto"}
    for names in (np.array(["b", "a"]), ["b", "a"]):
        assert read(path, features=names, **how).columns.features == ("b", "a")
    assert read(path, drop=np.array(["a", "b"]), **how).columns.features == ("ab",)
    for option in ("words", "drop", "features"):
        with pytest.raises(ValueError, match=f"{option} must be a list of names, got 'ab'"):
            read(path, **{option: "ab"}, **how)
    with pytest.raises(ValueError, match=r"features must be a list of names, got \{"):
        read(path, features={"a", "b"}, **how)
    with pytest.raises(ValueError, match="classes must be a list of labels, got the set"):
        read(path, classes={"u", "v"})


def test_numbers_may_stand_for_missing_values(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,u\n-999.0,v\n")
    found = values(read(path, classes="auto", na_values=[-999]))
    np.testing.assert_array_equal(found, [[1], [np.nan]])


def test_dates_of_another_form_are_told_at_once(tmp_path):
    """They were told after the fit had begun, and by a sentence that blamed one row."""
    texts = ["14.02.2023", "22.05.2023"] * 3
    for options, message in [
        (
            {},
            r"such as '14.02.2023' \(row 0\): write 2020-01-31 or 15:30 .* give dates=\['a'\]",
        ),
        (
            {"dates": ["a"]},
            r"'14.02.2023' \(row 0\), .*: dates are read as in 2020-01-31 12:30 .*convert .*, or",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            table(tmp_path, texts, **options)
    with pytest.raises(ValueError, match=r"'0000-00-00' \(row 5\).*na_values=\['0000-00-00'\]"):
        table(tmp_path, [f"2020-01-0{n}" for n in range(1, 6)] + ["0000-00-00"], dates=["a"])
    basic = table(tmp_path, ["19700102", "", "NA"] * 2, dates=["a"])
    np.testing.assert_array_equal(values(basic)[:3, 0], [1, np.nan, np.nan])


def test_fractions_are_classes_where_that_is_said(tmp_path):
    path, codes = tmp_path / "t.csv", ["1,3", "1,0", "2,0"] * 4
    path.write_text("a;y\n" + "".join(f"{n};{one}\n" for n, one in enumerate(codes)))
    with pytest.raises(ValueError, match=r'such as 1,3: they look .* classes="any" with files'):
        read(path, classes="auto")
    assert read(path, classes="any").columns.classes == ["1,0", "1,3", "2,0"]
    path.write_text(path.read_text().replace(",", "."))
    assert read(path, classes="any").columns.classes == ["1.0", "1.3", "2.0"]
    path.write_text("a;y\n" + "".join(f"{n};{n % 2}\n" for n in range(9)))
    assert read(path, classes="any").columns.classes == [0, 1]


def test_blanks_around_names_of_parquet_columns_do_not_matter(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({" a": [1.0, 2.0], "b": [3.0, 4.0], " label ": [1, -1]}), path)
    found = Table([str(path)], Reading("label", features=["b", "a"]))
    (batch,) = found.files[0].batches(found.columns.read, 9)
    X, Y, *_ = found.columns.piece(batch, Origin(0, path))
    assert X.tolist() == [[3, 1], [4, 2]] and Y.tolist() == [[1], [-1]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_short_fractions_are_classes_as_the_file_has_them(tmp_path, kind):
    """As a longer float, 0.1 has other digits: no label was then one of the classes."""
    path = tmp_path / "t.parquet"
    y = pa.array(np.array([0.1, 0.5, 0.1], kind))
    parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0], "y": y}), path)
    found = read(path, classes="any")
    (batch,) = found.files[0].batches(found.columns.read, 9)
    assert found.columns.piece(batch, Origin(0, path))[1].tolist() == [[0.0], [1.0], [0.0]]
    assert kind is np.float16 or found.columns.classes == ["0.1", "0.5"]


WRONG_NAMES = {
    "words=['b', 'zpi']": (
        {"words": ["b", "zpi"]},
        r"words=.* lacks: 'zpi' \(perhaps 'zip'\); it",
    ),
    "case": ({"drop": ["ZIP", "none"]}, r"drop=.* lacks: 'ZIP' \(perhaps 'zip'\), 'none'; it"),
    "dates": ({"dates": ["day"]}, "dates=.* lacks: 'day'; it has zip, b, y"),
    "features": ({"features": ["zp"]}, r"lacks 'zp' \(perhaps 'zip'\); it has zip, b, y; columns"),
    "target": ({"target": "Y"}, r"lacks 'Y' \(perhaps 'y'\)"),
    "both": ({"drop": ["b"], "features": ["b"]}, r"drop=\['b'\]: .* cannot be left out"),
    "the target": ({"drop": ["y"]}, r"drop=\['y'\]: .* cannot be left out"),
}


@pytest.mark.parametrize("case", WRONG_NAMES)
def test_options_name_columns_that_are_there(tmp_path, case):
    options, message = WRONG_NAMES[case]
    (tmp_path / "t.csv").write_text("zip,b,y\n1,2,3\n")
    with pytest.raises(ValueError, match=message):
        Table([str(tmp_path / "t.csv")], Reading(**{"target": "y"} | options))


def test_at_prediction_options_of_training_may_be_repeated(tmp_path):
    (tmp_path / "t.csv").write_text("a,w\n1,u\nunknown,unknown\n")
    told = {"drop": ["who"], "words": ["w"], "na_values": ["unknown"]}
    found = Table([str(tmp_path / "t.csv")], Reading(features=["a", "w=u", "w=v"], **told))
    np.testing.assert_array_equal(values(found), [[1, 1, 0], [np.nan] * 3])
    with pytest.raises(ValueError, match=r"na_values=\['unknown'\] if .*, or correct the file$"):
        Table([str(tmp_path / "t.csv")], Reading(features=["a", "w=u", "w=v"]))


def test_a_late_value_that_does_not_fit_is_named(tmp_path):
    """What the first rows show is kept to where all rows are not looked at."""
    path = tmp_path / "late.csv"
    lines = [f"{n}.{'5' * 60},{n % 2}" for n in range(20_000)]
    path.write_text("\n".join(["a,y", *lines, "1;5,1"]) + "\n")
    found = read(path)
    with pytest.raises(ValueError, match=r"row \d+: '1;5' in column 'a' does not fit the"):
        values(found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("abc", r"numbers and words such as 'abc' \(row 2500\): give na_values=\['abc'\]"),
        ("1,5", r"in several ways such as '0.5' \(row 0\), '1,5' \(row 2500\)"),
    ],
)
def test_a_text_after_many_numbers_is_named(tmp_path, text, told):
    rows = [f"{n}.5;{n % 2}\n" for n in range(3000)]
    rows[2500] = f"{text};1\n"
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(rows))
    with pytest.raises(ValueError, match=told):
        read(tmp_path / "t.csv", classes="auto", words=True)


def test_a_word_that_is_no_feature_is_named(tmp_path):
    found = table(tmp_path, list("uvwuvw"), words=False, features=["a=u", "a=v"])
    with pytest.raises(ValueError, match=r"row 2: 'w' in column 'a' is not one of the words 'u'"):
        values(found)


def test_errors_show_what_the_user_wrote(tmp_path):
    with pytest.raises(ValueError, match=r"such as '\{x\}' \(row 1\): give na_values=\['\{x\}'\]"):
        table(tmp_path, ["1", "{x}", "3", "4", "5", "6"])
    with pytest.raises(ValueError, match=r"cannot read .*t.csv: .* one character, .*, got '::'"):
        read(tmp_path / "t.csv", separator="::")
    same = {"decimal": ",", "thousands": ","}  # with -, a negative number would be positive
    signs = same, {"decimal": ",."}, {"thousands": "''"}, {"thousands": "-"}, {"decimal": "5"}
    for told in signs:
        with pytest.raises(ValueError, match="must be two different signs, got "):
            read(tmp_path / "t.csv", **told)


def test_words_without_labels(tmp_path):
    """As OneClassBSVM learns from them."""
    (tmp_path / "t.csv").write_text("zip,b\n01,2\n1,3\n")
    found = Table([str(tmp_path / "t.csv")], Reading(features=["zip"], words=["zip"]))
    assert found.columns.features == ("zip=01", "zip=1")


MARKS = {
    "dates": ("2024-01-01T00:00:00", "2024-01-02"),
    "dates with a time zone": ("2024-01-01T00:00:00+01:00", "2024-01-02T12:00Z"),
    "times of day": ("1:30", "12:00:10"),
    "times of day with a time zone": ("12:00+01", "13:00Z"),
}


@pytest.mark.parametrize("mark, texts", MARKS.items())
def test_times_of_one_kind_are_not_taken_for_those_of_another(tmp_path, mark, texts):
    """A model was trained on some; the file that it is asked for may have the others."""
    path, how = tmp_path / "t.csv", {"features": ["c", "b"], "dates": ["c"]}
    path.write_text("c,b\n" + "".join(f"{text},1\n" for text in texts))
    (column, _) = Table([str(path)], Reading(**how, marks={"c": mark})).columns.kinds
    assert column.mark == mark
    for other in {*MARKS} - {mark}:
        with pytest.raises(ValueError, match=f"'c' holds {mark} such .* had {other}, so convert"):
            Table([str(path)], Reading(**how, marks={"c": other}))
        path.write_text(f"c,b\n{texts[0]},1\n{MARKS[other][0]},1\n")
        with pytest.raises(
            ValueError, match=f"'c' holds .*{mark}.* \\(row [01]\\).*: write all in one way"
        ):
            Table([str(path)], Reading(**how))
        path.write_text("c,b\n" + "".join(f"{text},1\n" for text in texts))


def test_numbers_are_not_taken_for_true_and_false(tmp_path):
    """A survey may code them as 1 and 2."""
    path, how = tmp_path / "t.csv", {"features": ["c"]}

    def values_of(texts, marks):
        path.write_text("c\n" + "".join(f"{text}\n" for text in texts))
        found = Table([str(path)], Reading(**how, marks=marks))
        (batch,) = found.files[0].batches(["c"], 10)
        return found.columns.kinds[0].mark, found.columns.piece(batch, Origin())[0].ravel().tolist()

    truth = {"c": "true and false"}
    assert values_of(["True", "FALSE"], None) == ("true and false", [1, 0])
    assert values_of(["0", "1"], truth) == ("true and false", [0, 1])
    with pytest.raises(ValueError, match=r"row 1.*'2' in column 'c' is neither true nor false"):
        values_of(["1", "2"], truth)
    with pytest.raises(ValueError, match=r"'c' holds true and false .*: convert them to numbers"):
        values_of(["true", "false"], {})


def test_a_late_time_of_another_zone_is_named(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("c\n" + "2024-01-01T00:00:00Z\n" * 40_000 + "2024-01-01T00:00:00\n")
    found = Table([str(path)], Reading(features=["c"], dates=["c"]))
    pieces = (found.columns.piece(one, Origin()) for one in found.files[0].batches(["c"], 2**15))
    with pytest.raises(
        ValueError, match=r"row 7232: .* 'c' is unlike the dates with a time zone before"
    ):
        list(pieces)


def test_a_label_may_read_as_a_missing_value_does(tmp_path):
    """Beside numbers that are missing: the texts for these are none for the labels then."""
    path = tmp_path / "t.csv"
    path.write_text("a,y\nNA,NA\n1,DE\n2,NA\n3,DE\n")
    with pytest.raises(ValueError, match=r"'NA' \(row 0\) .*give words=\['y'\] if it is a label"):
        read(path, classes="auto")
    for options in ({}, {"na_values": ["NA"]}):
        found = read(path, classes="auto", words=["y"], **options)
        assert found.columns.classes == ["DE", "NA"] and found.holes == {"a": "row 0"}
    path.write_text("a,y\n" + "1,FR\n1,DE\n2,\\N\n" * 3)
    with pytest.raises(ValueError, match=r"'.*N' \(row 2\) .*give words=\['y'\] if it is a label"):
        read(path, classes="auto")  # as databases write it
    path.write_text("a,y\n1,FR\n1,DE\n2,  \n3,DE\n4,FR\n5,FR\n")
    with pytest.raises(ValueError, match=r"the label is empty \(row 2"):  # it was a class
        read(path, classes="auto")
    assert read(path, classes="auto", words=["y"]).columns.classes == ["  ", "DE", "FR"]
    path.write_text("a,y\n1,\n1,DE\n2,NA\n")
    with pytest.raises(ValueError, match=r"the label is empty \(row 0"):
        read(path, classes="auto", words=["y"])


@pytest.mark.parametrize("words", [["a=b"], ["a", "a=b"]])
def test_names_may_hold_equal_signs(tmp_path, words):
    """A model could not predict; with words in both columns, its features were 0 in all rows."""
    one, path = ("u1", "v1") if "a" in words else (1, 2), tmp_path / "t.csv"
    path.write_text("a,a=b,y\n" + f"{one[0]},w,u\n{one[1]},x,v\n" * 3)
    found = read(path, classes="auto", words=True)
    again = Table([str(path)], Reading(features=found.columns.features, words=words, marks={}))
    assert "a=b=w" in again.columns.features
    np.testing.assert_array_equal(values(again), values(found))


def test_a_name_of_two_columns_is_told_with_what_works(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Q1,Q2,Q2,y\n1,2,3,u\n4,5,6,v\n")
    with pytest.raises(ValueError, match=r"'Q2': rename .*, or drop=\['Q2'\] to leave all .* out$"):
        read(path, classes="auto")
    assert read(path, classes="auto", drop=["Q2"]).columns.features == ("Q1",)
    for reading in (Reading(features=["Q1", "Q2"]), Reading("Q2", drop=["y"])):
        with pytest.raises(ValueError, match=r"'Q2': rename all but one of them in its header$"):
            Table([str(path)], reading)


def test_a_column_of_words_is_missed_by_its_own_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Q2,b\nu,1\n")
    features = ["Q1=u", "Q1=v", "b"]
    with pytest.raises(ValueError, match="lacks 'Q1'; it has Q2, b; columns 'Q1', 'b' are"):
        Table([str(path)], Reading(features=features, words=["Q1"]))
    with pytest.raises(ValueError, match=r"lacks 'x0', 'x1'; it has Q2, b$"):  # another table
        Table([str(path)], Reading(features=["x0", "x1"]))


def test_nothing_is_left_but_to_mend_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1,5\n1.5\n")
    with pytest.raises(ValueError, match=r"'1.5' \(row 1\): correct the file$"):
        Table([str(path)], Reading(features=["a"], separator=";"))
