"""What a fit leaves behind, and how it reports while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpflow.base import AnyNDArray
from tqdm.auto import tqdm

from ..checks import check_elbo

if TYPE_CHECKING:
    from .algorithm import Run, Step

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
    Keeps the history of a run, feeds the progress bar, callback and monitor. On leaving the `with`
    block, whether by the end of the fit, an error or an interrupt, the model holds the latest
    accepted state.
    """

    def __init__(
        self, run: Run, callback: Callback | None, monitor: Any, progress: bool | None
    ) -> None:
        """Arguments as in `Algorithm.run`."""
        self.history = History()
        self._run, self._callback, self._monitor = run, callback, monitor
        self._bar = progress_bar(run.max_steps, "fit", progress)
        self._start = time.perf_counter()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
        self.history.converged = self._run.converged
        try:
            self._run.restore()
        finally:
            self._run.close()

    def record(self, step: Step) -> None:
        """
        Take note of an accepted step.

        :raise ValueError: if the ELBO is not finite.
        """
        check_elbo(step.elbo, f"after step {step.number}")
        history = self.history
        done = step.number - (history.step[-1] if history.step else 0)
        history.step.append(step.number)
        history.elbo.append(step.elbo)
        history.seconds.append(time.perf_counter() - self._start)
        history.learning_rate.append(step.learning_rate)
        for name, value in step.hyperparameters.items():
            history.hyperparameters.setdefault(name, []).append(value)
        if not self._bar.disable:
            self._bar.set_postfix_str(f"ELBO {step.elbo:.6g}", refresh=False)
            self._bar.update(done)
        if self._callback is not None or self._monitor is not None:
            self._report(step.number)

    def _report(self, step: int) -> None:
        paused = time.perf_counter()
        self._run.restore()
        if self._callback is not None:
            self._callback(step, self.history)
        if self._monitor is not None:
            self._monitor(step)
        self._start += time.perf_counter() - paused


def progress_bar(total: int, what: str, progress: bool | None) -> Any:
    """:return: a tqdm bar; for None on a terminal only, and not for what takes no time."""
    hide = None if progress is None else not progress
    return tqdm(total=total, desc=what, unit="step", delay=0.5, disable=hide)
