"""A fit that dies and is called again ends where it would have."""

import dataclasses
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import tensorflow as tf
from dying import (
    ALGORITHMS,
    SAMPLERS,
    Death,
    assert_equal,
    die_at,
    everything,
    interrupt_at,
    resumed,
    slow,
)
from helpers import make_data, make_model, state

from gpflow_bsvm.checkpoints.directory import Checkpoints
from gpflow_bsvm.checkpoints.values import ValueDecoder, ValueEncoder
from gpflow_bsvm.engine import projected_data
from gpflow_bsvm.inference import (
    CAVI,
    SVI,
    VEM,
    cavi,
)
from gpflow_bsvm.likelihoods.base import Sites
from gpflow_bsvm.sampling import Gibbs


@pytest.fixture(autouse=True)
def any_pass_is_a_big_one(request, monkeypatch):
    if "single precision" in request.node.name:
        monkeypatch.setattr(projected_data, "BIG_PASS", 1)


@pytest.mark.slow
@pytest.mark.parametrize("late", [pytest.param(False, marks=pytest.mark.drill), True])
@pytest.mark.parametrize("name", slow(ALGORITHMS, "VEM", "ML2"))
def test_a_fit_that_dies_ends_where_it_would_have(data, tmp_path, name, late):
    algorithm, whole, dead, model = ALGORITHMS[name], *(make_model(data) for _ in range(3))
    undisturbed = algorithm.run(whole, data)
    death = len(undisturbed) if late else 2
    with pytest.raises(Death):
        algorithm.run(dead, data, callback=die_at(death), checkpoint=tmp_path)
    seen = []
    history = algorithm.run(
        model, data, checkpoint=tmp_path, callback=lambda step, _: seen.append(step)
    )
    assert_equal(everything(model, history), everything(whole, undisturbed))
    assert seen == history.step[death - 1 :]
    assert (np.diff(history.seconds) > 0).all()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", slow(SAMPLERS, "HMC"))
def test_draws_go_on(data, tmp_path, monkeypatch, name, every):
    sampler, model = SAMPLERS[name], make_model(data)
    expected = sampler.run(model, data).s
    for update in (2, 3):  # once in the burn-in, once after it
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            interrupt_at(patch, update)
            sampler.run(model, data, checkpoint=tmp_path, every=every)
    assert len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(sampler.run(model, data, checkpoint=tmp_path).s, expected)


@pytest.mark.usefixtures("small_blocks")
def test_finished_draws_come_back_and_more_can_be_had(data, tmp_path, monkeypatch):
    model, short, long = make_model(data), Gibbs(17, 10, 2), Gibbs(36, 10, 2)  # within blocks
    first = short.run(model, data, checkpoint=tmp_path).s
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "offer", None)  # nothing is drawn
        np.testing.assert_array_equal(short.run(model, data, checkpoint=tmp_path).s, first)
    more = long.run(model, data, checkpoint=tmp_path).s
    np.testing.assert_array_equal(more, long.run(model, data).s)
    with pytest.raises(ValueError, match="step or draw 50, but the limit is 30"):
        short.run(model, data, checkpoint=tmp_path)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CAVI", "VEM", "SVI"])
def test_a_finished_fit_returns_at_once(data, tmp_path, name):
    model, again = make_model(data), make_model(data)
    algorithm = VEM(tol=1) if name == "VEM" else ALGORITHMS[name]  # the one that converges
    history = algorithm.run(model, data, checkpoint=tmp_path)
    assert history.converged == (name == "VEM")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    found = algorithm.run(again, data, checkpoint=tmp_path, callback=lambda *_: interrupt())
    assert found.seconds == history.seconds
    assert_equal(everything(again, found), everything(model, history))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", slow(["VEM", "ML2", "SVI"], "ML2"))
def test_more_steps_go_on(data, tmp_path, name):
    """From steps that end within a block, too."""
    longer, few = ALGORITHMS[name], {"VEM": 3, "ML2": 25, "SVI": 25}[name]
    model, whole = make_model(data), make_model(data)
    dataclasses.replace(longer, max_steps=few).run(model, data, checkpoint=tmp_path)
    history = longer.run(model, data, checkpoint=tmp_path)
    expected = longer.run(whole, data)
    for a, b in zip(state(model), state(whole)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    assert history.step[-1] == expected.step[-1]
    with pytest.raises(ValueError, match=f"draw {longer.max_steps}, but the limit is {few}"):
        dataclasses.replace(longer, max_steps=few).run(model, data, checkpoint=tmp_path)


def test_an_interrupt_keeps_the_latest_state(data, tmp_path, monkeypatch):
    """Between two checkpoints, in the middle of a sweep."""
    calls, sum_over = iter(range(100)), cavi.sum_over

    def interrupted(*arguments):
        if next(calls) == 4:  # the first looks at the start
            raise KeyboardInterrupt
        return sum_over(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(cavi, "sum_over", interrupted)
        ALGORITHMS["CAVI"].run(make_model(data), data, checkpoint=tmp_path, every=100)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000003.npz"]
    assert resumed(data, tmp_path) == 4


def test_one_record_of_so_many_is_written_and_the_last(data, tmp_path):
    with pytest.raises(Death):
        ALGORITHMS["CAVI"].run(
            make_model(data), data, callback=die_at(8), checkpoint=tmp_path, every=3
        )
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoint-000000006.npz", "checkpoint-000000007.npz"]


def test_the_latest_two_stay_also_where_one_is_written_again(tmp_path):
    with Checkpoints(tmp_path, 1, dict) as checkpoints:
        for number in (1, 2, 2, 2):
            checkpoints.offer(number, lambda: {})
    assert {path.name[-5] for path in tmp_path.iterdir()} == {"1", "2"}


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 3])
def test_a_dataset_goes_on(data, tmp_path, seed):
    def dataset():
        rows = tf.data.Dataset.from_tensor_slices(data)
        return (rows if seed is None else rows.shuffle(60, seed=seed)).batch(10).repeat()

    algorithm = SVI(max_steps=40, record_every=5)
    whole, model = (make_model(data, num_data=60) for _ in range(2))
    algorithm.run(whole, dataset(), checkpoint=tmp_path / "whole")
    with pytest.raises(Death):
        algorithm.run(model, dataset(), callback=die_at(3), checkpoint=tmp_path / "dead")
    with pytest.warns(UserWarning, match="order of rows changes") if seed else nullcontext():
        algorithm.run(model, dataset(), checkpoint=tmp_path / "dead")
    assert_equal(state(model), state(whole))
    with pytest.raises(ValueError, match="first batch was"):
        other = tf.data.Dataset.from_tensor_slices((data[0] + 1, data[1])).batch(10)
        algorithm.run(make_model(data, num_data=60), other, checkpoint=tmp_path / "whole")


@pytest.mark.slow
def test_a_dataset_shuffled_without_a_seed_goes_on_in_an_order_of_its_own(data, tmp_path):
    rows = tf.data.Dataset.from_tensor_slices(data).shuffle(60).batch(10).repeat()
    model, algorithm = make_model(data, num_data=60), SVI(max_steps=20, record_every=5)
    with pytest.raises(Death):
        algorithm.run(model, rows, callback=die_at(3), checkpoint=tmp_path)
    tf.random.set_seed(5)
    again = tf.data.Dataset.from_tensor_slices(data).shuffle(60).batch(10).repeat()
    with pytest.warns(UserWarning, match=r"order of rows changes .*shuffle .*has a seed.*differs"):
        assert algorithm.run(model, again, checkpoint=tmp_path).step == [5, 10, 15, 20]


def test_every_kind_of_leaf_comes_back():
    value = (
        *(None, True, 3, -np.inf, "text", np.float32(0.1), np.arange(3), tf.constant([0.1])),
        [Sites(tf.ones([2, 0]), {"a": (), "b": np.array(2.0)})],
    )
    encoder = ValueEncoder()
    told = encoder.encode(value, "it")
    assert repr(ValueDecoder(encoder.arrays).decode(told)) == repr(value)
    (sites,) = told["items"][-1]["items"]
    for cls in ("gpflow_bsvm.likelihoods.classes.Classification", "os.system", "nowhere.Sites"):
        with pytest.raises(ValueError, match=f"{cls} is not a NamedTuple"):
            ValueDecoder(encoder.arrays).decode(sites | {"class": cls, "items": []})
    for bad in (object(), np.array([print]), {1, 2}):
        with pytest.raises(TypeError, match="which a checkpoint cannot hold; it can hold numbers"):
            encoder.encode(bad, "it")


def test_without_a_checkpoint_nothing_is_written(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CAVI().run(make_model(make_data(20)), make_data(20))
    assert not list(tmp_path.iterdir())
