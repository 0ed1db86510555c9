"""Training at a fixed kernel and penalty, where what is learned of the rows is not the point."""

import functools
from collections.abc import Iterator

import pytest

from gpflow_bsvm import estimators

FIXED = {"learn_kernel": False, "penalty": 2.0}


@pytest.fixture(scope="module")
def quick_training() -> Iterator[None]:
    """`gpflow-bsvm train` learns neither kernel nor penalty, in the rest of the file."""
    classifier = functools.partial(estimators.BSVMClassifier, loss="hinge", **FIXED)
    regressor = functools.partial(estimators.BSVMRegressor, epsilon=0.1, **FIXED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimators, "BSVMClassifier", classifier)
        patch.setattr(estimators, "BSVMRegressor", regressor)
        yield
