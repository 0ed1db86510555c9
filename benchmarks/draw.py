"""Draw the tables and pictures of README.md and docs/ from the rows in `benchmarks/results`.

    python benchmarks/draw.py            rewrites marked tables, draws pictures that are out of date
    python benchmarks/draw.py --check    fails where these, or a sentence, do not show these rows

A page marks the place of a table by `<!-- table NAME -->` and `<!-- end -->`: NAME is a function in
`tables` that says which rows it `shows`. `docs/pictures/NAME.png` is drawn by `figures/NAME.py`;
the PNG carries the digest of its rows and of that file. Numbers in sentences are in `claims.py`,
and are for you to mend; `prose.py` finds those that are in none.

What `<!-- frozen ROWS ... COMMIT DIGEST -->` marks is not run any more: the code that measured and
drew it is at that commit. The digest is of what stands there, pictures included, and of the rows.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import claims
import claims_guide  # noqa: F401  (its claims)
import matplotlib
import prose
import store
from PIL import Image
from tables.markdown import all_tables

HERE, ROOT = Path(__file__).parent, Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
TABLE = re.compile(r"(?<=<!-- table )(\w+)( -->\n).*?(?=<!-- end -->)", re.S)
FROZEN = re.compile(r"<!-- frozen ([\w ]+) (\w{7}) (\w{16}) -->\n(.*?)(?=<!-- end -->)", re.S)
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


def main(arguments: list[str]) -> None:
    check = "--check" in arguments
    stale = [*_pages(check), *_pictures(check), *claims.stale(), *prose.unnamed()]
    changed = [f"results/{name} has no origin" for name in store.without_origin()]
    changed += [line for page in PAGES for line in thawed(page)]
    print("\n".join([*stale, *changed]) or "all tables and pictures show the rows on disk")
    if changed or (check and stale):
        sys.exit("run python benchmarks/draw.py" if stale else 1)


def _pages(check: bool) -> Iterator[str]:
    tables = all_tables()
    old = {page: page.read_text(encoding="utf-8") for page in PAGES}
    shown = {name for text in old.values() for name, _ in TABLE.findall(text)}
    if shown != set(tables):
        sys.exit(f"tables without a place or a function: {sorted(shown ^ set(tables))}")
    drawn = {name: draw(*map(store.read, rows)) for name, (rows, draw) in tables.items()}
    for page, text in old.items():
        new = TABLE.sub(lambda match: f"{match[1]}{match[2]}{drawn[match[1]]}\n", text)
        if new != text:
            yield f"{page.relative_to(ROOT)}: tables"
            if not check:
                page.write_text(new, encoding="utf-8")


def thawed(page: Path, results: Path = store.RESULTS) -> Iterator[str]:
    """:return: what is frozen in the page and is not as it was, or its rows are not."""
    for names, _, digest, shown in FROZEN.findall(page.read_text(encoding="utf-8")):
        paths = [results / f"{name}.csv" for name in names.split()]
        paths += [page.parent / image for image in IMAGE.findall(shown)]
        if missing := [path.name for path in paths if not path.is_file()]:
            yield f"{page.name}: frozen {names}: {missing[0]} is gone"
        else:
            parts = shown.encode() + b"".join(path.read_bytes() for path in paths)
            if (now := hashlib.sha256(parts).hexdigest()[:16]) != digest:
                yield f"{page.name}: frozen {names}: the digest is {now}, not {digest}"


def _pictures(check: bool) -> Iterator[str]:
    matplotlib.use("Agg")
    for script in sorted(HERE.glob("figures/[a-z]*.py")):
        figure = importlib.import_module(f"figures.{script.stem}")
        wanted = store.digest(script, *(store.RESULTS / f"{name}.csv" for name in figure.ROWS))
        path = ROOT / "docs" / "pictures" / f"{script.stem}.png"
        if not path.is_file() or Image.open(path).info.get("Rows") != wanted:
            yield f"{path.relative_to(ROOT)}"
            if not check:
                figure.draw().savefig(path, dpi=110, metadata={"Rows": wanted})


if __name__ == "__main__":
    main(sys.argv[1:])
