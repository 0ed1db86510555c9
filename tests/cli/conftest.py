"""Training at a fixed kernel and penalty, where what is learned of the rows is not the point."""

from collections.abc import Iterator

import pytest

from gpflow_bsvm import BSVMClassifier, BSVMRegressor

FIXED = {"learn_kernel": False, "penalty": 2.0}


@pytest.fixture(scope="module")
def quick_training() -> Iterator[None]:
    """Estimators learn neither kernel nor penalty by default, in the rest of the file."""
    with pytest.MonkeyPatch.context() as patch:
        for kind, more in ((BSVMClassifier, {"loss": "hinge"}), (BSVMRegressor, {"epsilon": 0.1})):
            defaults = kind.__init__.__kwdefaults__ | FIXED | more
            patch.setattr(kind.__init__, "__kwdefaults__", defaults)
        yield
