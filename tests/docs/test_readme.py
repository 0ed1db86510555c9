"""The code in README.md and docs/ runs as it stands, and what these pages name exists."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_moons

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")))
}
CODE = re.compile(r"```python\n(.*?)```", flags=re.S)


def names():
    X, y = make_moons(120, noise=0.3, random_state=0)
    given = {"X": X, "y": y, "Y": y[:, None].astype(float), "X_new": X[:5]}
    given |= {"C": 3, "Y_classes": np.digitize(X[:, :1], [0, 1]), "sample_weight": np.ones(120)}
    return given | {"X_sparse": csr_array(X)}


def run(page):
    found = names()
    for block in CODE.findall(PAGES[page]):
        exec(compile(block, page, "exec"), found)
    return found


@pytest.mark.slow
def test_readme_is_short_and_its_code_runs():
    assert len(PAGES["README.md"].splitlines()) <= 150
    assert len(CODE.findall(PAGES["README.md"])) == 3
    found = run("README.md")
    assert ((found["p"].numpy() > 0) & (found["p"].numpy() < 1)).all()
    assert found["history"].converged
    assert found["classifier"].predict_proba(found["X_new"]).shape == (5, 2)


@pytest.mark.slow
def test_the_guides_code_runs():
    found = run("docs/guide/choosing.md")
    np.testing.assert_allclose(found["p"].numpy().sum(axis=1), 1)
    assert found["doubt"].shape == (5,)
    assert found["history"].converged
    for name in ("classifier", "linear"):
        assert found[name].predict_proba(found["X_new"]).shape == (5, 2)


@pytest.mark.slow
def test_the_code_on_probabilities_runs():
    p = run("docs/lab/probabilities.md")["p"].numpy()
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.slow
def test_the_code_on_saving_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("docs/guide/saving.md")
    p = found["p"].numpy()
    np.testing.assert_allclose(p, found["again"].predict_proba(found["X_new"]), atol=1e-10)
    assert found["about"]["classes"] == [0, 1]


@pytest.mark.slow
def test_the_code_on_checkpoints_runs():
    found = run("docs/lab/checkpoints.md")
    assert len(found["history"]) == 5
    assert len(found["longer"]) == 8


@pytest.mark.slow
def test_the_code_on_networks_runs():
    p = run("docs/lab/networks.md")["p"].numpy()
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.slow
def test_the_code_on_large_data_runs():
    p = run("docs/lab/large-data.md")["p"]
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.drill
@pytest.mark.slow
def test_the_code_on_a_cluster_runs():
    p = run("docs/lab/cluster.md")["p"]
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.slow
def test_the_code_on_attacks_runs():
    pytest.importorskip("art", reason="needs the extra `adversarial`")
    found = run("docs/lab/attacks.md")
    assert np.abs(found["moved"] - found["X"]).max() <= 0.3 + 1e-12
    assert len(found["strengths"]) == 3
    assert np.abs(found["stronger"] - found["X"]).max() <= 0.3 + 1e-6


@pytest.mark.slow
def test_the_code_on_active_learning_runs():
    pytest.importorskip("skactiveml", reason="needs the extra `active`")
    found = run("docs/lab/active-learning.md")
    assert len(found["learner"].labelled) == 6
    assert found["doubt"].shape == (5,)
    assert 0 < found["expected"].mean < 1
    assert len(found["asked"]) == 2


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


@pytest.mark.slow
def test_the_code_on_regression_runs():
    found = run("docs/guide/regression-and-novelty.md")
    assert found["regressor"].score(found["X"][150:], found["y"][150:]) > 0.7
    assert (found["low"] < found["middle"]).all() and (found["middle"] < found["high"]).all()
    np.testing.assert_allclose(found["P"].sum(axis=1), 1)
    assert found["imputing"].score(found["holes"], found["y"]) > 0.5
    assert found["intercepts"].kappa.numpy().mean() > 0.2  # they were drawn with variance 1


@pytest.mark.slow
def test_the_code_on_novelty_runs():
    found = run("docs/guide/novelty.md")
    assert found["labels"].tolist() == [1, -1, -1]
    assert found["std"][2] > found["std"][0] and found["P"][2, 0] > 0.5 > found["P"][0, 0]


def test_the_derivations_hold():
    assert run("docs/lab/derivations.md")["curvature"] > 0


def test_no_other_page_has_code_that_nothing_runs():
    assert {page for page, text in PAGES.items() if "```python" in text} == {
        "README.md",
        "docs/guide/choosing.md",
        "docs/guide/from-svc.md",
        "docs/guide/from-svgp.md",
        "docs/guide/from-svr.md",
        "docs/guide/novelty.md",
        "docs/guide/quickstart.md",
        "docs/guide/regression-and-novelty.md",
        "docs/guide/saving.md",
        "docs/lab/active-learning.md",
        "docs/lab/attacks.md",
        "docs/lab/checkpoints.md",
        "docs/lab/cluster.md",
        "docs/lab/criteria.md",
        "docs/lab/derivations.md",
        "docs/lab/large-data.md",
        "docs/lab/networks.md",
        "docs/lab/probabilities.md",
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
