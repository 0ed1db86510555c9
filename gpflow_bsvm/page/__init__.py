"""What `gpflow-bsvm compare --report` writes: one file of HTML."""

from .write import write_page

__all__ = ["write_page"]
