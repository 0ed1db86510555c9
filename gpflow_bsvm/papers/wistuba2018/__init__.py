"""Wistuba and Rawat (2018): Algorithm 1 as printed, class after class, and its baseline policy of
active learning. The objective is `CrammerSinger(C, bound="wistuba2018")`."""

from .class_by_class import ClassByClass
from .policy import softmax_entropy

__all__ = ["ClassByClass", "softmax_entropy"]
