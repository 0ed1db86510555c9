"""The estimators of scikit-learn's kind."""

from .classifier import BSVMClassifier
from .one_class import OneClassBSVM
from .regressor import BSVMRegressor

__all__ = ["BSVMClassifier", "BSVMRegressor", "OneClassBSVM"]
