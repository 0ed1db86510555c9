"""The developers' pages: every block of code runs, and asserts what the page says of it."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "developers"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
CODE = re.compile(r"```python\n(.*?)```", flags=re.S)
#: The programs of `upstream` run, and print what the page shows, in `release/test_upstream.py`.
WITH_CODE = [name for name, text in PAGES.items() if CODE.search(text) and name != "upstream"]


def test_the_three_pages_have_code():
    assert {"engine", "graphs", "extending"} <= {*WITH_CODE}


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE)
@pytest.mark.usefixtures("tf_seed")
def test_the_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"__name__": page}
    for code in CODE.findall(PAGES[page]):
        exec(compile(code, page, "exec"), given)
