"""Data that a model cannot be fitted to: one clear error each, that names what is wrong."""

import gpflow
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from helpers import assert_same_state, make_data, make_model, state
from runs import RUNS

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, SVI
from gpflow_bsvm.likelihoods import Hinge


def broken(name: str, X: np.ndarray, Y: np.ndarray):
    X, Y = X.copy(), Y.copy()
    match name:
        case "nan in X":
            X[3, 1] = np.nan
        case "inf in X":
            X[3, 1] = np.inf
        case "nan in Y":
            Y[2] = np.nan
        case "labels 1 and 2":
            Y += 1
        case "labels of three kinds":
            Y[0] = -1
        case "scores as labels":
            Y = X[:, :1]
        case "X of one dimension":
            X = X[:, 0]
        case "Y of one dimension":
            Y = Y[:, 0]
        case "Y of two columns":
            Y = np.hstack([Y, Y])
        case "fewer labels":
            Y = Y[:-1]
        case "no rows":
            X, Y = X[:0], Y[:0]
        case "X too narrow":
            X = X[:, :1]
        case "X too wide":
            X = np.hstack([X, X])
        case "X in float32":
            X = X.astype(np.float32)
        case "X of integers":
            X = (100 * X).astype(int)
        case "X of words":
            X = X.astype(str)
        case "Y of words":
            Y = Y.astype(str)
    return X, Y


BAD_DATA = {
    "nan in X": r"X holds nan \(row 3, column 1\)",
    "inf in X": r"X holds inf \(row 3, column 1\)",
    "nan in Y": r"Y holds nan \(row 2, column 0\)",
    "labels 1 and 2": r"binary labels must be in \{0, 1\} or in \{-1, \+1\}, got \{1.0, 2.0\}",
    "labels of three kinds": "binary labels must be in",
    "scores as labels": r"binary labels must be in .*, \.\.\.\}",
    "X of one dimension": r"X must have shape \[N, .\], got shape \(60,\); use X\[:, None\]",
    "Y of one dimension": r"Y must have shape \[N, .\], got shape \(60,\); use Y\[:, None\]",
    "Y of two columns": "Y has 2 columns, and the model has 1 latent functions",
    "fewer labels": "X has 60 rows and Y has 59",
    "no rows": "X has no rows",
    "X too narrow": "X has 1 columns, the inducing points have 2",
    "X too wide": "X has 4 columns, the inducing points have 2",
    "X in float32": "X has dtype float32, but .* is float64",
    "X of integers": "X has dtype int64, but .* is float64",
    "X of words": r"X must hold numbers, got (<U|object).*: encode words",
    "Y of words": r"binary labels must be .*, got \{'0.0', '1.0'\}|Y must hold numbers, got dtype",
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(data, name, run):
    model = make_model(data, num_data=60)
    before = state(model)
    with pytest.raises(ValueError, match=BAD_DATA[name]):
        RUNS[run](model, broken(name, *data))
    assert_same_state(state(model), before, 1e-12)


@pytest.mark.parametrize("run", RUNS)
def test_float64_data_under_a_float32_policy(data, run):
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model = make_model(tuple(part.astype(np.float32) for part in data), num_data=60)
        with pytest.raises(ValueError, match=r"X has dtype float64, but .* is float32"):
            RUNS[run](model, data)


@pytest.mark.slow
@pytest.mark.parametrize("label", [0.0, 1.0, -1.0])
def test_a_training_set_needs_both_classes_and_a_minibatch_does_not(data, label):
    X, Y = data[0], np.full((60, 1), label)
    for name in ("CAVI", "SVI", "fit"):
        with pytest.raises(ValueError, match="Y holds one class only"):
            RUNS[name](make_model(data), (X, Y))
    for name in ("natgrad_step", "dataset"):
        model = make_model(data, num_data=60)
        RUNS[name](model, (X, Y))
        assert np.isfinite(model.elbo((X, Y)))


@pytest.mark.parametrize("encoding", [(0, 1), (-1, 1), (0.0, 1.0), (False, True)])
def test_good_labels_of_any_type(data, encoding):
    X, Y = data
    labels = np.where(Y == 1, encoding[1], encoding[0])
    one, two = make_model(data), make_model(data)
    CAVI(max_steps=2).run(one, (X, labels))
    CAVI(max_steps=2).run(two, data)
    assert_same_state(state(one), state(two), 1e-13)


@pytest.mark.parametrize(
    "weight, match",
    [
        (np.ones(59), "must be 60 numbers, one for each row: the shape is .59."),
        (np.ones((30, 2)), r"must be 60 numbers, one for each row: the shape is .30, 2."),
        (-np.ones(60), "finite, non-negative"),
        (np.full(60, np.nan), "finite, non-negative"),
        (np.full(60, np.inf), "finite, non-negative"),
        (np.full(60, 1e300), r"at most 1e\+15, got 1e\+300 \(row 0\): a weight is a number of rep"),
        (np.zeros(60), "not be all zero"),
    ],
)
def test_bad_weights(data, weight, match):
    for algorithm in (CAVI(), SVI()):
        with pytest.raises(ValueError, match=match):
            algorithm.run(make_model(data), data, sample_weight=weight)


def test_a_dataset_needs_num_data(data):
    with pytest.raises(ValueError, match="needs num_data"):
        RUNS["dataset"](make_model(data), data)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda X, Y: tf.data.Dataset.from_tensor_slices((X, Y)), r"use dataset\.batch\(1000\)"),
        (lambda X, Y: tf.data.Dataset.from_tensor_slices((X, Y)).take(0).batch(5), "is empty"),
        (lambda X, Y: tf.data.Dataset.from_tensor_slices(X).batch(5), "must yield"),
        (lambda X, Y: tf.data.Dataset.from_tensor_slices({"X": X, "Y": Y}).batch(5), "must be"),
        (lambda X, Y: tf.data.Dataset.from_tensors((X, Y, -Y)), "non-negative"),
    ],
    ids=["not batched", "empty", "no labels", "dictionary", "negative weights"],
)
def test_bad_datasets(data, make, match):
    with pytest.raises(ValueError, match=match):
        SVI(max_steps=3).run(make_model(data, num_data=60), make(*data))


def test_weights_of_a_dataset_are_inside_it(data):
    source = tf.data.Dataset.from_tensors(data)
    with pytest.raises(ValueError, match="third component"):
        SVI().run(make_model(data, num_data=60), source, sample_weight=np.ones(60))


@pytest.mark.parametrize("dims", [[0, 5], [2]])
def test_active_dims_beyond_the_columns(dims):
    X, Y = make_data(20)
    kernel = gpflow.kernels.SquaredExponential() + gpflow.kernels.Constant()
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(), X[:5])
    kernel.kernels.append(gpflow.kernels.Matern32(active_dims=dims))
    with pytest.raises(ValueError, match=f"active_dims up to {dims[-1]}, but X has columns 0 to 1"):
        gb.fit(model, (X, Y))


def test_weights_that_are_no_numbers():
    X, Y = make_data(20)
    with pytest.raises(ValueError, match="sample_weight must be 20 numbers"):
        gb.BSVMClassifier(learn_kernel=False).fit(X, Y[:, 0], sample_weight=["a"] * 20)
    for kind, name in (("c16", "complex128"), ("M8[s]", "datetime64"), ("m8[D]", "timedelta64")):
        with pytest.raises(ValueError, match=f"20 numbers, one for each row: the type is {name}"):
            gb.fit(make_model((X, Y)), (X, Y), sample_weight=np.ones(20).astype(kind))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("big", [1e160, -1e300])
def test_numbers_whose_squares_overflow(data, big, sparse):
    X = data[0].copy()
    X[3, 1] = big
    where = "" if sparse else r" \(row 3, column 1\)"
    model = gb.models.LinearBSVM(2, Hinge())
    with pytest.raises(ValueError, match=rf"X holds a number above 1e\+154{where}, whose square"):
        CAVI().run(model, (scipy.sparse.csr_matrix(X) if sparse else X, data[1]))
