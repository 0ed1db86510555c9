"""The reports to other libraries: each program prints what the page says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "developers" / "upstream.md"
REPORTS = re.findall(
    r"^## (.*?)\n.*?```python\n(.*?)```\n\n```text\n(.*?)```",
    PAGE.read_text(encoding="utf-8"),
    flags=re.S | re.M,
)


@pytest.mark.slow
@pytest.mark.parametrize(("title", "program", "output"), REPORTS, ids=[one[0] for one in REPORTS])
def test_a_program_prints_what_the_page_shows(title, program, output, capsys):
    assert len(program.splitlines()) <= 25
    exec(compile(program, title, "exec"), {"__name__": "report"})
    assert capsys.readouterr().out == output
