"""Pages of the reference: one for each task, with every public name of the rooms that it takes."""

import importlib
import inspect
import re
import sys
from abc import ABC
from pathlib import Path
from types import ModuleType

import docstrings
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

import gpflow_bsvm

#: Public rooms that the package does not import by itself.
MORE = (
    "estimators",
    *("papers.gold2003", "papers.seeger2000", "papers.wenzel2017", "papers.wistuba2018"),
)

#: Pages of the reference by what a reader wants to do: file, title, rooms.
TASKS = (
    ("estimators", "Use it like scikit-learn", ("estimators",)),
    ("models", "Build a model", ("models", "inducing_points", "priors")),
    ("likelihoods", "Say what a label means", ("likelihoods",)),
    ("fitting", "Fit it", ("inference", "sampling")),
    ("predictions", "Predict, and ask how sure", ("prediction", "metrics", "plotting")),
    ("data", "Read rows that are not in memory", ("data", "files", "cluster")),
    ("saving", "Save, load, export", ("saving",)),
    ("networks", "Put a network into the kernel", ("deep",)),
    ("selection", "Choose a kernel, and go to SVC and back", ("model_selection",)),
    ("active", "Ask for labels", ("active",)),
    ("attacks", "Attack a classifier", ("adversarial",)),
    ("papers", "Reproduce a paper", tuple(room for room in MORE if room.startswith("papers"))),
)

INDEX = """\
API
===

Every public name, by task. ``gpflow_bsvm`` itself has the modules, and {top}.

{rows}

.. toctree::
   :hidden:

{files}
"""
ROW = ":doc:`{title} <{file}>`\n   {rooms}\n"
SECTION = """\
{room}
{line}

.. automodule:: {module}
   :no-members:

.. list-table::
   :widths: auto

{names}

"""
#: Where a sentence ends: not in "et al. 2017" or "eq. 4".
SENTENCE = re.compile(r"(?<!\bal)(?<!\beq)\. ")
NAME = "   * - {link}\n     - {says}"
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


def says_something(base: type) -> bool:
    """:return: whether a reader may know this base class, or find it."""
    public = not base.__name__.startswith("_") and not base.__module__.startswith("gpflow_bsvm")
    return base not in PLAIN and (public or base.__name__ in docstrings.known())


def rooms() -> list[str]:
    """:return: names of the public modules, of `papers` those of each paper."""
    public = {name for name in gpflow_bsvm.__all__ if not name.startswith("__")} - {"papers"}
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
    if kind == "class" and not more and any(map(says_something, value.__bases__)):
        more += "   :show-inheritance:\n"
    return ENTRIES[kind].format(name=f"{where}.{name}", more=more)


def section(room: str) -> str:
    """:return: the reference of a room: what it is for, a table of its names, and each of them."""
    module = importlib.import_module(f"gpflow_bsvm.{room}")
    names = public_names(module)
    table = "\n".join(_row(module, name) for name in names)
    head = SECTION.format(room=room, line="-" * len(room), module=module.__name__, names=table)
    return head + "\n".join(entry(module, name) for name in names)


def _row(module: ModuleType, name: str) -> str:
    """:return: a name with the first sentence that is said of it."""
    value = getattr(module, name)
    doc = inspect.getdoc(value) if callable(value) else ""
    first = " ".join((doc or "").split("\n\n")[0].split()).removeprefix(":return: ")
    says = "" if first.startswith(":") else SENTENCE.split(first)[0].rstrip(".:")
    link = f":py:obj:`{name} <{module.__name__}.{name}>`" if callable(value) else f"``{name}``"
    return NAME.format(link=link, says=docstrings.inline(says) or "\\")


def page(title: str, rooms_of: tuple[str, ...]) -> str:
    """:return: the reference for a task."""
    return "\n".join([title, "=" * len(title), "", *map(section, rooms_of)])


def index() -> str:
    """:return: all tasks, with what the rooms of each are for."""
    rows = [
        ROW.format(file=file, title=title, rooms=" ".join(map(_purpose, names)))
        for file, title, names in TASKS
    ]
    homes = gpflow_bsvm._HOMES.items()
    top = [f":py:obj:`{name} <gpflow_bsvm.{home}.{name}>`" for name, home in homes]
    files = "\n".join(f"   {file}" for file, _, _ in TASKS)
    return INDEX.format(rows="\n".join(rows), top=", ".join(top), files=files)


def _purpose(room: str) -> str:
    doc = importlib.import_module(f"gpflow_bsvm.{room}").__doc__ or ""
    return " ".join(doc.split("\n\n")[0].split())


def write_pages(folder: Path) -> None:
    """Write them as files for Sphinx, those only that changed: it reads no others again."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{file}.rst": page(title, names) for file, title, names in TASKS}
    pages["index.rst"] = index()
    for stale in {path.name for path in folder.glob("*.rst")} - set(pages):
        (folder / stale).unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
