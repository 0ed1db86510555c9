"""What an ascent is, and the bounds whose ascents are looked at."""

import numpy as np
import pytest

import gpflow_bsvm as gb
from gpflow_bsvm.engine import projected_data

BOUNDS = pytest.mark.parametrize("bound", ["augmented", "exact"])


def assert_ascent(history: gb.inference.History, rounding: float = 1e-11) -> None:
    elbo = np.array(history.elbo)
    assert np.isfinite(elbo).all() and len(elbo) > 1
    assert (np.diff(elbo) >= -rounding * np.abs(elbo[:-1])).all()


def big_passes(monkeypatch, products="float32"):
    """Any pass is one whose products are in single precision."""
    if products != "float64":
        monkeypatch.setattr(projected_data, "BIG_PASS", 1)
