"""Rows that are not in memory: the same fits from all sources."""

import importlib
import itertools
import weakref

import gpflow
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from helpers import assert_same_state, make_data, make_model, readers, state
from kinds_of_rows import (
    Anew,
    N,
    csv,
    kinds,
    parquet,
    rows_in_memory,
    table_of,
)

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.data.passes import map_over, sum_over
from gpflow_bsvm.data.sampling import batch_groups
from gpflow_bsvm.data.sources import prefetched
from gpflow_bsvm.engine.contracts import open_data
from gpflow_bsvm.files import CSVFiles, ParquetFiles
from gpflow_bsvm.inducing_points import reselect
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import CrammerSinger

pytestmark = pytest.mark.usefixtures("chunks_of_64_rows", "no_reader_is_left")


@pytest.fixture(scope="module")
def data():
    return rows_in_memory()


@pytest.fixture(scope="module")
def weight():
    return np.linspace(0.5, 2, N)


@pytest.fixture(scope="module")
def given(tmp_path_factory, data, weight):
    return kinds(tmp_path_factory.mktemp("rows"), data, weight)


# --- the same rows -------------------------------------------------------------------------------


def test_every_kind_gives_the_same_rows_in_the_same_chunks(data, weight, given):
    model = make_model(data)
    expected = list(open_data(model, data, weight).chunks())
    for rows, beside in given.values():
        source = open_data(model, rows, beside)
        assert source.num_rows == N
        for one, two in itertools.zip_longest(source.chunks(), expected):
            for a, b in zip(one, two):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == gpflow.default_float()


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
def test_cavi_is_the_same(data, weight, given, cached, small_chunks):
    small_chunks(cached)
    one = make_model(data)
    first = CAVI(max_steps=2).run(one, data, sample_weight=weight)
    for rows, beside in given.values():
        two = make_model(data)
        second = CAVI(max_steps=2).run(two, rows, sample_weight=beside)
        np.testing.assert_allclose(first.elbo, second.elbo, rtol=1e-10)
        assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
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


@pytest.mark.slow
def test_predictions_look_at_no_labels(data, given):
    model = make_model(data)
    CAVI(max_steps=2).run(model, data)
    predict, doubt = gb.prediction.predict_probabilities, gb.prediction.variation_ratio
    for rows, _ in given.values():
        rows = rows[0] if isinstance(rows, tuple) else rows
        rows = Blocks(rows) if isinstance(rows, (list, Anew)) else rows
        for options in ({}, {"chunk_rows": 7}):
            found = predict(model, rows, **options)
            np.testing.assert_array_equal(found, predict(model, data[0], **options))
        np.testing.assert_array_equal(doubt(model, rows), doubt(model, data[0]))


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
    for look in (gb.prediction.predict_log_density, gb.prediction.soft_support_vectors):
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
    numbers = {"target": "y", "classes": [10, 20, 30]}
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
    "algorithm",
    [
        SVI(batch_size=30, max_steps=20, record_every=5),
        pytest.param(VEM(max_steps=2), marks=[pytest.mark.slow, pytest.mark.drill]),
    ],
)
def test_mapped_arrays_come_in_the_same_order(data, given, algorithm, cached, small_chunks):
    small_chunks(cached)
    one, two = make_model(data), make_model(data)
    algorithm.run(one, data)
    algorithm.run(two, given["memmap"][0])
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
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
    for found in itertools.islice(batch_groups(source, 1000, 2, 0), 2):
        assert found.index.shape[1] == N  # no row twice in a minibatch, once N is known


@pytest.mark.parametrize("kind", ["parquet", "csv", "function", "memmap"])
def test_who_knows_his_rows_is_not_asked_for_num_data(data, given, kind):
    one, two = make_model(data), make_model(data, num_data=N)
    for model in (one, two):
        SVI(max_steps=4).run(model, given[kind][0])
    assert_same_state(state(one), state(two), 0)


@pytest.mark.slow
def test_learning_by_minibatches_of_files(data, given):
    model = make_model(data)
    history = ML2(max_steps=4).run(model, given["parquet"][0])
    assert history.step == [4]
    for algorithm in (SVI(), ML2()):
        with pytest.raises(ValueError, match="the model needs num_data"):
            algorithm.run(make_model(data), given["object"][0])


def _noted(ran):
    """:return: a `run` that does nothing but remember whose it was."""

    def run(self, *_, **__):
        ran.append(type(self))

    return run


@pytest.mark.slow
def test_fit_sweeps_where_the_end_is_known(data, given, monkeypatch):
    endless = ("object", "dataset")
    for limit in (5e10, 1):
        for kind, (rows, beside) in given.items():
            ran, model = [], make_model(data, num_data=N)
            with monkeypatch.context() as patch:
                patch.setattr(
                    importlib.import_module("gpflow_bsvm.inference.fit"), "_SWEEP_LIMIT", limit
                )
                for cls in (CAVI, SVI):
                    patch.setattr(cls, "run_on", _noted(ran))
                gb.fit(model, rows, sample_weight=beside)
            assert ran == [SVI if kind in endless or limit == 1 else CAVI]


# --- memory and the reader's thread --------------------------------------------------------------


def counting(alive, number):
    """Blocks of 64 rows, of which `alive` remembers how many there are and were at a time."""
    X, Y = make_data(64)
    for _ in range(number):
        block = np.array(X)
        alive["now"] += 1
        weakref.finalize(block, lambda: alive.__setitem__("now", alive["now"] - 1))
        alive["most"] = max(alive["most"], alive["now"])
        yield block, Y
        del block


@pytest.mark.slow
def test_no_more_than_a_few_chunks_are_alive(data, small_chunks):
    small_chunks(cached=False)
    for number in (20, 60):
        alive = {"now": 0, "most": 0}
        rows = Blocks(lambda alive=alive, number=number: counting(alive, number), 64 * number)
        CAVI(max_steps=2).run(make_model(data), rows)
        assert alive["now"] == 0
        assert alive["most"] <= 5  # in use, two ahead, one that is made, one that is regrouped


def test_rows_of_a_wide_table_are_not_kept(data, monkeypatch):
    """Features would fit into the cache, and X beside them would not."""
    wide = np.random.default_rng(0).normal(size=(N, 50))
    model = make_model((wide, data[1]))
    seen = gb.engine.projected_data.ProjectedData(
        model, open_data(model, Blocks([(wide, data[1])]))
    )
    monkeypatch.setattr(gb.engine.projected_data, "CACHE_BYTES", N * 8 * (8 + 51))
    assert not seen.cached
    monkeypatch.setattr(gb.engine.projected_data, "CACHE_BYTES", N * 8 * (8 + 52))
    assert seen.cached


def test_reading_runs_ahead_and_ends_with_its_consumer():
    begun = []

    def items():
        for number in range(10):
            begun.append(number)
            yield number

    ready = prefetched(items(), ahead=2)
    assert next(ready) == 0
    assert len(readers()) == 1
    ready.close()
    assert len(begun) <= 4
    assert not readers()
    assert list(prefetched(items())) == list(range(10))


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_the_reader_ends_after_an_error_or_an_interrupt(data, given, error, small_chunks):
    small_chunks(cached=False)
    model = make_model(data)

    def stop(step, history):
        raise error

    for rows in (given["parquet"][0], given["function"][0]):
        for algorithm in (CAVI(max_steps=3), SVI(max_steps=9, record_every=3)):
            with pytest.raises(error) as caught:
                algorithm.run(model, rows, callback=stop)
            assert not readers()
            assert caught.value.__traceback__ is not None  # it would keep a generator
        with pytest.raises(error) as caught:
            sum_over(open_data(model, rows), lambda chunk: stop(0, 0))
        assert not readers()


def test_errors_of_the_reader_are_raised_in_the_fit(data):
    def broken():
        yield data[0][:50], data[1][:50]
        raise OSError("the disk is gone")

    for algorithm in (CAVI(), SVI()):
        with pytest.raises(OSError, match="the disk is gone"):
            algorithm.run(make_model(data), Blocks(broken, num_rows=N))
        assert not readers()


def test_a_fit_that_is_stopped_keeps_its_latest_step(data, small_chunks):
    steps = []

    def short_in_the_end():
        cuts = [slice(0, 50), slice(50, N)][: 1 if steps else 2]
        return ((data[0][cut], data[1][cut]) for cut in cuts)

    one, two = make_model(data), make_model(data)
    CAVI(max_steps=1).run(one, data)
    small_chunks(cached=False)
    with pytest.raises(ValueError, match=r"ended after 50 rows, .* 200: every pass must give"):
        rows = Blocks(short_in_the_end, num_rows=N)
        CAVI(max_steps=3).run(two, rows, callback=lambda step, _: steps.append(step))
    assert_same_state(state(one), state(two), 1e-10)


@pytest.mark.slow
def test_learning_from_files_is_learning_from_arrays(data, weight, given):
    here, there = make_model(data), make_model(data)
    one = VEM(max_steps=2).run(here, data, sample_weight=weight)
    two = VEM(max_steps=2).run(there, given["parquet"][0])
    np.testing.assert_allclose(two.elbo, one.elbo, rtol=1e-9)
    assert_same_state(state(here), state(there), 1e-7)  # of an optimiser


def test_what_needs_rows_by_number_says_so(data, given):
    anew = Blocks(lambda: iter([data]), num_rows=N)  # nobody knows in which order
    with pytest.raises(ValueError, match=r"a site for every row.*give arrays .* or use ML2"):
        VEM().run(make_model(data), anew)
    for rows in (given["parquet"][0], given["list"][0]):
        model = make_model(data)
        CAVI(max_steps=2).run(model, rows)
        with pytest.raises(ValueError, match=r"by index: give arrays \(X, Y\), in memory or"):
            reselect(model, rows, 5)


def test_weights_are_part_of_what_is_read(data, given):
    for rows in (given["parquet"][0], given["list"][0], open_data(make_model(data), data)):
        with pytest.raises(ValueError, match=r"weights, as the third component .*weight=..."):
            CAVI().run(make_model(data), rows, sample_weight=np.ones(N))


def test_a_smaller_first_batch_is_no_sign_of_more_rows(data, recwarn):
    """Before, 10 rows and 190 in batches of 30 were said to be 210."""
    X, Y = data
    first = tf.data.Dataset.from_tensors((X[:10], Y[:10]))
    rest = tf.data.Dataset.from_tensor_slices((X[10:], Y[10:])).batch(30)
    SVI(max_steps=3).run(make_model(data, num_data=N), first.concatenate(rest))
    assert not [one for one in recwarn if "num_data is" in str(one.message)]


def test_rows_can_be_counted_before_a_fit(data, tmp_path):
    """For `num_data`; the fit that follows is as if nobody had counted."""
    X, Y = data
    file = CSVFiles(csv(tmp_path, table_of(data)), target="y")
    blocks = Blocks([(X[:9], 0 * Y[:9])])
    assert (file.num_rows, blocks.num_rows, blocks.known_rows) == (N, 9, None)
    with pytest.raises(ValueError, match="Y holds one class only"):
        CAVI().run(make_model(data), blocks)
