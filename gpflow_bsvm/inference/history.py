"""What a fit leaves behind, and how it reports while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray
from tqdm.auto import tqdm

from ..checkpoints import Checkpoints, OtherFit
from ..checks import check_elbo

if TYPE_CHECKING:
    from .algorithm import Run, Step

#: Called with the step and the history so far; the model holds the state of that step. True ends
#: the fit.
Callback = Callable[[int, "History"], Any]


@dataclass
class History:
    """
    A fit, one entry per record (CAVI: each sweep; SVI: every `record_every` steps).

    :ivar step: number of the step, from 1.
    :ivar elbo: evidence lower bound after the step (SVI: its estimate from the latest rows).
    :ivar seconds: since the start of the fit, without the time spent in callbacks.
    :ivar learning_rate: of the step.
    :ivar converged: whether the stopping rule was met, at a q that is not its prior, where no site
        was clipped.
    :ivar clipped: sites whose precision was negative, and set to 0, where the fit has ended, see
        `gpflow_bsvm.likelihoods.sites`; of `CAVI`, `Streaming` and `VEM`.
    :ivar kernel_as_given: whether `gpflow_bsvm.fit` has left a trainable kernel as it was.
    :ivar hyperparameters: values after the step by name, such as ".kernel.lengthscales", where the
        fit learns any; else no names.
    """

    step: list[int] = field(default_factory=list)
    elbo: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    converged: bool = False
    hyperparameters: dict[str, list[AnyNDArray]] = field(default_factory=dict)
    clipped: int = 0
    kernel_as_given: bool = False

    def columns(self, number: int) -> dict[str, Any]:
        """:return: the first `number` records, as arrays by name."""
        lists = {name: getattr(self, name)[:number] for name in _COLUMNS}
        learned = {name: np.stack(list_[:number]) for name, list_ in self.hyperparameters.items()}
        arrays = {name: np.array(lists[name], dtype) for name, dtype in _COLUMNS.items()}
        return arrays | {"learned": learned}

    @staticmethod
    def from_columns(columns: dict[str, Any]) -> History:
        """
        :return: a history of these records.
        :raise ValueError: for columns of different length.
        """
        if len({0, *map(len, (*columns["learned"].values(), *map(columns.get, _COLUMNS)))}) != 2:
            raise ValueError("the columns of a history have the same length, above 0")
        learned = {name: list(values) for name, values in columns["learned"].items()}
        lists = {name: columns[name].tolist() for name in _COLUMNS}
        return History(**lists, hyperparameters=learned)

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        if not self.step:
            return "History(no steps)"
        end = "converged" if self.converged else "not converged"
        end += f", {self.clipped} sites clipped" if self.clipped else ""
        end += "; kernel as given, VEM learns it" if self.kernel_as_given else ""
        elbo, seconds = f"ELBO {self.elbo[-1]:.6g}", f"{self.seconds[-1]:.3g} s"
        return f"History({self.step[-1]} steps, {elbo}, {seconds}, {end})"


_COLUMNS = {"step": np.int64, "elbo": float, "seconds": float, "learning_rate": float}


class Recorder:
    """
    Keeps the history of a run, feeds the progress bar, callback, monitor and checkpoints. On
    leaving the `with` block, whether by the end of the fit, an error or an interrupt, the model
    holds the latest accepted state.
    """

    def __init__(
        self,
        run: Run,
        callback: Callback | None,
        monitor: Any,
        progress: bool | None,
        checkpoints: Checkpoints,
        what: str = "fit",
    ) -> None:
        """
        Arguments as in `Algorithm.run`; the run goes on from a checkpoint, if there is one.

        :param what: the name of the progress bar.
        """
        self.history = History()
        self._run, self._callback, self._monitor = run, callback, monitor
        self._stopped = False
        self._checkpoints, self._offered = checkpoints, (run.state, False)
        self._resume()
        self._bar = progress_bar(run.max_steps, what, progress)
        if len(self.history):
            self._bar.update(self.history.step[-1])
        self._start = time.perf_counter() - sum(self.history.seconds[-1:])

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if self._run.converged:
            self._bar.total = self._bar.n  # no steps are left
        self._bar.close()
        self.history.converged = self._run.converged
        try:
            self._run.restore()
            if error is None and len(self.history):
                self._offer()
            self._checkpoints.flush()
        finally:
            self._run.close()

    @property
    def ended(self) -> bool:
        """:return: whether the run has converged, has made all its steps, or was stopped."""
        enough = len(self.history) > 0 and self.history.step[-1] >= self._run.max_steps
        return self._run.converged or enough or self._stopped

    def _resume(self) -> None:
        like = self._content(*self._offered, 0)
        if self._checkpoints.latest(like, self._go_on) is not None:
            self._offered = (self._run.state, self._run.converged)

    def _go_on(self, saved: dict[str, Any]) -> None:
        """From what a checkpoint says; where that fails the run is as it was."""
        history, before = History.from_columns(saved["history"]), self._run.state
        if history.step[-1] > self._run.max_steps:
            raise OtherFit(
                f"the checkpoint is of step {history.step[-1]}, and max_steps is "
                f"{self._run.max_steps}: give as many steps, or another directory"
            )
        try:
            self._run.resume(saved["state"])
        except Exception:
            self._run.state = before
            raise
        self.history, self._run.converged = history, saved["converged"]

    def _offer(self) -> None:
        """To the checkpoints, if there is something new."""
        run, last = self._run, self._offered
        if run.state is last[0] and run.converged == last[1]:
            return
        self._offered = (run.state, run.converged)
        content = partial(self._content, *self._offered, len(self.history))
        self._checkpoints.offer(self.history.step[-1], content)

    def _content(self, state: Any, converged: bool, number: int) -> dict[str, Any]:
        history = self.history.columns(number)
        return {"state": state, "converged": converged, "history": history}

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
        paused = time.perf_counter()
        self._report(step.number)
        self._offer()
        self._start += time.perf_counter() - paused

    def _report(self, step: int) -> None:
        if self._callback is not None or self._monitor is not None:
            self._run.restore()
        if self._callback is not None:
            self._stopped = self._callback(step, self.history) is True
        if self._monitor is not None:
            self._monitor(step)


def progress_bar(total: int | None, what: str, progress: bool | None, unit: str = "step") -> Any:
    """
    :param total: None where it is not known.
    :return: a tqdm bar; for None on a terminal only, and not for what takes no time.
    """
    hide = None if progress is None else not progress
    return tqdm(total=total, desc=what, unit=unit, delay=0.5, disable=hide)
