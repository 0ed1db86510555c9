"""What is seen of a fit as it goes, and what an interrupt leaves."""

import io

import gpflow
import numpy as np
import pytest
from helpers import assert_same_state, make_model, state
from tqdm import tqdm

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI


def test_callback_and_monitor_see_the_model_after_each_sweep(data):
    model, seen = make_model(data), []

    def callback(step, history):
        seen.append((step, len(history), model.elbo(data).numpy() - history.elbo[-1]))

    monitored = []

    class Task(gpflow.monitor.MonitorTask):
        def run(self, **_):
            monitored.append((self.current_step, model.elbo(data).numpy()))

    monitor = gpflow.monitor.Monitor(gpflow.monitor.MonitorTaskGroup(Task(), period=2))
    history = CAVI(max_steps=6, tol=0).run(model, data, callback=callback, monitor=monitor)
    assert [entry[:2] for entry in seen] == [(n, n) for n in range(1, 7)]
    assert max(abs(entry[2]) for entry in seen) < 1e-9
    assert [step for step, _ in monitored] == [2, 4, 6]
    np.testing.assert_allclose([elbo for _, elbo in monitored], history.elbo[1::2], rtol=1e-9)


def test_a_monitor_is_no_callback(data):
    monitor = gpflow.monitor.Monitor()
    with pytest.raises(TypeError, match=r"callback got a .*Monitor: give it as monitor="):
        CAVI().run(make_model(data), data, callback=monitor)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("no more"), StopIteration])
def test_an_interrupt_keeps_the_state_and_goes_on(data, error):
    interrupted, short = make_model(data), make_model(data)

    def callback(step, history):
        if step == 3:
            raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        CAVI(tol=0).run(interrupted, data, callback=callback)
    CAVI(max_steps=3, tol=0).run(short, data)
    assert_same_state(state(interrupted), state(short), 1e-12)


def test_an_interrupt_between_sweeps_keeps_the_last_one(data, monkeypatch):
    model = make_model(data)
    calls = iter(range(100))
    some = gb.inference.cavi.Sweeps._some

    def interrupted(self, *how):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return some(self, *how)

    monkeypatch.setattr(gb.inference.cavi.Sweeps, "_some", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CAVI(tol=0).run(model, data, callback=lambda *_: None)
    monkeypatch.undo()
    short = make_model(data)
    CAVI(max_steps=2, tol=0).run(short, data)
    assert_same_state(state(model), state(short), 1e-12)


def test_progress_bar_shows_the_elbo(data, capsys):
    model = make_model(data)
    CAVI(max_steps=3, tol=0).run(model, data)
    assert capsys.readouterr().err == ""  # no terminal, no bar
    history = CAVI(max_steps=3, tol=0).run(model, data, progress=True, callback=None)
    assert len(history) == 3


def test_a_progress_bar_has_a_name_and_ends_full(data, monkeypatch):
    bars = []

    def made(total, what, progress):
        bars.append(tqdm(total=total, desc=what, file=io.StringIO()))
        return bars[-1]

    monkeypatch.setattr("gpflow_bsvm.inference.run.progress_bar", made)
    assert CAVI().run(make_model(data), data).converged
    assert bars[0].desc.startswith("q (CAVI)") and bars[0].total == bars[0].n < CAVI.max_steps
