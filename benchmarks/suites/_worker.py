"""One process of a suite: a data set, a split, and methods in turn. Every row is on disk at once."""

from __future__ import annotations

import functools
import math
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

# GPflow's graphs need no AutoGraph, and to rewrite its sources takes half of the time to trace.
tf.function = functools.partial(tf.function, autograph=False)

import rows_on_disk

from gpflow_bsvm.compare import Skipped, gp_baselines, provenance  # noqa: F401

from ._contract import FAILED, SKIPPED, Suite

#: A machine may be busy: a fit is given so many times its processor seconds by the clock.
PATIENCE = 20
#: How a process ends that cannot have its data.
NO_DATA = 3


def work(
    suite: Suite, path: Path, data: str, split: int, methods: Sequence[str], limit: float
) -> None:
    """Measure, and write to `path`; a fit beyond `limit` ends the process by a signal."""
    try:
        fold = suite.cut(data, split)
    except Exception as error:
        print(f"{data}, split {split}: no data: {first_line(error)}", flush=True)
        sys.exit(NO_DATA)
    about = {"data": data, "split": split, "n": len(fold.y), "n_test": len(fold.y_test)}
    about |= {"d": fold.X.shape[1], "classes": int(fold.y.max()) + 1}
    commit = str(provenance().get("commit", ""))[:10]
    for method in methods:
        tf.random.set_seed(split)  # of GPflow's Softmax
        bound(limit)
        try:
            cells = {"status": "ok", **suite.measure(method, fold)}
        except ImportError as error:  # no row: it is tried again once that is installed
            print(f"{data}, split {split}, {method}: left out: {first_line(error)}", flush=True)
            continue
        except Skipped as error:
            cells = {"status": SKIPPED + first_line(error)}
        except Exception as error:
            cells = {"status": f"{FAILED}{type(error).__name__}: {first_line(error)}"}
        row = {**about, "method": method, **cells, "commit": commit}
        rows_on_disk.append(path, row)
        print(rows_on_disk.line(row), flush=True)


def bound(limit: float) -> None:
    """From now on the process may use so many processor seconds: the kernel ends it otherwise."""
    soft = math.ceil(time.process_time() + limit)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
