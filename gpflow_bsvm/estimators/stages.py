"""What the stages of a classifier's fit have found, for a fit that goes on in another process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.utils import check_random_state

from ..data.sources import Source
from ..inference.checkpoint import Checkpoints, Directory
from ..inference.identity import Identity, identify_estimator
from .parameters import what_matters


class Stages:
    """
    A directory with one for every stage; with None for a directory nothing is kept. A stage either
    leaves its result there, or is a fit that has checkpoints of its own.
    """

    def __init__(self, directory: Directory | None = None) -> None:
        """:param directory: made if it is not there."""
        self._directory = None if directory is None else Path(directory)
        self._identity: Identity = {}

    def belong(self, identify: Callable[[], Identity]) -> None:
        """Be told of which fit they are."""
        if self._directory is not None:
            self._identity = identify()

    def result(self, name: str, find: Callable[[], Any]) -> Any:
        """
        :param find: the stage: returns numbers, strings and arrays in any structure of dictionaries
            and lists.
        :return: what it returns, or has returned in another process.
        :raise ValueError: if what is there is of another fit.
        """
        if self._directory is None:
            return find()
        with Checkpoints(self._directory / name, 1, lambda: self._identity) as stored:
            found = stored.latest(None)
            if found is None:
                found = find()
                stored.offer(1, partial(_same, found))
        return found

    def fit(self, name: str) -> dict[str, Any]:
        """:return: what an algorithm's `run` is told, so that it has checkpoints."""
        return {} if self._directory is None else {"checkpoint": self._directory / name}


#: Of a fit that nothing is kept of.
NOWHERE = Stages()


def seed_of(stages: Stages, estimator: Any, source: Source) -> int:
    """
    :param estimator: a `BSVMClassifier`.
    :param source: its rows.
    :return: the seed of this fit, the same where it goes on.
    :raise ValueError: if the stages are those of another estimator or other rows.
    """
    stages.belong(lambda: identify_estimator(estimator, what_matters(estimator), source))
    draw = check_random_state(estimator.random_state).randint
    return int(stages.result("seed", lambda: int(draw(2**31))))


def _same(value: Any) -> Any:
    return value
