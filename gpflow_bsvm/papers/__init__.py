"""Reproductions of papers, complete and tested, but separate from the core.

No other folder imports this one.
"""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from . import gold2003, seeger2000, wenzel2017, wistuba2018

__all__ = ["gold2003", "seeger2000", "wenzel2017", "wistuba2018"]
