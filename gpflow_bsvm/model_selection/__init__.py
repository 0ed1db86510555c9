"""Model selection with held-out rows, and conversion to and from scikit-learn's SVC."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .held_out import held_out_density
from .plug_in import plug_in, start_from

__all__ = ["held_out_density", "plug_in", "start_from"]
