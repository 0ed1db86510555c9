"""Adversarial inputs: models as classifiers for the Adversarial Robustness Toolbox."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .toolbox import art_classifier

__all__ = ["art_classifier"]
