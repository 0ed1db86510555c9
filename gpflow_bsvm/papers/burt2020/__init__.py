"""Burt, Rasmussen and van der Wilk (2020): inducing points chosen by greedy variance."""

from .reselect import reselect

__all__ = ["reselect"]
