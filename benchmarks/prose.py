"""README and guide: a sentence with a figure is a claim, and its paragraph names the table.

`draw.py --check` lists figures (a number and a unit) that no claim of `claims.py` or
`claims_guide.py` makes of rows, and claims beside which no link leads to a table of their rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from claims import CLAIMS, ROOT, words_of
from tables.markdown import all_tables

PAGES = ("README.md", *(f"docs/guide/{page.name}" for page in ROOT.glob("docs/guide/*.md")))
#: Figures that are no measurements, in the words of their pages, and what they are.
NO_MEASUREMENTS = {
    "takes a few minutes, because it installs everything": "the index decides, and the net",
    "80 % means eight of ten": "an example",
    "only 2 % of the rows": "an example",
    "(100 000 rows, say)": "advice",
    "GPflow's floor of .001": "an option of GPflow's",
}

_COUNT = (
    r"(?:\d[\d.,]*(?: \d{3})*|\.\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|dozens?"
    r"|hundreds?|thousands?|millions?|half|a third|a quarter|a tenth)"
)
_TIME = r"(?:ms|µs|(?:milli|micro)?seconds?|minutes?|hours?)"
_UNIT = rf"(?:%|per ?cent|sets?|seeds?|folds?|rows|errors|times|points|steps|sweeps|[kMG]B|{_TIME})"
#: "17 data sets", "half of its errors", "a few ms", ".031", "twice as long".
FIGURE = re.compile(
    rf"(?<![\w^/.])(?:{_COUNT}\s+(?:of\s+)?(?:(?:its|the|data|more|all)\s+)?{_UNIT}"
    rf"|(?:some|a few|several)\s+{_TIME}|0?\.\d+|(?:half|twice) as)(?![\w-])"
)
_TABLE = re.compile(r"<!-- table (\w+) -->.*?<!-- end -->", re.S)
_FROZEN = re.compile(r"<!-- frozen ([\w ]+) \w{7} \w{16} -->")
_LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")


def unnamed() -> Iterator[str]:
    """:return: sentences whose figures come from nowhere, claims beside no table of theirs."""
    known = dict.fromkeys(NO_MEASUREMENTS, False)
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        claims = {words_of(*claim[1:]): claim[1] for claim in CLAIMS if claim[0] == page}
        for block in blocks(text):
            known |= {words: True for words in known if words in block}
            found = {words: rows for words, rows in claims.items() if words in block}
            for sentence in figures(block, (*found, *NO_MEASUREMENTS)):
                yield f"{page}: of which rows is “{sentence}”?"
            for rows in filter(None, found.values()):
                if rows not in named(ROOT / page, block):
                    yield f"{page}: no table of {rows} is named beside “{block[:60]}...”"
    yield from (f"prose.py: “{words}” is on no page" for words, there in known.items() if not there)


def blocks(text: str) -> Iterator[str]:
    """:return: paragraphs, items of lists and lines of tables, without code and drawn tables."""
    text = re.sub(r"```.*?```", "\n\n", _TABLE.sub("\n\n", text), flags=re.S)
    for block in re.split(r"\n\s*\n|\n(?=[-|#])", text):
        yield " ".join(block.split())


def figures(block: str, known: tuple[str, ...] = ()) -> Iterator[str]:
    """:return: sentences with figures, but for those in words that are known."""
    for words in known:
        block = block.replace(words, "…")
    block = re.sub(r"`[^`]*`|\]\([^)]*\)", "…", block)
    for sentence in re.split(r"(?<=[.?!:;])\s+(?=\S)|\|", block):
        if FIGURE.search(sentence):
            yield sentence.strip()


def named(page: Path, block: str) -> set[str]:
    """:return: rows of the tables on the page, and in the sections to which the block links."""
    rows = set(_rows_of(page.read_text(encoding="utf-8")))
    for path, anchor in _LINK.findall(block):
        target = (page.parent / path).resolve()
        if anchor and target.suffix == ".md" and target.is_file():
            rows |= set(_rows_of(_section(target.read_text(encoding="utf-8"), anchor)))
    return rows


def _section(text: str, anchor: str) -> str:
    """:return: what stands under the heading of this anchor."""
    for part in re.split(r"^#+ ", text, flags=re.M)[1:]:
        heading = re.sub(r"[^\w\- ]", "", part.splitlines()[0].lower()).replace(" ", "-")
        if heading == anchor:
            return part
    return ""


def _rows_of(text: str) -> Iterator[str]:
    for name in re.findall(r"<!-- table (\w+) -->", text):
        yield from all_tables()[name][0]
    for names in _FROZEN.findall(text):
        yield from names.split()
