"""Pages of the reference: one for each public room, with every public name of it."""

import importlib
import inspect
import sys
from abc import ABC
from pathlib import Path
from types import ModuleType

from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

import gpflow_bsvm

#: Public rooms that the package does not import by itself.
MORE = (
    *("compare", "estimators"),
    *(
        f"papers.{paper}"
        for paper in ("gold2003", "seeger2000", "wenzel2017", "wenzel2019", "wistuba2018")
    ),
)

INDEX = """\
All public names
================

Module by module, from the docstrings. ``gpflow_bsvm`` itself has the modules, and {top}.

{rows}

.. toctree::
   :hidden:
   :glob:

   *
"""
ROW = ":doc:`{room} <{room}>`\n   {line}\n"
PAGE = """\
{room}
{line}

.. automodule:: {module}
   :no-members:

"""
ENTRIES = {
    "class": ".. autoclass:: {name}\n   :members:\n{more}",
    "function": ".. autofunction:: {name}\n",
    "data": ".. autodata:: {name}\n   :no-value:\n",
}
#: A face of scikit-learn's is read with what it inherits, but for scikit-learn's own.
INHERITED = dict.fromkeys(
    ("BSVMClassifier", "BSVMRegressor", "OneClassBSVM"),
    "   :inherited-members: ClassifierMixin, RegressorMixin, OutlierMixin, BaseEstimator\n"
    "   :exclude-members: get_metadata_routing, set_fit_request, set_partial_fit_request,"
    " set_score_request\n",
)
#: Bases that say nothing.
PLAIN = {object, ABC, tuple}


def rooms() -> list[str]:
    """:return: names of the public modules."""
    public = {name for name in gpflow_bsvm.__all__ if not name.startswith("__")}
    return sorted(
        {name for name in public if inspect.ismodule(getattr(gpflow_bsvm, name))} | {*MORE}
    )


def public_names(module: ModuleType) -> list[str]:
    """:return: `__all__` of a room, or of a room that is one file what is defined there."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    defined = (name for name, v in vars(module).items() if _defined_in(module, v))
    return [name for name in defined if not name.startswith("_")] + _noted(module)


def _defined_in(module: ModuleType, value: object) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def _noted(module: ModuleType) -> list[str]:
    """:return: names of constants that a comment `#:` describes."""
    try:
        notes = ModuleAnalyzer.for_module(module.__name__).find_attr_docs()
    except PycodeError:  # no source, as of a namespace
        return []
    return [name for where, name in notes if not where and not name.startswith("_")]


def _home(module: ModuleType, name: str) -> str:
    """:return: the module of this room whose comment describes a constant."""
    inside = [key for key in sys.modules if f"{key}.".startswith(f"{module.__name__}.")]
    return next((m for m in inside if name in _noted(sys.modules[m])), module.__name__)


def entry(module: ModuleType, name: str) -> str:
    """:return: the directive that documents a name."""
    value, where = getattr(module, name), module.__name__
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    if getattr(value, "__origin__", None) is not None:  # an alias of a type
        kind = "data"
    if kind == "data":
        where = _home(module, name)
    more = INHERITED.get(name, "")
    if kind == "class" and not more and not set(value.__bases__) <= PLAIN:
        more += "   :show-inheritance:\n"
    return ENTRIES[kind].format(name=f"{where}.{name}", more=more)


def page(room: str) -> str:
    """:return: the reference of a room."""
    module = importlib.import_module(f"gpflow_bsvm.{room}")
    head = PAGE.format(room=room, line="=" * len(room), module=module.__name__)
    return head + "\n".join(entry(module, name) for name in public_names(module))


def index() -> str:
    """:return: all rooms, with what each is for."""
    rows = [ROW.format(room=room, line=_purpose(room)) for room in rooms()]
    homes = gpflow_bsvm._HOMES.items()
    top = [f":py:obj:`{name} <gpflow_bsvm.{home}.{name}>`" for name, home in homes]
    return INDEX.format(rows="\n".join(rows), top=", ".join(top))


def _purpose(room: str) -> str:
    doc = importlib.import_module(f"gpflow_bsvm.{room}").__doc__ or ""
    return " ".join(doc.split("\n\n")[0].split())


def write_pages(folder: Path) -> None:
    """Write them as files for Sphinx, those only that changed: it reads no others again."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{room}.rst": page(room) for room in rooms()} | {"index.rst": index()}
    for stale in {path.name for path in folder.glob("*.rst")} - set(pages):
        (folder / stale).unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
