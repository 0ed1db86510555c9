"""A step of training: a network with a softmax layer, and with a Bayesian SVM in its place.

Batches of 200 rows of MNIST; the network of `hybrid.py`, and that of Wistuba & Rawat (2018, section
4.2) for MNIST as it is. The two are trained in turn, some steps each, after a first time that
traces: what else the machine does then slows both. Milliseconds a step, of processor time: of `fit`
of Keras, and of `ML2`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ._networks import BATCH, Hybrid, Softmax, images, network, network_of_the_paper

#: Network, and steps of a repeat.
NETWORKS = {"small": (network, 40), "the paper's": (network_of_the_paper, 5)}
REPEATS = 5


def run() -> Iterator[dict]:
    warnings.simplefilter("ignore")
    for name, (make, steps) in NETWORKS.items():
        for number, (softmax, hybrid) in enumerate(_times(make, steps)[1:]):
            for method, seconds in {"softmax": softmax, "hybrid": hybrid}.items():
                row = {"network": name, "method": method, "repeat": number}
                yield row | {"step_ms": 1e3 * seconds / steps}


def _times(make: Callable, steps: int) -> list[tuple[float, float]]:
    """:return: seconds of softmax and hybrid, in turn; the first of each has its traces."""
    data, times = images("mnist", steps * BATCH), []
    softmax = Softmax(data.shape, make=make)
    hybrid = Hybrid(make(data.shape, 0), data.X)

    def between(*_: Any) -> None:
        before = softmax.seconds
        softmax.train(data.X, data.y, 1)
        times.append((softmax.seconds - before, hybrid.seconds - sum(t for _, t in times)))
        print(times[-1], flush=True)

    hybrid.seconds = 0.0
    hybrid.train(data.X, data.y, 1 + REPEATS, between)
    return times
