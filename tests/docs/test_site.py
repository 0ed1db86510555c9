"""The site's own parts. That it builds without a warning is for `make site`."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra `docs`")
from sphinx.util.matching import patfilter

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "site"))
import docstrings  # noqa: E402
import formulas  # noqa: E402
import rooms  # noqa: E402

PAGES = [
    str(path.relative_to(ROOT).with_suffix(""))
    for path in (*ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.*"))
    if "site" not in path.parts and path != ROOT / "docs" / "lab" / "README.md"  # its own index
]


def patterns():
    lines = (ROOT / "docs" / "site" / "navigation.md").read_text(encoding="utf-8").splitlines()
    return [line.lstrip("/") for line in lines if line.startswith("/")]


@pytest.mark.parametrize("page", PAGES)
def test_the_navigation_leads_to_every_page(page):
    found = [pattern for pattern in patterns() if list(patfilter([page], pattern))]
    assert found, f"{page} is in no navigation: add a line to docs/site/navigation.md"


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").glob("**/*.md")), ids=lambda page: page.name
)
def test_no_line_is_lost(page):
    """A line that begins with a percent sign is a comment to MyST, though GitHub shows it."""
    assert not re.findall(r"^ *%.*$", page.read_text(encoding="utf-8"), flags=re.M)


@pytest.mark.parametrize("room", rooms.rooms())
def test_every_public_name_is_in_the_reference(room):
    module = __import__(f"gpflow_bsvm.{room}", fromlist=["*"])
    page = rooms.section(room)
    names = getattr(module, "__all__", rooms.public_names(module))
    assert names
    for name in names:
        assert re.search(rf"^\.\. auto\w+:: gpflow_bsvm\.\S*\b{name}$", page, flags=re.M)


def test_every_room_has_a_task():
    assert sorted(room for _, _, names in rooms.TASKS for room in names) == rooms.rooms()


def test_the_lab_report_is_off_the_main_navigation():
    text = (ROOT / "docs" / "site" / "navigation.md").read_text(encoding="utf-8")
    main, report = text.split("# docs/lab/README")
    assert "docs/lab" not in main
    assert "](docs/lab/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {f"/docs/lab/{path.stem}" for path in ROOT.glob("docs/lab/*.md")}
    assert {line for line in report.splitlines() if "/" in line} == pages - {"/docs/lab/README"}


def test_a_constant_is_where_its_comment_is():
    assert ".. autodata:: gpflow_bsvm.active.POLICIES" in rooms.section("active")
    assert ".. autofunction:: gpflow_bsvm.metrics.evaluate" in rooms.section("metrics")


def test_formulas_and_tables_are_literal():
    text = "One line:\n\n    a * b\n    c | d\n\nand `Hinge`, `x y` and `z`s.\n\n" + (
        '"one"   said at length,\n        over two lines'
    )
    assert docstrings.convert(text) == (
        "One line:\n\n::\n\n    a * b\n    c | d\n\n"
        "and :py:obj:`Hinge <gpflow_bsvm.likelihoods.Hinge>`, ``x y`` and ``z``\\ s.\n\n"
        '::\n\n    "one"   said at length,\n            over two lines'
    )


def test_what_restructuredtext_would_read_is_escaped():
    assert docstrings.convert("A 2*3, |f|, x_ and a_b, r'\\n'.") == (
        "A 2\\*3, \\|f\\|, x\\_ and a_b, r'\\\\n'."
    )


def test_fields_keep_what_is_indented_below_them():
    text = "Say.\n\n:param x: one,\n    two.\n:ivar w_: three.\n:return: four\n\n        f = 1"
    first, fields = docstrings.convert(text).split("\n\n", maxsplit=1)
    assert first == "Say."
    assert fields == (
        ":param x: one, two.\n:ivar w\\_: three.\n:return: four\n\n    ::\n\n        f = 1"
    )


def test_names_of_gpflow_are_not_taken_for_ours():
    assert docstrings.convert("`Constant`") == "``Constant``"  # a kernel there, a schedule here
    assert "inference.RobbinsMonro" in docstrings.convert("`gpflow_bsvm.inference.RobbinsMonro`")


def test_two_colons_before_code_are_one():
    text = docstrings.convert("Iterated over,\nby a function::\n\n    fit(x)\n\nAnd so on.")
    assert text == "Iterated over,\nby a function:\n\n::\n\n    fit(x)\n\nAnd so on."


def test_formulas_have_the_spaces_of_tex():
    found = re.sub(r"\s+<", "<", formulas.spaced(formulas.tex2mathml(r"E \log L \exp(x)")))
    thin = formulas.THIN
    assert f"<mi>E</mi>{thin}<mi>log</mi><mo>&ApplyFunction;</mo>{thin}<mi>L</mi>" in found
    assert f"{thin}<mi>exp</mi><mo>&ApplyFunction;</mo><mo stretchy" in found
