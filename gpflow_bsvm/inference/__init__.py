"""How q is found: project -> localise -> accumulate -> solve. An algorithm names no likelihood."""

from .auto import fit
from .cavi import CAVI
from .history import History
from .svi import SVI
from .vem import VEM

__all__ = ["CAVI", "SVI", "History", "VEM", "fit"]
