"""What the tests share: small seeded data, ready models, clean GPflow settings."""

import os
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from helpers import BaseRate, Crash, Data, Interrupt, make_data, readers

import gpflow_bsvm as gb
from gpflow_bsvm.compare.registry import BASELINES


def pytest_configure(config: pytest.Config) -> None:
    """
    `make test` leaves out TensorFlow's Grappler, which rewrites a graph before its first run: a
    fifth of the time. All other runs have it, as users do.
    """
    if config.option.markexpr == "not slow":
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.fixture(autouse=True)
def clean_settings() -> Iterator[None]:
    """No test leaves a GPflow setting behind."""
    with gpflow.config.as_context(gpflow.config.Config()):
        yield


@pytest.fixture
def tf_seed() -> None:
    """
    For tests that draw from TensorFlow's global generator. A new seed empties TensorFlow's cache of
    kernels: in all tests it would take a quarter of the time.
    """
    tf.random.set_seed(0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def data() -> Data:
    return make_data()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Passes in chunks of 64 rows, with the features in memory or projected at every pass."""

    def apply(cached: bool) -> None:
        monkeypatch.setattr(gb.engine.contracts, "CHUNK_ENTRIES", 1)
        if not cached:
            monkeypatch.setattr(gb.engine.projected_data, "CACHE_BYTES", 0)

    return apply


@pytest.fixture
def chunks_of_64_rows(small_chunks: Callable[[bool], None]) -> None:
    small_chunks(cached=True)


@pytest.fixture
def no_reader_is_left() -> Iterator[None]:
    yield
    assert not readers()


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick ones under names that the command line knows: bsvm works, svgp fails, svc stops."""
    for name, model in {"bsvm": BaseRate, "svgp": Crash, "svc": Interrupt}.items():
        entry = replace(BASELINES[name], factory=lambda C, model=model: model())
        monkeypatch.setitem(BASELINES, name, entry)


@pytest.fixture(autouse=True)
def skipped_without_data(request: pytest.FixtureRequest) -> None:
    """What is marked `data` skips where there are none."""
    if request.node.get_closest_marker("data"):
        request.getfixturevalue("data_directory")


@pytest.fixture
def data_directory() -> pathlib.Path:
    """The benchmark data, where there are any."""
    folder = os.environ.get("GPFLOW_BSVM_DATA")
    if not folder or not (pathlib.Path(folder) / "binary").is_dir():
        pytest.skip("no benchmark data: set GPFLOW_BSVM_DATA to a folder that has binary/*.csv.gz")
    return pathlib.Path(folder)
