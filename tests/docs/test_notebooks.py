"""The notebooks run from top to bottom: their assertions are tests."""

import base64
import importlib.util
import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def tool():
    """`notebooks/executed/execute.py`."""
    pytest.importorskip("jupytext", reason="needs the extra `dev`")
    pytest.importorskip("nbclient", reason="needs the extra `dev`")
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "executed" / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notebooks_are_found():
    assert {path.stem for path in NOTEBOOKS} >= {"getting_started", "add_a_likelihood"}


#: Those that take longest are drills: .ci/run has no time for all.
LONGEST = (
    *("landscape", "learned_kernels", "known_probabilities", "family", "many_rows"),
    *("several_classes", "versus_softmax", "adversarial", "deep_features"),
)


#: Of which a Jupyter kernel of its own runs the cells.
ALONE = "novelty"


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.drill] * (path.stem in LONGEST), id=path.stem)
        for path in NOTEBOOKS
        if path.stem != ALONE
    ],
)
@pytest.mark.usefixtures("tf_seed")
def test_notebook(path, tool, tmp_path, monkeypatch):
    """In this process, whose graphs they share; what a cell shows is in `executed`."""
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    found = {"__name__": "__main__"}
    for cell in tool.load(path, short=True).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{path.name}, {cell.id}", "exec"), found)
    assert plt.get_fignums()
    plt.close("all")


@pytest.mark.slow
@pytest.mark.notebook
def test_a_notebook_in_a_process_of_its_own(tool, tmp_path):
    notebook = tool.load(FOLDER / f"{ALONE}.py", short=True)
    tool.execute(notebook, tmp_path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_shown_is_of_this_notebook(path, tool):
    if not tool.executed(path).is_file():
        pytest.skip("not executed: make notebooks-executed")
    assert tool.stale(path) == ""


def test_every_executed_notebook_has_a_script():
    found = {path.stem for path in FOLDER.glob("executed/*.ipynb")}
    assert found <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_title_and_summary(path, tool):
    first = tool.load(path).cells[0]
    assert first.cell_type == "markdown"
    title, _, summary = first.source.partition("\n")
    assert title.startswith("# ")
    assert len(summary.strip()) > 50


SCRIPT = """# %% [markdown]
# # Title

# %% short="n = 1"
n = 10

# %%
print("n is", n)
"""


def many_colours():
    picture, file = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8), io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture
def script(tmp_path, tool, monkeypatch):
    """A notebook that has been executed, without a process of its own."""

    def execute(notebook, folder):
        for cell in notebook.cells[1:]:
            said = tool.nbformat.v4.new_output("stream", text=f"of {cell.source}")
            wrong = tool.nbformat.v4.new_output("stream", name="stderr", text="/home/me: a warning")
            drawn = tool.nbformat.v4.new_output("display_data", {"image/png": many_colours()})
            cell.outputs = [said, wrong, drawn]

    monkeypatch.setattr(tool, "execute", execute)
    path = tmp_path / "some.py"
    path.write_text(SCRIPT)
    (tmp_path / "executed").mkdir()
    assert "not been executed" in tool.stale(path)
    assert tool.renew(path) == "executed"
    assert tool.stale(path) == ""
    return path


def test_only_the_tests_take_the_short_way(script, tool):
    sources = [
        [cell.source for cell in tool.load(script, short=s).cells[1:]] for s in (False, True)
    ]
    assert sources == [["n = 10", 'print("n is", n)'], ["n = 1", 'print("n is", n)']]
    assert '"short"' not in tool.executed(script).read_text()


def test_new_words_keep_the_outputs(script, tool):
    script.write_text(SCRIPT.replace("Title", "Another"))
    assert "words have changed" in tool.stale(script)
    assert tool.renew(script) == "has new words"
    assert tool.stale(script) == ""
    assert "of n = 10" in tool.executed(script).read_text()


def test_new_code_is_executed_anew(script, tool):
    script.write_text(SCRIPT.replace("n = 10", "n = 11"))
    assert "code has changed" in tool.stale(script)
    assert tool.renew(script) == "executed"
    assert tool.stale(script) == ""
    assert "of n = 11" in tool.executed(script).read_text()


def test_outputs_are_small_and_of_no_machine(script, tool, monkeypatch):
    path = tool.executed(script)
    assert "a warning" not in path.read_text()
    monkeypatch.setattr(tool, "MOST_BYTES", 10)
    assert "more than 10" in tool.stale(script)
    monkeypatch.undo()
    path.write_text(path.read_text().replace("of n = 10", "of /home/me/n"))
    assert "/home/me/n" in tool.stale(script)


def test_pictures_keep_their_size_and_lose_colours(script, tool):
    shown = tool.nbformat.read(tool.executed(script), as_version=4)
    *_, drawn = shown.cells[1].outputs
    picture = Image.open(io.BytesIO(base64.b64decode(drawn.data["image/png"])))
    assert (picture.mode, picture.size) == ("P", (60, 40))
    assert len(drawn.data["image/png"]) < 0.6 * len(many_colours())
