"""The machine and the software that produced a result."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

from ..version import __version__

_PACKAGES = ("gpflow", "tensorflow", "tensorflow-probability", "numpy", "scikit-learn")


def provenance() -> dict[str, str | int]:
    """
    :return: version by package, and Python's; "processor", and "cores" that this process may use;
        "commit" of the package's own repository if it runs from one, with "-dirty" after changes.
    """
    versions = {package: importlib.metadata.version(package) for package in _PACKAGES}
    versions = {"python": platform.python_version(), "gpflow_bsvm": __version__} | versions
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    commit = {"commit": found} if (found := _commit()) else {}
    return {**versions, "processor": _processor(), "cores": cores, **commit}


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.is_file() else ""
    named = re.search(r"model name\s*: (.+)", text)
    return named[1] if named else platform.processor() or platform.machine()


def _commit() -> str:
    """:return: the commit; nothing if this file is not tracked, in another repository."""
    here, commit = Path(__file__), ""
    tracked = ["ls-files", "--error-unmatch", here.name]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        for arguments in tracked, ["describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]:
            commit = subprocess.check_output(
                ["git", *arguments], cwd=here.parent, stderr=subprocess.DEVNULL, text=True
            ).strip()
        return commit
    return ""
