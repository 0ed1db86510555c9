"""What a suite is: which fits there are, in which order, how rows are cut and how one is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpflow_bsvm.compare import Fold

#: What follows the status of a fit that has no scores.
FAILED, SKIPPED = "failed: ", "skipped: "


class Stage(NamedTuple):
    """A part of a suite: all of it is done before the next one begins."""

    split: int
    sets: tuple[str, ...]
    methods: tuple[str, ...]


class Suite(NamedTuple):
    """
    Data sets x splits x methods.

    :ivar stages: what is measured, in this order: wherever it ends, what is there is of use.
    :ivar smoke: the same in small, of bundled data.
    :ivar limit: processor seconds of a fit, beyond which it is killed and has failed.
    :ivar cut: the rows of a set and split; raises where they cannot be had.
    :ivar measure: of a method and these rows: the cells of its row. It raises `Skipped` where the
        method does not take part.
    """

    stages: tuple[Stage, ...]
    smoke: tuple[Stage, ...]
    limit: float
    cut: Callable[[str, int], Fold]
    measure: Callable[[str, Fold], dict]

    def work(self, smoke: bool) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Yield set, split and methods: what is given to one process."""
        for stage in self.smoke if smoke else self.stages:
            for name in stage.sets:
                yield name, stage.split, stage.methods
