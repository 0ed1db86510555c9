"""What a table's columns are read as: one spelling for each, or an error that says what to do."""

import gzip

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from gpflow_bsvm.data.pieces import Origin  # noqa: E402
from gpflow_bsvm.tables.labels import as_written  # noqa: E402
from gpflow_bsvm.tables.reading import Reading  # noqa: E402
from gpflow_bsvm.tables.spelling import chosen, possible  # noqa: E402
from gpflow_bsvm.tables.table import Table  # noqa: E402
from gpflow_bsvm.tables.text import open_format  # noqa: E402

LABELS = ["u", "v", "v", "u", "u", "v"]


def table(folder, values, separator=",", **options):
    path = folder / "t.csv"
    rows = [f"{value}{separator}{label}" for value, label in zip(values, LABELS)]
    path.write_text("\n".join([f"a{separator}y", *rows]) + "\n")
    return read(path, **({"classes": "auto", "words": True} | options))


def read(path, **options):
    return Table([str(path)], Reading("y", **options))


def values(found):
    """:return: X of all rows of a table."""
    pieces = [
        found.columns.piece(batch, Origin(0, file.path))[0]
        for file in found.files
        for batch in file.batches(found.columns.read, 4)
    ]
    return np.concatenate(pieces)


NUMBERS = {
    "plain": (["1e3", "1E-3", "+5", ".5", "5.", "-0.0"], {}, [1000, 0.001, 5, 0.5, 5, 0]),
    "points in one place": (["1.234", "2.345", "3.456", "4.000"], {}, [1.234, 2.345, 3.456, 4]),
    "points, and a large number": (["1.234", "2.345", "3456", "4"], {}, [1.234, 2.345, 3456, 4]),
    "decimal commas": (["1,5", "2", "1,234", "-3,5e2", ",5", "7"], {}, [1.5, 2, 1.234, -350, 0.5]),
    "leading zeros tell": (["0,123", "1,234", "2", "3", "4", "5"], {}, [0.123, 1.234]),
    "points between thousands": (["1.234,5", "2.000", "7", "8", "9", "10"], {}, [1234.5, 2000]),
    "commas between thousands": (["1,234.5", "2,000", "7", "8", "9", "10"], {}, [1234.5, 2000]),
    "two commas": (["1,234,567", "2,000", "7", "8", "9", "10"], {}, [1234567, 2000]),
    "told commas": (["1,234", "2,345", "7", "8", "9", "10"], {"decimal": ","}, [1.234, 2.345]),
    "told thousands": (["1,234", "945", "7", "8", "9", "10"], {"thousands": ","}, [1234, 945]),
    "spaces": (["1 234", "945", "7", "8", "9", "10"], {"thousands": " "}, [1234, 945]),
    "missing": (["?", "1", "NA", "-", "", "2"], {}, [np.nan, 1, np.nan, np.nan, np.nan, 2]),
    "told missing": (["-999", "1", "2", "3", "4", "5"], {"na_values": ["-999"]}, [np.nan, 1]),
    "infinite": (["inf", "1", "2", "3", "4", "5"], {}, [np.inf, 1]),
    "truth": (["True", "false", "TRUE", "true", "", "FALSE"], {}, [1, 0, 1, 1, np.nan, 0]),
    "days": (["1970-01-02", "1970-01-03 12:00"] * 3, {"dates": ["a"]}, [1, 2.5]),
    "times": (["6:00", "12:00"] * 3, {"dates": ["a"]}, [0.25, 0.5]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(tmp_path, name):
    texts, options, expected = NUMBERS[name]
    found = table(tmp_path, texts, separator="|", **options)
    assert found.columns.features == ("a",)
    np.testing.assert_array_equal(values(found)[: len(expected), 0], expected)


REFUSED = {
    "truth and numbers": (["true", "1", "false"], r"others such as 'true' \(row 0\), 'false'"),
    "thousands or decimals": (
        ["945", "1,234", "444,542", "1", "2", "3"],
        r"two ways .*'1,234'.*row 1",
    ),
    "both": (
        ["1,5", "1.5", "2", "3", "4", "5"],
        r"several ways such as '1,5' \(row 0\), '1.5' \(row 1",
    ),
    "units": (
        ["1.2%", "3%", "4.5%", "6%", "7%", "8%"],
        r"signs or units such as '1.2%'.*words=\['a'\]",
    ),
    "money": (["$5", "$6", "$7", "$8", "$9", "$10"], r"signs or units such as '\$5' \(row 0\)"),
    "bounds": (["<3", "5", "4", "6", "7", "8"], r"signs or units such as '<3' \(row 0\)"),
    "a word": (
        ["1", "2", "lots", "4", "5", "6"],
        r"others such as 'lots' \(row 2\).*na_values=\['lots'\]",
    ),
    "dates": (["2020-01-05"] * 6, r"dates or times such as '2020-01-05' .*dates=\['a'\]"),
    "other dates": (["03/04/2020"] * 6, r"dates or times such as '03/04/2020' .*write 2020-01-31"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_be_read_in_several_ways_is_refused(tmp_path, name):
    texts, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        table(tmp_path, texts, separator="\t")


def test_points_are_in_doubt_beside_commas(tmp_path):
    """In a file with decimal commas, or with semicolons, 1.234 may be 1234."""
    texts = ["1.234", "2.000", "3.500", "12.100", "7.000", "9.250"]
    np.testing.assert_array_equal(values(table(tmp_path, texts))[:2, 0], [1.234, 2])
    for separator in (";", "\t"):
        with pytest.raises(ValueError, match="two ways"):
            table(tmp_path, texts, separator)
    assert values(table(tmp_path, texts, ";", decimal=","))[0, 0] == 1234
    assert values(table(tmp_path, texts, ";", decimal="."))[0, 0] == 1.234
    texts = ["1.755", "623", "-1.125", "17", "NA", ""]  # those below 1000 have no point
    for separator in ",;":
        with pytest.raises(
            ValueError, match=r"two ways such as '1.755' \(row 0\), '-1.125' \(row 2"
        ):
            table(tmp_path, texts, separator)
    assert values(table(tmp_path, texts, thousands="."))[:2, 0].tolist() == [1755, 623]
    assert values(table(tmp_path, texts, decimal="."))[0, 0] == 1.755
    rows = Table([str(tmp_path / "t.csv")], Reading(features=["a"]))  # of a model that has learned
    assert values(rows)[:2, 0].tolist() == [1.755, 623]


def test_words_are_what_they_are(tmp_path):
    found = table(tmp_path, ["A11", "A12", "NA", "A11", "A12", "NA"])
    assert found.columns.features == ("a=A11", "a=A12", "a=NA")
    np.testing.assert_array_equal(values(found)[:3], np.eye(3))
    codes = table(tmp_path, ["01", "1", "2", "01", "1", "2"], words=["a"])
    assert codes.columns.features == ("a=01", "a=1", "a=2")
    gaps = values(table(tmp_path, ["x", "", "y", "x", "y", "x"]))
    np.testing.assert_array_equal(gaps[:3], [[1, 0], [np.nan, np.nan], [0, 1]])


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


def test_a_target_of_numbers_is_read_as_carefully(tmp_path):
    """It was read as 8.751 where it was 8751."""
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "".join(f"{n};{n + 1}.751\n" for n in range(60)))
    with pytest.raises(ValueError, match="column 'y' holds numbers that can be read in two ways"):
        read(path, words=True)
    assert read(path, words=True, thousands=".").columns.classes is None


def test_codes_among_numbers_are_told(tmp_path):
    found = table(tmp_path, ["00501", "02139", "10001", "00501", "02139", "10001"])
    assert found.notes()[1] == "numbers that begin with 0: a; if they are codes, give words=['a']"
    typeset = ["1\u202f953,5", "5\u202f929,5", "\u22129,9", "7", "8", "9"]
    found = table(tmp_path, typeset, "\t", thousands=" ", decimal=",")
    np.testing.assert_array_equal(values(found)[:3, 0], [1953.5, 5929.5, -9.9])


def test_units_in_a_column_that_was_of_numbers(tmp_path):
    with pytest.raises(ValueError, match=r"signs or units such as '26.6 kg'"):
        table(tmp_path, [f"{n}.6 kg" for n in range(26, 32)], words=False, features=["a"])


def test_types_that_are_neither_numbers_nor_words(tmp_path):
    for values_, message in [
        (pa.array([[1.0], [2.0]]), "holds list.*: drop=\\['a'\\]"),
        (pa.array([1, 2], pa.duration("us")), "holds duration.*: drop=\\['a'\\]"),
        (pa.array([1, 2], pa.timestamp("us")), "holds dates or times"),
    ]:
        path = tmp_path / "t.parquet"
        parquet.write_table(pa.table({"a": values_, "b": [1.0, 2.0], "y": ["u", "v"]}), path)
        with pytest.raises(ValueError, match=message):
            read(path, words=True)


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_texts_of_every_type_are_texts(tmp_path, kind):
    path, numbers = tmp_path / "t.parquet", [f"{n}.5" for n in range(5000)]
    if kind == "string_view" and not hasattr(pa, kind):
        pytest.skip("pyarrow 15 has none")

    def cells(texts):
        texts = pa.array(texts)
        return texts.dictionary_encode() if kind == "dictionary" else texts.cast(kind)

    columns = {"w": ["u", "v"] * 2500, "y": ["1", "01"] * 2500}
    table = {"a": pa.array(numbers)} | {name: cells(one) for name, one in columns.items()}
    parquet.write_table(pa.table(table), path)
    found = read(path, classes="auto", words=True)
    assert found.columns.features == ("a", "w=u", "w=v") and found.columns.classes == ["01", "1"]
    np.testing.assert_array_equal(values(found)[:2], [[0.5, 1, 0], [1.5, 0, 1]])


def test_words_that_are_numbers_of_some_type(tmp_path):
    path = tmp_path / "t.parquet"
    kinds = {"a": pa.array([1.0, 2.5, 1.0]), "b": pa.array([1, 2, 1]), "c": pa.array([True] * 3)}
    parquet.write_table(pa.table(kinds | {"y": ["u", "v", "u"]}), path)
    found = read(path, classes="auto", words=["a", "b", "c"])
    np.testing.assert_array_equal(values(found)[:2], [[1, 0, 1, 0, 1], [0, 1, 0, 1, 1]])


def test_a_category_is_words_whatever_it_is_of(tmp_path):
    """As in ARFF, the file says so; as labels, categories keep what they are."""
    path = tmp_path / "t.parquet"
    kinds = {"a": pa.array([7, 30, 7]), "b": pa.array(["07", "7", "7"]), "y": pa.array([2, 10, 2])}
    parquet.write_table(
        pa.table({one: kind.dictionary_encode() for one, kind in kinds.items()}), path
    )
    found = read(path, classes="auto", words=True)
    assert found.columns.features == ("a=30", "a=7", "b=07", "b=7")
    np.testing.assert_array_equal(values(found), [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]])
    assert found.columns.classes == [2, 10]
    assert read(path).columns.classes is None  # numbers, if these are asked for
    number = Table([str(path)], Reading(features=["a"]))  # of a model that has learned a number
    np.testing.assert_array_equal(values(number)[:, 0], [7, 30, 7])


WRONG_NAMES = {
    "words=['b', 'zpi']": (
        {"words": ["b", "zpi"]},
        r"no column 'zpi' \(perhaps 'zip'\), which words",
    ),
    "case": ({"drop": ["ZIP", "none"]}, r"no column 'ZIP' \(perhaps 'zip'\), 'none', which drop="),
    "dates": ({"dates": ["day"]}, "no column 'day', which dates=.*; it has zip, b, y"),
    "features": ({"features": ["zp"]}, r"lacks 'zp' \(perhaps 'zip'\); it has 'zip', 'b', 'y'"),
    "target": ({"target": "Y"}, r"lacks 'Y' \(perhaps 'y'\)"),
    "both": ({"drop": ["b"], "features": ["b"]}, r"drop=\['b'\]: .* cannot be left out"),
    "the target": ({"drop": ["y"]}, r"drop=\['y'\]: .* cannot be left out"),
    "a model's": (
        {"target": None, "features": ["zip"], "words": ["zip"]},
        r"words=\['zip'\]: a model that was trained on numbers needs numbers",
    ),
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
    with pytest.raises(ValueError, match=r"na_values=\['unknown'\] if .*, or mend the file$"):
        Table([str(tmp_path / "t.csv")], Reading(features=["a", "w=u", "w=v"]))


def test_a_late_value_that_does_not_fit_is_named(tmp_path):
    """What the first rows show is kept to where all rows are not looked at."""
    path = tmp_path / "late.csv"
    lines = [f"{n}.{'5' * 60},{n % 2}" for n in range(20_000)]
    path.write_text("\n".join(["a,y", *lines, "1;5,1"]) + "\n")
    found = read(path)
    with pytest.raises(ValueError, match=r"late.csv, row \d+: '1;5' in column 'a' is none of the"):
        values(found)


LABEL_TEXTS = [
    (["1", "2", "10"], [1, 2, 10]),
    (["1.5", "0.5"], [0.5, 1.5]),
    (["01", "1"], ["01", "1"]),
    (["1", "1.0"], ["1", "1.0"]),
    (["1e3", "1000"], ["1000", "1e3"]),
    (["True", "False"], ["False", "True"]),
    (["9223372036854775808", "1"], ["1", "9223372036854775808"]),
    (["-0", "0"], ["-0", "0"]),
    (["1_0", "10"], ["10", "1_0"]),
    (["nan", "inf"], ["inf", "nan"]),
]


@pytest.mark.parametrize("texts, labels", LABEL_TEXTS)
def test_labels_are_numbers_only_where_nothing_is_lost(texts, labels):
    found = as_written(texts)
    assert found == labels and [type(one) for one in found] == [type(one) for one in labels]
    assert sorted(map(str, found)) == sorted(texts)


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


def test_a_column_has_one_spelling_that_fits_or_is_in_doubt():
    for texts, decimal in [
        (["1", "2"], "."),
        (["1.5"], "."),
        (["1,5"], ","),
        (["1,234"], None),
        (["1,234", "1,5"], ","),
        (["1,234", "1.5"], "."),
    ]:
        column = pa.array(texts)
        fitting = [one for one in possible() if one.read(column) is not None]
        found = chosen(fitting)
        assert (found and found.decimal) == decimal


def test_a_file_of_another_encoding_or_kind_says_so(tmp_path):
    path = tmp_path / "t.csv"
    for content, message in [
        (
            "ä,y\n1,u\n".encode("latin-1"),
            r"cannot read .*t.csv: it is not utf-8: .*encoding='cp1252'",
        ),
        ("a,y\n1,u\n".encode("utf-16-le"), "it is no text"),
        (b"", "it is empty"),
        (b'a,y\n"' + b"x" * 200_000 + b'",1\n', "field larger than field limit"),
        (b"5.1,3.5,u\n4.9,3,v\n", "has numbers instead of the columns' names"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read(path)


@pytest.mark.parametrize("header", ["\n\na,y\n", '"a","y"\n', '"a\n",y\n'])
def test_no_line_of_the_header_is_a_row(tmp_path, header):
    path = tmp_path / "t.csv"
    path.write_text(header + "".join(f"w{n % 2},{n % 2}\n" for n in range(6)))
    found = read(path, classes="auto", words=True)
    assert found.columns.features == ("a=w0", "a=w1") and found.columns.classes == [0, 1]
    assert len(values(found)) == 6


def test_a_word_that_is_no_feature_is_named(tmp_path):
    found = table(tmp_path, list("uvwuvw"), words=False, features=["a=u", "a=v"])
    with pytest.raises(ValueError, match=r"row 2: 'w' in column 'a' is none of the words 'u', 'v'"):
        values(found)


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
    with pytest.raises(ValueError, match=r"t\.svm count from 0, those of the model from 1"):
        Table([str(path)], Reading(features=["x1", "x2"]))
    for features in (["x0", "x1"], ["x1", "x0"]):
        assert Table([str(path)], Reading(features=features)).columns.features == (*features,)


@pytest.mark.parametrize("text", ["a, y\n1, u\n2\n", "a  y\n1  u\n2\n"])
def test_short_rows_are_refused_wherever_spaces_are(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text + "3, v\n" if "," in text else text + "3 v\n")
    with pytest.raises(ValueError, match=r"t.csv: line 3: Expected 2 columns, got 1"):
        read(path, separator=text[1])


def test_errors_show_what_the_user_wrote(tmp_path):
    with pytest.raises(ValueError, match=r"such as '\{x\}' \(row 1\): na_values=\['\{x\}'\]"):
        table(tmp_path, ["1", "{x}", "3", "4", "5", "6"])
    with pytest.raises(ValueError, match=r"cannot read .*t.csv: .*delimiter"):
        read(tmp_path / "t.csv", separator="::")
