"""Results of the stages of an estimator's fit, so that another process can continue it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.utils import check_random_state

from ..checkpoints import Directory, Identity, identity_of, made, open_checkpoints
from ..data.sources import Source
from .progress import StageBar

#: Parameters that do not affect a fit.
_NEUTRAL = ("verbose", "chunk_rows")


class Stages:
    """
    A checkpoint directory with a subdirectory for every stage; None: nothing is stored. A stage
    stores either its result, or the checkpoints of a fit.
    """

    def __init__(self, directory: Directory | None = None, verbose: bool = False) -> None:
        """
        :param directory: created if absent.
        :param verbose: whether `bar` shows the current stage.
        """
        self.bar = StageBar(verbose)
        self._directory = None if directory is None else Path(directory)
        self._identity: Identity = {}

    def seed(self, estimator: Any, source: Source) -> int:
        """
        Run the first stage, which binds the directory to one fit.

        :param estimator: a `BSVMClassifier`.
        :param source: its rows.
        :return: the seed of this fit, the same after a restart.
        :raise ValueError: if the directory belongs to another estimator or other rows.
        """
        if self._directory is not None:
            made(self._directory)  # else an error would name a stage's subdirectory
            options = estimator.get_params(deep=False)
            options = {name: options[name] for name in options if name not in _NEUTRAL}
            self._identity = identity_of("estimator", estimator, options, source)
        draw = check_random_state(estimator.random_state).randint
        return int(self.result("seed", lambda: int(draw(2**31))))

    def result(self, name: str, find: Callable[[], Any]) -> Any:
        """
        :param find: the stage, a function that returns numbers, strings and arrays in nested
            dictionaries and lists.
        :return: its result, computed now or earlier in another process.
        :raise ValueError: if the stored result belongs to another fit.
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
