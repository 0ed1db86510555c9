"""The progress of a fit of many stages, in one line."""

from __future__ import annotations

from typing import Any

from tqdm.auto import tqdm


class StageBar(tqdm):  # type: ignore[misc]
    """What a fit is doing, the steps of this so far, and the seconds since the fit began."""

    def __init__(self, show: bool) -> None:
        """:param show: whether it is shown at all."""
        super().__init__(disable=not show, bar_format="{desc}: step {n_fmt}, {elapsed}{postfix}")

    def stage(self, what: str) -> None:
        """A new stage begins."""
        self.n = 0
        self.set_postfix_str("", refresh=False)
        self.set_description_str(what)

    def close(self) -> None:
        """Do nothing, where a run has ended: the fit goes on."""

    def __exit__(self, *error: Any) -> None:
        super().close()
