"""Optional packages, imported when needed, and version checks of required packages."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def require(module: str, extra: str = "compare") -> Any:
    """
    :param module: name of a module, such as "pandas".
    :param extra: the extra of this package that installs the module.
    :return: the module.
    :raise ImportError: if the module is missing; the message names the command to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module} could not be imported ({error}); pip install "gpflow_bsvm[{extra}]"'
        ) from error


class Later:
    """A module that is imported when one of its attributes is first used."""

    def __init__(self, module: str, extra: str = "compare") -> None:
        """Arguments and errors are as in `require`."""
        self._module = module
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        value = getattr(require(self._module, self._extra), name)
        setattr(self, name, value)  # so that the next look-up is direct
        return value


@functools.cache
def check_versions() -> None:
    """
    Compare installed versions with this package's requirements, before wrong ones cause errors.

    :raise ImportError: for a package that is too old or too new; the message names a command.
    """
    from importlib import metadata  # slow imports

    from packaging.requirements import Requirement

    try:
        asked = metadata.requires("gpflow_bsvm") or []
        needed = [one for one in map(Requirement, asked) if one.marker is None]
        found = {str(one): metadata.version(one.name) for one in needed}
    except metadata.PackageNotFoundError:
        return  # not installed, only on the path, or built without metadata
    for one in needed:
        if not one.specifier.contains(found[str(one)], prereleases=True):
            raise ImportError(
                f"{one.name} {found[str(one)]} is installed, but gpflow_bsvm needs {one}: "
                f'pip install "{one}"'
            )
