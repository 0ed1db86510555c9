"""Figures in README and guide are made of rows, and their paragraphs name the tables."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def claims(monkeypatch):
    """All claims; the modules of `benchmarks` are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    pytest.importorskip("scikit_posthocs", reason="needs the extra `suites`")
    import claims
    import claims_guide  # noqa: F401

    yield claims
    for name in set(sys.modules) - before:
        if str(ROOT / "benchmarks") in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture
def prose(claims):
    import prose

    return prose


def test_pages_say_what_the_rows_say(claims, prose):
    assert not list(claims.stale())
    assert not list(prose.unnamed())


@pytest.mark.parametrize(
    "sentence",
    [
        "It has half of its errors.",
        "A step takes a few ms.",
        "On 17 data sets it is first.",
        "It is 2.4 times slower.",
        "It errs on .8 % of them.",
        "The largest error is .031 there.",
        "It takes twice as long.",
        "| SVC | ten minutes |",
    ],
)
def test_figures_are_found(prose, sentence):
    assert list(prose.figures(sentence)) == [sentence.strip("| ").replace("SVC | ", "")]
    assert not list(prose.figures(sentence, (sentence,)))


@pytest.mark.parametrize(
    "sentence",
    [
        "Python 3.11 is needed.",
        "Give `loss=0.5`, of 10 columns.",
        "[It](../lab/50%.md) has a name.",
    ],
)
def test_versions_options_and_code_are_none(prose, sentence):
    assert not list(prose.figures(sentence))


def test_a_page_that_says_something_else_is_told(claims, prose, monkeypatch, tmp_path):
    """Another figure, a figure of no rows, and a paragraph that names no table of its rows."""
    (tmp_path / "docs" / "lab").mkdir(parents=True)
    page = tmp_path / "docs" / "page.md"
    lab = "# Large\n\n## Sets\n\n<!-- table large_sets -->\n<!-- end -->\n\n## Other\n"
    (tmp_path / "docs" / "lab" / "large.md").write_text(lab)
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "PAGES", ["docs/page.md"])
    monkeypatch.setattr(prose, "NO_MEASUREMENTS", {})
    claims.CLAIMS[:] = [("docs/page.md", "large_sets", lambda rows: f"{len(rows)} times")]
    said = f"It is so {len(claims.store.read('large_sets'))} times ([measured](lab/large.md#sets))."

    page.write_text(said)
    assert not [*claims.stale(), *prose.unnamed()]
    page.write_text(said.replace("#sets", "#other"))
    assert "no table of large_sets is named" in next(prose.unnamed())
    page.write_text(said + "\n\nOr 3 times.")
    assert list(prose.unnamed()) == ["docs/page.md: of which rows is “Or 3 times.”?"]
    page.write_text("It is so 3 times ([measured](lab/large.md#sets)).")
    assert len(list(claims.stale())) == len(list(prose.unnamed())) == 1
