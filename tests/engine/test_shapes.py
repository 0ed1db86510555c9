"""Shapes are executable: a wrong one raises, in graphs too, and no step of a fit pays for it."""

import threading
import time

import check_shapes
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import ShapeCheckingState, check_shape
from check_shapes.checker import ShapeChecker
from check_shapes.exceptions import ShapeMismatchError
from helpers import make_data, make_model, projected

from gpflow_bsvm.engine.natural import (
    Gaussian,
    Natural,
    blend,
    expected_factor,
    solve,
    to_natural,
    whiten,
)
from gpflow_bsvm.engine.shared_graph import Compiled
from gpflow_bsvm.engine.statistics import Marginals, marginals, sum_sites, total
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import Hinge, Sites
from gpflow_bsvm.likelihoods.levels import log_slopes
from gpflow_bsvm.likelihoods.maximum import maximum

L, M, N = 2, 3, 4


def ones(*shape):
    return tf.ones(shape, tf.float64)


Q = Natural(ones(L, M), tf.eye(M, batch_shape=[L], dtype=tf.float64))
SHORT = Natural(ones(L, M - 1), Q.P)
BAD = Gaussian(Q.P, ones(L, M - 1), ones())
ROWS = projected(ones(N, 1), ones(N, 1), ones(N, 1), ones(1, N, M), ones(N, L), ones(N, L))
WRONG = {
    "solve": lambda: solve(SHORT),
    "blend": lambda: blend(Q, SHORT, ones()),
    "to_natural": lambda: to_natural(ones(L, M), ones(M, M)),
    "whiten": lambda: whiten(ones(M, M), ones(L, M), Q.P),
    "expected_factor": lambda: expected_factor(SHORT, solve(Q)),
    "marginals": lambda: marginals(ones(1, N, M), BAD),
    "total": lambda: total(ROWS.features, Marginals(ones(N + 1, L), ones(N + 1, L))),
    "sum_sites": lambda: sum_sites(ROWS, Sites(ones(N, L), ones(N, L + 1))),
    "maximum": lambda: maximum(ones(N, 3), ones(N, 2)),
    "log_slopes": lambda: log_slopes(
        [[0.2, 0.8], [0.0, 0.0], *ones(2, 2, 3)], ones(N, 3), ones(N, 2)
    ),
    "sites": lambda: Hinge().sites(ones(N, 1), ones(N, 1), ones(N, 2), ones(N, 1)),
    "probabilities": lambda: Hinge().probabilities(ones(N, 1), ones(N - 1, 1)),
    "assign_natural": lambda: make_model(make_data()).assign_natural(Natural(Q.h, Q.P[:1])),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_shape_raises(name):
    with pytest.raises(ShapeMismatchError):
        WRONG[name]()


def test_a_wrong_shape_raises_in_a_graph():
    wrong = Compiled(lambda phi: marginals(phi, BAD))
    with pytest.raises(ShapeMismatchError):
        wrong(ones(1, N, M))
    assert check_shapes.get_enable_check_shapes() is ShapeCheckingState.EAGER_MODE_ONLY


def test_who_has_switched_checks_off_has_none():
    with check_shapes.disable_check_shapes():
        centred = Compiled(lambda x: check_shape(x, "[2]") - 1)(ones(3))
    np.testing.assert_array_equal(centred, 0)


def test_graphs_of_threads_leave_the_state_of_checks_as_it_was():
    both = threading.Barrier(2, timeout=60)

    def traced():
        both.wait()  # one traces while the other waits for it
        Compiled(lambda x: (time.sleep(0.05), x)[1])(ones(3))

    threads = [threading.Thread(target=traced) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert check_shapes.get_enable_check_shapes() is ShapeCheckingState.EAGER_MODE_ONLY


def test_a_step_checks_no_shapes(monkeypatch):
    """Those of a fit are of its beginning and end."""
    counts, data = [], make_data()
    check = ShapeChecker.check_shapes

    def counting(self, checks):
        counts[-1] += 1
        return check(self, checks)

    monkeypatch.setattr(ShapeChecker, "check_shapes", counting)
    for steps in (2, 2, 6):  # the first makes graphs, unless a test before it has
        counts.append(0)
        CAVI(max_steps=steps, tol=0.0).run(make_model(data, num_data=60), data)
    assert counts[0] >= counts[1] == counts[2]
