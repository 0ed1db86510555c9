"""Rows that are kept as they come, so that a measurement of many fits goes on where it was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
from store import RESULTS

from gpflow_bsvm.atomic import whole_file


class Kept:
    """
    The rows of a measurement in `results/NAME/PART.csv`, whole whenever a process dies.

        python run.py NAME               fits that are missing, and all rows
        LIMIT=600 python run.py NAME     no fit is begun after ten minutes of processor time
    """

    def __init__(self, name: str) -> None:
        self._folder = RESULTS / name
        self._folder.mkdir(exist_ok=True)
        self._limit = float(os.environ.get("LIMIT", "inf"))

    def complete(self, part: str, key: dict, fit: Callable[[], Iterable[dict]]) -> None:
        """
        Add the rows of a fit, unless there are some of its key or time is over.

        :param fit: gives rows, which know what is not in the key; the first has the key as it is,
            others may change it. A column of seconds is added, processor time of the whole fit,
            where rows have none.
        """
        path = self._folder / f"{part}.csv"
        known = _read(path).to_dict("records")
        over = time.process_time() > self._limit
        if over or any(all(row.get(name) == key[name] for name in key) for row in known):
            return
        before = time.process_time()
        found = list(fit())
        about = key | {"seconds": time.process_time() - before}
        rows = [about | row for row in found]
        print(rows, flush=True)
        now = _read(path).to_dict("records")  # another process may have added some
        text = pd.DataFrame([*now, *rows]).to_csv(index=False, float_format="%.6g")
        with whole_file(path) as file:
            file.write(text.encode())

    def rows(self, *order: str) -> list[dict]:
        """:return: all that there are, sorted by these columns."""
        parts = [_read(path) for path in sorted(self._folder.glob("*.csv"))]
        return pd.concat(parts).sort_values(list(order), kind="stable").to_dict("records")


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()
