"""Rows on disk: `results/NAME.csv`, and in `results/NAME.json` where they come from.

A measurement of many fits, or a suite, keeps them as they come in files of `results/NAME`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from gpflow_bsvm.atomic import whole_file
from gpflow_bsvm.compare.machine import provenance

RESULTS = Path(__file__).parent / "results"


def read(name: str) -> pd.DataFrame:
    """:return: rows of `results/NAME.csv`."""
    return _read(RESULTS / f"{name}.csv")


def _read(path: Path) -> pd.DataFrame:
    """An empty cell is NaN, and nothing else is (a failure may be called "NaN")."""
    return pd.read_csv(path, na_values=[""], keep_default_na=False, dtype={"commit": str})


def origin() -> dict:
    """:return: machine and versions, and the "commit", with "-dirty" after changes."""
    describe = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    found = subprocess.check_output(describe, cwd=RESULTS, text=True).strip()
    return provenance() | {"commit": found}


def write(name: str, rows: list[dict], origin: dict, folder: Path = RESULTS) -> None:
    """
    :param origin: see `origin`.
    """
    path = folder / f"{name}.csv"
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.8g")
    path.with_suffix(".json").write_text(
        json.dumps({**origin, "rows": digest(path)}, indent=2) + "\n", encoding="utf-8"
    )


def kept(path: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """:return: rows of a file, none of these columns where it is not there yet."""
    return _read(path) if path.is_file() else pd.DataFrame(columns=list(columns))


def keep(path: Path, table: pd.DataFrame, digits: int) -> None:
    """The old file or the new one, nothing between is ever to be seen."""
    with whole_file(path) as file:
        file.write(table.to_csv(index=False, float_format=f"%.{digits}g").encode())


def gathered(folder: Path) -> pd.DataFrame:
    """:return: the rows of all files."""
    parts = [_read(path) for path in sorted(folder.glob("*.csv"))]
    return pd.concat(parts) if parts else pd.DataFrame()


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
        known = kept(path).to_dict("records")
        over = time.process_time() > self._limit
        if over or any(all(row.get(name) == key[name] for name in key) for row in known):
            return
        before = time.process_time()
        found = list(fit())
        about = key | {"seconds": time.process_time() - before}
        rows = [about | row for row in found]
        print(rows, flush=True)
        now = kept(path).to_dict("records")  # another process may have added some
        keep(path, pd.DataFrame([*now, *rows]), digits=6)

    def rows(self, *order: str) -> list[dict]:
        """:return: all that there are, sorted by these columns."""
        return gathered(self._folder).sort_values(list(order), kind="stable").to_dict("records")


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def without_origin() -> list[str]:
    """:return: files of rows of which no sidecar says where these very rows come from."""
    return [path.name for path in sorted(RESULTS.glob("*.csv")) if not _has_origin(path)]


def _has_origin(path: Path) -> bool:
    sidecar = path.with_suffix(".json")
    if not sidecar.is_file():
        return False
    origin = json.loads(sidecar.read_text(encoding="utf-8"))
    known = {"python", "processor", "commit"} <= set(origin) or "not recorded" in origin
    return known and origin["rows"] == digest(path)
