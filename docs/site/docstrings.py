"""
Docstrings as this package writes them, to Sphinx's reStructuredText.

They are written to be read as they stand: names in single backticks, formulas and tables as
indented or aligned lines, fields `:param:`, `:return:`, `:raise:`. Formulas become literal blocks,
names become links where there is a page, and the signs that reStructuredText reads otherwise are
escaped.
"""

import functools
import re
from textwrap import dedent, indent

import gpflow

FIELD = re.compile(r":[a-z]+(?: [^:`\n]+)?:(?= |\n|$)")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
ALIGNED = re.compile(r"\S {2,}\S")
SPAN = re.compile(r"(``?)(.+?)\1", flags=re.S)


@functools.cache
def known() -> dict[str, str]:
    """:return: where a public name is documented, by that name alone and with its room's."""
    import rooms  # which imports this

    found: dict[str, str] = {}
    for room in rooms.rooms():
        module = __import__(f"gpflow_bsvm.{room}", fromlist=["*"])
        for name in rooms.public_names(module):
            target = f"gpflow_bsvm.{room}.{name}"
            found |= {f"{room}.{name}": target, target: target}
            if callable(getattr(module, name)) and not hasattr(gpflow.kernels, name):
                found.setdefault(name, target)
    return found


def _code(span: str) -> str:
    """:return: a span of code: a link, if it is a public name."""
    target = known().get(span.removesuffix("()"))
    return f":py:obj:`{span} <{target}>`" if target else f"``{span}``"


def inline(text: str) -> str:
    """:return: a paragraph with its names as code, and nothing else marked."""
    parts, end = [], 0
    for match in SPAN.finditer(text):
        parts += [_escape(text[end : match.start()]), _code(" ".join(match[2].split()))]
        end = match.end()
        if text[end : end + 1].isalnum():
            parts.append("\\ ")  # where markup ends within a word
    return "".join([*parts, _escape(text[end:])])


def _escape(text: str) -> str:
    return re.sub(r"([\\*|`]|_(?!\w))", r"\\\1", text)


def block(lines: list[str]) -> str:
    """
    :param lines: without empty ones, in a docstring whose text begins in the first column.
    :return: literal where indented or aligned, else a paragraph or list.
    """
    text = re.sub("::$", ":", "\n".join(lines))
    if all(line.startswith(" ") for line in lines) or _is_table(lines):
        return "::\n\n" + indent(dedent(text), "    ")
    if ITEM.match(lines[0]):
        return inline(text)
    return inline("\n".join(line.strip() for line in text.split("\n")))


def _is_table(lines: list[str]) -> bool:
    """:return: whether words are aligned over several lines, or hang below the second of a line."""
    aligned = sum(bool(ALIGNED.search(line)) for line in lines)
    return aligned > 1 or (aligned == 1 and any(line.startswith("    ") for line in lines))


def body(text: str) -> str:
    """:return: all before the fields."""
    blocks = [part.split("\n") for part in re.split(r"\n\s*\n", text.strip("\n")) if part.strip()]
    return "\n\n".join(block(lines) for lines in blocks)


def fields(text: str) -> str:
    """:return: the list of fields; what is indented below one belongs to it."""
    return "\n".join(_field(part) for part in re.split(rf"\n(?={FIELD.pattern})", text))


def _field(text: str) -> str:
    head = FIELD.match(text)[0]
    first, _, more = text.removeprefix(head).partition("\n\n")
    content = inline(" ".join(first.split()))
    if more.strip():
        content += "\n\n" + body(re.sub("^ {4}", "", more, flags=re.M))
    return head.replace("_:", "\\_:") + " " + indent(content, "    ").lstrip()


def convert(text: str) -> str:
    """:return: a docstring as reStructuredText."""
    start = re.search(rf"^(?={FIELD.pattern})", text, flags=re.M)
    if not start:
        return body(text)
    before, after = text[: start.start()], text[start.start() :]
    return "\n\n".join(part for part in (body(before), fields(after.rstrip())) if part)


def process(app, what, name, obj, options, lines):
    """Sphinx's event `autodoc-process-docstring`: change the lines in place."""
    lines[:] = [*convert("\n".join(lines)).split("\n"), ""]
