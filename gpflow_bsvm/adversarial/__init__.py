"""Adversarial inputs: gradient attacks through whole models, and their detection."""

from .attacks import art_classifier, class_probabilities, fgsm, loss_gradient
from .detection import detection_auc, doubts, under_attack
from .targets import NetworkTarget

__all__ = [
    "NetworkTarget",
    "art_classifier",
    "class_probabilities",
    "detection_auc",
    "doubts",
    "fgsm",
    "loss_gradient",
    "under_attack",
]
