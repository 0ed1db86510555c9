"""
Import GPflow and TensorFlow without their start-up messages, which bypass Python. To see these
messages, set TF_CPP_MIN_LOG_LEVEL to 0 or 1.
"""

from __future__ import annotations

import sys

from .notices import quiet

if "gpflow" not in sys.modules:
    with quiet():
        import gpflow  # noqa: F401
        import tensorflow as tf

        tf.config.list_physical_devices()  # logs its search for drivers
