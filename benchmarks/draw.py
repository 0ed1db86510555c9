"""Draw the tables and pictures of README.md and docs/ from the rows in `benchmarks/results`.

    python benchmarks/draw.py            rewrites marked tables, draws pictures that are out of date
    python benchmarks/draw.py --check    fails where these, or a sentence, do not show these rows

A page marks the place of a table by `<!-- table NAME -->` and `<!-- end -->`: NAME is a public
function in `tables`. `docs/NAME.png` is drawn by `figures/NAME.py`; the PNG carries the digest of
its rows and of that file. Numbers in sentences are in `claims.py`, and are for you to mend.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import claims
import matplotlib
import store
from PIL import Image
from tables import (
    adversarial,
    asking,
    criteria,
    deep,
    distributed,
    engine,
    family,
    learned,
    passes,
    scale,
    scores,
    searches,
    selection,
    suite_times,
    suites,
    wenzel2016,
)

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
TABLE = re.compile(r"(?<=<!-- table )(\w+)( -->\n).*?(?=<!-- end -->)", re.S)
MODULES = (
    *(engine, scores, learned, family, scale, distributed, passes, deep, adversarial, asking),
    *(selection, criteria, searches, suites, suite_times, wenzel2016),
)
#: Tables that are a second look at the rows of another, or of several.
ROWS: dict[str, str | tuple[str, ...]] = {
    **dict.fromkeys(("quality_sets", "quality_pairs", "unfloored", "offset"), "quality"),
    "seeger_inputs": "seeger",
    **{f"wistuba_{part}": "wistuba2018" for part in ("ranks", "pairs", "times", "sets", "adam")},
    **{f"wenzel2016_{part}": "wenzel2016" for part in ("all", "mcmc", "linear", "grid")},
    "suite_times": suite_times.SUITES,
    "fit_sizes": "fit_time",
    "cluster_growth": "cluster",
    **dict.fromkeys(("hybrid_time", "hybrid_epochs"), "hybrid"),
    **dict.fromkeys(("active_errors", "active_sets", "active_updates"), "active"),
    "active_kernel": "active",
    **dict.fromkeys(("weights", "constant", "large"), "linear"),
    **dict.fromkeys(("by_penalty", "ranking"), "left_out"),
    **{f"gold_sollich_{part}": "gold_sollich" for part in ("best", "sensible", "aim")},
    **dict.fromkeys(("attacked", "detected", "foreign"), "adversarial"),
}


def main(arguments: list[str]) -> None:
    check = "--check" in arguments
    stale = [*_pages(check), *_pictures(check), *claims.stale()]
    missing = [f"results/{name} has no origin" for name in store.without_origin()]
    print("\n".join([*stale, *missing]) or "all tables and pictures show the rows on disk")
    if missing or (check and stale):
        sys.exit("run python benchmarks/draw.py" if stale else 1)


def _pages(check: bool) -> Iterator[str]:
    tables = _tables()
    old = {page: page.read_text(encoding="utf-8") for page in PAGES}
    shown = {name for text in old.values() for name, _ in TABLE.findall(text)}
    if shown != set(tables):
        sys.exit(f"tables without a place or a function: {sorted(shown ^ set(tables))}")
    drawn = {name: draw(*map(store.read, _rows(name))) for name, draw in tables.items()}
    for page, text in old.items():
        new = TABLE.sub(lambda match: f"{match[1]}{match[2]}{drawn[match[1]]}\n", text)
        if new != text:
            yield f"{page.relative_to(ROOT)}: tables"
            if not check:
                page.write_text(new, encoding="utf-8")


def _rows(table: str) -> tuple[str, ...]:
    names = ROWS.get(table, table)
    return (names,) if isinstance(names, str) else names


def _tables() -> dict[str, Callable]:
    """:return: the functions that the modules of `tables` define and do not hide."""
    return {
        name: function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }


def _pictures(check: bool) -> Iterator[str]:
    matplotlib.use("Agg")
    for script in sorted(Path(__file__).parent.glob("figures/[a-z]*.py")):
        figure = importlib.import_module(f"figures.{script.stem}")
        wanted = store.digest(script, *(store.RESULTS / f"{name}.csv" for name in figure.ROWS))
        path = ROOT / "docs" / f"{script.stem}.png"
        if not path.is_file() or Image.open(path).info.get("Rows") != wanted:
            yield f"{path.relative_to(ROOT)}"
            if not check:
                figure.draw().savefig(path, dpi=110, metadata={"Rows": wanted})


if __name__ == "__main__":
    main(sys.argv[1:])
