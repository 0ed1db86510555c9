"""A checkpoint of another fit, other data or another version is refused."""

import os

import gpflow
import numpy as np
import pytest
from dying import ALGORITHMS, Death, assert_equal, die_at
from helpers import log_normal, make_data, make_model, state

import gpflow_bsvm as gb
from gpflow_bsvm.checkpoints import identity
from gpflow_bsvm.data.opening import open_source
from gpflow_bsvm.estimators.large import Rows
from gpflow_bsvm.inference import (
    CAVI,
    ECM,
    Streaming,
)
from gpflow_bsvm.likelihoods import Hinge

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
        ("whiten was True, is False", {"whiten": False}),
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
    rows = gb.files.CSVFiles(path, "y", features=["b", "a"])
    with pytest.raises(ValueError, match=r"files was 'a', 'b', 'y' \(\w+\), is 'b', 'a', 'y' \("):
        CAVI().run(model, rows, checkpoint=tmp_path / "checkpoint")


def test_another_version_is_refused(data, stored, monkeypatch):
    monkeypatch.setattr("gpflow_bsvm.checkpoints.identity.__version__", "9.9")
    what = r"version of gpflow_bsvm was .*, is 9\.9"
    with pytest.raises(ValueError, match=what):
        ALGORITHMS["CAVI"].run(make_model(data), data, checkpoint=stored)


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
    model.kernel.variance.prior_on = "unconstrained"
    with pytest.raises(ValueError, match=r"\.kernel\.variance was learned"):
        ALGORITHMS["VEM"].run(model, data, checkpoint=tmp_path)


@pytest.mark.slow
def test_what_an_estimator_learns_and_its_priors_are_told(data, tmp_path):
    X, Y = data
    kernel = gpflow.kernels.SquaredExponential(2.0)

    def fit():
        options = {"num_inducing": 8, "loss": "levels", "penalty": 2.0, "calibrate": False}
        gb.BSVMClassifier(kernel, **options).fit(X, Y[:, 0], checkpoint=tmp_path)

    fit()
    fit()
    kernel.variance.prior = log_normal(1, 1)
    with pytest.raises(ValueError, match=r"learning of option kernel\.variance was .*, is .*prior"):
        fit()
    kernel.variance.prior = None
    gpflow.set_trainable(kernel.variance, False)
    with pytest.raises(ValueError, match=r"learning of option kernel\.variance was .*, is nothing"):
        fit()


@pytest.mark.parametrize("given", [{"penalty": 2.0}, {"epsilon": 0.2}])
def test_labels_in_another_unit_are_told(data, tmp_path, given):
    """Scaled labels are the same, but penalty and epsilon are in units of y."""
    X, _ = data
    regressor = gb.BSVMRegressor("linear", learn_kernel=False, **given)
    regressor.fit(X, X[:, 0] ** 2, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"scale of y was .*, is"):
        regressor.fit(X, 2 * X[:, 0] ** 2, checkpoint=tmp_path)


def test_few_rows_of_unknown_number_have_an_order():
    """The first batch goes on with the first rows, where their number is not known yet."""
    X, Y = make_data(60)
    rows = gb.data.Blocks([(X[:40], Y[:40]), (X[40:], Y[40:])])
    source = open_source(rows, Rows(), 50)
    first, again = identity._of_data(source), identity._of_data(source)
    assert first["first batch"] == again["first batch"] != "any"


def test_scaled_rows_may_be_equal_and_the_kernels_period_not(data, tmp_path):
    """Before, the period found for X was taken for 2 X, without a word."""
    X, Y = data
    kernel = gpflow.kernels.Periodic(gpflow.kernels.SquaredExponential(), period=2.0)
    options = {"loss": "levels", "penalty": 2.0, "num_inducing": 5, "learn_kernel": False}
    classifier = gb.BSVMClassifier(kernel, **options)
    classifier.fit(X, Y[:, 0], checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"another fit: scale of X was .*, is"):
        classifier.fit(2 * X, Y[:, 0], checkpoint=tmp_path)
