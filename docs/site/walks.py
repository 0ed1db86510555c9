"""
Count what a reader follows from a call to the fitted q, by making it: hops, files, and words.

    python docs/site/walks.py            write docs/developers/map.md
    python docs/site/walks.py --check    fail where the page says something else

A function is on the way if it runs, once or a thousand times, between the call and the fitted q.
It is a *hop* if it leads on to a function of another file, by itself or by functions of its own
file: there a reader has to open another page. A function whose way ends in its own file is read
where it stands. Properties read like attributes, and what they do counts for whoever asks. Words
are the classes of this package that the code of the hops names, their own among them; classes that
stand in annotations only are not counted, and tuples with named fields and nothing else are counted
apart: their definition is their fields.

Nothing is counted of `ASIDE`, which says whether something is wrong or writes down what happened,
nor of what that calls; `THROUGH` is called by one function on the way and calls the next.
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
ASIDE = {
    *("checks.py", "checkpoints/directory.py", "data/checks.py", "engine/contracts.py"),
    *("engine/kernel_check.py", "likelihoods/labels.py"),
    *("inference/outcome.py", "inference/not_finite.py"),
}
THROUGH = {
    *("data/prefetch.py", "engine/shared_graph.py", "engine/structure.py"),
    *("engine/remembered.py", "inference/history.py", "likelihoods/hooks.py"),
}


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

    @property
    def is_property(self) -> bool:
        """:return: True if it reads like an attribute."""
        decorators = {ast.unparse(decorator) for decorator in self.node.decorator_list}
        return bool(decorators & {"property", "functools.cached_property"})


class Walk:
    """
    What runs in a call.

    :ivar seen: globals of the functions on the way.
    :ivar calls: which functions each of them calls.
    """

    def __init__(self, run: Callable[[], Any], start: str | None = None) -> None:
        """:param start: count only what runs inside of the function of this name; None: all."""
        self.seen: dict[Function, dict[str, Any]] = {}
        self.calls: dict[Function, set[Function]] = {}
        self._start, self._known = start, {}  # type: ignore[var-annotated]
        sys.setprofile(self._look)
        try:
            run()
        finally:
            sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, arg: object) -> None:
        function = self._function(frame.f_code)
        if event != "call" or function is None or function.file in ASIDE:
            return
        above = [f for f in map(self._function, _codes(frame.f_back)) if f]
        inside = self._start is None or self._start in {f.name for f in (function, *above)}
        if not inside or any(f.file in ASIDE for f in above):
            return
        self.seen.setdefault(function, frame.f_globals)
        if above:
            self.calls.setdefault(above[0], set()).add(function)

    def _function(self, code: CodeType) -> Function | None:
        """:return: the function of this code, None for what is transparent."""
        if code not in self._known:
            self._known[code] = _function_of(code)
        return self._known[code]

    def hops(self) -> list[Function]:
        """:return: functions that lead on to another file, as they are first called."""
        return [function for function in self.seen if not self._ends_at_home(function, ())]

    def _ends_at_home(self, function: Function, above: tuple[Function, ...]) -> bool:
        further = self.calls.get(function, set()) - {function, *above}
        here = (*above, function)
        return all(f.file == function.file and self._ends_at_home(f, here) for f in further)

    def words(self, functions: list[Function]) -> tuple[list[str], list[str]]:
        """:return: names of the package's classes in the code of these functions, and of tuples."""
        found = {word for f in functions for word in _classes(f.node, f.name, self.seen[f])}
        tuples = {word for word in found if _is_plain_tuple(word)}
        return sorted({word.__name__ for word in found - tuples}), sorted(
            t.__name__ for t in tuples
        )


def _codes(frame: FrameType | None) -> Any:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def _function_of(code: CodeType) -> Function | None:
    if not code.co_filename.startswith(str(ROOT)) or code.co_name.startswith(("<", "__post")):
        return None
    file = Path(code.co_filename).relative_to(ROOT).as_posix()
    function = Function(file, getattr(code, "co_qualname", code.co_name))
    if code.co_name.startswith("check"):
        return Function("checks.py", code.co_name)
    return None if file in THROUGH or function.is_property else function


def _is_plain_tuple(word: Any) -> bool:
    """:return: True for a NamedTuple without methods of its own."""
    own = {name for name, value in vars(word).items() if inspect.isfunction(value)}
    return hasattr(word, "_fields") and own <= {
        "__new__",
        "_replace",
        "_asdict",
        "__getnewargs__",
        "__repr__",
    }


def _classes(node: Any, name: str, names: dict[str, Any]) -> set[Any]:
    """:return: the package's classes that the code names, without annotations."""
    fields = [getattr(n, name, None) for n in ast.walk(node) for name in ("annotation", "returns")]
    apart = {id(n) for hint in fields if isinstance(hint, ast.AST) for n in ast.walk(hint)}
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in apart}
    found = {
        names[word] for word in used | {name.split(".")[0]} if inspect.isclass(names.get(word))
    }
    return {word for word in found if word.__module__.startswith("gpflow_bsvm")}


def walks() -> dict[str, Walk]:
    """:return: the walks of the map by name, each with graphs that are traced anew."""
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    data = X, np.sign(X[:, :1])

    def walk(run: Callable[[Any], Any], start: str | None = None) -> Walk:
        for compiled in (one for one in gc.get_objects() if isinstance(one, Compiled)):
            compiled._graphs.clear()
        kernel, hinge = gpflow.kernels.SquaredExponential(), gb.likelihoods.Hinge()
        model = gb.models.BSVM(kernel, hinge, X[:5].copy())
        return Walk(lambda: run(model), start)

    return {
        "`fit(model, (X, Y))` to `q_mu`": walk(lambda model: fit(model, data, progress=False)),
        "a step of `VEM().run(model, (X, Y))`": walk(
            lambda model: VEM(2).run(model, data, progress=False), "_Rounds.advance"
        ),
    }


def counted() -> str:
    """:return: the tables of the map."""
    lines = ["| | hops | files | words | plain tuples |", "| --- | --- | --- | --- | --- |"]
    found = walks()
    for name, walk in found.items():
        for what, functions in {
            name: walk.hops(),
            "all functions counted": list(walk.seen),
        }.items():
            files = {function.file for function in functions}
            cells = map(str, (len(functions), len(files), *map(len, walk.words(functions))))
            lines.append(f"| {' | '.join([what, *cells])} |")
    for name, walk in found.items():
        hops = ", ".join(f"`{function.name.replace('<locals>.', '')}`" for function in walk.hops())
        lines += ["", f"The hops of {name}: {hops}."]
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
