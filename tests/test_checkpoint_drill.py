"""SIGKILL at random moments: whatever was going on, fits end where they would have."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parent.parent / "benchmarks" / "measurements" / "kills.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CAVI", "classifier", "predict"])
def test_what_is_killed_ends_where_it_would_have(name):
    """More of them, and more kills, in benchmarks/measurements/kills.py."""
    spec = importlib.util.spec_from_file_location("kills", PATH)
    kills = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kills)
    rows = list(kills.drill(name, 2, np.random.default_rng(1)))
    assert len(rows) == 2
    assert all(row["difference"] == 0 for row in rows)
