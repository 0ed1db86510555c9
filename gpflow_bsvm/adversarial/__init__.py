"""Adversarial inputs: gradient attacks through whole models."""

from .attacks import art_classifier, class_probabilities, fgsm, loss_gradient
from .targets import NetworkTarget

__all__ = [
    "NetworkTarget",
    "art_classifier",
    "class_probabilities",
    "fgsm",
    "loss_gradient",
]
