"""Adversarial inputs: models as classifiers of the Adversarial Robustness Toolbox."""

from .toolbox import art_classifier

__all__ = ["art_classifier"]
