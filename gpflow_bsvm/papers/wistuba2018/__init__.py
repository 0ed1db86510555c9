"""Wistuba and Rawat (2018): Algorithm 1 as printed, class after class."""

from .class_by_class import ClassByClass

__all__ = ["ClassByClass"]
