"""A fit in progress, step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from gpflow.base import AnyNDArray

State = TypeVar("State")
Taken = TypeVar("Taken")  # a `Step`, or draws


class Step(NamedTuple):
    """The record of an accepted step."""

    number: int  #: from 1
    elbo: float
    learning_rate: float
    hyperparameters: dict[str, AnyNDArray] = {}  # noqa: RUF012 - never changed


class Record(Protocol):
    """The record of a fit, filled, shown and stored while it runs."""

    converged: bool

    @property
    def latest(self) -> int:
        """:return: the number of the latest step, 0 before the first step."""

    @property
    def elapsed(self) -> float:
        """:return: seconds from the start to the latest step."""

    def add(self, step: Any, seconds: float) -> str:
        """Record a step of the run; return a text for the progress bar."""

    def columns(self, number: int) -> dict[str, Any]:
        """:return: the first `number` records, as a dict of arrays."""

    @staticmethod
    def from_columns(columns: dict[str, Any]) -> Record:
        """:return: a record with these columns."""

    def __len__(self) -> int: ...


class Run(ABC, Generic[State, Taken]):
    """
    A fit in progress. Its `state`, tuples of numbers and tensors, determines all further steps, so
    that it can be stored and continued elsewhere.

    :ivar max_steps: maximum number of steps.
    :ivar converged: whether the stopping rule was met.
    :ivar unseen: no callback reads the model, so that several steps may run in one graph call.
    :ivar settles: whether the run has a stopping rule.
    :ivar by_sites: convergence means that the sites of all rows stopped changing; q is not
        stationary if sites were clipped.
    :ivar point: whether q is a point without variance.
    """

    settles: ClassVar[bool] = True
    by_sites: ClassVar[bool] = False
    point: ClassVar[bool] = False

    state: State
    max_steps: int
    converged: bool = False
    unseen: bool = False

    def steps(self) -> Iterator[Taken]:
        """:return: an iterator that takes steps from `state` and yields accepted `Step`s."""
        while (step := self.advance()) is not None:
            yield step

    def advance(self) -> Taken | None:
        """Go on from `state` to the next accepted `Step`, or None if there is none."""
        raise NotImplementedError

    @abstractmethod
    def restore(self) -> None:
        """Set the model to `state`, undoing an unfinished step."""

    def resume(self, state: State) -> None:
        """Continue from the `state` of another run of the same fit."""
        self.state = state
        self.restore()

    def look_again(self) -> None:
        """Re-read the data after resuming, in case rows were added."""
        return

    def close(self) -> None:
        """Close the data if they are open."""
        return
