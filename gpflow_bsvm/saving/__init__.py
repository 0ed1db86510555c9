"""Save models to files without pickles, load them, and export them as TensorFlow SavedModels."""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .files import check_can_save, load, save
from .objects import register
from .saved_model import export

__all__ = ["check_can_save", "export", "load", "register", "save"]
