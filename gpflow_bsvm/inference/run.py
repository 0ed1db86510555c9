"""A fit in progress, its record, and reports during the fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.monitor import Monitor
from tqdm.auto import tqdm

from ..checkpoints.directory import Checkpoints, Directory, Identify, OtherFit
from ..checks import check_elbo

State = TypeVar("State")
Taken = TypeVar("Taken")  # a `Step`, or draws


class Step(NamedTuple):
    """The record of an accepted step."""

    number: int  #: from 1
    elbo: float
    learning_rate: float
    hyperparameters: dict[str, AnyNDArray] = {}  # noqa: RUF012 - never changed


class Run(Generic[State, Taken]):
    """
    A fit in progress. Its `state` (tuples of numbers and tensors) determines all further steps: the
    fit can be continued elsewhere from a stored state.

    :ivar max_steps: maximum number of steps.
    :ivar converged: whether the stopping rule was met.
    :ivar unseen: whether a graph call may run several steps, because no callback reads the model.
    :ivar settles: whether the run has a stopping rule.
    :ivar flat: whether the gradient in the hyperparameters is known to be 0.
    :ivar by_sites: whether convergence means that the sites of all rows stopped changing; q is not
        stationary if sites were clipped.
    :ivar point: whether q is a point without variance.
    """

    settles: ClassVar[bool] = True
    by_sites: ClassVar[bool] = False
    point: ClassVar[bool] = False

    state: State
    converged: bool = False
    unseen: bool = False
    flat: bool = False

    def __init__(self, options: Any, model: Any) -> None:
        self._options = options
        self._model = model
        self.max_steps = int(options.max_steps)  # a graph takes no other whole number

    def steps(self) -> Iterator[Taken]:
        """:return: an iterator that takes steps from `state` on, and yields `Step`s or draws."""
        while (step := self.advance()) is not None:
            yield step

    def advance(self) -> Taken | None:
        """:return: the next accepted `Step` or draws, from `state` on; None at the end."""
        raise NotImplementedError

    def restore(self) -> None:
        """Set the model to `state`, undoing an unfinished step."""
        state: Any = self.state
        if state.steps:
            self._model.assign_natural(state.natural)

    def resume(self, state: State) -> None:
        """Continue from the `state` of another run of the same fit."""
        self.state = state
        self.restore()

    def close(self) -> None:
        """Close the data if they are open."""


#: A function of step and history, called when the model is in the state of that step. If it returns
#: True, the fit ends.
Callback = Callable[[int, "History"], Any]


class Reports(NamedTuple):
    """Reports during a fit; see `Algorithm.run`."""

    callback: Callback | None = None
    monitor: Callable[[int], Any] | None = None
    progress: bool | None = None
    checkpoint: Directory | None = None
    every: int = 1


@dataclass
class History:
    """
    The record of a fit, with one entry per sweep (in SVI and ML2, per `record_every` steps).

    :ivar step: step number, from 1.
    :ivar elbo: evidence lower bound after the step (in SVI, its estimate from the latest rows).
    :ivar seconds: time since the start of the fit, without callbacks. Sweeps of `CAVI` in one graph
        call have almost the same time.
    :ivar learning_rate: learning rate of the step.
    :ivar converged: whether the stopping rule was met, q is not the prior, and no site is clipped.
    :ivar clipped: number of sites at the end of the fit whose negative precision was replaced by 0,
        see `gpflow_bsvm.likelihoods.sites`.
    :ivar kernel_as_given: whether `gpflow_bsvm.fit` left a trainable kernel unchanged.
    :ivar hyperparameters: values by name, such as ".kernel.lengthscales", after the step; empty if
        the fit learns none.
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
        """:return: the first `number` records, as a dict of arrays."""
        learned = {name: np.stack(list_[:number]) for name, list_ in self.hyperparameters.items()}
        known = {n: np.array(getattr(self, n)[:number], dtype) for n, dtype in _COLUMNS.items()}
        return known | {"learned": learned}

    @staticmethod
    def from_columns(columns: dict[str, Any]) -> History:
        """
        :return: a history of these records.
        :raise ValueError: for columns of different length.
        """
        if len({0, *map(len, (*columns["learned"].values(), *map(columns.get, _COLUMNS)))}) != 2:
            raise ValueError("the columns of a history must have the same positive length")
        learned = {name: list(values) for name, values in columns["learned"].items()}
        lists = {name: columns[name].tolist() for name in _COLUMNS}
        return History(**lists, hyperparameters=learned)

    @property
    def latest(self) -> int:
        """:return: the number of the latest step, 0 before the first step."""
        return self.step[-1] if self.step else 0

    @property
    def elapsed(self) -> float:
        """:return: seconds from the start to the latest step."""
        return self.seconds[-1] if self.seconds else 0.0

    def add(self, step: Step, seconds: float) -> str:
        """
        Record a step.

        :return: the text for the progress bar.
        :raise ValueError: if the ELBO is not finite.
        """
        check_elbo(step.elbo, f"after step {step.number}")
        self.step.append(step.number)
        self.elbo.append(step.elbo)
        self.seconds.append(seconds)
        self.learning_rate.append(step.learning_rate)
        for name, value in step.hyperparameters.items():
            self.hyperparameters.setdefault(name, []).append(value)
        return f"ELBO {step.elbo:.6g}"

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        if not self.step:
            return "History(no steps)"
        end = "converged" if self.converged else "not converged"
        end += f", {self.clipped} sites clipped" if self.clipped else ""
        end += "; kernel as given, VEM learns it" if self.kernel_as_given else ""
        elbo = f"ELBO {self.elbo[-1]:.6g}"
        return f"History({self.step[-1]} steps, {elbo}, {self.seconds[-1]:.3g} s, {end})"


_COLUMNS = {"step": np.int64, "elbo": float, "seconds": float, "learning_rate": float}


class Recorder:
    """Runs a fit: updates record, progress bar and checkpoints, and calls callback and monitor."""

    def __init__(
        self, run: Run[Any, Any], record: Any, reports: Reports, identify: Identify, what: str
    ) -> None:
        """
        :param record: an empty `History` or `Draws`.
        :param identify: see `Checkpoints`.
        :param what: the name of the progress bar.
        :raise TypeError: for a monitor as callback.
        """
        if isinstance(reports.callback, Monitor):
            raise TypeError("callback got a gpflow.monitor.Monitor: give it as monitor=...")
        self._run = run
        self._record = record
        self._callback = reports.callback
        self._monitor = reports.monitor
        self._stopped = False
        self._offered = (run.state, False, 0)
        self._checkpoints: Checkpoints | None = None
        if reports.checkpoint is not None:
            self._checkpoints = Checkpoints(reports.checkpoint, reports.every, identify)
            self._go_on(self._checkpoints.latest())
        run.unseen = not (self._callback or self._monitor or self._checkpoints)
        self._bar = progress_bar(run.max_steps, what, reports.progress)
        self._bar.update(record.latest)
        self._start = time.perf_counter() - record.elapsed

    def drive(self) -> None:
        """Run to the end. At the end or after an error, the model is in the latest state."""
        run = self._run
        record = self._record
        try:
            steps = run.steps()
            while not (run.converged or self._stopped or record.latest >= run.max_steps):
                if (step := next(steps, None)) is None:
                    break
                self._add(step)
            if record.latest:
                self._offer()
        finally:
            self._close()

    def _close(self) -> None:
        if self._run.converged:
            self._bar.total = self._bar.n  # no steps left
        self._bar.close()
        self._record.converged = self._run.converged
        try:
            self._run.restore()
            if self._checkpoints is not None:
                self._checkpoints.flush()
        finally:
            self._run.close()

    def _go_on(self, saved: dict[str, Any] | None) -> None:
        """Continue from a checkpoint, if there is one."""
        if saved is None:
            return
        found = type(self._record).from_columns(saved["history"])
        done = found.latest
        most = self._run.max_steps
        if done > most:
            raise OtherFit(
                f"the checkpoint is at step or draw {done}, but the limit is {most}: raise the "
                f"limit to {done}, or give another directory"
            )
        self._run.resume(saved["state"])
        self._run.converged = saved["converged"]
        vars(self._record).update(vars(found))
        self._offered = (self._run.state, self._run.converged, len(found))

    def _offer(self) -> None:
        """Offer new results to the checkpoints."""
        state, converged, _ = self._offered
        is_new = self._run.state is not state or self._run.converged != converged
        if self._checkpoints is not None and is_new:
            self._offered = (self._run.state, self._run.converged, len(self._record))
            self._checkpoints.offer(self._record.latest, partial(self._content, self._offered))

    def _content(self, offered: tuple[Any, bool, int]) -> dict[str, Any]:
        state, converged, number = offered
        return {"state": state, "converged": converged, "history": self._record.columns(number)}

    def _add(self, step: Any) -> None:
        before = self._record.latest
        shown = self._record.add(step, time.perf_counter() - self._start)
        if not self._bar.disable:
            self._bar.set_postfix_str(shown, refresh=False)
            self._bar.update(self._record.latest - before)
        paused = time.perf_counter()
        if self._callback is not None or self._monitor is not None:
            self._run.restore()
        if self._callback is not None:
            answer = self._callback(self._record.latest, self._record)
            answer = answer.numpy() if hasattr(answer, "numpy") else answer  # a tensor
            self._stopped = isinstance(answer, bool | np.bool_) and bool(answer)
        if self._monitor is not None:
            self._monitor(self._record.latest)
        self._offer()
        self._start += time.perf_counter() - paused


def progress_bar(total: int | None, what: str, progress: Any, unit: str = "step") -> Any:
    """
    :return: a tqdm bar. If `progress` is None, the bar is shown on a terminal, unless the work is
        quick. A caller's own bar is returned unchanged.
    """
    if isinstance(progress, tqdm):
        return progress
    hide = None if progress is None else not progress
    return tqdm(total=total, desc=what, unit=unit, delay=0.5, disable=hide)
