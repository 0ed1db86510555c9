"""The stages of an estimator's fit: shown, timed, and stored so that another process can go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.utils import check_random_state
from tqdm.auto import tqdm

from ..checkpoints.directory import Checkpoints, Directory, Identity, made
from ..checkpoints.identity import of_estimator
from ..data.sources import Source

#: Parameters that do not affect a fit.
_NEUTRAL = ("verbose", "chunk_rows")


class Stages(tqdm):
    """
    A line with the current stage, its steps so far, and the seconds since the fit began; and a
    directory with a subdirectory for every stage, which stores its result or the checkpoints of a
    fit. Without a directory nothing is stored.

    :ivar seconds: seconds for each kind of finished stage.
    :ivar units: values that identify a fit besides its options and rows.
    """

    def __init__(self, directory: Directory | None = None, verbose: bool = False) -> None:
        line = "{desc}: step {n_fmt}, {elapsed}{postfix}"
        super().__init__(disable=not verbose, bar_format=line)
        self.seconds: dict[str, float] = {}
        self.units: Identity = {}
        self._kind = "rows"
        self._begun = perf_counter()
        self._directory = None if directory is None else made(directory)
        self._identity: Identity = {}

    def begin(self, kind: str, what: str) -> None:
        """
        Begin a new stage.

        :param kind: "rows", "kernel", "choice", "q", "growth" or "link".
        """
        self._end(kind)
        self.n = 0
        self.set_postfix_str("", refresh=False)
        self.set_description_str(what)

    def close(self) -> None:
        """Do nothing at the end of a run, because the fit continues."""

    def __exit__(self, *error: Any) -> None:
        self._end("")
        super().close()

    def _end(self, following: str) -> None:
        now = perf_counter()
        self.seconds[self._kind] = self.seconds.get(self._kind, 0.0) + now - self._begun
        self._kind = following
        self._begun = now

    def seed(self, estimator: Any, source: Source) -> int:
        """
        Run the first stage, which binds the directory to one fit.

        :return: the seed of this fit, the same after a restart.
        :raise ValueError: if the directory belongs to another estimator or other rows.
        """
        if self._directory is not None:
            options = estimator.get_params(deep=False)
            options = {name: options[name] for name in options if name not in _NEUTRAL}
            self._identity = self.units | of_estimator(estimator, options, source)
        draw = check_random_state(estimator.random_state).randint
        return int(self.result("seed", partial(draw, 2**31)))

    def result(self, name: str, find: Callable[[], Any]) -> Any:
        """
        :param find: the stage, a function that returns numbers, strings and arrays, also nested.
        :return: the result of the stage, computed now or stored by an earlier process.
        :raise ValueError: if the stored result belongs to another fit.
        """
        if self._directory is None:
            return find()
        with Checkpoints(self._directory / name, 1, lambda: self._identity) as stored:
            if (found := stored.latest()) is None:
                found = find()
                stored.offer(1, lambda: found)
        return found

    def place(self, name: str) -> Path | None:
        """:return: the directory of a stage."""
        return None if self._directory is None else self._directory / name


#: For fits without a checkpoint directory.
NOWHERE = Stages()
