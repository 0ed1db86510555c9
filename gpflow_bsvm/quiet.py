"""
Import GPflow and TensorFlow without their start-up messages, which bypass Python. To see them, set
TF_CPP_MIN_LOG_LEVEL to 0 or 1.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
#: Lines of TensorFlow's log.
_LOG = re.compile(
    rb"[IWE]\d{4} [\d:.]+ +\d+ \S+\]|[\d-]+ [\d:.]+: [IWE] |WARNING: All log messages before absl|"
    rb"To enable the following instructions"
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """
    Drop lines logged by TensorFlow inside this context, unless the user wants them or an error
    occurs; pass on all other lines.
    """
    if os.environ.setdefault(LEVEL, "2") in ("0", "1"):
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            kept = stack.enter_context(tempfile.TemporaryFile())
            stderr = os.dup(2)
        except OSError:  # no room on the disk, or no such stream
            yield
            return
        os.dup2(kept.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            kept.seek(0)
            os.write(2, b"".join(line for line in kept if failed or not _LOG.match(line)))


if "gpflow" not in sys.modules:
    with quiet():
        import gpflow  # noqa: F401
        import tensorflow as tf

        tf.config.list_physical_devices()  # logs its search for drivers
