"""The progress of a fit of many stages, in one line, and what each has cost."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from tqdm.auto import tqdm


class StageBar(tqdm):
    """
    What a fit is doing, the steps of this so far, and the seconds since the fit began.

    :ivar seconds: of every kind of stage that has ended.
    """

    def __init__(self, show: bool) -> None:
        """:param show: whether it is shown at all."""
        super().__init__(disable=not show, bar_format="{desc}: step {n_fmt}, {elapsed}{postfix}")
        self.seconds: dict[str, float] = {}
        self._kind, self._begun = "rows", perf_counter()

    def stage(self, kind: str, what: str) -> None:
        """
        A new stage begins.

        :param kind: "rows", "kernel", "choice", "q", "growth" or "link".
        :param what: in words.
        """
        self._end(kind)
        self.n = 0
        self.set_postfix_str("", refresh=False)
        self.set_description_str(what)

    def close(self) -> None:
        """Do nothing, where a run has ended: the fit goes on."""

    def __exit__(self, *error: Any) -> None:
        self._end("")
        super().close()

    def _end(self, following: str) -> None:
        now = perf_counter()
        self.seconds[self._kind] = self.seconds.get(self._kind, 0.0) + now - self._begun
        self._kind, self._begun = following, now
