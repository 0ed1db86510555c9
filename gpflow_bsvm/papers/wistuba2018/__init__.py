"""Wistuba and Rawat (2018): their objective and Algorithm 1, class after class, as printed."""

from .class_by_class import ClassByClass
from .crammer_singer import CrammerSinger

__all__ = ["ClassByClass", "CrammerSinger"]
