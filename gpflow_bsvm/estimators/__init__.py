"""The scikit-learn estimators."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .classifier import BSVMClassifier
from .one_class import OneClassBSVM
from .regressor import BSVMRegressor

__all__ = ["BSVMClassifier", "BSVMRegressor", "OneClassBSVM"]
