"""The notebooks run from top to bottom: their assertions are tests."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.py"))


def test_notebooks_are_found():
    assert {path.stem for path in NOTEBOOKS} >= {"getting_started", "add_a_likelihood"}


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch):
    # The kernel inherits the environment, where a test run may have asked for no pictures.
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    jupytext = pytest.importorskip("jupytext", reason="needs the extra `dev`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `dev`")
    notebook = jupytext.read(path)
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
