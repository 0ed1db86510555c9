"""scikit-learn's own checks: all of them at a fixed kernel, some at the defaults."""

from unittest import SkipTest

import pytest
from helpers import fixed_classifier as fixed
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import gpflow_bsvm as gb


@pytest.mark.slow
@parametrize_with_checks([fixed(num_inducing=10)])
def test_sklearn_checks(estimator, check):
    """None is skipped, but for that which needs an environment variable."""
    try:
        check(estimator)
    except SkipTest as reason:
        assert "SCIPY_ARRAY_API" in str(reason)
        raise


#: What a learned kernel and a chosen penalty may break: the rest sees the same lines of code.
AT_THE_DEFAULTS = (
    "check_classifiers_one_label",
    "check_dict_unchanged",
    "check_estimators_overwrite_params",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_sample_weight_equivalence_on_dense_data",
)


@pytest.mark.slow
@pytest.mark.drill
@pytest.mark.parametrize("name", AT_THE_DEFAULTS)
def test_sklearn_checks_at_the_defaults(name):
    checks = {check.func.__name__: (estimator, check) for estimator, check in all_checks()}
    estimator, check = checks[name]
    check(estimator)


def all_checks():
    return list(estimator_checks_generator(gb.BSVMClassifier(num_inducing=10)))


def test_number_of_sklearn_checks():
    """A tag can silently turn dozens of checks into one."""
    assert len(all_checks()) >= 50
