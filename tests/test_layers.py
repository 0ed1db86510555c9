"""Imports run one way, as CONTRIBUTING.md says, and the core knows no other room."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gpflow_bsvm"

#: What a GPflow user meets, each after what it may import.
CORE = (
    *("likelihoods", "data", "engine", "checkpoints", "inducing_points", "models"),
    *("prediction", "inference"),
)
#: Modules of no room that the core may use.
SMALL = ("atomic", "checks", "notices", "optional", "quiet", "version")
#: Doors, which import what is asked for, or the types of it, when it is asked for.
DOORS = {
    "__init__.py": "`import gpflow_bsvm` does not wait for TensorFlow",
    "cli/compare.py": "neither does `gpflow-bsvm --help`",
    "tables/columns.py": "nor errors in a table's columns",
}


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def strings(node):
    """The name of the module in a call of `import_module` or `__import__`, if it is a text."""
    function = getattr(node, "func", None)
    name = getattr(function, "attr", getattr(function, "id", ""))
    if isinstance(node, ast.Call) and name in ("import_module", "__import__") and node.args:
        first = node.args[0]
        values = first.values if isinstance(first, ast.JoinedStr) else [first]
        yield "".join(str(getattr(value, "value", "*")) for value in values[:1])


def full_names(path):
    """
    Every import of this package in a file, those inside of functions, for types and by string too,
    as a path from the package on.
    """
    here = path.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ("..",)
            full = (*base, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                yield (*full, alias.name)
        elif isinstance(node, ast.Import):
            yield from (("..", *alias.name.split(".")) for alias in node.names)
        for text in strings(node):
            level = len(text) - len(text.lstrip("."))
            base = here[: len(here) + 1 - level] if level else ("..",)
            yield (*base, *filter(None, text.lstrip(".").split(".")))


def imports(path):
    """The rooms and root modules that a file imports."""
    for full in full_names(path):
        if full[:2] == ("..", "gpflow_bsvm"):
            full = full[2:]
        if full and full[0] != "..":
            yield full[0]


def file_of(full):
    """The file of the package that an import is of."""
    full = full[2:] if full[:2] == ("..", "gpflow_bsvm") else full
    if full[:1] == ("..",):
        return None
    for stop in (len(full), len(full) - 1):
        place = PACKAGE.joinpath(*full[:stop])
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if stop >= 0 and path.is_file():
                return path.relative_to(PACKAGE).as_posix()
    return None


def left(graph):
    """What is in a circle, or imports one."""
    while free := {name for name, others in graph.items() if not others & set(graph)}:
        graph = {name: others for name, others in graph.items() if name not in free}
    return graph


def files():
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): path for path in paths}


def rooms():
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def imported_by(room):
    found = {}
    for path in (PACKAGE / room).rglob("*.py"):
        for name in imports(path):
            found.setdefault(name, path.name)
    return {name: file for name, file in found.items() if name != room}


@pytest.mark.parametrize("room", CORE)
def test_the_core_imports_what_is_before_it_and_nothing_of_the_rest(room):
    before = {*CORE[: CORE.index(room)], *SMALL}
    wrong = {name: file for name, file in imported_by(room).items() if name not in before}
    assert not wrong


def test_small_modules_import_each_other_only():
    for name in SMALL:
        assert set(imports(PACKAGE / f"{name}.py")) <= {*SMALL}


def test_only_papers_and_saving_know_the_papers():
    knowing = {room for room in rooms() if "papers" in imported_by(room)}
    assert knowing <= {"papers", "saving"}


def test_there_is_no_circle_of_rooms():
    assert not left({room: set(imported_by(room)) & set(rooms()) for room in rooms()})


def test_there_is_no_circle_of_files():
    graph = {name: {*map(file_of, full_names(path))} - {name} for name, path in files().items()}
    assert len(graph) > 100 and graph["inference/algorithm.py"] >= {"inference/run.py", "checks.py"}
    assert not left(graph)


def by_string(path):
    for node in ast.walk(tree(path)):
        yield from (text for text in strings(node) if re.match(r"\.|gpflow_bsvm", text))


def for_types(path):
    """The imports of this package under `if TYPE_CHECKING`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            inside = [one for one in ast.walk(node) if isinstance(one, ast.ImportFrom)]
            yield from (one for one in inside if one.level or one.module.startswith("gpflow_bsvm"))


def test_only_doors_import_by_string_or_for_types():
    hiding = {name: (*by_string(path), *for_types(path)) for name, path in files().items()}
    assert {name for name, hidden in hiding.items() if hidden} == {*DOORS}
    assert [name for name, path in files().items() if any(by_string(path))] == ["__init__.py"]


HIDDEN = {
    "in a function": "def f():\n    from ..estimators import BSVMClassifier\n",
    "for types": "if TYPE_CHECKING:\n    from ..estimators import BSVMClassifier\n",
    "by its name": "importlib.import_module('gpflow_bsvm.estimators')\n",
    "by its name from here": "import_module('..estimators.base', __package__)\n",
    "by a built-in function": "__import__('gpflow_bsvm.estimators', fromlist=['*'])\n",
    "in full": "import gpflow_bsvm.estimators.base\n",
    "in full, a part": "from gpflow_bsvm import estimators\n",
}


@pytest.mark.parametrize("how", HIDDEN)
def test_an_import_of_a_later_room_would_be_seen(how, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    for room in ("data", "estimators"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    (tmp_path / "data" / "x.py").write_text(HIDDEN[how])
    (tmp_path / "estimators" / "base.py").write_text("from ..data import x\n")
    (tmp_path / "estimators" / "__init__.py").write_text("from . import base\n")
    assert imported_by("data") == {"estimators": "x.py"}
    assert left({room: set(imported_by(room)) for room in rooms()})
    graph = {name: {*map(file_of, full_names(path))} for name, path in files().items()}
    assert "data/x.py" in left(graph)
