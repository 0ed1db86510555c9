"""A choice between models by rows that they have not seen; and scikit-learn's SVC, to and fro."""

from ..prediction import leave_one_out_density
from .held_out import HeldOut, find_peak, held_out_density
from .plug_in import Start, plug_in, start_from

__all__ = [
    "HeldOut",
    "Start",
    "find_peak",
    "held_out_density",
    "leave_one_out_density",
    "plug_in",
    "start_from",
]
