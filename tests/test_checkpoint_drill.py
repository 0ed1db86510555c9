"""SIGKILL at random moments: whatever was going on, fits end where they would have."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parent.parent / "benchmarks" / "measurements" / "kills.py"


@pytest.mark.slow
@pytest.mark.drill
def test_what_is_killed_ends_where_it_would_have():
    """More fits, and more kills, in benchmarks/measurements/kills.py."""
    spec = importlib.util.spec_from_file_location("kills", PATH)
    kills = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kills)
    rows = list(kills.drill("classifier", 2, np.random.default_rng(1)))
    assert len(rows) == 2
    assert all(row["difference"] == 0 for row in rows)
