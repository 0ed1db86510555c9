"""The user guide: all of its code runs and prints what it says, and it stays short."""

import ast
import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

import gpflow_bsvm as gb

FOLDER = Path(__file__).parents[2] / "docs" / "guide"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
PACKAGE = Path(gb.__file__).parent
#: A block of code, and what it prints where the page says so.
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d*)?")
#: Tables of the way from elsewhere run line by line, too: `test_migration`.
WITH_CODE = [name for name, text in PAGES.items() if "```python" in text]


def words_of(text):
    return text.replace("|", " ").split()


def test_the_guide_is_short():
    assert len(PAGES) <= 13
    assert sum(len(words_of(text)) for text in PAGES.values()) <= 12_000


def test_a_page_has_one_measured_table_at_most():
    assert max(len(re.findall("<!-- (table|frozen) ", text)) for text in PAGES.values()) == 1


@pytest.fixture
def given(tmp_path, monkeypatch):
    """What a page takes for the reader's own: rows, labels, and a file."""
    monkeypatch.chdir(tmp_path)
    X, kind = load_iris(return_X_y=True, as_frame=True)
    X.assign(kind=load_iris().target_names[kind]).to_csv("flowers.csv", index=False)
    X, y = make_moons(120, noise=0.3, random_state=0)
    labels = {"Y": y[:, None].astype(float), "Y_classes": np.digitize(X[:, :1], [0, 1]), "C": 3}
    return {"X": X, "y": y, "X_new": X[:5], "sample_weight": np.ones(120)} | labels


def printed_by(code, given):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "guide", "exec"), given)
    return printed.getvalue()


def letters(text):
    return re.sub(r"[\s\[\]]+", " ", NUMBER.sub("", text)).split()


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_runs_and_prints_what_the_page_says(page, given):
    for code, said in BLOCK.findall(PAGES[page]):
        printed = printed_by(code, given)
        if said:
            assert letters(printed) == letters(said)
            np.testing.assert_allclose(numbers(printed), numbers(said), atol=1e-9)
    check = CHECKS.get(page)
    if check:
        check(given)


def check_choosing(found):
    np.testing.assert_allclose(found["p"].numpy().sum(axis=1), 1)
    assert found["history"].converged and found["doubt"].shape == (5,)
    assert (found["low"] < found["high"]).all()


def check_kernels(found):
    assert found["history"].converged
    fixed = found["fixed"].model_.kernel.kernels[1].variance
    np.testing.assert_allclose(fixed, 0.1)


def check_large_data(found):
    assert ((found["p"] > 0) & (found["p"] < 1)).all()
    assert (len(found["history"]), len(found["longer"])) == (5, 8)


def check_saving(found):
    p = found["again"].predict_proba(found["X_new"])
    np.testing.assert_allclose(found["p"].numpy(), p, atol=1e-10)
    assert found["about"]["classes"] == [0, 1]


def check_regression_and_novelty(found):
    assert (found["low"] < found["middle"]).all() and (found["middle"] < found["high"]).all()
    np.testing.assert_allclose(found["expected_grade"].mean(), found["grades"].mean(), atol=0.3)
    assert found["intercepts"].kappa.numpy().mean() > 0.2  # they were drawn with variance 1
    assert found["labels"].tolist() == [1, -1, -1]
    assert found["std"][2] > found["std"][0] and found["P"][2, 0] > 0.5 > found["P"][0, 0]


CHECKS = {
    "choosing": check_choosing,
    "kernels": check_kernels,
    "large-data": check_large_data,
    "saving": check_saving,
    "regression-and-novelty": check_regression_and_novelty,
}


NAMES = {name for text in PAGES.values() for name in re.findall(r"\bgb((?:\.\w+)+)", text)}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_names_in_the_guide_exist(name):
    found = gb
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def strings_of(path):
    """Texts of a module, with "…" for what is put into them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                getattr(part, "value", "…") if isinstance(part, ast.Constant) else "…"
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_messages_in_troubleshooting_are_ours():
    ours = "\n".join(text for path in PACKAGE.rglob("*.py") for text in strings_of(path))
    cells = re.findall(
        r"^\| (`.*?) \| ", PAGES["troubleshooting"].split("## What you see")[0], re.M
    )
    messages = [message for cell in cells for message in re.findall("`(.*?)`", cell)]
    parts = [
        part.strip() for message in messages for part in re.split(r"…,?|float\d\d|\[…]", message)
    ]
    theirs = "Sparse data was passed for X, but dense data is required"  # scikit-learn's
    unknown = [part for part in parts if len(part) > 6 and part not in ours and part != theirs]
    assert len(messages) > 20 and not unknown


@pytest.mark.slow
def test_the_check_of_an_installation_fits_something():
    """Unlike an import of the package alone, it needs TensorFlow."""
    (code,) = re.findall(r'python -c "(.*)"\n', PAGES["install"])
    assert f"prints `{printed_by(code, {}).strip()}`" in PAGES["install"]
    assert "BSVMClassifier" in code


def test_programs_of_the_quickstart_stand_alone():
    text = PAGES["quickstart"]
    codes = [code for code, _ in BLOCK.findall(text)]
    assert len(codes) == 7
    assert all(re.match(r"(import|from) ", code) for code in codes)
