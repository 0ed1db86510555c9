"""What a fit is doing, and what each kind of stage has cost."""

from itertools import count

import pytest
from sklearn.datasets import make_moons

import gpflow_bsvm as gb
from gpflow_bsvm.estimators import stages
from gpflow_bsvm.estimators.stages import Stages


def test_seconds_count_by_kind_of_stage(monkeypatch):
    ticks = iter([0.0, 1.0, 3.0, 7.0, 15.0])
    monkeypatch.setattr(stages, "perf_counter", lambda: next(ticks))
    with Stages() as shown:
        shown.begin("kernel", "learning")
        shown.begin("q", "fitting")
        shown.begin("kernel", "learning again")
    assert shown.seconds == {"rows": 1.0, "kernel": 2.0 + 8.0, "q": 4.0}


@pytest.mark.slow
def test_a_fit_says_what_its_stages_have_cost(monkeypatch):
    """By a clock that ticks when it is asked: as often as stages begin, and once at the end."""
    clock = count()
    monkeypatch.setattr(stages, "perf_counter", lambda: float(next(clock)))
    machine = gb.BSVMClassifier(loss="hinge", penalty=2.0, num_inducing=5).fit(
        *make_moons(40, noise=0.3, random_state=0)
    )
    assert set(machine.seconds_) == {"rows", "kernel", "choice", "q", "link"}
    assert sum(machine.seconds_.values()) == next(clock) - 1
