"""Samplers whose blocks are short, and checkpoints of a fit that died."""

import shutil

import pytest
from dying import ALGORITHMS, Death, die_at
from helpers import make_data, make_model

from gpflow_bsvm.sampling import samples


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(samples.Sampler, "block", 10)


@pytest.fixture(scope="module")
def half_done(tmp_path_factory):
    """:return: a directory with the checkpoints of steps 3 and 4 of a fit that died."""
    data, place = make_data(), tmp_path_factory.mktemp("stored")
    with pytest.raises(Death):
        ALGORITHMS["CAVI"].run(make_model(data), data, callback=die_at(5), checkpoint=place)
    return place


@pytest.fixture
def stored(half_done, tmp_path):
    """:return: a copy of it."""
    shutil.copytree(half_done, tmp_path, dirs_exist_ok=True)
    return tmp_path
