"""Wistuba and Rawat (2018): their objective and Algorithm 1, class after class, as printed; what
they ask, and how they measure detection of attacks."""

from .class_by_class import ClassByClass
from .crammer_singer import CrammerSinger
from .detection import detection_auc, doubts, under_attack
from .policy import softmax_entropy

__all__ = [
    "ClassByClass",
    "CrammerSinger",
    "detection_auc",
    "doubts",
    "softmax_entropy",
    "under_attack",
]
