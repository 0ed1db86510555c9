"""Model selection by held-out rows, and conversion to and from scikit-learn's SVC."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .held_out import HeldOut, find_peak, held_out_density
from .plug_in import Start, plug_in, start_from

__all__ = [
    "HeldOut",
    "Start",
    "find_peak",
    "held_out_density",
    "plug_in",
    "start_from",
]
