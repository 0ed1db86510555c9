"""
Import GPflow and TensorFlow without their start-up messages, which bypass Python. To see these
messages, set TF_CPP_MIN_LOG_LEVEL to 0 or 1.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from .notices import quiet


@contextlib.contextmanager
def plain_docstrings() -> Iterator[None]:
    """
    Import modules inside this context without rewriting their docstrings. check_shapes would take
    1 s for GPflow's, and .5 s for this package's, which state shapes themselves.
    """
    import check_shapes  # imports TensorFlow

    before = check_shapes.get_rewrite_docstrings()
    check_shapes.set_rewrite_docstrings(None)
    try:
        yield
    finally:
        if before.value != "none":  # else another thread, which is importing too, restores it
            check_shapes.set_rewrite_docstrings(before)


if "gpflow" not in sys.modules:
    with quiet(), plain_docstrings():
        import gpflow  # noqa: F401
        import tensorflow as tf

        tf.config.list_physical_devices()  # logs its search for drivers
