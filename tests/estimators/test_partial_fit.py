"""`BSVMClassifier.partial_fit`: more rows without the earlier ones."""

import warnings

import gpflow
import numpy as np
import pandas as pd
import pytest
from helpers import make_data, state

from gpflow_bsvm import BSVMClassifier, BSVMRegressor
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.files import ParquetFiles
from gpflow_bsvm.inference import Streaming, cavi


@pytest.fixture(scope="module")
def data():
    X, Y = make_data(80)
    return X, np.where(Y[:, 0] == Y.max(), "yes", "no")


def make(**options):
    kernel = gpflow.kernels.SquaredExponential(2.0)
    fixed = {"learn_kernel": False, "num_inducing": 8, "loss": "levels", "penalty": 2.0}
    return BSVMClassifier(kernel, random_state=0, **(fixed | options))


def test_the_first_call_is_fit(data):
    X, y = data
    found = make().partial_fit(X, y, classes=["yes", "no"]).predict_proba(X)
    np.testing.assert_array_equal(found, make().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("form", [set, pd.Series, lambda classes: [*classes, "no"]])
def test_classes_may_come_in_any_form(data, form):
    X, y = data
    found = make().partial_fit(X, y, classes=form(["yes", "no", "maybe"]))
    np.testing.assert_array_equal(found.classes_, ["maybe", "no", "yes"])


@pytest.mark.parametrize("classes", [[["no", "yes"]], np.array([["no"], ["yes"]])])
def test_classes_are_one_list(data, classes):
    with pytest.raises(ValueError, match=r"classes must be a list of labels, got the (list|ndarr)"):
        make().partial_fit(*data, classes=classes)


def test_rows_that_bring_their_labels_may_come_with_classes(data):
    X, y = data
    rows = Blocks([(X, (y == "yes")[:, None] * 1.0)])
    found = make().partial_fit(rows, classes=[0, 1])
    np.testing.assert_array_equal(found.classes_, [0, 1])
    with pytest.raises(ValueError, match=r"\[0, 1, 2\] differ from .*\[0, 1\]: begin with rows"):
        make().partial_fit(rows, classes=[0, 1, 2])


@pytest.mark.parametrize("rest", [slice(50, None), "no"])
def test_later_calls_are_streaming(data, rest):
    """Also with rows of a single class."""
    X, y = data
    rest = np.flatnonzero(y == rest)[-10:] if isinstance(rest, str) else rest
    model = make().fit(X[:50], y[:50])
    expected = gpflow.utilities.deepcopy(model.model_)
    scaled = model.scaler_.transform(X[rest])
    history = Streaming(forget=0.9).run(expected, (scaled, (y[rest] == "yes")[:, None] * 1.0))
    model.partial_fit(X[rest], y[rest], forget=0.9)
    for found, wanted in zip(state(model.model_), state(expected)):
        np.testing.assert_array_equal(found, wanted)
    assert model.history_.elbo == history.elbo


def test_weights_of_new_rows_are_repetitions(data):
    X, y = data
    one, two = (make().fit(X[:50], y[:50]) for _ in range(2))
    one.partial_fit(X[50:], y[50:], sample_weight=np.full(30, 2.0))
    two.partial_fit(np.repeat(X[50:], 2, axis=0), np.repeat(y[50:], 2))
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)
    one.partial_fit(X[[50, 50]], y[[50, 50]], sample_weight=[0.2, 0.4])  # no shares
    two.partial_fit(X[[50]], y[[50]], sample_weight=[0.6])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)


def bad_calls(X, y):
    return {
        r"unseen labels: \['no'\]; the classes are \['maybe', 'yes'\]": (
            make(),
            X,
            y,
            {"classes": ["yes", "maybe"]},
        ),
        "labels of one type": (make(), X, y, {"classes": ["yes", 1]}),
        "classes must be labels, without None": (make(), X, y == "yes", {"classes": [None, 1, 0]}),
        "without None, NaN or NA": (make().fit(X, y == "yes"), X, y, {"classes": [0, 1, np.nan]}),
        "two or more different": (make(), X, y, {"classes": []}),
        "got the int 2": (make(), X, y, {"classes": 2}),
        'class_weight="balanced" needs all rows': (make(class_weight="balanced"), X, y, {}),
        "forget must be in": (make().fit(X, y), X, y, {"forget": 1.5}),
        "previously unseen labels": (make().fit(X, y), X, np.full(len(X), "else"), {}),
        "X has 1 features, but BSVMClassifier is expecting 2": (make().fit(X, y), X[:, :1], y, {}),
        "forget must be at least": (make(), X, y, {"forget": -1.0}),
    }


def test_bad_calls_change_nothing(data):
    X, y = data
    for message, (model, inputs, labels, options) in bad_calls(X, y).items():
        before = dict(vars(model))
        with pytest.raises(ValueError, match=message):
            model.partial_fit(inputs, labels, **options)
        assert vars(model) == before


@pytest.mark.slow
def test_several_classes_and_a_linear_model(data):
    X, _ = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for options in ({}, {"loss": "hinge", "calibrate": False}):
        p = make(**options).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    linear = BSVMClassifier("linear", penalty=1.0, calibrate=False)
    before = linear.fit(X[:50], y[:50] > 0).predict_proba(X)
    after = linear.partial_fit(X[50:], y[50:] > 0).predict_proba(X)
    assert np.abs(after - before).max() > 0.01


def blocks(X, Y, size=20):
    return Blocks([(X[n : n + size], Y[n : n + size]) for n in range(0, len(X), size)])


def test_rows_of_a_source_are_those_of_arrays(data):
    X, y = data
    Y = (y == "yes")[:, None] * 1.0
    one = make().partial_fit(blocks(X[:50], Y[:50]))
    two = make().fit(blocks(X[:50], Y[:50]))
    one.partial_fit(blocks(X[50:], Y[50:]), forget=0.9)
    two.partial_fit(X[50:], Y[50:, 0].astype(int), forget=0.9)
    for found, wanted in zip(state(one.model_), state(two.model_)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    before = dict(vars(one))
    with pytest.raises(ValueError, match="X has 1 columns, but training had 2"):
        one.partial_fit(blocks(X[:, :1], Y))
    with pytest.raises(ValueError, match=r"unseen labels: \[2.0\]; the classes are \[0, 1\]"):
        one.partial_fit(blocks(X, 2 * Y))
    with pytest.raises(ValueError, match="come with the rows"):
        one.partial_fit(blocks(X, Y), y)
    assert vars(one) == before


def test_files_of_any_order_of_classes(data, tmp_path):
    """Names tell which is which; a later file may have rows of one class only."""
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    X, y = data
    table = pandas.DataFrame(X, columns=["a", "b"]).assign(y=y)
    for name, part in (("first", table[:50]), ("later", table[50:])):
        part.to_parquet(tmp_path / name, index=False)

    def rows(name, classes, **how):
        return ParquetFiles(tmp_path / name, target="y", classes=classes, **how)

    one, two = (make().fit(rows("first", "auto")) for _ in range(2))
    one.partial_fit(rows("later", ["yes", "no"]))
    two.partial_fit(table[["a", "b"]][50:], y[50:])
    for found, wanted in zip(state(one.model_), state(two.model_)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match=r"\['maybe'\] of the source are not among \['no', 'y"):
        one.partial_fit(rows("later", ["yes", "no", "maybe"]))
    with pytest.raises(ValueError, match="these labels are numbers: give the source classes="):
        one.partial_fit(blocks(X, X[:, :1]))
    with pytest.raises(ValueError, match=r"pass features=.* in the order of training"):
        one.partial_fit(rows("later", ["yes", "no"], features=["b", "a"]))
    with pytest.raises(ValueError, match="pass features="):
        one.predict(rows("later", ["yes", "no"], features=["b", "a"]))


def test_later_rows_have_checkpoints_too(data, tmp_path):
    X, y = data
    for _ in range(2):  # the first part of all, twice
        model = make().partial_fit(X[:50], y[:50], checkpoint=tmp_path / "first")
    expected = make().fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        calls, sum_over = iter(range(9)), cavi.sum_over
        patch.setattr(cavi, "sum_over", lambda *a: sum_over(*a) if next(calls) < 3 else stop())
        model.partial_fit(X[50:], y[50:], checkpoint=tmp_path / "later")
    assert len(list((tmp_path / "later").iterdir())) > 0
    model.partial_fit(X[50:], y[50:], checkpoint=tmp_path / "later")
    for found, wanted in zip(state(model.model_), state(expected.model_)):
        np.testing.assert_array_equal(found, wanted)


def stop():
    raise KeyboardInterrupt


def test_weights_that_sum_to_1_are_shares_of_every_part(data):
    X, y = data
    plain, shares = (make().partial_fit(X[:50], y[:50]) for _ in range(2))
    plain.partial_fit(X[50:], y[50:])
    shares.partial_fit(X[50:], y[50:], sample_weight=np.full(30, 1 / 30))
    np.testing.assert_allclose(shares.predict_proba(X), plain.predict_proba(X), rtol=1e-8)


def test_later_parts_that_hardly_count_are_told(data):
    X, y = data
    model = make().partial_fit(X[:50], y[:50])
    with pytest.warns(UserWarning, match="weights of 30 rows sum to 0.9: .* by their mean"):
        model.partial_fit(X[50:], y[50:], sample_weight=np.full(30, 0.03))


def test_classes_of_later_parts_are_those_of_the_first(data):
    X, y = data
    model = make().partial_fit(X, y).partial_fit(X, y, classes=["no", "yes"])
    with pytest.raises(
        ValueError, match=r"\['maybe', 'no', 'yes'\] differ from the classes in the first"
    ):
        model.partial_fit(X, y, classes=["maybe", "no", "yes"])
    rows = Blocks([(X, (y == "yes")[:, None] * 1.0)])
    rows.classes = ["no", "yes"]
    with pytest.raises(ValueError, match=r"\['no', 'other'\] differ from the classes in the first"):
        model.partial_fit(rows, classes=["no", "other"])
    rows = Blocks([(X, (y == "no")[:, None] * 1.0)])
    rows.classes = ["yes", "no"]  # in an order of their own
    model = make().partial_fit(rows).partial_fit(X, y, classes=["no", "yes"])
    assert (model.classes_.tolist(), model.order_.tolist()) == (["no", "yes"], ["yes", "no"])


def test_rows_beyond_those_of_the_first_call_are_told(data):
    X, y = data
    few = make().fit(X[:2], [0, 1])
    with pytest.warns(UserWarning, match=r"first call of partial_fit had too few rows.* to all"):
        few.partial_fit(X[2:] + 2, y[2:] == "yes")
    enough = make().fit(X[:50], y[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough.partial_fit(X[50:], y[50:])


def test_labels_far_from_those_of_the_first_call_are_told(data):
    X, _ = data
    y = np.sin(X[:, 0])
    regressor = BSVMRegressor(learn_kernel=False, num_inducing=30).fit(X[:50], y[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regressor.partial_fit(X[50:], y[50:])
    with pytest.warns(UserWarning, match="most y are far outside of .* begin partial_fit with all"):
        regressor.partial_fit(X[50:], y[50:] + 4)


def test_a_checkpoint_is_of_one_number_of_classes(data, tmp_path):
    """Before, a class without rows was no part of the identity, and TensorFlow found it out."""
    X, y = data
    make().partial_fit(X, y, classes=["no", "yes"], checkpoint=tmp_path)
    with pytest.raises(ValueError, match="another fit: number of classes was 2, is 3"):
        make().partial_fit(X, y, classes=["maybe", "no", "yes"], checkpoint=tmp_path)
