"""Rows of a suite: a CSV file for each data set, whole whenever a process dies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import store
from suites._contract import Fit

from gpflow_bsvm.atomic import whole_file

SIZES = ("n", "n_test", "d", "classes")
COLUMNS = (
    *("data", *SIZES, "split", "method", "status", "error", "nll", "brier"),
    *("ece", "seconds", "first_seconds", "note", "commit"),
)


def path_of(folder: Path, data: str) -> Path:
    return folder / f"{data.replace('/', '_')}.csv"


def read(path: Path) -> pd.DataFrame:
    return store.kept(path, COLUMNS)


def append(path: Path, row: dict) -> None:
    """A fit has one row. What is not in `COLUMNS` comes behind these."""
    known = read(path).to_dict("records")
    if any(all(old[key] == row[key] for key in ("split", "method")) for old in known):
        return
    columns = dict.fromkeys([*COLUMNS, *(known[0] if known else ()), *row])
    table = pd.DataFrame([*known, row], columns=list(columns)).astype(dict.fromkeys(SIZES, "Int64"))
    store.keep(path, table, digits=8)


def missing(path: Path, fits: Iterable[Fit]) -> list[Fit]:
    """:return: those without a row, in their order."""
    rows = read(path)
    known = set(zip(rows["split"], rows["method"]))
    return [fit for fit in fits if fit not in known]


def begin(path: Path, fit: Fit) -> None:
    """Say what is under way, for the one who finds the process dead."""
    with whole_file(_under_way(path)) as file:
        file.write(json.dumps(fit).encode())


def under_way(path: Path) -> Fit | None:
    """:return: what `begin` said, once; None if it was not called."""
    try:
        split, method = json.loads(_under_way(path).read_bytes())
    except FileNotFoundError:
        return None
    _under_way(path).unlink()
    return split, method


def _under_way(path: Path) -> Path:
    return path.with_name(f".{path.name}.fit")


def named(row: dict) -> str:
    return f"{row['data']}, split {row['split']}, {row['method']}"


def line(row: dict) -> str:
    """:return: what is said of a row while a suite runs."""
    if row["status"] != "ok":
        return f"{named(row)}: {row['status']}"
    note = f" ({row['note']})" if row.get("note") else ""
    seconds = f"{row['seconds']:.1f} processor seconds"
    return f"{named(row)}: error {row['error']:.4f}, {seconds}{note}"
