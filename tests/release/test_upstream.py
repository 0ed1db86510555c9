"""The reports to other libraries: each program prints what the page says."""

import gc
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "developers" / "upstream.md"
REPORTS = re.findall(
    r"^## (.*?)\n.*?```python\n(.*?)```\n\n```text\n(.*?)```",
    PAGE.read_text(encoding="utf-8"),
    flags=re.S | re.M,
)


@pytest.fixture
def few_objects(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """
    A program that counts objects looks at its own, not at the millions of other tests. pytest would
    keep what a warning of AutoGraph refers to.
    """
    gc.freeze()
    with caplog.at_level(logging.CRITICAL, logger="tensorflow"):
        yield
    gc.unfreeze()


@pytest.mark.slow
@pytest.mark.usefixtures("few_objects")
@pytest.mark.parametrize(("title", "program", "output"), REPORTS, ids=[one[0] for one in REPORTS])
def test_a_program_prints_what_the_page_shows(title, program, output, capsys):
    assert len(program.splitlines()) <= 25
    exec(compile(program, title, "exec"), {"__name__": "report"})
    assert capsys.readouterr().out == output
