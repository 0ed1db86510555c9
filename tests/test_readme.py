"""The README's code runs as it stands, and its pictures and pages exist."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_examples_run_one_after_the_other():
    X, y = make_moons(150, noise=0.3, random_state=0)
    names = {"X": X, "y": y, "Y": y[:, None].astype(float), "X_new": X[:5]}
    names |= {"C": 3, "Y_classes": np.digitize(X[:, :1], [0, 1])}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert len(blocks) >= 3
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    np.testing.assert_allclose(names["p"].numpy().sum(axis=1), 1)
    assert names["doubt"].shape == (5,)
    assert names["history"].converged
    assert names["classifier"].predict_proba(X[:5]).shape == (5, 2)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists()


def test_layout_names_what_there_is():
    layout = README.split("How the code is laid out")[1].split("Imports run one way")[0]
    for name in re.findall(r"\b(\w+(?:\.py|/))", layout):
        inside = ROOT / "gpflow_bsvm" / name
        assert inside.exists() or (ROOT / name).exists(), name
    modules = {path.stem for path in (ROOT / "gpflow_bsvm").rglob("*.py")} - {"__init__"}
    unnamed = {name for name in modules if not re.search(rf"\b{name}\b", layout)}
    compare = {"labels", "peers", "processes", "protocol", "report", "training"}
    assert unnamed <= {"base", "version", "extras"} | compare
