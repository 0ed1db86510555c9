"""The one door to the data: sources, the two loops over them, and the order of minibatches."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from helpers import assert_same_state, make_data, make_model, source_of, state
from kinds_of_sources import dataset_of, sources, stream_of

import gpflow_bsvm as gb
from gpflow_bsvm.data.batch import Batch
from gpflow_bsvm.data.passes import map_over, sum_over
from gpflow_bsvm.data.sampling import batch_groups
from gpflow_bsvm.engine.contracts import open_data
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM
from gpflow_bsvm.likelihoods import Hinge


@pytest.fixture(scope="module")
def data():
    return make_data(50)


@pytest.mark.parametrize("chunk_rows", [1, 8, 50, 1000])
def test_all_sources_give_the_same_rows(data, chunk_rows):
    for source in sources(data, chunk_rows):
        assert source.num_rows == 50
        X, Y, weight = map_over(source, lambda batch: batch)
        np.testing.assert_array_equal(X, data[0])
        np.testing.assert_array_equal(Y, data[1])
        np.testing.assert_array_equal(weight[:, 0], np.linspace(0.5, 2, 50))
        doubled = map_over(source.scaled(2.0).scaled(1.5), lambda batch: batch.weight)
        np.testing.assert_allclose(doubled, 3 * weight, rtol=1e-15)


@pytest.mark.parametrize("chunk_rows", [1, 8, 50])
def test_sums_and_columns_along(data, chunk_rows):
    extra = np.random.default_rng(0).normal(size=(50, 3))

    def look(batch: Batch, columns):
        return tf.reduce_sum(batch.X, 0), (tf.reduce_sum(columns[0] * batch.Y), columns[1][0, 0])

    for source in sources(data, chunk_rows):
        chunks = list(source.chunks())
        starts = np.cumsum([0, *(len(chunk.Y) for chunk in chunks)])[:-1]
        along = (tf.constant(extra), tf.constant(extra))
        total, (product, firsts) = sum_over(source, look, along)
        np.testing.assert_allclose(total, data[0].sum(0), rtol=1e-12)
        np.testing.assert_allclose(product, (extra * data[1]).sum(), rtol=1e-12)
        np.testing.assert_allclose(firsts, extra[starts, 0].sum(), rtol=1e-12)


# --- minibatches ---------------------------------------------------------------------------------


def first_index(source, batch_size, num_batches, number, seed=0, position=0):
    found = itertools.islice(batch_groups(source, batch_size, num_batches, seed, position), number)
    return list(found)


@pytest.mark.parametrize("batch_size, num_batches", [(7, 5), (50, 3), (3, 40)])
def test_order_goes_on_from_a_position(data, batch_size, num_batches):
    source = source_of(data)
    whole = first_index(source, batch_size, num_batches, 6)
    rest = first_index(source, batch_size, num_batches, 3, position=whole[2].position)
    for one, two in zip(whole[3:], rest):
        np.testing.assert_array_equal(one.index, two.index)
        assert one.position == two.position


@pytest.mark.parametrize("kind", ["arrays", "batches of 10 rows"])
def test_a_group_has_at_most_so_many_rows(data, kind):
    batches = tf.data.Dataset.from_tensor_slices(data).batch(10)
    source = source_of(data) if kind == "arrays" else open_data(make_model(data), batches)
    for most_rows, number in ((35, 3), (9, 1), (1000, 5)):
        group = next(batch_groups(source, 10, 5, 0, most_rows=most_rows))
        assert group.index.shape == (number, 10)
        assert kind == "arrays" or len(group.rows.Y) == 10 * number


def test_blocks_of_any_length_are_the_same_order(data):
    source = source_of(data)
    one = np.concatenate([b.index for b in first_index(source, 7, 12, 1)])
    two = np.concatenate([b.index for b in first_index(source, 7, 4, 3)])
    np.testing.assert_array_equal(one, two)
    other = np.concatenate([b.index for b in first_index(source, 7, 12, 1, seed=1)])
    assert (one != other).any()


def test_batches_of_a_dataset_go_on_from_a_position(data):
    source = stream_of(dataset_of(data, [20, 7, 23]), 100)
    whole = first_index(source, 1, 2, 8)
    np.testing.assert_array_equal(
        np.concatenate([b.rows.X for b in whole]), np.resize(data[0], (8 * 40, data[0].shape[1]))
    )
    for start in (1, 2, 5):  # within, after and at the end of an epoch
        rest = first_index(source, 1, 2, 2, position=whole[start - 1].position)
        for one, two in zip(whole[start:], rest):
            np.testing.assert_array_equal(one.rows.X, two.rows.X)
            assert one.position == two.position


def test_batches_have_the_size_of_a_datasets_own(data):
    for sizes in ([20, 20, 10], [10, 20, 20]):
        found = first_index(stream_of(dataset_of(data, sizes), 100), 1, 2, 4)
        assert [b.index.shape for b in found] == 4 * [(2, 20)]


# --- fits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [CAVI(max_steps=4), ECM(max_steps=4)], ids=["CAVI", "ECM"])
def test_a_dataset_is_fitted_as_its_rows(data, algorithm):
    weight = np.linspace(0.5, 2, 50)[:, None]
    one, two = (make_model(data, likelihood=Hinge(bound="augmented")) for _ in range(2))
    first = algorithm.run(one, data, sample_weight=weight)
    second = algorithm.run(two, dataset_of(data, [20, 7, 23], weight))
    np.testing.assert_allclose(first.elbo, second.elbo, rtol=1e-10)
    assert_same_state(state(one), state(two), 1e-9)


@pytest.mark.slow
def test_a_dataset_calibrates_as_its_rows(data):
    model = make_model(data)
    gb.fit(model, data)
    found = []
    for rows in (data, dataset_of(data, [20, 7, 23])):
        found.append(
            (
                gb.prediction.leave_one_out_density(model, rows),
                *gb.prediction.calibrate(model, rows).values(),
            )
        )
        for name, value in model.likelihood.neutral_link.items():
            model.likelihood.link_parameters[name].assign(value)
    np.testing.assert_allclose(*found, rtol=1e-7)


def test_num_data_scales_a_dataset(data):
    one, two = make_model(data, num_data=150), make_model(data)
    CAVI(max_steps=3).run(one, dataset_of(data, [20, 30]))
    CAVI(max_steps=3).run(two, data, sample_weight=np.full(50, 3.0))
    assert_same_state(state(one), state(two), 1e-10)


def test_more_rows_than_num_data_in_a_dataset_are_warned_of(data):
    with pytest.warns(UserWarning, match="num_data is 10, but the data have 50 rows"):
        CAVI(max_steps=1).run(make_model(data, num_data=10), dataset_of(data, [20, 30]))
    short = make_model(data, num_data=10)
    batches = tf.data.Dataset.from_tensor_slices(data).batch(20)
    with pytest.warns(UserWarning, match="num_data is 10, but the data have 40 rows"):
        SVI(max_steps=1).run(short, batches)  # the last batch may have a single row
    with pytest.warns(UserWarning, match="num_data is 10, but the data have 50 rows"):
        SVI(max_steps=1).run(short, gb.data.Blocks(lambda: [data], num_rows=50))


def test_a_list_of_blocks_ends(data):
    blocks = [(data[0][:30], data[1][:30]), (data[0][30:], data[1][30:])]
    one, two = make_model(data), make_model(data)
    assert gb.fit(one, blocks).converged
    gb.fit(two, data)
    assert_same_state(state(one), state(two), 1e-10)
    assert len(SVI(max_steps=1).run(make_model(data), blocks)) == 1


# --- bad input -----------------------------------------------------------------------------------


def test_what_a_dataset_cannot_do(data):
    endless = tf.data.Dataset.from_tensor_slices(data).batch(10).repeat()
    with pytest.raises(ValueError, match=r"repeats endlessly.*leave out repeat\(\), or use SVI"):
        CAVI().run(make_model(data), endless)
    with pytest.raises(ValueError, match=r"a site for every row.*give arrays .* or use ML2"):
        VEM().run(make_model(data), dataset_of(data, [50]))
    empty = tf.data.Dataset.from_tensor_slices(data).batch(10).take(0)
    with pytest.raises(ValueError, match="the dataset is empty"):
        CAVI().run(make_model(data), empty)
    for algorithm in (SVI(), ML2()):
        with pytest.raises(ValueError, match="the model needs num_data"):
            algorithm.run(make_model(data), dataset_of(data, [50]))


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda X, Y, w: X.__setitem__((33, 1), np.nan), r"X holds nan \(row 33, column 1\)"),
        (lambda X, Y, w: w.__setitem__((41, 0), -1.0), r"non-negative .* got -1.0 \(row 41\)"),
        (lambda X, Y, w: Y.__setitem__((20, 0), 7.0), "binary labels must be in"),
    ],
)
def test_rows_that_are_not_in_memory_are_checked_as_they_come(data, spoil, message):
    X, Y, weight = data[0].copy(), data[1].copy(), np.ones((50, 1))
    spoil(X, Y, weight)
    with pytest.raises(ValueError, match=message):
        CAVI().run(make_model(data), dataset_of((X, Y), [20, 7, 23], weight))


@pytest.mark.parametrize("num_data", [0, -5, np.nan])
def test_num_data_must_be_positive(data, num_data):
    model = make_model(data)
    model.num_data = num_data
    for fit in (gb.fit, SVI(max_steps=3).run, VEM().run):
        with pytest.raises(
            ValueError, match="num_data must be a positive whole number or None, got"
        ):
            fit(model, data)


def test_a_source_is_taken_as_it_is(data):
    one, two = (make_model(data) for _ in range(2))
    CAVI(max_steps=3).run(one, open_data(one, data))
    CAVI(max_steps=3).run(two, data)
    assert_same_state(state(one), state(two), 0)
