"""A choice between models by what they say of rows that they have not seen."""

from ..prediction import leave_one_out_density
from .held_out import HeldOut, find_peak, held_out_density, most_folds

__all__ = ["HeldOut", "find_peak", "held_out_density", "leave_one_out_density", "most_folds"]
