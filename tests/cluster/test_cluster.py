"""Rows on a Dask cluster: the fits of one process, whatever happens to the workers."""

import pickle
import threading
from functools import partial

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import distributed
import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from helpers import make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.cluster import DaskFrame, dask_data
from gpflow_bsvm.cluster import partitions as cluster
from gpflow_bsvm.cluster.dask_data import dask_reader
from gpflow_bsvm.data import Blocks, opening
from gpflow_bsvm.data.passes import map_over, sum_over
from gpflow_bsvm.engine.contracts import open_data
from gpflow_bsvm.engine.natural import compiled_solve
from gpflow_bsvm.engine.statistics import compiled_accumulate
from gpflow_bsvm.inference import CAVI, SVI, VEM
from gpflow_bsvm.prediction import calibrate, predict_probabilities

N = 200
CUTS = (70, 30, 60, 40)
EXACT = CAVI(max_steps=4)


@pytest.fixture(scope="module")
def client():
    """Two workers, threads of this process: all that is sent is packed and unpacked."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=False, **options) as client:
        yield client


@pytest.fixture(scope="module")
def arrays():
    X, Y = make_data(N)
    return X, Y


def on_cluster(*columns):
    return tuple(da.from_array(c, chunks=(CUTS, *c.shape[1:])) for c in columns)


def model_of(X):
    return make_model((X, None))


def close(one, other, tol=1e-10):
    for a, b in zip(state(one), state(other)):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_sweeps_are_those_of_one_process(client, arrays, weighted):
    weight = np.linspace(0, 2, N) if weighted else None
    here, there = model_of(arrays[0]), model_of(arrays[0])
    one = EXACT.run(here, arrays, sample_weight=weight)
    two = EXACT.run(there, on_cluster(*arrays), sample_weight=weight)
    np.testing.assert_allclose(one.elbo, two.elbo, rtol=1e-12)
    close(here, there)


@pytest.mark.drill
@pytest.mark.slow
def test_learning_is_that_of_one_process(client, arrays):
    here, there = model_of(arrays[0]), model_of(arrays[0])
    one, two = (
        VEM(max_steps=3).run(model, data)
        for model, data in ((here, arrays), (there, on_cluster(*arrays)))
    )
    # A quasi-Newton method makes more of rounding than a sum does.
    np.testing.assert_allclose(one.elbo, two.elbo, rtol=1e-9)
    close(here, there, 1e-7)


@pytest.mark.slow
def test_a_sample_counts_for_all(client, arrays):
    here, there = model_of(arrays[0]), model_of(arrays[0])
    here.num_data = there.num_data = 10 * N
    EXACT.run(here, arrays)
    EXACT.run(there, on_cluster(*arrays))
    close(here, there)


@pytest.mark.slow
def test_features_that_do_not_fit_are_made_anew(client, arrays, monkeypatch):
    kept, anew = model_of(arrays[0]), model_of(arrays[0])
    EXACT.run(kept, on_cluster(*arrays))
    monkeypatch.setattr(cluster, "_KEPT_PART", 0.0)
    EXACT.run(anew, on_cluster(*arrays))
    close(kept, anew, 1e-12)


@pytest.mark.slow
def test_predictions_and_calibration(client, arrays):
    model = model_of(arrays[0])
    EXACT.run(model, arrays)
    X, Y = on_cluster(*arrays)
    expected = predict_probabilities(model, arrays[0])
    np.testing.assert_allclose(predict_probabilities(model, X), expected, rtol=1e-12)
    frame = dd.from_pandas(pd.DataFrame(arrays[0], columns=["a", "b"]), npartitions=3)
    np.testing.assert_allclose(predict_probabilities(model, DaskFrame(frame)), expected, rtol=1e-12)
    copy = gpflow.utilities.deepcopy(model)
    for name, value in calibrate(model, arrays).items():
        assert calibrate(copy, (X, Y))[name] == pytest.approx(value, rel=1e-6)  # of an optimiser


@pytest.mark.slow
def test_minibatches_come_here(client, arrays):
    here, there = model_of(arrays[0]), model_of(arrays[0])
    algorithm = SVI(max_steps=4, batch_size=50)
    blocks = [tuple(c[i : i + 50] for c in arrays) for i in range(0, N, 50)]
    algorithm.run(here, Blocks(blocks, num_rows=N))
    algorithm.run(there, on_cluster(*arrays))
    close(here, there)


def test_without_a_client_partitions_are_read_in_turn(arrays, monkeypatch):
    monkeypatch.setattr(dask_data, "present_client", lambda: None)
    here, there = model_of(arrays[0]), model_of(arrays[0])
    EXACT.run(here, arrays)
    EXACT.run(there, dask_reader(*on_cluster(*arrays)))
    close(here, there)


def test_data_of_dask_need_its_room(arrays, monkeypatch):
    """They are not computed into memory in silence, and the room is named."""
    monkeypatch.setattr(opening, "OPENERS", [])
    model = model_of(arrays[0])
    for ask in (EXACT.run, lambda model, data: predict_probabilities(model, data[0])):
        with pytest.raises(TypeError, match=r"import gpflow_bsvm\.cluster first"):
            ask(model, on_cluster(*arrays))


def _of_rows(batch):
    return tf.square(batch.X), batch.Y


def test_rows_that_go_along_are_cut_as_partitions_are(client, arrays):
    X, Y = arrays
    source = open_data(model_of(X), on_cluster(X, Y))
    squares, labels = made = map_over(source, _of_rows)
    np.testing.assert_array_equal(squares, X**2)
    np.testing.assert_array_equal(labels, Y)

    def dot(batch, rows):
        return tf.reduce_sum(batch.X * rows[0])

    assert float(sum_over(source, dot, made)) == pytest.approx(np.sum(X**3), rel=1e-12)


def test_what_is_sent_uses_the_graphs_of_the_worker(arrays):
    model = model_of(arrays[0])
    q = compiled_solve(model.natural())
    bound = partial(compiled_accumulate.bind(model.likelihood), q)
    again = pickle.loads(pickle.dumps(bound))
    assert again.func._compiled is compiled_accumulate
    with pytest.raises(TypeError, match="has no name"):
        pickle.dumps(gb.engine.shared_graph.Compiled(lambda x: x))


class Locked(gpflow.kernels.SquaredExponential):
    """Holds what no process can send."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_a_model_that_cannot_be_sent(client, arrays):
    model = make_model(arrays, kernel=Locked())
    with pytest.raises(TypeError, match="the model cannot be sent to workers"):
        EXACT.run(model, on_cluster(*arrays))


@pytest.mark.parametrize(
    "where, value, message",
    [
        ((110, 1), np.nan, r"partition 2, rows 0 to \d+: X holds nan \(row 10, column 1\)"),
        ((3, 0), np.inf, r"partition 0, rows 0 to \d+: X holds inf \(row 3, column 0\)"),
    ],
)
def test_bad_rows_are_named(client, arrays, where, value, message):
    X = arrays[0].copy()
    X[where] = value
    model = model_of(arrays[0])
    before = state(model)
    with pytest.raises(ValueError, match=message):
        EXACT.run(model, on_cluster(X, arrays[1]))
    for a, b in zip(before, state(model)):
        np.testing.assert_array_equal(a, b)


def test_bad_data_as_a_whole(client, arrays):
    X, Y = arrays
    model = model_of(X)
    with pytest.raises(ValueError, match="Y holds one class only"):
        EXACT.run(model, on_cluster(X, np.ones_like(Y)))
    with pytest.raises(ValueError, match="must not be all zero"):
        EXACT.run(model, on_cluster(X, Y), sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="X has 200 rows and Y has 199"):
        EXACT.run(model, (on_cluster(X)[0], da.from_array(Y[1:])))
    with pytest.raises(ValueError, match="X must be a Dask array"):
        dask_reader(X, Y)
    with pytest.raises(ValueError, match="X has 3 columns, the inducing points have 2"):
        EXACT.run(model, on_cluster(np.column_stack([X, Y]), Y))


def test_xarray_is_of_dask_only_if_dask_computes_it(arrays):
    xarray = pytest.importorskip("xarray")
    X, Y = (xarray.DataArray(array) for array in (arrays[0], arrays[1][:, 0]))
    classifier = gb.BSVMClassifier(
        loss="levels", penalty=2.0, learn_kernel=False, num_inducing=5
    ).fit(X, Y)
    expected = classifier.predict_proba(arrays[0])
    np.testing.assert_array_equal(classifier.predict_proba(X), expected)
    lazy = X.chunk()
    np.testing.assert_allclose(classifier.predict_proba(lazy.data), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"such as xarray's X.data, got DataArray"):
        classifier.predict_proba(lazy)


@pytest.mark.parametrize("kind", [str, object])
def test_words_as_labels_need_a_frame(arrays, kind):
    words = da.from_array(np.where(arrays[1][:, 0] > 0, "yes", "no").astype(kind), chunks=(CUTS,))
    with pytest.raises(ValueError, match=r"labels of a Dask array must be .* give .*DaskFrame\("):
        dask_reader(on_cluster(arrays[0])[0], words)


def frame_of(arrays, npartitions=3):
    X, Y = arrays
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(Y[:, 0] > 0, "yes", "no"))
    return dd.from_pandas(table.assign(w=1.0), npartitions=npartitions)


@pytest.mark.slow
def test_frames_have_names_and_labels(client, arrays):
    here, there = model_of(arrays[0]), model_of(arrays[0])
    EXACT.run(here, arrays)
    rows = DaskFrame(frame_of(arrays), target="y", weight="w", classes="auto")
    assert rows.features == ("a", "b")
    assert rows.classes == ["no", "yes"]
    EXACT.run(there, rows)
    close(here, there)


@pytest.mark.slow
def test_empty_partitions_are_passed_over(client, arrays):
    here, there = model_of(arrays[0]), model_of(arrays[0])
    frame = frame_of(arrays)
    EXACT.run(here, arrays)
    empty = frame[frame.a > 1e9]
    rows = DaskFrame(dd.concat([empty, frame]), target="y", weight="w", classes=["no", "yes"])
    EXACT.run(there, rows)
    close(here, there)


def test_partitions_without_rows_are_passed_over_without_a_client(monkeypatch, arrays):
    monkeypatch.setattr(dask_data, "present_client", lambda: None)
    here, there = model_of(arrays[0]), model_of(arrays[0])
    EXACT.run(here, arrays)
    EXACT.run(there, [da.from_array(c, chunks=((0, N, 0), *c.shape[1:])) for c in arrays])
    close(here, there)
    unknown = da.from_delayed(dask.delayed(np.zeros([0, 2])), (np.nan, 2), float)
    with pytest.raises(ValueError, match=r"partition 0.*X has 0 rows and Y has 2"):
        EXACT.run(there, (unknown, da.zeros((2, 1))))
    with pytest.raises(ValueError, match="Y must be a Dask array or column, got Bag"):
        EXACT.run(there, (unknown, dask.bag.from_sequence([0, 1])))


def test_numbers_as_names_of_columns_are_no_places():
    table = pd.DataFrame({0: [0, 1, 0], 2: [5.0, 6.0, 7.0], 1: [8.0, 9.0, 10.0]})
    rows = DaskFrame(dd.from_pandas(table, npartitions=1), target=0, features=[1, 2])
    (piece,) = rows.pieces(10)
    assert rows.features == ("1", "2")
    np.testing.assert_array_equal(piece.X, table[[1, 2]])
    np.testing.assert_array_equal(piece.Y, table[[0]])


@pytest.mark.parametrize("ordered", [True, False])
def test_labels_of_categories(client, arrays, ordered):
    """A partition may lack a category, or list only its own."""
    X, Y = arrays
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(Y[:, 0] > 0, "yes", "no"))
    table = table.sort_values("y")  # so that both end partitions have one label only
    kind = pd.CategoricalDtype(["yes", "maybe", "no"], ordered=True) if ordered else "category"
    parts = [part.astype({"y": kind}) for part in (table[:20], table[20:-20], table[-20:])]
    frame = dd.from_delayed(
        [dask.delayed(part) for part in parts], meta=parts[1][:0], verify_meta=False
    )
    rows = DaskFrame(frame, target="y", classes="auto")
    assert rows.classes == (["yes", "no"] if ordered else ["no", "yes"])
    expected = table.y.to_numpy() == rows.classes[1]
    source = open_data(model_of(X), rows)
    assert source.num_rows == N
    np.testing.assert_array_equal(map_over(source, lambda batch: batch.Y)[:, 0], expected)
    found = [piece.Y for piece in rows.pieces(50)]
    np.testing.assert_array_equal(np.concatenate(found)[:, 0], expected)


def test_labels_that_are_times_are_their_text_as_in_files(arrays):
    """Before, the classes were Timestamps, and no label was one of them."""
    X, Y = arrays
    times = pd.to_datetime(np.where(Y[:, 0] > 0, "2021-01-01", "2020-01-01"))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=times)
    rows = DaskFrame(dd.from_pandas(table, npartitions=2), target="y", classes="auto")
    assert [label[:10] for label in rows.classes] == ["2020-01-01", "2021-01-01"]
    found = [piece.Y[:, 0] for piece in rows.pieces(50)]
    np.testing.assert_array_equal(np.concatenate(found), times.year == 2021)
    table.y = times.to_period("M")
    with pytest.raises(ValueError, match=r"labels of type period\[M\]: give strings"):
        DaskFrame(dd.from_pandas(table, npartitions=2), target="y", classes="auto")


def test_all_rows_are_told_alike_with_and_without_a_client(client, arrays):
    model, (X, Y) = model_of(arrays[0]), arrays

    def told(X, with_client=True):
        source = open_data(model, on_cluster(X, Y))
        source._workers = source._workers if with_client else None
        return source.digests()

    other = X.copy()
    other[-1] += 1e-15
    assert told(X) == told(X, False) != told(other) == told(other, False)
    assert told(X)["Y"] == told(other)["Y"]


def test_bad_frames(client, arrays):
    frame = frame_of(arrays)
    with pytest.raises(ValueError, match=r"the data frame lacks 'label'; it has a, b"):
        DaskFrame(frame, target="label")
    with pytest.raises(ValueError, match=r"column 'y' of the data frame must hold numbers"):
        DaskFrame(frame, target="y")
    with pytest.raises(TypeError, match="DaskFrame takes a Dask data frame, got DataFrame: give"):
        DaskFrame(frame.compute(), target="y")
    with pytest.raises(TypeError, match="DaskFrame takes a Dask data frame, got Series: give"):
        DaskFrame(frame["a"])
    with pytest.raises(ValueError, match="features must be a list of names, got 'ab'"):
        DaskFrame(frame, target="y", classes="auto", features="ab")
    with pytest.raises(ValueError, match=r"partition \d, row 0: label .* not one of the classes"):
        EXACT.run(
            model_of(arrays[0]),
            DaskFrame(frame, target="y", features=["a", "b"], classes=["si", "nada"]),
        )


@pytest.mark.slow
def test_the_classifier_is_that_of_blocks(client, arrays):
    X, Y = arrays
    blocks = [(X[:100], Y[:100]), (X[100:], Y[100:])]
    options = {"num_inducing": 8, "random_state": 0, "learn_kernel": False}
    here = gb.BSVMClassifier(**options).fit(Blocks(blocks))
    there = gb.BSVMClassifier(**options).fit(*on_cluster(X, Y[:, 0]))
    expected = here.predict_proba(X)
    # Sums over chunks of other sizes, in single precision.
    np.testing.assert_allclose(there.predict_proba(on_cluster(X)[0]), expected, atol=1e-5)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3)
    np.testing.assert_allclose(there.predict_proba(frame), expected, atol=1e-5)
    with pytest.raises(ValueError, match="a Dask data frame must include labels"):
        gb.BSVMClassifier().fit(frame, on_cluster(Y)[0])


def test_what_pandas_writes_beside_a_table_is_no_feature(client, arrays):
    frame = frame_of(arrays).assign(**{"Unnamed: 0": 1})
    assert DaskFrame(frame, target="y", weight="w", classes="auto").features == ("a", "b")
    with pytest.raises(ValueError, match="column 'y' holds empty labels"):
        DaskFrame(frame.assign(y=frame.y.where(frame.a > 0)), target="y", classes="auto")


def test_labels_in_a_column_of_dask_are_as_in_memory(arrays):
    X, labels = arrays[0], pd.DataFrame({"y": arrays[1][:, 0].astype(int)})
    options = {"num_inducing": 5, "random_state": 0, "learn_kernel": False, "loss": "hinge"}
    column = dd.from_pandas(labels, npartitions=2)
    here = gb.BSVMClassifier(**options).fit(X, labels.y)
    there = gb.BSVMClassifier(**options).fit(X, column.y)
    np.testing.assert_array_equal(there.predict_proba(X), here.predict_proba(X))
    for y in (column.y, column):
        assert here.score(X, y) == here.score(X, labels.y)


def test_a_target_that_the_frame_lacks_is_named(arrays):
    for classes in ("auto", None):
        with pytest.raises(ValueError, match=r"the data frame lacks 'Y' \(perhaps 'y'\); it has"):
            DaskFrame(frame_of(arrays), target="Y", classes=classes)
