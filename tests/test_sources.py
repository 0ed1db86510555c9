"""Rows that are not in memory: the same fits from all sources, one clear error for bad ones."""

import itertools
import threading

import gpflow
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import tensorflow as tf
from conftest import assert_same_state, make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks, CSVFiles, ParquetFiles
from gpflow_bsvm.data.minibatches import blocks
from gpflow_bsvm.data.passes import map_over
from gpflow_bsvm.engine.contracts import open_data
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger

N = 200
CUTS = [0, 30, 31, 150, N]


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(N)
    return X.astype(np.float32).astype(float), Y  # as it comes back from single precision


@pytest.fixture(scope="module")
def weight():
    return np.linspace(0.5, 2, N)


@pytest.fixture(autouse=True)
def chunks_of_64_rows(small_chunks):
    small_chunks(cached=True)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert not [t for t in threading.enumerate() if t.name.startswith("gpflow_bsvm-reader")]


def table_of(data, weight=None, labels=None):
    X, Y = data
    columns = {f"x{n}": column for n, column in enumerate(X.T)}
    columns["y"] = Y[:, 0] if labels is None else labels
    return pa.table(columns if weight is None else columns | {"w": weight})


def parts_of(table):
    return [table[a:b] for a, b in itertools.pairwise(CUTS)]


def parquet(folder, table, name="rows"):
    """Files of several row groups."""
    (folder / name).mkdir()
    for number, part in enumerate(parts_of(table)):
        pq.write_table(part, folder / name / f"part-{number}.parquet", row_group_size=40)
    return folder / name


def csv(folder, table, name="texts"):
    (folder / name).mkdir()
    for number, part in enumerate(parts_of(table)):
        pa.csv.write_csv(part, folder / name / f"part-{number}.csv")
    return folder / name


def mapped(folder, values, name="X.npy"):
    np.save(folder / name, values)
    return np.load(folder / name, mmap_mode="r")


def block_list(data, weight=None):
    columns = data if weight is None else (*data, weight)
    return [tuple(c[a:b] for c in columns) for a, b in itertools.pairwise(CUTS)]


class Anew:
    """Anything whose `iter()` starts anew."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


def kinds(folder, data, weight):
    """The same rows in every kind of data, and the weights that are given beside them."""
    single = mapped(folder, data[0].astype(np.float32))
    columns = {"target": "y", "weight": "w"}
    table, made = table_of(data, weight), block_list(data, weight)
    return {
        "memmap": ((single, mapped(folder, data[1], "Y.npy")), weight),
        "plain view of a memmap": ((np.asarray(single)[:, :], data[1]), weight),
        "parquet": (ParquetFiles(parquet(folder, table), **columns), None),
        "csv": (CSVFiles(csv(folder, table), **columns), None),
        "list": (made, None),
        "object": (Anew(made), None),
        "function": (Blocks(lambda: (block for block in made), num_rows=N), None),
        "sparse": ([(scipy.sparse.csr_array(X), Y, w) for X, Y, w in made], None),
        "dataset": (
            tf.data.Dataset.from_tensor_slices((*data, weight)).batch(30),
            None,
        ),
    }


@pytest.fixture(scope="module")
def given(tmp_path_factory, data, weight):
    return kinds(tmp_path_factory.mktemp("rows"), data, weight)


KINDS = ["memmap", "plain view of a memmap", "parquet", "csv", "list", "object", "function"]
KINDS += ["sparse", "dataset"]

# --- the same rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_rows_in_the_same_chunks(data, weight, given, kind):
    rows, beside = given[kind]
    source = open_data(make_model(data), rows, beside)
    assert source.num_rows == N
    expected = open_data(make_model(data), data, weight)
    for one, two in itertools.zip_longest(source.chunks(), expected.chunks()):
        for a, b in zip(one, two):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == gpflow.default_float()


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_cavi_is_the_same(data, weight, given, kind, cached, small_chunks):
    small_chunks(cached)
    one, two = make_model(data), make_model(data)
    first = CAVI(max_steps=3).run(one, data, sample_weight=weight)
    rows, beside = given[kind]
    second = CAVI(max_steps=3).run(two, rows, sample_weight=beside)
    np.testing.assert_allclose(first.elbo, second.elbo, rtol=1e-10)
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.parametrize("kind", ["memmap", "parquet"])
def test_the_mode_and_what_follows_a_fit_are_the_same(data, weight, given, kind):
    found = []
    for rows, beside in ((data, weight), given[kind]):
        model = make_model(data)
        ECM(max_steps=3).run(model, rows, sample_weight=beside)
        CAVI(max_steps=3).run(model, rows, sample_weight=beside)
        left_out = gb.prediction.leave_one_out(model, rows, sample_weight=beside)
        link = gb.prediction.calibrate(model, rows, sample_weight=beside)
        found.append([*left_out, *link.values()])
    for one, two in zip(*found):
        np.testing.assert_allclose(one, two, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_look_at_no_labels(data, given, kind):
    model, rows = make_model(data), given[kind][0]
    CAVI(max_steps=2).run(model, data)
    rows = rows[0] if isinstance(rows, tuple) else rows
    rows = Blocks(rows) if isinstance(rows, (list, Anew)) else rows
    for predict in (gb.prediction.predict_probabilities, gb.prediction.variation_ratio):
        np.testing.assert_array_equal(predict(model, rows), predict(model, data[0]))
    np.testing.assert_array_equal(
        gb.prediction.predict_probabilities(model, rows, chunk_rows=7),
        gb.prediction.predict_probabilities(model, data[0], chunk_rows=7),
    )


def test_predictions_from_rows_without_labels(data, tmp_path):
    model = make_model(data)
    CAVI(max_steps=2).run(model, data)
    expected = gb.prediction.predict_probabilities(model, data[0])
    folder = parquet(tmp_path, table_of(data).drop_columns("y"))
    for rows in (ParquetFiles(folder), Blocks([data[0][:50], data[0][50:]])):
        np.testing.assert_array_equal(gb.prediction.predict_probabilities(model, rows), expected)
        with pytest.raises(ValueError, match=r"no labels: .*\(X, Y\).*files need target=..."):
            CAVI().run(make_model(data), rows)


def test_what_needs_labels_too(data, given):
    model = make_model(data)
    CAVI(max_steps=2).run(model, data)
    for look in (gb.prediction.predict_log_density, gb.prediction.alpha):
        np.testing.assert_array_equal(look(model, given["csv"][0]), look(model, data))


def test_labels_of_any_type_become_numbers(data, tmp_path):
    Y = np.digitize(data[0][:, :1], [-0.5, 0.5]).astype(float)
    words = np.array(["low", "mid", "high"])[Y[:, 0].astype(int)]
    X = data[0]
    expected = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(), CrammerSinger(3), X[:8].copy(), num_latent_gps=3
    )
    CAVI(max_steps=2).run(expected, (X, Y))
    names = pa.array(words).dictionary_encode()
    order = {"target": "y", "classes": ["low", "mid", "high"]}
    numbers = {"target": "y", "classes": {10: 0, 20: 1, 30: 2}}
    for rows in (
        ParquetFiles(parquet(tmp_path, table_of((X, Y), labels=words)), **order),
        ParquetFiles(parquet(tmp_path, table_of((X, Y), labels=names), "names"), **order),
        CSVFiles(csv(tmp_path, table_of((X, Y), labels=words)), **order),
        CSVFiles(csv(tmp_path, table_of((X, 10 * Y + 10)), "numbers"), **numbers),
    ):
        model = gb.models.BSVM(
            gpflow.kernels.SquaredExponential(), CrammerSinger(3), X[:8].copy(), num_latent_gps=3
        )
        CAVI(max_steps=2).run(model, rows)
        assert_same_state(state(model), state(expected), 1e-10)


def test_columns_are_taken_by_name(data, tmp_path):
    table = table_of(data).append_column("name", pa.array(["a"] * N))
    pq.write_table(table, tmp_path / "one.parquet")
    rows = ParquetFiles(tmp_path / "one.parquet", target="y", features=["x1", "x0"])
    found = map_over(open_data(make_model(data), rows), lambda batch: batch.X)
    np.testing.assert_array_equal(found, data[0][:, ::-1])


# --- minibatches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    "algorithm", [SVI(batch_size=30, max_steps=20, record_every=5), VEM(max_steps=2)]
)
def test_mapped_arrays_come_in_the_same_order(data, given, algorithm, cached, small_chunks):
    small_chunks(cached)
    one, two = make_model(data), make_model(data)
    algorithm.run(one, data)
    algorithm.run(two, given["memmap"][0])
    assert_same_state(state(one), state(two), 1e-10)


def test_learning_by_minibatches_of_mapped_arrays(data, given):
    values = []
    for rows in (data, given["memmap"][0]):
        model = make_model(data)
        ML2(batch_size=30, max_steps=10, record_every=5).run(model, rows)
        values.append(gpflow.utilities.read_values(model))
    for name, value in values[0].items():
        np.testing.assert_allclose(value, values[1][name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("kind", ["parquet", "csv", "function"])
def test_minibatches_of_files_are_their_rows_in_order_without_end(data, given, kind):
    source = open_data(make_model(data), given[kind][0])
    some = list(itertools.islice(source.stream(0, 30), 20))
    rows = np.concatenate([batch.X for batch in some])
    np.testing.assert_array_equal(rows, np.tile(data[0], (3, 1)))
    assert {len(batch.Y) for batch in some} == {30}
    rest = list(itertools.islice(source.stream(17, 30), 3))
    np.testing.assert_array_equal(rest[0].X, some[17].X)
    for found in itertools.islice(blocks(source, 1000, 2, 0), 2):
        assert found.index.shape[1] == (1000 if kind == "csv" else N)  # where N is not known


@pytest.mark.parametrize("kind", ["parquet", "csv", "function", "memmap"])
def test_who_knows_his_rows_is_not_asked_for_num_data(data, given, kind):
    rows = given[kind][0]
    for algorithm in (SVI(max_steps=4), ML2(max_steps=4)):
        one, two = make_model(data), make_model(data, num_data=N)
        algorithm.run(one, rows)
        algorithm.run(two, rows)
        assert_same_state(state(one), state(two), 0)
    if kind == "parquet":
        with pytest.raises(ValueError, match="the model needs num_data"):
            SVI(max_steps=4).run(make_model(data), given["list"][0])


def test_fit_sweeps_where_the_end_is_known(data, given, monkeypatch):
    endless = ("list", "object", "dataset", "sparse")
    for limit in (5e10, 1):
        for kind, (rows, beside) in given.items():
            ran, model = [], make_model(data, num_data=N)
            with monkeypatch.context() as patch:
                patch.setattr("gpflow_bsvm.inference.fit._SWEEP_LIMIT", limit)
                for cls in (CAVI, SVI):
                    patch.setattr(cls, "run", lambda self, *_, **__: ran.append(type(self)))  # noqa: B023
                gb.fit(model, rows, sample_weight=beside)
            assert ran == [SVI if kind in endless or limit == 1 else CAVI]
