"""Inputs that mean to mislead: gradient attacks through whole models, and their detection."""

from .attacks import class_probabilities, fgsm, loss_gradient, pgd
from .detection import UnderAttack, detection_auc, doubts, under_attack
from .ensembles import Ensemble
from .networks import NetworkTarget
from .targets import Target
from .toolbox import art_classifier

__all__ = [
    "Ensemble",
    "NetworkTarget",
    "Target",
    "UnderAttack",
    "art_classifier",
    "detection_auc",
    "doubts",
    "fgsm",
    "loss_gradient",
    "pgd",
    "class_probabilities",
    "under_attack",
]
