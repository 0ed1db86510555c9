"""Model selection by held-out rows, and conversion to and from scikit-learn's SVC."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .plug_in import plug_in, start_from

__all__ = ["plug_in", "start_from"]
