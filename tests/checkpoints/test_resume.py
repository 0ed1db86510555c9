"""A classifier's fit that dies and is called again ends where it would have."""

import os
import warnings

import gpflow
import numpy as np
import pytest
from helpers import make_data

from gpflow_bsvm import BSVMClassifier
from gpflow_bsvm.data import Blocks
from gpflow_bsvm.estimators import base, choice, large, training
from gpflow_bsvm.inference import CAVI, cavi

N = 150


class Death(BaseException):
    """Of a process."""


@pytest.fixture(scope="module")
def data():
    return make_data(N)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(large, "SAMPLE_ROWS", 60)


def blocks(X, Y, size=40):
    return Blocks([(X[n : n + size], Y[n : n + size]) for n in range(0, len(X), size)])


def make(**options):
    kernel = gpflow.kernels.SquaredExponential(2.0)
    fixed = {"learn_kernel": False, "num_inducing": 8, "loss": "levels", "penalty": 2.0}
    return BSVMClassifier(kernel, **({"random_state": 0} | fixed | options))


def everything(model):
    """What a fit leaves behind, but for the time that it took."""
    history = model.history_
    learned = [np.stack(values) for values in history.hyperparameters.values()]
    scaler = [model.scaler_.mean_, model.scaler_.var_]
    records = [history.step, history.elbo, history.learning_rate, history.converged]
    about = [model.loss_, model.penalty_, model.model_.num_data, *model.classes_]
    about += [p.trainable for p in model.model_.parameters]
    return [*(p.numpy() for p in model.model_.parameters), *scaler, *learned, *records, *about]


def assert_equal(one, two):
    for a, b in zip(everything(one), everything(two), strict=True):
        np.testing.assert_array_equal(a, b)


def dies_at(monkeypatch, module, name, call):
    """The so-manieth call of a function is the end of the process."""
    function, calls = getattr(module, name), iter(range(1000))

    def dying(*arguments, **options):
        if next(calls) == call:
            raise Death
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, dying)


#: In the pass over all rows, between stages, and within both fits of q.
DEATHS = [
    (large, "survey", 0),
    (choice, "choose", 0),
    (training, "fit", 0),
    (cavi, "sum_over", 4),
    (large, "scale_up", 0),
    (cavi, "sum_over", 4),
]


@pytest.mark.slow
@pytest.mark.usefixtures("small_sample")
def test_deaths_at_every_stage_of_rows_in_a_source(data, tmp_path):
    whole = make().fit(blocks(*data))
    for module, name, call in DEATHS:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Death):
            dies_at(patch, module, name, call)
            make().fit(blocks(*data), checkpoint=tmp_path)
    with pytest.MonkeyPatch.context() as patch:  # what is done is not done again
        patch.setattr(large, "survey", pytest.fail)
        patch.setattr(choice, "choose", pytest.fail)
        model = make().fit(blocks(*data), checkpoint=tmp_path)
        assert_equal(model, whole)
        passes = []
        sum_over = cavi.sum_over
        patch.setattr(cavi, "sum_over", lambda *given: passes.append(1) or sum_over(*given))
        assert_equal(make().fit(blocks(*data), checkpoint=tmp_path), whole)
        assert len(passes) == 1  # a look at the rows that are read: nothing else tells of more


#: These learn kernels, and trace long.
LONG = (
    {"loss": "auto", "penalty": "auto", "learn_kernel": True},
    {"loss": "hinge", "learn_kernel": True},
    {"num_inducing": "auto", "learn_kernel": True},
    {"kernel": "linear", "loss": "hinge", "learn_kernel": True},
)


#: These learn kernels, and trace long.
LONG = (
    {"loss": "auto", "penalty": "auto", "learn_kernel": True},
    {"loss": "hinge", "learn_kernel": True},
    {"num_inducing": "auto", "learn_kernel": True},
    {"kernel": "linear", "loss": "hinge", "learn_kernel": True},
)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, *(pytest.param(o, marks=pytest.mark.slow) for o in LONG)])
def test_deaths_of_rows_in_memory(data, tmp_path, monkeypatch, options):
    monkeypatch.setattr("gpflow_bsvm.estimators.specification.FIRST_INDUCING", 8)
    X, y = data[0], np.where(data[1][:, 0] == 1, "good", "bad")
    whole = make().set_params(**options).fit(X, y)
    for module, name, call in [
        (choice, "choose", 0),
        (base, "train", 0),
        (cavi, "sum_over", 1),
    ]:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Death):
            dies_at(patch, module, name, call)
            make().set_params(**options).fit(X, y, checkpoint=tmp_path)
    monkeypatch.setattr(choice, "choose", pytest.fail)
    assert_equal(make().set_params(**options).fit(X, y, checkpoint=tmp_path), whole)


@pytest.mark.slow
@pytest.mark.usefixtures("small_sample")
def test_a_seed_that_nobody_gave_is_kept(data, tmp_path):
    one, two = (make(random_state=None).fit(blocks(*data), checkpoint=tmp_path) for _ in range(2))
    assert_equal(one, two)


@pytest.fixture(scope="module")
def stored(data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("stored")
    make().fit(blocks(*data), checkpoint=directory)
    return directory


def other_kernel(variance):
    return {"kernel": gpflow.kernels.SquaredExponential(variance)}


@pytest.mark.parametrize(
    ("what", "options", "change"),
    [
        (r"option penalty was 2\.0, is 4\.0", {"penalty": 4.0}, None),
        (r"option random_state was 0, is 1", {"random_state": 1}, None),
        (r"option kernel\.variance was 2\.0, is 3\.0", {"kernel": 3.0}, None),
        (r"option inference was None, is CAVI", {"inference": CAVI(tol=1e-3)}, None),
        (r"option class_weight was None, is \{1: 2\.0\}", {"class_weight": {1: 2.0}}, None),
        (r"first batch was", {}, lambda X, Y: (X + 1e-12, Y)),
        (r"columns was", {}, lambda X, Y: (X[:, :1], Y)),
        (r"rows was nothing, is 150", {}, "counted"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(data, stored, what, options, change):
    if "kernel" in options:
        options = {"kernel": gpflow.kernels.SquaredExponential(options["kernel"])}
    rows = blocks(*(change(*data) if callable(change) else data))
    if change == "counted":
        rows.known_rows = N
    with pytest.raises(ValueError, match=what) as error:
        make().set_params(**options).fit(rows, checkpoint=stored)
    assert "Give another directory, or delete this one" in str(error.value)


class Given:
    """Rows of which nobody knows before a pass."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        yield self.rows


def test_rows_that_came_since_are_an_error(data, stored, tmp_path):
    more = [np.concatenate([column, column[:7]]) for column in data]
    with pytest.raises(ValueError, match=r"data X was \[150, 2\].*, is \[157, 2\]"):
        make().fit(blocks(*more), checkpoint=stored)
    make().fit(Blocks(Given(data)), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="ended after 157 rows, but an earlier pass had 150"):
        make().fit(Blocks(Given(more)), checkpoint=tmp_path)


def test_another_version_is_refused(data, stored, monkeypatch):
    monkeypatch.setattr("gpflow_bsvm.checkpoints.identity.__version__", "9.9")
    with pytest.raises(ValueError, match=r"version of gpflow_bsvm was .*, is 9\.9"):
        make().fit(blocks(*data), checkpoint=stored)


def test_neither_bar_nor_chunks_matter(data, stored):
    model = make(chunk_rows=7, verbose=False).fit(blocks(*data), checkpoint=stored)
    assert_equal(model, make().fit(blocks(*data)))


@pytest.mark.slow
def test_a_full_disk_costs_a_warning(data, tmp_path, monkeypatch):
    """For every stage; what was whole stays, and the fit goes on."""
    monkeypatch.setattr(large, "SAMPLE_ROWS", 100)  # so that q is fitted to all rows after that
    full = OSError(28, "No space left on device")

    def fails(*_):
        raise full

    with monkeypatch.context() as patch, pytest.raises(Death):
        dies_at(patch, cavi, "sum_over", 4)
        make().fit(blocks(*data), checkpoint=tmp_path)
    before = sorted(tmp_path.rglob("*.npz"))
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        patch.setattr(os, "fsync", fails)
        model = make().fit(blocks(*data), checkpoint=tmp_path)
    texts = [str(one.message) for one in warned if "No space left" in str(one.message)]
    assert len(texts) == 2 and all("the fit continues" in text for text in texts)
    assert sorted(tmp_path.rglob("*.npz")) == before
    whole = make().fit(blocks(*data))
    assert_equal(model, whole)
    assert_equal(make().fit(blocks(*data), checkpoint=tmp_path), whole)


def test_a_spoilt_stage_is_found_anew(data, stored, tmp_path):
    make().fit(blocks(*data), checkpoint=tmp_path)
    (path,) = (tmp_path / "survey").iterdir()
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.warns(UserWarning, match=f"{path} is not a complete checkpoint"):
        model = make().fit(blocks(*data), checkpoint=tmp_path)
    assert_equal(model, make().fit(blocks(*data)))
