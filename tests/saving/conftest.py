"""Rows, and what a file makes of a model."""

import pytest
from helpers import make_data

import gpflow_bsvm as gb


@pytest.fixture(scope="module")
def rows():
    return make_data(24)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bsvm"


@pytest.fixture
def again(path):
    """What a file makes of it."""

    def save_and_load(model):
        gb.save(model, path)
        return gb.load(path)

    return save_and_load
