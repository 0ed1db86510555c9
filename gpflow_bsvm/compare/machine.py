"""The machine and the software that produced a result."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from pathlib import Path

import joblib

from ..version import __version__

_PACKAGES = ("gpflow", "tensorflow", "tensorflow-probability", "numpy", "scikit-learn")


def provenance() -> dict[str, str | int]:
    """:return: versions of Python and packages; "processor"; "cores" available to this process."""
    versions = {package: importlib.metadata.version(package) for package in _PACKAGES}
    versions = {"python": platform.python_version(), "gpflow_bsvm": __version__} | versions
    return {**versions, "processor": _processor(), "cores": joblib.cpu_count()}


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.is_file() else ""
    named = re.search(r"model name\s*: (.+)", text)
    return named[1] if named else platform.processor() or platform.machine()
