"""How a table and its cells are written, and which rows it shows."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

#: By its name in a page: the names of its rows, and the function that draws it of them.
TABLES: dict[str, tuple[tuple[str, ...], Callable[..., str]]] = {}


def shows(*rows: str) -> Callable:
    """
    :param rows: names in `results`.
    :return: a decorator of what draws a table of them.
    """

    def kept(draw: Callable[..., str]) -> Callable[..., str]:
        TABLES[draw.__name__] = rows, draw
        return draw

    return kept


def all_tables() -> dict[str, tuple[tuple[str, ...], Callable[..., str]]]:
    """:return: `TABLES`, when all modules of this folder are imported."""
    for module in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        importlib.import_module(f"tables.{module.stem}")
    return TABLES


def markdown(header: Iterable, lines: Iterable[Iterable]) -> str:
    header = list(header)
    written = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in written)


def scores(row: pd.Series, digits: int = 3) -> str:
    return f"{row['error']:.{digits}f} / {row['nll']:.{digits}f}"


def longer(ratio: float) -> str:
    return f"{ratio:.1f} times longer"
