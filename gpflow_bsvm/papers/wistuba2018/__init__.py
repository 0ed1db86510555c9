"""Wistuba and Rawat (2018): their objective and Algorithm 1, class after class, as printed; and how
they measure detection of attacks."""

from .class_by_class import ClassByClass
from .crammer_singer import CrammerSinger
from .detection import detection_auc, doubts, under_attack

__all__ = ["ClassByClass", "CrammerSinger", "detection_auc", "doubts", "under_attack"]
