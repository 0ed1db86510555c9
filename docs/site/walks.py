"""
Count what a fit goes through, by running one: functions, files, and words to learn.

    python docs/site/walks.py            write docs/developers/map.md
    python docs/site/walks.py --check    fail where the page says something else

A function is on the way if it runs, once or a thousand times, between the call and the fitted q,
and is not in one of `SIDE`, the files of checks, graphs, checkpoints and the record of a fit. Words
are the classes of this package that these functions name.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import gpflow
import numpy as np

import gpflow_bsvm as gb
from gpflow_bsvm.inference import VEM, fit

ROOT, PAGE = Path(gb.__file__).parent, Path(__file__).parent.parent / "developers" / "map.md"
#: Beside the way: whether something is wrong, how graphs are shared, and what is written down.
SIDE = (
    *(
        "checks.py",
        "checkpoints.py",
        "doors.py",
        "data/checks.py",
        "data/opening.py",
        "data/streams.py",
    ),
    *("data/prefetch.py", "likelihoods/labels.py", "likelihoods/hooks.py", "engine/contracts.py"),
    *("engine/open.py", "engine/shared_graph.py", "engine/structure.py"),
    "engine/remembered.py",
    *("inference/history.py", "inference/outcome.py"),
)


def walked(run: Callable[[], Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """:return: globals of the functions on the way, by file and name, as they are first called."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}

    def look(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            file = Path(code.co_filename).relative_to(ROOT).as_posix()
            name = getattr(code, "co_qualname", code.co_name)
            if file not in SIDE and not code.co_name.startswith(("<", "check", "__post")):
                seen.setdefault((file, name), frame.f_globals)

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def words(seen: dict[tuple[str, str], dict[str, Any]]) -> set[str]:
    """:return: names of the package's classes in the sources of these functions."""
    found = set()
    for (file, qualified), names in seen.items():
        node: Any = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        for part in qualified.replace("<locals>.", "").split("."):
            node = next((n for n in ast.walk(node) if getattr(n, "name", None) == part), node)
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {qualified.split(".")[0]}
        mine = {name for name in used if inspect.isclass(names.get(name))}
        found |= {name for name in mine if names[name].__module__.startswith("gpflow_bsvm")}
    return found


def counted() -> str:
    """:return: the table of docs/developers/map.md."""
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    data = X, np.sign(X[:, :1])

    def model() -> gb.models.BSVM:
        return gb.models.BSVM(
            gpflow.kernels.SquaredExponential(), gb.likelihoods.Hinge(), X[:5].copy()
        )

    runs = {
        "`fit(model, (X, Y))` to `q_mu`": lambda m: fit(m, data, progress=False),
        "`VEM(max_steps=2).run(model, (X, Y))`": lambda m: VEM(2).run(m, data, progress=False),
    }
    lines = ["| | functions | files | words |", "| --- | --- | --- | --- |"]
    for name, run in runs.items():
        fresh = model()
        seen = walked(lambda run=run, fresh=fresh: run(fresh))  # type: ignore[misc]
        cells = len(seen), len({file for file, _ in seen}), len(words(seen))
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
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
