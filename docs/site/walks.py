"""
Count the functions, files and classes that a call goes through, by making it.

    python docs/site/walks.py            write docs/developers/map.md
    python docs/site/walks.py --check    fail where the page says something else

Every function of the package that runs during the call is counted, once however often it runs:
checks, properties, records of a run and the sharing of graphs too. Only lambdas, comprehensions and
bodies of classes count as parts of the function around them. Words are the classes of this package
that the code of these functions names, except in annotations.
"""

from __future__ import annotations

import ast
import gc
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm.engine.shared_graph import Compiled
from gpflow_bsvm.inference import VEM, fit

ROOT, PAGE = Path(gb.__file__).parent, Path(__file__).parent.parent / "developers" / "map.md"


class Function(NamedTuple):
    """A function of the package."""

    file: str
    name: str  #: qualified

    @property
    def node(self) -> Any:
        """:return: its source, parsed."""
        node: Any = ast.parse((ROOT / self.file).read_text(encoding="utf-8"))
        for part in self.name.replace("<locals>.", "").split("."):
            node = next(n for n in ast.walk(node) if getattr(n, "name", None) == part)
        return node


class Walk:
    """
    What runs in a call.

    :ivar seen: the functions, each with its globals.
    """

    def __init__(self, run: Callable[[], Any]) -> None:
        self.seen: dict[Function, dict[str, Any]] = {}
        self._known: dict[int, CodeType] = {}  # by address, as long as it is in use
        sys.setprofile(self._look)
        try:
            run()
        finally:
            sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event != "call" or id(code) in self._known:  # TensorFlow calls millions
            return
        self._known[id(code)] = code
        name = getattr(code, "co_qualname", code.co_name)
        own = code.co_filename.startswith(str(ROOT)) and code.co_name[0] != "<"
        if own and inspect.CO_NEWLOCALS & code.co_flags and name[0] != "<":
            file = Path(code.co_filename).relative_to(ROOT).as_posix()
            self.seen.setdefault(Function(file, name), frame.f_globals)

    def words(self) -> set[Any]:
        """:return: the package's classes that the code of these functions names."""
        return {word for f, names in self.seen.items() for word in _classes(f, names)}


def _classes(function: Function, names: dict[str, Any]) -> set[Any]:
    node = function.node
    fields = [getattr(n, name, None) for n in ast.walk(node) for name in ("annotation", "returns")]
    apart = {id(n) for hint in fields if isinstance(hint, ast.AST) for n in ast.walk(hint)}
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in apart}
    used.add(function.name.split(".")[0])
    found = {names[word] for word in used if inspect.isclass(names.get(word))}
    return {word for word in found if word.__module__.startswith("gpflow_bsvm")}


def walks() -> dict[str, Walk]:
    """:return: the walks of the map by name, each with graphs that are traced anew."""
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    data = X, np.sign(X[:, :1])

    def walk(run: Callable[[Any], Any]) -> Walk:
        for compiled in (one for one in gc.get_objects() if isinstance(one, Compiled)):
            compiled._graphs.clear()
        kernel, hinge = gpflow.kernels.SquaredExponential(), gb.likelihoods.Hinge()
        model = gb.models.BSVM(kernel, hinge, X[:5].copy())
        return Walk(lambda: run(model))

    given = {"loss": "hinge", "penalty": 1.0, "learn_kernel": False, "num_inducing": 5}
    found = {
        "`fit(model, (X, Y))`": walk(lambda model: fit(model, data, progress=False)),
        "`VEM().run(model, (X, Y))`": walk(
            lambda model: VEM(max_steps=3).run(
                model, data, progress=False
            )  # 50 do not converge either
        ),
    }
    classifier = gb.BSVMClassifier(calibrate=False, **given)  # its import is not part of its fit
    found["`BSVMClassifier(...).fit(X, y)`, with all options given"] = walk(
        lambda _: classifier.fit(X, data[1][:, 0])
    )
    return found


def counted() -> str:
    """:return: the table of the map."""
    lines = ["| | functions | files | classes named |", "| --- | --- | --- | --- |"]
    for name, walk in walks().items():
        files = {function.file for function in walk.seen}
        cells = map(str, (len(walk.seen), len(files), len(walk.words())))
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def main(check: bool) -> None:
    """Write the page, or with `check` compare."""
    page = PAGE.read_text(encoding="utf-8")
    new = re.sub(
        r"(<!-- walks -->\n).*?(\n<!-- end -->)",
        lambda found: found[1] + counted() + found[2],
        page,
        flags=re.S,
    )
    if check and new != page:
        sys.exit("the map does not say what a fit goes through: python docs/site/walks.py")
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main("--check" in sys.argv)
