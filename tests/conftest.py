"""Settings of every process that runs tests; what tests share is in `shared_fixtures`."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Small matrices, and a worker for every core: more threads would only wait for each other.
for threads in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "TF_NUM_INTRAOP_THREADS",
):
    os.environ.setdefault(threads, "1")

import pytest

from gpflow_bsvm.notices import quiet


def pytest_configure(config: pytest.Config) -> None:
    """A process that only hands tests to workers does not wait for TensorFlow."""
    hands_out = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not hands_out:
        with quiet():
            import check_shapes  # imports TensorFlow

        check_shapes.set_rewrite_docstrings(None)  # takes 2 s in every process
        config.pluginmanager.import_plugin("shared_fixtures")
