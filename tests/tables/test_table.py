"""What a table's columns are read as: one spelling for each, or an error that says what to do."""

from decimal import Decimal

import numpy as np
import pytest
from tables_as_read import read, table, values

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from gpflow_bsvm.data.batch import Origin  # noqa: E402
from gpflow_bsvm.tables.labels import as_written  # noqa: E402
from gpflow_bsvm.tables.reading import Reading  # noqa: E402
from gpflow_bsvm.tables.spelling import chosen, possible  # noqa: E402
from gpflow_bsvm.tables.table import Table  # noqa: E402

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
    "both told": (["1\u00a0234,5", "9"], {"thousands": " ", "decimal": ","}, [1234.5, 9]),
    "missing": (["?", "1", "NA", "-", "", "2"], {}, [np.nan, 1, np.nan, np.nan, np.nan, 2]),
    "told missing": (["-999", "1", "2", "3", "4", "5"], {"na_values": ["-999"]}, [np.nan, 1]),
    "truth": (["True", "false", " TRUE ", "true", "", "FALSE"], {}, [1, 0, 1, 1, np.nan, 0]),
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
    "truth and numbers": (["true", "1", "false"], r"words such as 'true' \(row 0\), 'false'"),
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
        r"words such as 'lots' \(row 2\).*na_values=\['lots'\]",
    ),
    "spaces": (
        ["1 234", "945", "12\u00a0000"],
        r"' ' between thousands such as '1 234' .*: give thousands=' ', give words=\['a'\]",
    ),
    "spaces and commas": (["1\u202f234,5", "945,5"], "thousands=' ' with decimal=',', give words"),
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


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_decimal_points_of_another_column_settle_the_doubt(tmp_path, separator):
    """Ages such as 75 and 60.667 were refused in files that are full of decimal points."""
    path = tmp_path / "t.csv"

    def ages(*rows):
        lines = ["age b c y", *rows]
        path.write_text("\n".join(lines).replace(" ", separator))
        return values(read(path, classes="auto", words=True))[:, 0].tolist()

    assert ages("75 1.9 1 u", "60.667 1 2 v", "58.125 25 3 v") == [75, 60.667, 58.125]
    doubtful = [["75 19 1 u", "60.667 1 2 v"], ["75 1.255 1 u", "60.667 25 2 v"]]
    if separator != ",":
        doubtful += [["75 1.9 2,5 u", "60.667 1 2 v"]]
    for rows in doubtful:
        with pytest.raises(ValueError, match="column 'age' holds numbers that can be read in two"):
            ages(*rows)


def test_words_are_what_they_are(tmp_path):
    found = table(tmp_path, ["A11", "A12", "NA", "A11", "A12", "NA"])
    assert found.columns.features == ("a=A11", "a=A12", "a=NA")
    np.testing.assert_array_equal(values(found)[:3], np.eye(3))
    codes = table(tmp_path, ["01", "1", "2", "01", "1", "2"], words=["a"])
    assert codes.columns.features == ("a=01", "a=1", "a=2")
    gaps = values(table(tmp_path, ["x", "", "y", "x", "y", "x"]))
    np.testing.assert_array_equal(gaps[:3], [[1, 0], [np.nan, np.nan], [0, 1]])


def test_a_target_of_numbers_is_read_as_carefully(tmp_path):
    """It was read as 8.751 where it was 8751."""
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "".join(f"{n};{n + 1}.751\n" for n in range(60)))
    with pytest.raises(ValueError, match="column 'y' holds numbers that can be read in two ways"):
        read(path, words=True)
    assert read(path, words=True, thousands=".").columns.classes is None


def test_units_in_a_column_that_was_of_numbers(tmp_path):
    with pytest.raises(ValueError, match=r"signs or units such as '26.6 kg'"):
        table(tmp_path, [f"{n}.6 kg" for n in range(26, 32)], words=False, features=["a"])


def test_types_that_are_neither_numbers_nor_words(tmp_path):
    for values_, message in [
        (pa.array([[1.0], [2.0]]), "holds list.*: give drop=\\['a'\\]"),
        (pa.array([1, 2], pa.duration("us")), "holds duration.*: give drop=\\['a'\\]"),
        (pa.array([1, 2], pa.timestamp("us")), "holds dates or times"),
    ]:
        path = tmp_path / "t.parquet"
        parquet.write_table(pa.table({"a": values_, "b": [1.0, 2.0], "y": ["u", "v"]}), path)
        with pytest.raises(ValueError, match=message):
            read(path, words=True)


def test_durations_as_labels_have_a_unit(tmp_path):
    path = tmp_path / "t.parquet"
    hours = pa.array([3_600_000_000, 7_200_000_000] * 2, pa.duration("us"))
    parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0, 4.0], "y": hours}), path)
    assert read(path, classes="auto").columns.classes == ["1:00:00", "2:00:00"]


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


def ordered(path, labels, order):
    labels = labels * 3
    codes = pa.array([order.index(label) for label in labels], pa.int8())
    y = pa.DictionaryArray.from_arrays(codes, order, ordered=True)
    parquet.write_table(pa.table({"a": np.arange(len(labels)), "y": y}), path)
    return str(path)


def test_files_have_one_order_of_labels(tmp_path):
    """Before, the order of the last file was taken, and labels that it lacks were lost."""
    reading = Reading("y", classes="auto")
    whole = ordered(tmp_path / "a.parquet", ["hi", "lo", "mid"], ["lo", "mid", "hi"])
    part = ordered(tmp_path / "b.parquet", ["mid", "lo"], ["lo", "mid"])
    for paths in ([whole, part], [part, whole]):
        found = Table(paths, reading)
        assert found.columns.classes == ["lo", "mid", "hi"] and found.classes_in_order
    other = ordered(tmp_path / "c.parquet", ["mid", "lo"], ["mid", "lo"])
    with pytest.raises(ValueError, match=r"categories 'mid', 'lo' in .*c.parquet, but 'lo', 'mid'"):
        Table([whole, other], reading)
    words = pa.table({"a": [1, 2] * 3, "y": ["mid", "top"] * 3})
    parquet.write_table(words, tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="ordered category in some files only"):
        Table([whole, str(tmp_path / "d.parquet")], reading)


def test_labels_of_several_types_are_refused(tmp_path):
    paths = [str(tmp_path / f"{n}.parquet") for n in range(2)]
    parquet.write_table(pa.table({"a": [1, 2] * 3, "y": [1, 2] * 3}), paths[0])
    for y in ([True, False], [Decimal("1.0"), Decimal("2.0")]):
        parquet.write_table(pa.table({"a": [1, 2] * 3, "y": y * 3}), paths[1])
        with pytest.raises(ValueError, match="labels of one type"):
            Table(paths, Reading("y", classes="auto"))


def test_classes_in_single_precision(tmp_path):
    labels = pa.array([0.1, 2, 0.1], pa.float32())
    parquet.write_table(pa.table({"a": [1, 2, 3], "y": labels}), tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet", classes=[2, 0.1])
    (batch,) = found.files[0].batches(found.columns.read, 9)
    assert found.columns.piece(batch, Origin())[1].ravel().tolist() == [1, 0, 1]


def test_a_negative_zero_is_no_class(tmp_path):
    with pytest.raises(ValueError, match=r"'-0' .row 1.* is a negative zero, .* write 0"):
        (tmp_path / "t.csv").write_text("a,y\n1,0\n2,-0\n3,1\n")
        read(tmp_path / "t.csv", classes="auto")


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
