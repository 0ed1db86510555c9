"""No fit goes on from a checkpoint of other rows, or of another kernel or function of a user's."""

import contextlib
import io
import os
import py_compile
import shutil
import subprocess
import sys
import textwrap
import types
from functools import lru_cache, partial, wraps
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import make_data, make_model
from pandas import DataFrame
from scipy.sparse import csr_array

import gpflow_bsvm as gb
from gpflow_bsvm.checkpoints import identity
from gpflow_bsvm.checkpoints.identity import described
from gpflow_bsvm.data.opening import open_source
from gpflow_bsvm.estimators.large import Rows
from gpflow_bsvm.inference import CAVI

N = 300
RUN = CAVI(max_steps=2, tol=0).run


# --- rows ----------------------------------------------------------------------------------------


def in_memory(X, Y, weight, folder):
    return (X, Y), weight


def mapped(X, Y, weight, folder):
    np.save(folder / "X.npy", X)
    return (np.load(folder / "X.npy", mmap_mode="r"), Y), weight


def sparse(X, Y, weight, folder):
    return (csr_array(X), Y), weight


def blocks(X, Y, weight, folder):
    cuts = [slice(n, n + 70) for n in range(0, N, 70)]
    return [(X[cut], Y[cut], weight[cut]) for cut in cuts], None


def part_of_blocks(X, Y, weight, folder):
    return gb.data.Part(gb.data.Blocks(blocks(X, Y, weight, folder)[0]), 5), None


KINDS = [in_memory, mapped, sparse, blocks, part_of_blocks]


def told(kind, rows, folder, size=64):
    data, weight = kind(*rows, folder)
    return identity._of_data(open_source(data, Rows(), size, weight))


@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_every_row_is_looked_at(tmp_path, kind, column):
    rows = (*make_data(N), np.ones(N))
    before = told(kind, rows, tmp_path)
    assert before == told(kind, rows, tmp_path)
    rows[column][-2] = rows[column][-2] * 0.5 if column != 1 else 1 - rows[1][-2]
    after, names = told(kind, rows, tmp_path), ["data X", "data Y", "data weight"]
    assert {k for k in before if before[k] != after[k]} == {names[column]}


def test_rows_after_the_first_chunk_are_looked_at_by_a_fit(tmp_path):
    X, Y = make_data(N)
    model = make_model((X, Y))
    assert len(RUN(model, (X, Y), checkpoint=tmp_path)) == 2
    X[200:] += 1
    with pytest.raises(ValueError, match=r"data X was \[300, 2\] float64 \(.*\), is \[300, 2\] fl"):
        RUN(model, (X, Y), checkpoint=tmp_path)


def test_chunks_and_copies_in_files_are_the_same_rows(tmp_path):
    rows = (*make_data(N), np.ones(N))
    found = [told(kind, rows, tmp_path, size) for kind in (in_memory, mapped) for size in (64, 500)]
    assert all(one == found[0] for one in found)
    found = [found[0], told(blocks, rows, tmp_path), told(blocks, rows, tmp_path, 10)]
    assert all(one["data X"] == found[0]["data X"] for one in found)


@pytest.mark.slow
def test_rows_of_an_estimator_are_looked_at(tmp_path):
    X, Y = make_data(N)
    estimator = gb.BSVMClassifier(num_inducing=5, learn_kernel=False, penalty=1.0, loss="hinge")
    estimator.fit(X, Y[:, 0], checkpoint=tmp_path)
    X[-1] += 1e-12
    with pytest.raises(ValueError, match="data X was"):
        estimator.fit(X, Y[:, 0], checkpoint=tmp_path)


def test_more_batches_of_a_dataset_are_told():
    X, Y = make_data(N)

    def batches(number):
        return tf.data.Dataset.from_tensor_slices((X[:number], Y[:number])).batch(50)

    told = [
        identity._of_data(open_source(batches(number), Rows(), 64))["batches"]
        for number in (100, 150)
    ]
    assert told == ["2", "3"]


def test_a_function_that_gives_rows_is_told_by_its_code_and_what_it_reads(tmp_path):
    X, Y = make_data(N)
    reads = 0

    def rows_of(*parts):
        def give():
            nonlocal reads  # what it writes is no input
            reads += 1
            for start in parts:
                yield X[start : start + 50], Y[start : start + 50]

        return gb.data.Blocks(give)

    model = make_model((X, Y))
    for _ in range(2):
        RUN(model, rows_of(0, 50), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="source was function"):
        RUN(model, rows_of(0, 100), checkpoint=tmp_path)


# --- code ----------------------------------------------------------------------------------------

KERNEL = """
import gpflow
import settings
from gpflow.utilities import positive

SCALE, UNUSED = 2.0, 1.0

class Plain:
    def __init__(self):
        self.power = 2

def helper(x):
    return x * SCALE

class Mine(gpflow.kernels.SquaredExponential):
    "A kernel."

    level = 0.5

    def __init__(self):
        super().__init__()
        self.plain, self.names = Plain(), ["a", {"b": 1}]
        self.me, self.function = [self.names, self.plain], helper

    def K(self, X, X2=None):
        # A comment.
        return helper(super().K(X, X2)) + self.level ** self.plain.power * settings.SHIFT

    @property
    def twice(self):
        return 2
"""


def kernel(*changes, source=KERNEL, shift=1.0):
    """:return: a kernel of a user's module, whose text was changed."""
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    module, settings = types.ModuleType("mine"), types.ModuleType("settings")
    settings.SHIFT, settings.OTHER = shift, object()
    before = dict(sys.modules)
    sys.modules.update(mine=module, settings=settings)
    try:
        exec(compile(source, "mine.py", "exec"), vars(module))
        return described(module.Mine())
    finally:
        sys.modules.clear()
        sys.modules.update(before)


@pytest.mark.parametrize(
    "change",
    [
        ("SCALE, UNUSED = 2.0", "SCALE, UNUSED = 3.0"),
        ("power = 2", "power = 3"),
        ("x * SCALE", "x / SCALE"),
        ("level = 0.5", "level = 0.25"),
        ('{"b": 1}', '{"b": 2}'),
        ("** self.plain", "* self.plain"),
        ("return 2", "return 3"),
        ("X2=None", "X2=0"),
        ("[self.names, self.plain]", "[self.plain, self.names]"),
        ("SquaredExponential", "Matern32"),
    ],
)
def test_a_users_kernel_is_told_by_all_that_it_computes_with(change):
    assert kernel(change) != kernel()


def test_an_attribute_of_a_users_module_is_told():
    assert kernel(shift=2.0) != kernel()


@pytest.mark.parametrize(
    "change",
    [
        ("UNUSED = 2.0, 1.0", "UNUSED = 2.0, 7.0"),
        ("# A comment.", "# Another."),
        ('"A kernel."', '"Another."'),
        ("\ndef helper", "\n\n\ndef helper"),
    ],
)
def test_what_a_kernel_does_not_compute_with_is_not_told(change):
    assert kernel(change) == kernel()


def adds(number):
    return lambda x: x + number


def scaled(by):
    def decorate(function):
        return wraps(function)(lambda x: by * function(x))

    return decorate


class Callable:
    def __init__(self, number):
        self.number = number

    def __call__(self, x):
        return x + self.number

    def method(self, x):
        return x + self.number


FUNCTIONS = {
    "closure": adds,
    "default": lambda number: lambda x, y=number: x + y,
    "partial": lambda number: partial(max, number),
    "decorated": lambda number: scaled(number)(helper),
    "cached": lambda number: lru_cache(adds(number)),
    "graph": lambda number: tf.function(adds(number)),
    "nested": lambda number: [adds(adds(number))],
    "object": Callable,
    "method": lambda number: Callable(number).method,
    "array": lambda number: adds(np.array([number])),
    "objects in an array": lambda number: np.array([None, adds(number)], object),
    "variable": lambda number: adds(tf.Variable(float(number))),
    "parameter": lambda number: adds(gpflow.Parameter(float(number))),
    "set": lambda number: {"a", number},
    "frame": lambda number: adds(DataFrame({"a": [0] * 100 + [number] + [0] * 100})),
    "sparse": lambda number: adds(csr_array(np.eye(200) * number)),
}


def helper(x):
    return x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_told_by_what_they_hold(name):
    make = FUNCTIONS[name]
    assert described(make(1)) == described(make(1)) != described(make(2))


def test_parts_that_hold_each_other_have_an_end():
    one, two = Callable(1), [1]
    one.me, one.list = one, two
    two.append(two)
    assert described(one) == described(one)


def test_code_of_libraries_is_told_by_its_name():
    assert described(gpflow.utilities.positive) == "function(gpflow.utilities.bijectors.positive)"
    assert described(gpflow.kernels.Matern32) == "ABCMeta(gpflow.kernels.stationaries.Matern32)"
    assert identity._class(CAVI) == "CAVI" != identity._class(Callable)


def test_values_that_a_fit_learns_are_no_part_of_a_kernel():
    one, two = gpflow.kernels.Matern32(2.0), gpflow.kernels.Matern32(3.0)
    told = [{id(p) for p in k.parameters} for k in (one, two)]
    assert described(one, told[0]) == described(two, told[1])
    assert described(one) != described(two)


@pytest.mark.slow
def test_the_text_is_the_same_in_every_process(tmp_path, monkeypatch):
    """
    No addresses, no order of a set. The code is compiled by this process, whose order of a set is
    any, and the other one reads it from a file.
    """
    shutil.copy(__file__, tmp_path / "identity_elsewhere.py")
    code = """
    import identity_elsewhere as here
    from gpflow.keras import tf_keras
    from gpflow_bsvm.deep import DeepKernel
    layers = tf_keras.Sequential([tf_keras.layers.InputLayer((2,)), tf_keras.layers.Dense(2)])
    told = [here.described(make(1)) for make in here.FUNCTIONS.values()]
    told += [here.kernel(), here.described(DeepKernel(layers, here.gpflow.kernels.Matern32()))]
    told += [here.described({"one", "two", "three", here.adds, here.helper})]
    print("\\n".join(told))
    """
    code = textwrap.dedent(code)
    monkeypatch.syspath_prepend(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    py_compile.compile(str(tmp_path / "identity_elsewhere.py"), doraise=True)
    path = [str(tmp_path), str(Path(__file__).parents[1]), *filter(None, sys.path)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "2"}
    found = subprocess.run([sys.executable, "-c", code], env=env, stdout=-1, check=True, text=True)
    assert printed.getvalue() == found.stdout and " at 0x" not in found.stdout


@pytest.mark.parametrize("change", ["attribute", "method", "class attribute"])
def test_a_fit_with_another_kernel_of_the_same_name_is_refused(tmp_path, change):
    data = make_data()

    class Mine(gpflow.kernels.SquaredExponential):
        level = 1.0

        def __init__(self):
            super().__init__(2.0)
            self.weight = 1.0

        def K_r2(self, r2):
            return super().K_r2(r2) * self.weight * self.level

        def K_diag(self, X):
            return super().K_diag(X) * self.weight * self.level

    def fit():
        mine = Mine()
        if change == "attribute" and fit.changed:
            mine.weight = 2.0
        return RUN(make_model(data, kernel=mine), data, checkpoint=tmp_path)

    fit.changed = False
    assert len(fit()) == len(fit()) == 2
    fit.changed = True
    if change == "method":
        Mine.K_r2 = lambda self, r2: gpflow.kernels.SquaredExponential.K_r2(self, r2)
    if change == "class attribute":
        Mine.level = 2.0
    with pytest.raises(ValueError, match=r"kernel was Mine \(.*\), is Mine \("):
        fit()
