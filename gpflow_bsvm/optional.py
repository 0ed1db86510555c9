"""Optional dependencies, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str = "compare") -> Any:
    """
    :param module: name of a module, such as "pandas".
    :param extra: of this package, which brings it.
    :return: the module.
    :raise ImportError: with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module} could not be imported ({error}); pip install "gpflow_bsvm[{extra}]"'
        ) from error
