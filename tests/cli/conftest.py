"""Training at a fixed kernel and penalty, where what is learned of the rows is not the point."""

from collections.abc import Iterator

import pytest

from gpflow_bsvm import BSVMClassifier, BSVMRegressor

FIXED = {
    BSVMClassifier: {"learn_kernel": False, "penalty": 2.0, "loss": "hinge"},
    BSVMRegressor: {"learn_kernel": False, "penalty": 0.5, "epsilon": 0.1},
}


@pytest.fixture(scope="module")
def quick_training() -> Iterator[None]:
    """Estimators learn neither kernel nor penalty by default, in the rest of the file."""
    with pytest.MonkeyPatch.context() as patch:
        for kind, fixed in FIXED.items():
            defaults = kind.__init__.__kwdefaults__ | fixed
            patch.setattr(kind.__init__, "__kwdefaults__", defaults)
        yield
