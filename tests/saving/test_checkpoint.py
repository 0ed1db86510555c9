"""A fit that dies and is called again ends where it would have, and trusts no other's file."""

import dataclasses
import json
import os
import warnings
from contextlib import nullcontext

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import log_normal, make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.engine import projected_data
from gpflow_bsvm.estimators.survey import Rows
from gpflow_bsvm.inference import (
    CAVI,
    ECM,
    ML2,
    SVI,
    VEM,
    Adaptive,
    Streaming,
    cavi,
)
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.likelihoods.base import Sites
from gpflow_bsvm.sampling import HMC, Gibbs, samples
from gpflow_bsvm.saving import identity
from gpflow_bsvm.saving.checkpoint import InDirectory
from gpflow_bsvm.saving.decode import Decoder
from gpflow_bsvm.saving.encode import Encoder

MINIBATCHES = {"batch_size": 7, "max_steps": 50, "record_every": 10}
ALGORITHMS = {
    "CAVI": CAVI(max_steps=12, tol=1e-9),
    "CAVI, in single precision": CAVI(max_steps=12, tol=1e-6),
    "SVI": SVI(**MINIBATCHES),
    "SVI, adaptive": SVI(learning_rate=Adaptive(5), **MINIBATCHES),
    "VEM": VEM(max_steps=5, tol=0),
    "ML2": ML2(**MINIBATCHES),
    "ECM": ECM(max_steps=12),
}


@pytest.fixture(autouse=True)
def any_pass_is_a_big_one(request, monkeypatch):
    if "single precision" in request.node.name:
        monkeypatch.setattr(projected_data, "BIG_PASS", 1)


def slow(names, *some):
    """Those that trace long are seen in the slow tests only."""
    return [pytest.param(n, marks=pytest.mark.slow) if n in some else n for n in names]


SAMPLERS = {"Gibbs": Gibbs(60, 25, 2), "HMC": HMC(60, 25, 2)}


class Death(Exception):
    """Of a process: what was not stored is lost."""


def die_at(record):
    def callback(step, history):
        if len(history) == record:
            raise Death

    return callback


def everything(model, history):
    """What a fit leaves behind, but for the time that it took."""
    values = [p.numpy() for p in model.parameters]
    learned = [np.stack(v) for v in history.hyperparameters.values()]
    records = (history.step, history.elbo, history.learning_rate, history.converged)
    return [*values, *map(np.array, records), *learned]


def assert_equal(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


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


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(samples.Sampler, "block", 10)


def interrupt_at(monkeypatch, number):
    """Ctrl-C after so many blocks."""
    advance, calls = samples._Chains.advance, iter(range(1000))

    def interrupted(run):
        if next(calls) == number:
            raise KeyboardInterrupt
        return advance(run)

    monkeypatch.setattr(samples._Chains, "advance", interrupted)


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
    model, short, long = make_model(data), Gibbs(20, 10, 2), Gibbs(40, 10, 2)
    first = short.run(model, data, checkpoint=tmp_path).s
    with monkeypatch.context() as patch:
        patch.setattr(InDirectory, "offer", None)  # nothing is drawn
        np.testing.assert_array_equal(short.run(model, data, checkpoint=tmp_path).s, first)
    more = long.run(model, data, checkpoint=tmp_path).s
    np.testing.assert_array_equal(more, long.run(model, data).s)
    with pytest.raises(ValueError, match="step or draw 50, and 30 are asked for"):
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
    with pytest.raises(ValueError, match=f"draw {longer.max_steps}, and {few} are asked for"):
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


@pytest.fixture
def stored(data, tmp_path):
    """:return: a directory with the checkpoints of steps 3 and 4 of a fit that died."""
    with pytest.raises(Death):
        ALGORITHMS["CAVI"].run(make_model(data), data, callback=die_at(5), checkpoint=tmp_path)
    return tmp_path


def resumed(data, directory):
    """:return: number of the first record that was not stored."""
    seen, model = [], make_model(data)
    ALGORITHMS["CAVI"].run(
        model, data, checkpoint=directory, callback=lambda step, _: seen.append(step)
    )
    expected = make_model(data)
    ALGORITHMS["CAVI"].run(expected, data)
    assert_equal(state(model), state(expected))
    return seen[0]


def test_nothing_is_pickled(stored):
    for path in stored.iterdir():
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype.kind in "biuf" for name in arrays.files)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(bytes(content))


def foreign(path):
    np.savez(path, weights=np.ones(3))


class Executed:
    """Its pickle makes a directory when it is loaded."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return os.mkdir, (self._path,)


def pickled(path):
    np.savez(path, header=np.array([Executed(path.parent / "executed")], dtype=object))


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [truncate, flip, foreign, pickled, empty])
def test_a_bad_file_is_refused_by_name(data, stored, spoil):
    path = stored / "checkpoint-000000004.npz"
    spoil(path)
    with pytest.warns(UserWarning, match=f"{path} is no whole checkpoint") as warned:
        assert resumed(data, stored) == 4
    assert sum("no whole checkpoint" in str(one.message) for one in warned) == 1
    assert not (stored / "executed").exists()


def crafted(path, change):
    """Another content in the same file; `change` is given it and the arrays by name."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes())
    content = dict(header["content"]["pairs"])
    change(content, arrays)
    header["content"]["pairs"] = list(content.items())
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, header=text, **arrays)


def on_arrays(change):
    return lambda content, arrays: arrays.update({n: change(a) for n, a in arrays.items()})


def another_type(content, arrays):
    content["state"]["kind"] = "tuple"


def other_lengths(content, arrays):
    number = dict(content["history"]["pairs"])["elbo"]["value"]
    arrays[str(number)] = arrays[str(number)][:1]


def no_proper_q(content, arrays):
    """A precision that no Gaussian has."""
    for name, array in arrays.items():
        if array.ndim == 3:
            arrays[name] = -array


CRAFTED = {
    "NaN": on_arrays(lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a),
    "transposed": on_arrays(np.transpose),
    "empty": on_arrays(lambda a: a[:0] if a.ndim else a),
    "float32": on_arrays(lambda a: a.astype(np.float32)),
    "objects": on_arrays(lambda a: a.astype(str)),
    "no history": lambda content, arrays: content.pop("history"),
    "no state": lambda content, arrays: content.pop("state"),
    "no number": lambda content, arrays: content.update(converged="x"),
    "another type": another_type,
    "other lengths": other_lengths,
    "no proper q": no_proper_q,
    "brackets": lambda content, arrays: content.update(state="["),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_file_is_refused_by_name(data, stored, what):
    path = stored / "checkpoint-000000004.npz"
    crafted(path, CRAFTED[what])
    with pytest.warns(UserWarning, match=f"{path} is no whole checkpoint") as warned:
        assert resumed(data, stored) == 4
    assert sum("no whole checkpoint" in str(one.message) for one in warned) == 1


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("what", ["NaN", "transposed", "empty", "float32", "no state"])
def test_crafted_draws_are_refused_by_name(data, tmp_path, monkeypatch, what):
    sampler, model = SAMPLERS["Gibbs"], make_model(data)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_at(patch, 3)
        sampler.run(model, data, checkpoint=tmp_path)
    path = max(tmp_path.iterdir())
    crafted(path, CRAFTED[what])
    with pytest.warns(UserWarning, match=f"{path} is no whole checkpoint"):
        again = sampler.run(model, data, checkpoint=tmp_path).s
    np.testing.assert_array_equal(again, sampler.run(model, data).s)


def test_a_fit_begins_anew_where_no_file_is_whole(data, stored):
    for path in stored.iterdir():
        truncate(path)
    with pytest.warns(UserWarning, match="no whole checkpoint") as warned:
        assert resumed(data, stored) == 1
    assert sum("no whole checkpoint" in str(one.message) for one in warned) == 2


OTHER_KERNEL = gpflow.kernels.Matern32(variance=2.0)
OTHER_VALUE = gpflow.kernels.SquaredExponential(variance=2.5)


@pytest.mark.parametrize(
    ("what", "given"),
    [
        (r"kernel was SquaredExponential.*, is Matern32", {"kernel": OTHER_KERNEL}),
        (r"\.kernel\.variance was 2\.0, is 2\.5\.", {"kernel": OTHER_VALUE}),
        (
            r"likelihood was Hinge .*, is Hinge ",
            {"likelihood": Hinge(bound="exact")},
        ),
        (r"features was \(1, 8\), is \(1, 5\)", {"num_inducing": 5}),
        (r"num_data was None, is 100\.0", {"num_data": 100}),
        (r"option tol was 1e-09, is 1e-08", {"algorithm": CAVI(tol=1e-8)}),
        (r"algorithm was 'CAVI', is 'ECM'|algorithm was CAVI, is ECM", {"algorithm": ECM()}),
        (r"rows was 60, is 59", {"data": lambda X, Y: (X[:59], Y[:59])}),
        (r"data X was", {"data": lambda X, Y: (X + 1e-15, Y)}),
        (r"data Y was", {"data": lambda X, Y: (X, 1 - Y)}),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(data, stored, what, given):
    given = dict(given)
    algorithm = given.pop("algorithm", ALGORITHMS["CAVI"])
    others = given.pop("data", lambda *same: same)(*data)
    before = sorted(stored.iterdir())
    with pytest.raises(ValueError, match=what) as error:
        algorithm.run(make_model(data, **given), others, checkpoint=stored)
    assert "Give another directory, or delete this one" in str(error.value)
    assert sorted(stored.iterdir()) == before


@pytest.mark.usefixtures("chunks_of_64_rows")
@pytest.mark.parametrize("mapped", [False, True])
def test_all_labels_and_weights_are_looked_at(tmp_path, mapped):
    X, Y = make_data(100)
    weight = np.ones(100)
    if mapped:
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    run = CAVI(max_steps=2).run
    place = tmp_path / "checkpoint"
    run(make_model((np.array(X), Y)), (X, Y), sample_weight=weight, checkpoint=place)
    Y[80], weight[90] = 1 - Y[80], 2.0
    with pytest.raises(ValueError, match=r"data Y was .*data weight was"):
        run(make_model((np.array(X), Y)), (X, Y), sample_weight=weight, checkpoint=place)


def test_files_that_were_edited_are_refused(tmp_path):
    """Of the same size, and in rows that nobody looks at."""
    pytest.importorskip("pyarrow")
    X, Y = make_data(300)
    path, model = tmp_path / "rows.csv", make_model((X, Y))
    table = [f"{x[0]:.6f},{x[1]:.6f},{int(y[0])}" for x, y in zip(X, Y)]

    def fit():
        path.write_text("\n".join(["a,b,y", *table]) + "\n")
        os.utime(path, (fit.time, fit.time))
        CAVI(max_steps=2).run(
            model, gb.files.CSVFiles(path, "y"), checkpoint=tmp_path / "checkpoint"
        )

    fit.time = 1_000_000
    fit()
    fit()
    table[250:] = reversed(table[250:])
    fit.time += 1
    with pytest.raises(ValueError, match=r"files was 1 of \d+ bytes, last changed .*, is 1 of"):
        fit()


def test_another_version_is_refused(data, stored, monkeypatch):
    monkeypatch.setattr("gpflow_bsvm.saving.identity.__version__", "9.9")
    what = r"version of gpflow_bsvm was .*, is 9\.9"
    with pytest.raises(ValueError, match=what):
        ALGORITHMS["CAVI"].run(make_model(data), data, checkpoint=stored)


def test_one_record_of_so_many_is_written_and_the_last(data, tmp_path):
    with pytest.raises(Death):
        ALGORITHMS["CAVI"].run(
            make_model(data), data, callback=die_at(8), checkpoint=tmp_path, every=3
        )
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoint-000000006.npz", "checkpoint-000000007.npz"]


@pytest.mark.slow
def test_streaming_wants_the_q_that_it_began_with(data, tmp_path):
    new, model, expected = make_data(seed=1), make_model(data), make_model(data)
    for one in (model, expected):
        CAVI().run(one, data)
    with pytest.raises(Death):
        Streaming(tol=0).run(model, new, callback=die_at(3), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="q at the start was"):
        Streaming(tol=0).run(model, new, checkpoint=tmp_path)
    again = make_model(data)
    CAVI().run(again, data)
    Streaming(tol=0).run(again, new, checkpoint=tmp_path)
    Streaming(tol=0).run(expected, new)
    assert_equal(state(again), state(expected))


def test_the_latest_two_stay_also_where_one_is_written_again(tmp_path):
    with InDirectory(tmp_path, 1, {}) as checkpoints:
        for number in (1, 2, 2, 2):
            checkpoints.offer(number, lambda: {})
    assert {path.name[-5] for path in tmp_path.iterdir()} == {"1", "2"}


@pytest.mark.slow
def test_what_is_learned_may_start_elsewhere_and_priors_may_not(data, tmp_path):
    """The second call in a notebook has the model as the first one left it."""
    model, other = (make_model(data, kernel=gpflow.kernels.Matern32()) for _ in range(2))
    model.kernel.variance.prior = log_normal(1, 1)
    with pytest.raises(Death):
        ALGORITHMS["VEM"].run(model, data, callback=die_at(3), checkpoint=tmp_path)
    assert len(ALGORITHMS["VEM"].run(model, data, checkpoint=tmp_path)) == 5
    other.kernel.variance.prior = log_normal(2, 1)
    with pytest.raises(ValueError, match=r"\.kernel\.variance was learned"):
        ALGORITHMS["VEM"].run(other, data, checkpoint=tmp_path)


def test_a_full_disk_costs_a_warning(data, stored, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before, model, expected = sorted(stored.iterdir()), make_model(data), make_model(data)
    ALGORITHMS["CAVI"].run(expected, data)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(UserWarning, match="No space left on device.*the fit goes on") as warned:
            ALGORITHMS["CAVI"].run(model, data, checkpoint=stored)
    assert sum("No space left" in str(one.message) for one in warned) == 1
    assert_equal(state(model), state(expected))
    assert sorted(stored.iterdir()) == before
    assert resumed(data, stored) == 5


def test_bad_places_and_numbers(data, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(ValueError, match="checkpoint must be a directory"):
        CAVI().run(make_model(data), data, checkpoint=path)
    with pytest.raises(ValueError, match="every must be at least 1"):
        CAVI().run(make_model(data), data, checkpoint=tmp_path, every=0)


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
    with pytest.warns(UserWarning, match="another order") if seed else nullcontext():
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
    with pytest.warns(UserWarning, match=r"another order .*shuffle .*has a seed.*ends elsewhere"):
        assert algorithm.run(model, again, checkpoint=tmp_path).step == [5, 10, 15, 20]


def test_every_kind_of_leaf_comes_back():
    value = (
        *(None, True, 3, -np.inf, "text", np.float32(0.1), np.arange(3), tf.constant([0.1])),
        [Sites(tf.ones([2, 0]), {"a": (), "b": np.array(2.0)})],
    )
    encoder = Encoder()
    told = encoder.encode(value, "it")
    assert repr(Decoder(encoder.arrays).decode(told)) == repr(value)
    (sites,) = told["items"][-1]["items"]
    for cls in ("gpflow_bsvm.likelihoods.base.Classification", "os.system", "nowhere.Sites"):
        with pytest.raises(ValueError, match=f"{cls} is no NamedTuple"):
            Decoder(encoder.arrays).decode(sites | {"class": cls, "items": []})
    for bad in (object(), np.array([print]), {1, 2}):
        with pytest.raises(TypeError, match="which a file cannot hold"):
            encoder.encode(bad, "it")


def test_without_a_checkpoint_nothing_is_written(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CAVI().run(make_model(make_data(20)), make_data(20))
    assert not list(tmp_path.iterdir())


def test_few_rows_of_unknown_number_have_an_order():
    """The first batch goes on with the first rows, where their number is not known yet."""
    X, Y = make_data(60)
    rows = gb.data.Blocks([(X[:40], Y[:40]), (X[40:], Y[40:])])
    source = gb.data.open_source(rows, Rows(), 50)
    first, again = identity._of_data(source), identity._of_data(source)
    assert first["first batch"] == again["first batch"] != "any"
