"""Where and by what a result was found."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

_PACKAGES = (
    "gpflow_bsvm",
    "gpflow",
    "tensorflow",
    "tensorflow-probability",
    "numpy",
    "scikit-learn",
)


def provenance() -> dict[str, str | int]:
    """
    :return: version by package, and Python's; "processor", and "cores" that this process may use;
        "commit" of the package's own repository if it runs from one, with "-dirty" after changes.
    """
    found: dict[str, str | int] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree
            found[package] = "unknown"
    found |= {"processor": _processor(), "cores": _cores()}
    return found | ({"commit": commit} if (commit := _commit()) else {})


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    try:  # a virtual environment can lie in somebody else's repository: is this file tracked?
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        return _git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    command, here = ["git", *arguments], Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
