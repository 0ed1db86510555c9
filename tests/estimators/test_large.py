"""`BSVMClassifier` of rows that are read piece by piece."""

import tracemalloc
from functools import partial
from types import SimpleNamespace

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, state
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

import gpflow_bsvm as gb
from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.data.opening import open_source
from gpflow_bsvm.engine.natural import Natural
from gpflow_bsvm.estimators import inputs, large, scaling
from gpflow_bsvm.estimators.labels import numbered
from gpflow_bsvm.estimators.large import CHUNK_ROWS, Rows, prepared

N = 150


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(N)
    return 3 * X + 5, np.where(Y.max() == Y, 4.0, 2.0)


def blocks(X, Y, weight=None, size=40):
    columns = (X, Y) if weight is None else (X, Y, weight)
    return Blocks([tuple(c[n : n + size] for c in columns) for n in range(0, len(X), size)])


def make(**options):
    kernel = gpflow.kernels.SquaredExponential(2.0)
    fixed = {"learn_kernel": False, "num_inducing": 8, "loss": "levels", "penalty": 2.0}
    return BSVMClassifier(kernel, random_state=0, **(fixed | options))


def numbering(found, weights):
    return partial(numbered, values=found.values, weights=np.array(weights))


def look(data, weight=None):
    return large.survey(open_source(blocks(*data, weight), Rows(), CHUNK_ROWS), 0)


def test_labels_in_pieces_need_no_column(data):
    X, Y = data
    expected = make().fit(blocks(X, Y)).predict_proba(X)
    for rows in (blocks(X, Y[:, 0]), tf.data.Dataset.from_tensor_slices((X, Y[:, 0])).batch(40)):
        model = make().fit(rows)
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        np.testing.assert_array_equal(model.as_model_sees(rows, labelled=True).num_rows, len(X))
        model.partial_fit(rows)


def test_a_survey_finds_what_all_rows_say(data):
    X, Y = data
    weight = np.linspace(0.5, 1.5, N)
    found = look(data, weight)
    np.testing.assert_array_equal(found.values, [2, 4])
    np.testing.assert_array_equal(found.counts, [(Y == 2).sum(), (Y == 4).sum()])
    assert found.num_rows == N
    np.testing.assert_allclose(found.weights.sum(), weight.sum())
    np.testing.assert_allclose(found.scaler().mean_, np.average(X, axis=0, weights=weight))
    rows = np.column_stack([*found.sample[:2], found.sample[2]])
    expected = np.column_stack([X, Y, weight])
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])


def test_the_scaler_is_that_of_all_rows(data):
    X, Y = data
    X = np.column_stack([X, 100 + X[:, 0], np.full(N, 7.0)])  # the last is constant
    weight = np.where(np.arange(N) < 80, 0.0, np.linspace(0.5, 1.5, N))  # two chunks without weight
    found, expected = look((X, Y), weight).scaler(), StandardScaler().fit(X, sample_weight=weight)
    for name in ("mean_", "var_", "scale_", "n_samples_seen_"):
        both = (getattr(one, name) for one in (found, expected))
        np.testing.assert_allclose(*both, rtol=1e-12, atol=1e-24)


@pytest.mark.slow
def test_a_sample_is_drawn_evenly_and_holds_rare_classes(monkeypatch):
    monkeypatch.setattr(large, "SAMPLE_ROWS", 60)
    X = np.arange(400.0)[:, None]
    Y = (X >= 397).astype(float)
    number = np.zeros(400)
    for seed in range(200):
        sample = large.survey(open_source(blocks(X, Y), Rows(), CHUNK_ROWS), seed).sample
        assert len(sample[0]) == 60 and sample[1].sum() == 3
        number[sample[0][:, 0].astype(int)] += 1
    share = number[:397] / 200
    expected = 57 / 397
    assert np.abs(share - expected).max() < 4.5 * np.sqrt(expected * (1 - expected) / 200)
    assert abs(share[:200].mean() - share[200:].mean()) < 0.02  # neither early nor late rows


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_column_that_overflows_is_named(data, monkeypatch):
    monkeypatch.setattr(large, "SAMPLE_ROWS", 60)
    X, Y = data
    with pytest.raises(ValueError, match="column 1 of X is so large that its variance"):
        make().fit(blocks(X * [1.0, 1e170], Y))


def test_prepared_rows_are_scaled_and_numbered(data):
    X, Y = data
    found, source = look(data), open_source(blocks(*data), Rows(), CHUNK_ROWS)
    estimator = SimpleNamespace(scaler_=found.scaler(), fill_=None)
    rows = prepared(source, estimator, numbering(found, [1.0, 3.0]))
    (batch,) = rows.chunks()
    np.testing.assert_allclose(batch.X, (X - X.mean(0)) / X.std(0), atol=1e-12)
    np.testing.assert_array_equal(batch.Y, (Y == 4).astype(float))
    np.testing.assert_array_equal(batch.weight, np.where(Y == 4, 3.0, 1.0))
    np.testing.assert_array_equal(next(iter(rows.scaled(2.0).chunks())).weight, 2 * batch.weight)
    np.testing.assert_array_equal(next(rows.stream(1, 50)).X, batch.X[50:100])
    with pytest.raises(ValueError, match=r"unseen labels: \[1.0, 3.0\]; the classes are"):
        rows = open_source(blocks(X, Y - 1), Rows(), CHUNK_ROWS)
        list(prepared(rows, estimator, numbering(found, [1.0, 1.0])).chunks())


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}])
def test_a_sample_of_everything_gives_the_fit_in_memory(data, options):
    X, Y = data
    inside = make(inference=gb.inference.CAVI(tol=1e-10), **options).fit(X, Y[:, 0].astype(int))
    outside = make(inference=gb.inference.CAVI(tol=1e-10), **options).fit(blocks(*data))
    np.testing.assert_array_equal(outside.classes_, inside.classes_)
    for found, expected in zip(state(outside.model_), state(inside.model_)):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(outside.predict_proba(X), inside.predict_proba(X))
    np.testing.assert_array_equal(outside.predict_proba(blocks(*data)), outside.predict_proba(X))
    np.testing.assert_array_equal(outside.predict(blocks(*data)), outside.predict(X))


def test_a_sample_in_single_precision(data):
    X, Y = data
    kernel = gpflow.kernels.SquaredExponential
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        inside = make().set_params(kernel=kernel(2.0)).fit(X, Y[:, 0])
        outside = make().set_params(kernel=kernel(2.0)).fit(blocks(*data))
        np.testing.assert_array_equal(outside.predict_proba(X), inside.predict_proba(X))


@pytest.mark.slow
def test_a_few_rows_more_than_the_sample(data, monkeypatch):
    """All but q is learned from the sample; q is that of all rows."""
    monkeypatch.setattr(large, "SAMPLE_ROWS", 60)
    model = make(inference=gb.inference.CAVI(tol=1e-10)).fit(blocks(*data))
    X, Y = data
    again = gpflow.utilities.deepcopy(model.model_)
    gb.inference.CAVI(tol=1e-10).run(again, (model.scaler_.transform(X), (Y == 4) * 1.0))
    for found, expected in zip(state(model.model_), state(again)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)  # two ways to tol


@pytest.mark.slow
def test_a_row_read_twice_is_a_row_of_weight_two(data):
    """In what is chosen, too: copies are in one fold, and k-means sees distinct rows."""
    X, Y = data
    weight = np.random.default_rng(0).integers(1, 4, N)
    choosing = partial(make, penalty="auto", inference=gb.inference.CAVI(tol=1e-10))
    weighted = choosing().fit(blocks(X, Y, weight[:, None] * 1.0))
    repeated = choosing().fit(blocks(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)))
    assert repeated.penalty_ == weighted.penalty_
    np.testing.assert_allclose(repeated.predict_proba(X), weighted.predict_proba(X), atol=1e-8)


def test_a_row_read_twice_is_not_left_out_of_the_link_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(2)
    Y = (X[:, :1] + rng.normal(size=(60, 1)) > 0) * 1.0
    fit = BSVMClassifier(loss="hinge", penalty=1.0, learn_kernel=False, num_inducing=20).fit
    repeated = fit(blocks(np.tile(X, (3, 1)), np.tile(Y, (3, 1)))).predict_proba(X)
    expected = fit(X, Y[:, 0], sample_weight=np.full(60, 3.0)).predict_proba(X)
    np.testing.assert_allclose(repeated, expected, atol=1e-8)


def test_scaling_up_is_repeating_rows_of_a_known_site():
    model = make().fit(*[part[:60] for part in (make_data(60)[0], make_data(60)[1][:, 0])]).model_
    h, P = (np.asarray(part) for part in model.natural())
    large.scale_up(model, 3.0)
    expected = Natural(3 * h, np.eye(P.shape[-1]) + 3 * (P - np.eye(P.shape[-1])))
    for found, wanted in zip(model.natural(), expected):
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)  # by way of a root


def test_classes_weigh_as_in_memory(data):
    found = look(data)
    for wanted in (None, "balanced", {2: 3.0, 4: 0.5}):
        numbers = make(class_weight=wanted)._learn_survey(blocks(*data), found)
        _, weights = numbers(np.array([2.0, 4.0]))
        expected = compute_class_weight(wanted, classes=np.array([2, 4]), y=data[1][:, 0])
        np.testing.assert_allclose(weights, expected)


@pytest.mark.parametrize("wanted", ["balanced", {2: 3.0, 4: 0.5, 6: 1.0}, {2: 3.0, 4: 1.0, 6: 0.0}])
def test_rows_weighted_by_class_give_the_fit_of_arrays(data, wanted):
    """Also its scaler, and rows of a class of weight 0 do not count."""
    X, Y = data
    Y = np.where(X[:, 1:] > 1, 6.0, Y)
    expected = make(class_weight=wanted).fit(X, Y[:, 0])
    found = make(class_weight=wanted).fit(blocks(X, Y))
    np.testing.assert_array_equal(found.scaler_.mean_, expected.scaler_.mean_)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_rows_without_weight_are_refused_and_little_weight_is_told(data):
    for rows in (data[0], data[1][:, 0]), (blocks(*data),):
        with pytest.raises(ValueError, match=r"all weights are 0 .* class_weight"):
            make(class_weight={2: 0.0, 4: 0.0}).fit(*rows)
    with pytest.warns(UserWarning, match=f"weights of {N} rows sum to 1: .* repetitions"):
        make().fit(blocks(*data, np.full(N, 1 / N)))


def test_balanced_classes_are_those_of_repeated_rows(data):
    weight = np.random.default_rng(0).integers(0, 4, (N, 1))
    found = look(data, weight[:, 0] * 1.0)
    numbers = make(class_weight="balanced")._learn_survey(blocks(*data), found)
    repeated = np.repeat(data[1][:, 0], weight[:, 0])
    expected = compute_class_weight("balanced", classes=np.array([2, 4]), y=repeated)
    np.testing.assert_allclose(numbers(np.array([2.0, 4.0]))[1], expected)


def test_bad_rows(data):
    X, Y = data
    with pytest.raises(ValueError, match="come with the rows"):
        make().fit(blocks(X, Y), Y)
    with pytest.raises(ValueError, match="holds one class only"):
        make().fit(blocks(X, 0 * Y))
    bad = X.copy()
    bad[77, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 77, column 1"):
        make().fit(blocks(bad, Y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MOST_CLASSES", 10)
        with pytest.raises(ValueError, match="more than 10 labels"):
            make().fit(blocks(X, X[:, :1]))
    with pytest.raises(ValueError, match=r"150 different labels .*, such as .* to be regressed"):
        make().fit(blocks(X, X[:, :1]))
    fitted = make().fit(blocks(X, Y))
    for ask in (make().fit, fitted.predict):
        with pytest.raises(TypeError, match=r"'rows\.csv' is a path: use .*CSVFiles"):
            ask("rows.csv")
    with pytest.raises(TypeError, match=r"'rows\.csv' is a path: use .*CSVFiles"):
        make().fit("rows.csv", Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(ValueError, match="X has 1 columns, but training had 2"):
        fitted.predict(blocks(X[:, :1], Y))


def test_frames_in_blocks_have_the_columns_of_training_in_its_order(data):
    """NumPy would take the columns of a data frame by their places."""
    pandas = pytest.importorskip("pandas")
    X, Y = data
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = make().fit(frame, Y[:, 0])
    expected = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(Blocks([frame[:40], frame[40:]])), expected)
    swapped = frame[["b", "a"]]
    with pytest.raises(ValueError, match=r"of X are \['b', 'a'\], but training had \['a', 'b'\]"):
        model.predict(Blocks([frame[:40], swapped[40:]]))
    more = frame.assign(c=1.0)
    with pytest.raises(ValueError, match=r"of X are \['a', 'b', 'c'\], .* pass features="):
        model.predict(Blocks([more]))
    with pytest.raises(ValueError, match=r"rows 40 to 149: X has \('b', 'a'\), but earlier rows"):
        make().fit(Blocks([(frame[:40], Y[:40]), (swapped[40:], Y[40:])]))
    found = make().fit(Blocks([(frame[:40], Y[:40]), (frame[40:], Y[40:])]))
    assert found.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(swapped)


@pytest.mark.parametrize("kind", ["numbers", "tuples", "digits", "arrow"])
def test_names_of_any_table_in_blocks_are_compared(data, kind):
    """Before, predictions for columns in another order were wrong without a word."""
    pandas = pytest.importorskip("pandas")
    X, Y = data
    numbers = {"numbers": [2020, 2010], "tuples": [("a", 1), ("a", 2)]}
    names = (numbers | {"digits": ["0", "1"], "arrow": ["0", "1"]})[kind]
    frame = pandas.DataFrame(X).set_axis(pandas.Index(names), axis=1)
    tables = [frame, frame[frame.columns[::-1]]]
    if kind == "arrow":
        tables = [*map(pytest.importorskip("pyarrow").Table.from_pandas, tables)]
    table, swapped = tables
    model = make().fit(Blocks([(table, Y)]))
    assert model.feature_names_in_.tolist() == [*map(str, names)]
    np.testing.assert_array_equal(model.predict(Blocks([table])), model.predict(table))
    for fitted in (model, make().fit(table, Y[:, 0])):
        with pytest.raises(ValueError, match="but training had"):
            fitted.predict(Blocks([swapped]))
    with pytest.raises(ValueError, match="but earlier rows"):
        make().fit(Blocks([(table, Y), (swapped, Y)]))
    assert not hasattr(make().fit(Blocks([(pandas.DataFrame(X), Y)])), "feature_names_in_")


@pytest.mark.parametrize("standardize", [True, False])
def test_rows_read_piece_by_piece_get_the_columns_that_imputing_adds(data, standardize):
    X, Y = data
    gaps = np.where(X > 1, np.nan, X)
    model = make(impute=True, standardize=standardize).fit(gaps, Y[:, 0])
    np.testing.assert_array_equal(model.predict_proba(blocks(X, Y)), model.predict_proba(X))


@pytest.mark.slow
def test_files_bring_names(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, Y = data
    table = pandas.DataFrame(X, columns=["a", "b"]).assign(y=np.where(Y[:, 0] == 4, "yes", "no"))
    table.to_parquet(tmp_path / "rows.parquet")
    table.sample(frac=1, random_state=0).to_parquet(tmp_path / "shuffled.parquet")
    files = gb.files.ParquetFiles(tmp_path / "rows.parquet", target="y", classes=["no", "yes"])
    model = make().fit(files)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["a", "b"]
    expected = make().fit(table[["a", "b"]], table["y"]).predict_proba(table[["a", "b"]])
    np.testing.assert_allclose(model.predict_proba(table[["a", "b"]]), expected, atol=1e-3)  # tol

    # Given in another order than the sorted one, classes are sorted, also where rows come later.
    shuffled = gb.files.ParquetFiles(
        tmp_path / "shuffled.parquet", target="y", classes=["yes", "no"]
    )
    assert shuffled.features == ("a", "b")  # without the index that pandas wrote
    other = make().fit(shuffled)
    for one in (model, other):
        one.partial_fit(table[["a", "b"]], table["y"])
    assert other.classes_.tolist() == ["no", "yes"] and other.order_.tolist() == ["yes", "no"]
    found = other.predict_proba(table[["a", "b"]])
    np.testing.assert_allclose(found, model.predict_proba(table[["a", "b"]]), atol=0.05)  # other Z


def test_rows_of_weight_0_are_not_there(data):
    X, Y = data
    weight = np.arange(N) % 3.0
    used = weight > 0
    found, expected = look(data, weight), look((X[used], Y[used]), weight[used])
    rows, wanted = (np.column_stack(seen.sample) for seen in (found, expected))
    # Chunks of other rows are in another order.
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(wanted, axis=0))
    np.testing.assert_allclose(found.scaler().var_, expected.scaler().var_, rtol=1e-12)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.num_rows == N
    assert np.isfinite(look(data, np.repeat([0.0, 1.0], [120, N - 120])).scaler().mean_).all()
    with pytest.warns(UserWarning, match="all rows with positive weight are of class 2"):
        one = make().fit(blocks(X, Y, (Y[:, 0] == 2) * 1.0))
    assert one.classes_.tolist() == [2, 4] and (one.predict(X) == 2).all()


def test_a_bad_row_late_in_a_file_changes_nothing(data, tmp_path):
    """In the survey, in a later pass, and where rows come later."""
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    X, Y = data
    table = pandas.DataFrame(X, columns=["a", "b"]).assign(y=(Y[:, 0] == 4) * 1.0)
    table.to_csv(tmp_path / "good.csv", index=False)
    table.loc[137, "b"] = np.nan
    table.to_csv(tmp_path / "bad.csv", index=False)
    good, bad = (
        gb.files.CSVFiles(tmp_path / f"{name}.csv", target="y") for name in ("good", "bad")
    )
    model = make().fit(good)
    before = dict(vars(model))
    where = r"file .*bad.csv, rows .* to .*: X holds nan \(row 137, column 'b'\)"
    for call in (model.fit, model.partial_fit, model.predict):
        with pytest.raises(ValueError, match=where):
            call(bad)
        assert vars(model) == before
    passes, pieces = [], good.pieces

    def spoilt(size):
        passes.append(1)
        return pieces(size) if len(passes) < 4 else bad.pieces(size)

    good.pieces = spoilt
    directory = tmp_path / "kept"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError, match=where):
        patch.setattr(gb.engine.projected_data, "CACHE_BYTES", 0)
        model.fit(good, checkpoint=directory)
    assert vars(model) == before and len(passes) > 3
    del good.pieces
    model.fit(good, checkpoint=directory)
    for found, wanted in zip(state(model.model_), state(before["model_"])):
        np.testing.assert_array_equal(found, wanted)


def test_rows_in_memory_are_copied_once():
    X = np.random.default_rng(0).normal(size=(2000, 50))
    weight = np.ones((2000, 1))
    (same, *_), _ = inputs.counted(X, weight, weight, lambda Y: (Y, 1.0))
    assert np.shares_memory(same, X)
    scaler = scaling.ColumnScaler().fit(X)
    tracemalloc.start()
    scaling.scale(scaler, X)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.5 * X.nbytes
