"""Models to files and back, without pickles; and to TensorFlow's SavedModel, for elsewhere."""

from .files import load, save
from .known import register
from .saved_model import export

__all__ = ["export", "load", "register", "save"]
