"""Rows on disk: `results/NAME.csv`, and in `results/NAME.json` where they come from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"


def read(name: str) -> pd.DataFrame:
    """:return: rows; an empty cell is NaN, and nothing else is (a failure may be called "NaN")."""
    return pd.read_csv(RESULTS / f"{name}.csv", na_values=[""], keep_default_na=False)


def write(name: str, rows: list[dict], origin: dict, folder: Path = RESULTS) -> None:
    """
    :param origin: machine, versions and commit, see `gpflow_bsvm.compare.provenance`.
    """
    path = folder / f"{name}.csv"
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.8g")
    path.with_suffix(".json").write_text(
        json.dumps({**origin, "rows": digest(path)}, indent=2) + "\n", encoding="utf-8"
    )


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
