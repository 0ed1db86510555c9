"""What a fit leaves behind, and how it reports while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from gpflow.base import AnyNDArray
from tqdm.auto import tqdm

from ..checks import check_elbo
from ..engine.natural import Natural
from ..engine.projected_data import EngineModel

#: Called with the step and the history so far; the model holds the state of that step.
Callback = Callable[[int, "History"], Any]


@dataclass
class History:
    """
    A fit, one entry per record (CAVI: each sweep; SVI: every `record_every` steps).

    :ivar step: number of the step, from 1.
    :ivar elbo: evidence lower bound after the step (SVI: its estimate from the latest rows).
    :ivar seconds: since the start of the fit, without the time spent in callbacks.
    :ivar learning_rate: of the step.
    :ivar converged: whether the stopping rule was met.
    :ivar hyperparameters: values after the step by name, such as ".kernel.lengthscales", where the
        fit learns any; else no names.
    """

    step: list[int] = field(default_factory=list)
    elbo: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    converged: bool = False
    hyperparameters: dict[str, list[AnyNDArray]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        if not self.step:
            return "History(no steps)"
        return (
            f"History({self.step[-1]} steps, ELBO {self.elbo[-1]:.6g}, "
            f"{self.seconds[-1]:.3g} s, {'converged' if self.converged else 'not converged'})"
        )


class Recorder:
    """
    Keeps the history and the latest state of a fit, feeds the progress bar, callback and monitor.
    On leaving the `with` block, whether by the end of the fit, an error or an interrupt, the model
    holds the latest state.
    """

    def __init__(
        self,
        model: EngineModel,
        num_steps: int,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
    ) -> None:
        """
        :param monitor: a `gpflow.monitor.Monitor`, called with the step.
        :param progress: show a bar; None shows it on a terminal only.
        """
        self.history = History()
        self.state: Natural | None = None
        self._model, self._callback, self._monitor = model, callback, monitor
        self._bar = tqdm(
            total=num_steps,
            desc="fit",
            unit="step",
            delay=0.5,
            disable=None if progress is None else not progress,
        )
        self._start = time.perf_counter()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()
        if self.state is not None:
            self._model.assign_natural(self.state)

    def record(
        self,
        step: int,
        elbo: float,
        learning_rate: float,
        state: Natural,
        hyperparameters: dict[str, AnyNDArray] | None = None,
    ) -> None:
        """
        Take note of an accepted step.

        :param hyperparameters: those that are learned, by name.
        :raise ValueError: if the ELBO is not finite; the model then keeps the state before it.
        """
        check_elbo(elbo, f"after step {step}")
        done = step - (self.history.step[-1] if self.history.step else 0)
        self.state = state
        self.history.step.append(step)
        self.history.elbo.append(elbo)
        self.history.seconds.append(time.perf_counter() - self._start)
        self.history.learning_rate.append(learning_rate)
        for name, value in (hyperparameters or {}).items():
            self.history.hyperparameters.setdefault(name, []).append(value)
        if not self._bar.disable:
            self._bar.set_postfix_str(f"ELBO {elbo:.6g}", refresh=False)
            self._bar.update(done)
        if self._callback is not None or self._monitor is not None:
            self._report(step, state)

    def _report(self, step: int, state: Natural) -> None:
        paused = time.perf_counter()
        self._model.assign_natural(state)
        if self._callback is not None:
            self._callback(step, self.history)
        if self._monitor is not None:
            self._monitor(step)
        self._start += time.perf_counter() - paused
