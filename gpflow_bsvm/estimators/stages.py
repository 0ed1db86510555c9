"""What the stages of a classifier's fit have found, for a fit that goes on in another process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.utils import check_random_state

from ..checkpoints import Directory, Identity, identity_of, open_checkpoints
from ..data.sources import Source

#: Fits are alike whatever these are.
_NEUTRAL = ("verbose", "chunk_rows")


class Stages:
    """
    A directory with one for every stage; with None for a directory nothing is kept. A stage either
    leaves its result there, or is a fit that has checkpoints of its own.
    """

    def __init__(self, directory: Directory | None = None) -> None:
        """:param directory: made if it is not there."""
        self._directory = None if directory is None else Path(directory)
        self._identity: Identity = {}

    def seed(self, estimator: Any, source: Source) -> int:
        """
        The first stage, which tells of which fit they are.

        :param estimator: a `BSVMClassifier`.
        :param source: its rows.
        :return: the seed of this fit, the same where it goes on.
        :raise ValueError: if the stages are those of another estimator or other rows.
        """
        if self._directory is not None:
            options = estimator.get_params(deep=False)
            options = {name: options[name] for name in options if name not in _NEUTRAL}
            self._identity = identity_of("estimator", estimator, options, source)
        draw = check_random_state(estimator.random_state).randint
        return int(self.result("seed", lambda: int(draw(2**31))))

    def result(self, name: str, find: Callable[[], Any]) -> Any:
        """
        :param find: the stage: returns numbers, strings and arrays in any structure of dictionaries
            and lists.
        :return: what it returns, or has returned in another process.
        :raise ValueError: if what is there is of another fit.
        """
        with open_checkpoints(self.place(name), 1, lambda: self._identity) as stored:
            found = stored.latest(None)
            if found is None:
                found = find()
                stored.offer(1, lambda: found)
        return found

    def place(self, name: str) -> Path | None:
        """:return: the directory of a stage."""
        return None if self._directory is None else self._directory / name


#: For fits without a checkpoint directory.
NOWHERE = Stages()
