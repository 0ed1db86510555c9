"""HTML by functions: what is not markup already is text, and escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

#: Elements that have no end tag.
_VOID = {"meta"}


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | None) -> Markup:
    """
    :param children: `Markup`, or text, which is escaped.
    :param attributes: by name, `class_` for a Python keyword, `aria_label` for hyphens; None:
        without it.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """:return: one after the other, escaped where they are text."""
    return Markup(
        between.join(part if isinstance(part, Markup) else html.escape(part) for part in parts)
    )


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: str | None = None
) -> Markup:
    """
    A table that scrolls by itself where the screen is narrow; the first cell of a row names it.

    :param kind: its class.
    """
    top = element("tr", *(element("th", cell, scope="col") for cell in head))
    lines = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    parts = (element("caption", caption), element("thead", top), element("tbody", *lines))
    whole = element("table", *parts, class_=kind)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)
