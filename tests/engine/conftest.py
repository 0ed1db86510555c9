"""A compiled function of one kernel, as out of a fit and as in one."""

import pytest

from gpflow_bsvm.engine.shared_graph import Compiled, one_fit


@pytest.fixture
def compiled() -> Compiled:
    """A function of one kernel, with no traces yet."""
    return Compiled(lambda kernel, X: kernel(X))


@pytest.fixture
def in_one_fit():
    """As in a fit: code that is no library's has graphs, too."""
    with one_fit():
        yield
