"""One process of a suite: a data set, and fits of it in turn. Every row is on disk at once."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rows_on_disk
import store

from gpflow_bsvm.compare.baselines import Skipped

from ._contract import FAILED, SKIPPED, Fit

#: A machine may be busy: a fit is given so many times its processor seconds by the clock.
PATIENCE = 20


def work(
    fits: str,
    path: Path,
    data: str,
    missing: Sequence[Fit],
    limit: float,
    short: Mapping[str, Any] = {},
) -> None:
    """
    Measure, and write to `path`; a fit beyond `limit` ends the process by a signal.

    :param fits: name of the module that measures, see `Suite`.
    :param short: see `Suite`.
    """
    for name, value in short.items():
        home, _, constant = name.rpartition(".")
        setattr(importlib.import_module(home), constant, value)
    module, commit = importlib.import_module(fits), store.origin()["commit"][:10]
    splits = dict.fromkeys(split for split, _ in missing)
    for split in splits:
        bound(limit)
        try:
            fold = module.cut(data, split)
        except Exception as error:
            print(f"{data}, split {split}: no data: {first_line(error)}", flush=True)
            continue
        about = {"data": data, "split": split, "n": len(fold.y), "n_test": len(fold.y_test)}
        about |= {"d": fold.X.shape[1], "classes": int(fold.y.max()) + 1, "commit": commit}
        for method in (method for other, method in missing if other == split):
            bound(limit)
            rows_on_disk.begin(path, (split, method))
            _keep(path, {**about, "method": method}, module, fold)
            rows_on_disk.under_way(path)


def _keep(path: Path, about: dict, module: Any, fold: Any) -> None:
    """Fit, and add the row; none for an extra that is missing: the next run tries again."""
    try:
        cells = {"status": "ok", **module.measure(about["method"], fold)}
    except ImportError as error:
        print(f"{rows_on_disk.named(about)}: left out: {first_line(error)}", flush=True)
        return
    except Skipped as error:
        cells = {"status": SKIPPED + first_line(error)}
    except Exception as error:
        cells = {"status": f"{FAILED}{type(error).__name__}: {first_line(error)}"}
    if (runner := multiprocessing.parent_process()) and not runner.is_alive():
        sys.exit("nobody waits for this row; another run may have begun")
    rows_on_disk.append(path, {**about, **cells})
    print(rows_on_disk.line({**about, **cells}), flush=True)


def bound(limit: float) -> None:
    """From now on the process may use so many processor seconds: the kernel ends it otherwise."""
    soft = math.ceil(time.process_time() + limit)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
