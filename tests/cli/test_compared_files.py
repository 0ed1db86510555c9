"""What `compare` reads of a file: labels, columns and missing values, as `train` does."""

import numpy as np
import pytest
from command_line import run

from gpflow_bsvm.compare.protocol import Comparison


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """:return: a function that runs the command but its fits, and returns the data set."""
    seen = []
    monkeypatch.setattr(Comparison, "run", lambda self, peers, **kw: seen.append(self.dataset))

    def of(name, text, *options):
        (tmp_path / name).write_text(text)
        arguments = [tmp_path / name, "--target", "y", "--no-plots", "--output", tmp_path / "out"]
        run("compare", *arguments, "--models", "bsvm,svc", *options)
        return seen[-1]

    return of


def test_labels_are_texts(compared):
    rows = "1,2,007\n2,3,7\n3,4,07\n" * 8
    np.testing.assert_array_equal(compared("t.csv", "a,b,y\n" + rows).y, ["007", "7", "07"] * 8)


def test_arff(compared):
    head = "@relation r\n@attribute a real\n@attribute y {01,1,'not yet'}\n@data\n"
    found = compared("t.arff", head + "1,01\n2,1\n3,'not yet'\n" * 8)
    np.testing.assert_array_equal(found.y, ["01", "1", "not yet"] * 8)
    np.testing.assert_array_equal(found.X[:3], [[1.0], [2.0], [3.0]])


def test_chosen_columns_words_among_them(compared):
    text = "a,b,c,y\n" + "1,red,5,u\n2,green,6,v\n3,blue,7,u\n4,red,8,v\n" * 6
    found = compared("t.csv", text, "--features", "c,b")
    assert found.feature_names == ("c", "b=blue", "b=green", "b=red")
    np.testing.assert_array_equal(found.X[:2], [[5, 0, 0, 1], [6, 0, 1, 0]])


def test_missing_values(compared):
    text = "a,b,y\n" + "1,.,u\n2,6,v\nNA,7,u\n4,8,v\n" * 6
    found = compared("t.csv", text, "--impute")
    assert found.feature_names[:2] == ("a", "b")
    np.testing.assert_array_equal(np.isnan(found.X[:4, :2]), [[0, 1], [0, 0], [1, 0], [0, 0]])
