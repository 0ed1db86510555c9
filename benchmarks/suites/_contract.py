"""What a suite is: which fits there are, in which order, and who measures them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

#: What the status of a fit without scores begins with.
FAILED, SKIPPED = "failed: ", "skipped: "
#: A split and a method.
Fit = tuple[int, str]


class Stage(NamedTuple):
    """A part of a suite: all of it is done before the next one begins."""

    sets: tuple[str, ...]
    splits: tuple[int, ...]
    methods: tuple[str, ...]


class Suite(NamedTuple):
    """
    Data sets x splits x methods. The module that holds it must not import TensorFlow: the process
    that starts the others waits for nothing then.

    :ivar fits: name of the module that measures, with two functions. `cut(data, split)` returns
        the rows, a `gpflow_bsvm.compare.protocol.Fold`, or raises where they cannot be had; and
        `measure(method, fold)` the cells of a row, or raises `compare.baselines.Skipped`, or
        ImportError for an extra that is not installed, or anything else: a failure.
    :ivar stages: what is measured, in this order: wherever it ends, what is there is of use.
    :ivar smoke: the same in small, of bundled data.
    :ivar limit: processor seconds of a fit, beyond which it is killed and has failed.
    :ivar short: what some constants are in small, by their full names.
    """

    fits: str
    stages: tuple[Stage, ...]
    smoke: tuple[Stage, ...]
    limit: float
    short: Mapping[str, Any] = {}

    def work(self, smoke: bool) -> Iterator[tuple[str, list[Fit]]]:
        """Yield a set and the fits of it that are given to one process."""
        for stage in self.smoke if smoke else self.stages:
            for name in stage.sets:
                yield name, list(product(stage.splits, stage.methods))
