"""Rows and labels in the containers of other libraries."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers import fixed_classifier as fixed
from helpers import make_model

import gpflow_bsvm as gb


class DuckDBPyRelation:
    """A table that is read later, as in DuckDB."""


class Spark:
    """A data frame of a cluster, as in Spark."""

    def toPandas(self):
        pytest.fail("a user decides when to read rows")


class Wrapped:
    """A data frame as Narwhals wraps it."""

    def __init__(self, frame):
        self.frame = frame

    def to_native(self):
        return self.frame


def record_batch(frame):
    return pa.RecordBatch.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("wrap", [record_batch, Wrapped])
def test_columns_of_a_wrapped_table_have_names(moons, wrap):
    """Before, columns in another order gave wrong predictions, without a warning."""
    frame = pd.DataFrame(moons[0], columns=["a", "b"])
    expected = fixed(num_inducing=5).fit(frame, moons[1]).predict_proba(frame)
    model = fixed(num_inducing=5).fit(wrap(frame), moons[1])
    np.testing.assert_array_equal(model.predict_proba(wrap(frame)), expected)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict_proba(wrap(frame[["b", "a"]]))


def test_a_table_that_is_not_in_memory_is_refused_with_what_works(moons):
    X, y = moons
    lazy = DuckDBPyRelation()
    for rows in ((lazy, y), (X, lazy), (X, y, lazy)):
        with pytest.raises(
            TypeError, match=r"DuckDBPyRelation, which holds no rows: give .*\.df\(\)"
        ):
            fixed().fit(*rows)
    with pytest.raises(TypeError, match=r"X is a Spark, which holds no rows: give X\.toPandas\(\)"):
        fixed().fit(Spark(), y)
    with pytest.raises(TypeError, match=r"^Y is a DuckDBPyRelation"):
        gb.fit(make_model((X, y[:, None])), (X, lazy))


def test_dictionaries_and_generators_are_refused_with_what_works(moons):
    """Before, the advice was to encode words."""
    X, y = moons
    records = [{"a": a, "b": b} for a, b in X]
    for rows in (records, {"a": X[:, 0], "b": X[:, 1]}, (row for row in X)):
        with pytest.raises(TypeError, match=r"in X: give records as pandas\.DataFrame\(X\)\.$"):
            fixed().fit(rows, y)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("labels", [[4, 7], ["no", "yes"], [False, True]])
def test_labels_in_a_table_of_one_column(moons, labels):
    """Before, a table of PyArrow ended in its TypeError."""
    X, y = moons
    y = np.array(labels)[y.astype(int)]
    expected = fixed(num_inducing=5).fit(X, y).predict_proba(X)
    tables = [pa.table({"y": y}), pa.RecordBatch.from_pydict({"y": y})]
    for table in [*tables, pd.DataFrame({"y": pd.Categorical(y)})]:
        model = fixed(num_inducing=5).fit(X, table)
        assert model.classes_.tolist() == labels
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        assert model.score(X, table) == model.score(X, y)
