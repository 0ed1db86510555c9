"""Wistuba and Rawat (2018): Algorithm 1, class after class, as printed, and the policy of active
learning used there for comparison. The objective is `CrammerSinger(C, bound="wistuba2018")`."""

from .class_by_class import ClassByClass
from .policy import softmax_entropy

__all__ = ["ClassByClass", "softmax_entropy"]
