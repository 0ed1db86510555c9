"""Imports run one way, as CONTRIBUTING.md says, and the core knows no other room."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gpflow_bsvm"

#: What a GPflow user meets, each after what it may import.
CORE = ("likelihoods", "data", "engine", "inducing_points", "models", "prediction", "inference")
#: Modules of no room that the core may use.
SMALL = ("checkpoints", "checks", "doors", "notices", "quiet", "version")


def imports(path):
    """Every import of this package in a file, those inside of functions and for types too."""
    here = path.relative_to(PACKAGE).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level]
            full = (*base, *(node.module or "").split(".")) if node.module else base
            yield from ([full[0]] if full else [alias.name for alias in node.names])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpflow_bsvm."):
            yield node.module.split(".")[1]


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


def test_small_modules_import_the_core_only():
    for name in SMALL:
        assert set(imports(PACKAGE / f"{name}.py")) <= {*CORE, *SMALL}


def test_only_papers_and_saving_know_the_papers():
    knowing = {room for room in rooms() if "papers" in imported_by(room)}
    assert knowing <= {"papers", "saving"}


def test_there_is_no_circle_of_rooms():
    graph = {room: set(imported_by(room)) & set(rooms()) for room in rooms()}
    while graph:
        free = {room for room, others in graph.items() if not others & set(graph)}
        assert free, f"a circle among {sorted(graph)}"
        graph = {room: others for room, others in graph.items() if room not in free}


def test_an_import_of_a_later_room_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.py").write_text(
        "def f():\n    from ..estimators import BSVMClassifier\n"
    )
    assert imported_by("data") == {"estimators": "x.py"}
