"""CSV files without a header, and parts of files."""

import numpy as np
import pytest

from gpflow_bsvm import BSVMClassifier, cli
from gpflow_bsvm.data import Blocks, Part
from gpflow_bsvm.data.opening import open_source
from gpflow_bsvm.estimators.large import Rows
from gpflow_bsvm.files import CSVFiles

pytest.importorskip("pyarrow")
TABLE = "1.0,0.5,0.25\n0.0,1.5,2.5\n1.0,3,4\n"


WORDS = "a,y\n" + "1,low\n2,mid\n5,top\n" * 4


def rows_of(reader, size=100):
    return np.concatenate([piece.X for piece in reader.pieces(size)])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(TABLE)
    return path


def test_names_for_files_that_have_none(path):
    rows = CSVFiles(path, target="y", names=["y", "a", "b"])
    assert rows.features == ("a", "b")
    np.testing.assert_array_equal(rows_of(rows), [[0.5, 0.25], [1.5, 2.5], [3, 4]])
    some = CSVFiles(path, target="y", names=["y", "a", "b"], features=["b"], classes="auto")
    np.testing.assert_array_equal(rows_of(some), [[0.25], [2.5], [4]])
    assert some.classes == [0.0, 1.0]


def test_wrong_names(path):
    for names, message in [
        (None, r"numbers instead of the columns' names \(1.0, 0.5, 0.25, .*all 3 columns"),
        (["y", "a"], "Expected 2 columns, got 3"),
        (["y", "a", "b", "c"], "Expected 4 columns, got 3"),
        (["y", "a", "a"], "several columns named .a.: rename"),
        ("y,a,b", "names must be a list of names"),
    ]:
        with pytest.raises(ValueError, match=message):
            CSVFiles(path, target="y", names=names)
    path.write_text("0,1,2\n" + TABLE)  # as pandas calls columns that have no names
    assert CSVFiles(path, target="0").features == ("1", "2")


def test_the_order_of_classes_is_not_the_order_of_rows(path):
    path.write_text(WORDS)
    rows = CSVFiles(path, target="y", classes="auto")
    part = Part(rows, 1)
    assert rows.ordered and not rows.classes_in_order and not part.classes_in_order
    with pytest.raises(ValueError, match="needs an order, but the classes"):
        BSVMClassifier(multi_class="ordinal").fit(part)


@pytest.mark.slow
def test_the_command_takes_names(path, capsys):
    table = "".join(f"{n % 2},{n % 7 - 3 + n % 2},{n % 5}\n" for n in range(40))
    path.write_text(table)
    given = ("--names", "y,a,b", "--target", "y", "--num-inducing", "4", "--output")
    model = str(path.with_name("m.npz"))
    assert cli.main(["train", str(path), *given, model]) == 0
    output = str(path.with_name("p.csv"))
    assert cli.main(["predict", model, str(path), "--names", "y,a,b", "--output", output]) == 0
    assert "40 rows written" in capsys.readouterr().out
    assert cli.main(["predict", model, str(path), "--output", output]) == 2
    assert "give --names with the names of all 3 columns" in capsys.readouterr().err


@pytest.mark.parametrize("size", [3, 100])
def test_a_part_has_these_rows_and_no_others(size):
    X = np.arange(20.0)[:, None]
    whole = Blocks([(X[n : n + 7], X[n : n + 7] % 2) for n in range(0, 20, 7)], num_rows=20)
    for start, stop in [(0, 20), (0, None), (5, None), (5, 16), (7, 14), (19, 20), (0, 1)]:
        part = Part(whole, start, stop)
        np.testing.assert_array_equal(rows_of(part, size), X[start:stop])
        assert part.num_rows == len(X[start:stop])
        source = open_source(part, Rows(), 4)
        np.testing.assert_array_equal(
            np.concatenate([batch.Y for batch in source.chunks()]), X[start:stop] % 2
        )
    (first, *_) = Part(whole, 9).pieces(size)
    assert first.origin.row(0) == "row 9"  # as the whole counts
    with pytest.raises(ValueError, match="ended after 15 rows, but should have 25"):
        list(open_source(Part(whole, 5, 30), Rows(), 4).chunks())
    for start, stop in [(-1, None), (4, 4), (6, 2), (20, None)]:
        with pytest.raises(ValueError, match="0 <= start < stop"):
            Part(whole, start, stop)


def test_names_in_another_case_are_told(path):
    message = r"lacks 'A' \(perhaps 'a'\), 'Y' \(perhaps 'y'\)"
    with pytest.raises(ValueError, match=message):
        CSVFiles(path, target="Y", features=["A", "b"], names=["y", "a", "b"])


@pytest.mark.parametrize(
    "target, message", [("Y", r"lacks 'Y' \(perhaps 'y'\)"), ("k", "named 'k'")]
)
def test_what_is_wrong_with_a_target_is_said_before_what_is_wrong_with_a_column(
    path, target, message
):
    path.write_text("y,k,k\nu,1.5,v\nw,2.5,w\n")
    with pytest.raises(ValueError, match=message):
        CSVFiles(path, target=target, classes="auto")
