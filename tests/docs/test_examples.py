"""The examples of the quickstart, one by one: they print what the page says that they print."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "quickstart.md"
EXAMPLE = re.compile(r"^## (.+?)\n.*?```python\n(.*?)```\n\n```text\n(.*?)```", flags=re.M | re.S)
EXAMPLES = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
NUMBER = re.compile(r"-?\d+(?:\.\d*)?")


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


def words(text):
    return re.sub(r"[\s\[\]]+", " ", NUMBER.sub("", text)).split()


def test_every_section_is_an_example():
    headings = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    assert [title for title, _, _ in EXAMPLES] == headings
    assert len(EXAMPLES) >= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said"), [example[1:] for example in EXAMPLES], ids=[title for title, _, _ in EXAMPLES]
)
def test_example(code, said):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, PAGE.name, "exec"), {})
    assert words(printed.getvalue()) == words(said)
    np.testing.assert_allclose(numbers(printed.getvalue()), numbers(said), atol=1e-9)
