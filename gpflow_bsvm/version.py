"""The version, importable without TensorFlow."""

__version__ = "0.2.0"
