"""Where data are found, and one clear error for data that cannot be used."""

import gzip

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from gpflow_bsvm.datasets import BUNDLED, load

TABLE = "x1,x2,y\n1,2.5,-1\n3,4,1\n5,6,1\n"


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("GPFLOW_BSVM_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name):
    dataset = load(name)
    assert dataset.name == name
    assert dataset.X.dtype == np.float64
    assert dataset.X.shape == (len(dataset.y), len(dataset.feature_names))
    number = {"digits": 10, "iris": 3, "diabetes": 214}.get(name, 2)
    assert len(set(dataset.y)) == number
    assert name == "diabetes" or set(dataset.y) == set(range(number))
    assert len(set(dataset.feature_names)) == dataset.X.shape[1]
    np.testing.assert_array_equal(dataset.X, load(name).X)


def test_even_digits_are_the_digits_by_parity():
    even, digits = load("even-digits"), load("digits")
    np.testing.assert_array_equal(even.X, digits.X)
    np.testing.assert_array_equal(even.y, (digits.y + 1) % 2)


def test_banana_like_overlaps_by_some_ten_percent():
    dataset = load("banana-like")
    assert len(dataset.y) == 1000
    error = 1 - cross_val_score(SVC(), dataset.X, dataset.y, cv=5).mean()
    assert 0.07 < error < 0.13


def check_table(dataset, name="some"):
    assert dataset.name == name
    assert dataset.feature_names == ("x1", "x2")
    np.testing.assert_array_equal(dataset.X, [[1, 2.5], [3, 4], [5, 6]])
    np.testing.assert_array_equal(dataset.y, [-1, 1, 1])


def test_csv_path(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text(TABLE)
    check_table(load(str(path)))


def test_path_needs_no_suffix(tmp_path):
    (tmp_path / "some").write_text(TABLE)
    check_table(load(str(tmp_path / "some")))


def test_gzip_path(tmp_path):
    path = tmp_path / "some.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    check_table(load(str(path)))


@pytest.mark.parametrize("folder", ["", "binary", "multiclass"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_name_in_the_data_directory(directory, folder, suffix):
    (directory / folder).mkdir(exist_ok=True)
    content = TABLE.encode()
    path = directory / folder / f"some{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    check_table(load("some"))


def test_name_with_folder(directory):
    for folder in ("binary", "multiclass"):
        (directory / folder).mkdir()
    (directory / "binary" / "some.csv").write_text("x1,y\n1,0\n2,1\n")
    (directory / "multiclass" / "some.csv").write_text(TABLE)
    check_table(load("multiclass/some"))
    assert load("some").X.shape == (2, 1)  # binary first


def test_target_is_for_paths_only(directory):
    (directory / "some.csv").write_text(TABLE)
    check_table(load("some", target="label"))


@pytest.mark.parametrize("name", ["y", "target", "class", "label"])
def test_usual_names_of_the_target(tmp_path, name):
    path = tmp_path / "some.csv"
    path.write_text(TABLE.replace("y", name))
    check_table(load(str(path)))


def test_named_target_and_words_as_labels(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("kind,x1,y\nlow,1,2\nhigh,2,3\n")
    dataset = load(str(path), target="kind")
    assert dataset.feature_names == ("x1", "y")
    assert list(dataset.y) == ["low", "high"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators(tmp_path, separator):
    path = tmp_path / "some.csv"
    path.write_text(TABLE.replace(",", separator))
    check_table(load(str(path)))
    if separator == ";":
        path.write_text('"x1";"x2, in m";"y"\n1;2,5;-1\n3;4;1\n5;6;1\n')
        dataset = load(str(path))
        assert dataset.feature_names == ("x1", "x2, in m")
        np.testing.assert_array_equal(dataset.X, [[1, 2.5], [3, 4], [5, 6]])


def test_a_column_without_a_name_is_dropped(tmp_path):
    """As pandas writes its index: a feature that knows the order of the rows."""
    path = tmp_path / "some.csv"
    (tmp_path / "plain.csv").write_text(TABLE)
    frame = pd.read_csv(tmp_path / "plain.csv")
    frame.to_csv(path)
    pd.read_csv(path).to_csv(path)  # twice
    dataset = load(str(path))
    check_table(dataset)
    told = [note.partition(": an index,")[0] for note in dataset.notes[1:3]]
    assert told == ["left out: column 1, ''", "left out: column 2, 'Unnamed: 0'"]
    assert load(str(tmp_path / "plain.csv")).notes == ("numbers: x1, x2", "labels, y: -1, 1")


def test_words_become_columns(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a,b,c,y\nu,1,yes,0\nv,2,no,1\nw,3,no,0\nu,4,yes,1\nu,4,yes,1\nu,4,yes,1\n")
    dataset = load(str(path))
    assert dataset.feature_names == ("a=u", "a=v", "a=w", "b", "c=no", "c=yes")
    np.testing.assert_array_equal(
        dataset.X[:3], [[1, 0, 0, 1, 0, 1], [0, 1, 0, 2, 1, 0], [0, 0, 1, 3, 1, 0]]
    )
    assert dataset.notes == (
        "words of a: 'u', 'v', 'w'",
        "numbers: b",
        "words of c: 'no', 'yes'",
        "labels, y: 0, 1",
    )


def test_booleans_are_numbers(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("x1,y\nTrue,0\nFalse,1\n")
    np.testing.assert_array_equal(load(str(path)).X, [[1], [0]])


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "it is empty, without a header line"),
        (b"a,y\n", "no rows"),
        (b"a,y\n1,2\n2,2\n", "column 'y' holds one class only .2."),
        (b"a,b\n1,2\n2,2\n", "columns, a, b, include none of y, target, class, label$"),
        (b"a,y,class\n1,2,3\n2,2,3\n", "more than one of y, target, class, label"),
        (b"a,b,a,y\n1,2,3,0\n2,2,3,1\n", "several columns named .a.: rename"),
        (b"1,2\n1,2\n2,2\n", "the first line of .* has numbers instead of the columns' names"),
        (
            b"a,1850,1860\n1,2,3\n2,2,3\n",
            "has numbers instead of the columns' names .* with .* 3 columns; if not, put a letter",
        ),
        (b"y\n0\n1\n", "no columns for X besides target"),
        (
            b"a,b,y\n1,2,0\n3,wood,1\n",
            r"column 'b' holds numbers and words such as 'wood' \(row 1\): give na_values=\['wood'",
        ),
        (b"a,b,y\n1,2,0\n3,?,1\n", "X holds nan \\(row 1, column 'b'\\)"),
        (b"a,b,y\n1,2,0\n3,,1\n", "X holds nan \\(row 1, column 'b'\\)"),
        (b"a,b,y\n1,2,0\n3,4,\n", "the label is empty \\(row 1, column 'y'\\)"),
        (b"a,b,y\n1,2,0\n3,inf,1\n", "row 1: 'inf' in column 'b' is not finite"),
        (b"a,y\n1,2,3\n1,2,4\n1,2\n", "line 2: Expected 2 columns, got 3"),
        (b"a,y\n1,2\n1,2,4\n", "cannot read .*line 3: Expected 2 columns"),
        (b"a,y\n\xff\xfe,1\n", "cannot read"),
    ],
)
def test_unusable_file(tmp_path, content, message):
    path = tmp_path / "some.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_formats_are_told_from_csv(tmp_path):
    with pytest.raises(ValueError, match=r"wine\.json is neither CSV nor Parquet"):
        (tmp_path / "wine.json").write_text("{}")
        load(str(tmp_path / "wine.json"))


def test_missing_target_lists_the_columns(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text(TABLE)
    with pytest.raises(ValueError, match=r"lacks 'label'; it has x1, x2, y$"):
        load(str(path), target="label")


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(TABLE.encode() * 99)[:60]], ids=["none", "cut off"]
)
def test_broken_gzip(tmp_path, content):
    path = tmp_path / "some.csv.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot read"):
        load(str(path))


def test_missing_file():
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.csv"):
        load("nowhere.csv")


def test_unknown_name_says_where_it_looked(directory):
    with pytest.raises(ValueError, match="neither bundled") as caught:
        load("sonnar")
    for part in (str(directory), "GPFLOW_BSVM_DATA", "sonnar.csv", *BUNDLED):
        assert part in str(caught.value)


def test_names_without_a_directory(monkeypatch):
    monkeypatch.delenv("GPFLOW_BSVM_DATA", raising=False)
    with pytest.raises(ValueError, match=r"in the directory GPFLOW_BSVM_DATA \(which is not set\)"):
        load("german")


@pytest.mark.data
@pytest.mark.parametrize("name, shape", [("heart", (270, 13)), ("binary/german", (1000, 20))])
def test_benchmark_data(name, shape):
    dataset = load(name)
    assert dataset.X.shape == shape
    assert set(dataset.y) == {-1, 1}


def test_a_column_that_counts_rows_is_told(tmp_path):
    """Labels that are sorted can be read from it."""
    path = tmp_path / "some.csv"
    frame = pd.DataFrame({"id": range(5, 17), "a": [1, 2] * 6, "y": [0, 1] * 6})
    frame.to_csv(path, index=False)
    *_, note = load(str(path)).notes
    assert note.startswith("different in each row: id; if this is a row number")
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    assert not any("row number" in note for note in load(str(path)).notes)


def test_parquet_is_read_as_csv_is(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "some.parquet"
    (tmp_path / "some.csv").write_text(TABLE)
    pd.read_csv(tmp_path / "some.csv").iloc[::1].to_parquet(path)
    check_table(load(str(path)))
    path.write_bytes(b"none")
    with pytest.raises(ValueError, match=r"cannot read .*some.parquet"):
        load(str(path))


def test_missing_values_are_counted_in_the_file(tmp_path):
    """A missing word was counted once for each word."""
    path = tmp_path / "t.csv"
    path.write_text("a,w,y\n1,u,p\n,v,q\n,,p\n4,x,q\n")
    notes = load(str(path), impute=True).notes
    assert any(note.startswith("medians replace 3 missing values") for note in notes)
    with pytest.raises(ValueError, match=r"y has no label .* in rows 1, 2"):
        load(str(path), "a", numbers=True, impute=True)
