"""The code in README.md and the lab report runs, and what all pages name exists."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")))
}
CODE = re.compile(r"```python\n(.*?)```", flags=re.S)


def names():
    X, y = make_moons(120, noise=0.3, random_state=0)
    given = {"X": X, "y": y, "Y": y[:, None].astype(float), "X_new": X[:5]}
    return given


def run(page):
    found = names()
    for block in CODE.findall(PAGES[page]):
        exec(compile(block, page, "exec"), found)
    return found


@pytest.mark.slow
def test_readme_is_short_and_its_code_runs():
    assert len(PAGES["README.md"].splitlines()) <= 150
    first, second = CODE.findall(PAGES["README.md"])
    said = re.search(r"```text\n(.*?)```", PAGES["README.md"], flags=re.S)[1]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        found = {}
        exec(compile(first, "README.md", "exec"), found)
    assert printed.getvalue() == said
    exec(compile(second, "README.md", "exec"), found)
    assert found["history"].converged
    assert ((found["p"].numpy() > 0.5)[:, 0] == found["y_new"]).mean() > 0.9


@pytest.mark.slow
def test_the_code_on_checkpoints_runs():
    found = run("docs/lab/checkpoints.md")
    assert len(found["history"]) == 5
    assert len(found["longer"]) == 8


@pytest.mark.drill
@pytest.mark.slow
def test_the_code_on_a_cluster_runs():
    p = run("docs/lab/cluster.md")["p"]
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.slow
def test_the_code_on_attacks_runs():
    pytest.importorskip("art", reason="needs the extra `adversarial`")
    found = run("docs/lab/attacks.md")
    assert np.abs(found["moved"] - found["X"]).max() <= 0.3 + 1e-6  # ART's single precision
    assert found["auc"] > 0.5


@pytest.mark.slow
def test_the_code_on_active_learning_runs():
    pytest.importorskip("skactiveml", reason="needs the extra `active`")
    found = run("docs/lab/active-learning.md")
    assert len(set(found["labelled"])) == 20
    assert found["doubt"].shape == (5,)
    assert 0 < found["expected"].mean < 1
    assert np.isfinite(found["y_known"]).sum() == 26
    assert np.isnan(found["y_known"][found["together"]]).all()


@pytest.mark.drill
@pytest.mark.slow
def test_the_code_on_criteria_runs():
    found = run("docs/lab/criteria.md")
    assert found["found"].best.value >= max(o.value for o in found["found"].optima)
    assert found["f"].shape == (5,)
    assert found["svc"].score(found["X"], found["y"]) > 0.8


@pytest.mark.drill
@pytest.mark.slow
def test_the_code_on_seegers_method_runs():
    found = run("docs/lab/seeger.md")
    assert found["svc"].score(found["X"], found["y"]) > 0.8
    assert ((found["p"].numpy() > 0) & (found["p"].numpy() < 1)).all()
    assert found["history"].elbo[-1] > found["history"].elbo[0]


def test_the_derivations_hold():
    assert run("docs/lab/derivations.md")["curvature"] > 0


def test_no_other_page_has_code_that_nothing_runs():
    with_code = {page for page, text in PAGES.items() if "```python" in text}
    elsewhere = ("docs/guide/", "docs/developers/")  # test_guide, test_developers
    assert {page for page in with_code if not page.startswith(elsewhere)} == {
        "README.md",
        "docs/lab/active-learning.md",
        "docs/lab/attacks.md",
        "docs/lab/checkpoints.md",
        "docs/lab/cluster.md",
        "docs/lab/criteria.md",
        "docs/lab/derivations.md",
        "docs/lab/seeger.md",
    }


def heading_anchors(text):
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("page", "link"),
    [
        (page, link)
        for page, text in PAGES.items()
        for link in re.findall(r"\]\((?!http)([^)\s]+)\)", text)
    ],
)
def test_links_lead_somewhere(page, link):
    path, _, anchor = link.partition("#")
    target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    assert target.exists()
    if anchor:
        assert anchor in heading_anchors(target.read_text(encoding="utf-8"))


def test_layout_names_every_room():
    layout = (
        PAGES["CONTRIBUTING.md"].split("How the code is laid out")[1].split("- A likelihood")[0]
    )
    rooms = {path.parent.name for path in (ROOT / "gpflow_bsvm").glob("*/__init__.py")}
    assert rooms == {name for name in re.findall(r"`(\w+)/`", layout) if name in rooms}


def test_the_map_names_files_that_there_are():
    files = set(re.findall(r"`(\w+/\w+\.py)`", PAGES["docs/developers/map.md"]))
    assert len(re.findall(r"^\| \d+ \|", PAGES["docs/developers/map.md"], flags=re.M)) <= 12
    missing = {name for name in files if not (ROOT / "gpflow_bsvm" / name).exists()}
    assert not missing
