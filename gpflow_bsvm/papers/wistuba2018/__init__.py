"""Wistuba and Rawat (2018): their objective and Algorithm 1, class after class, as printed, and
the policy of active learning that they compare with."""

from .class_by_class import ClassByClass
from .crammer_singer import CrammerSinger
from .policy import softmax_entropy

__all__ = [
    "ClassByClass",
    "CrammerSinger",
    "softmax_entropy",
]
