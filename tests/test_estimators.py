"""scikit-learn's own checks, and what they do not check."""

import pickle

import gpflow
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import gpflow_bsvm as gb


@parametrize_with_checks([gb.BSVMClassifier(num_inducing=20)])
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_number_of_sklearn_checks():
    """A tag can silently turn dozens of checks into one: none is skipped, and many are run."""
    results = check_estimator(gb.BSVMClassifier(num_inducing=5), on_fail=None, on_skip=None)
    status = [result["status"] for result in results]
    assert len(status) >= 50
    assert set(status) <= {"passed", "skipped"}
    assert status.count("skipped") <= 2
