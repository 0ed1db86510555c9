"""Notebooks with their outputs, for those who only read.

    python notebooks/executed/execute.py [NAME ...]   executes those older than their script
    python notebooks/executed/execute.py --check      fails where there are any

`notebooks/NAME.py` is the notebook, and what people change; `notebooks/executed/NAME.ipynb` is the
same cells with their outputs. Where only words have changed, the outputs stay. A name that is given
is executed in any case. Of a cell's metadata, "short" is what the tests execute in its place.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbclient
import nbformat
from nbformat import NotebookNode
from PIL import Image

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.parent.glob("*.py"))
#: A repository is no place for pictures of megabytes.
MOST_BYTES = 300_000
_COLOURS = 256
#: Whoever executes may have asked for no pictures.
_INLINE = "module://matplotlib_inline.backend_inline"
#: What only one machine has.
_PATH = re.compile(r"(?:/(?:home|root|tmp|work|usr|opt|Users|var)/|\b[A-Z]:\\)\S*")


def load(script: Path, *, short: bool = False) -> NotebookNode:
    """
    :param short: whether loops are as short as the tests want them.
    :return: its cells, without outputs.
    """
    notebook = jupytext.read(script)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # not random: an unchanged cell is no change
        shorter = cell.metadata.pop("short", None)
        cell.source = shorter if short and shorter else cell.source
    return notebook


def execute(notebook: NotebookNode, folder: Path | str) -> None:
    """
    Run the cells in a process of their own.

    :param folder: where that finds itself.
    """
    nbclient.NotebookClient(
        notebook,
        timeout=3600,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute(env=os.environ | {"MPLBACKEND": _INLINE})


def executed(script: Path) -> Path:
    """:return: where its outputs are, or should be."""
    return script.parent / "executed" / f"{script.stem}.ipynb"


def stale(script: Path) -> str:
    """:return: why its executed notebook is not what it should be, nothing if it is."""
    path = executed(script)
    if not path.is_file():
        return "has not been executed"
    shown, wanted = nbformat.read(path, as_version=4), load(script)
    if _sources(shown, "code") != _sources(wanted, "code"):
        return "its code has changed since it was executed"
    if _sources(shown) != _sources(wanted):
        return "its words have changed since it was executed"
    if path.stat().st_size > MOST_BYTES:
        return f"its outputs take {path.stat().st_size} bytes, more than {MOST_BYTES}"
    found = [place for text in _outputs(shown) for place in _PATH.findall(text)]
    return f"its outputs name {found[0]}, which only one machine has" if found else ""


def _sources(notebook: NotebookNode, *kinds: str) -> list[tuple[str, str]]:
    cells = [(cell.cell_type, cell.source.strip()) for cell in notebook.cells]
    return [cell for cell in cells if not kinds or cell[0] in kinds]


def _outputs(notebook: NotebookNode) -> list[str]:
    """:return: all that they say, but not the pictures."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    data = [output.get("data", {}) for output in outputs]
    words = [text for one in data for kind, text in one.items() if kind.startswith("text")]
    return [*words, *(output["text"] for output in outputs if "text" in output)]


def renew(script: Path, *, anyway: bool = False) -> str:
    """
    Bring its executed notebook up to date, and write nothing if a cell fails.

    :param anyway: also where its code is as it was.
    :return: what was done.
    """
    path, notebook = executed(script), load(script)
    shown = nbformat.read(path, as_version=4) if path.is_file() else None
    if shown is not None and not anyway and _sources(shown, "code") == _sources(notebook, "code"):
        _take_outputs(notebook, shown)
        done = "has new words"
    else:
        with tempfile.TemporaryDirectory() as folder:
            execute(notebook, folder)
        done = "executed"
        _drop_errors(script, notebook)
        _shrink_pictures(notebook)
    nbformat.write(notebook, path)
    return done


def _take_outputs(notebook: NotebookNode, shown: NotebookNode) -> None:
    notebook.metadata = shown.metadata
    old, new = ([c for c in one.cells if c.cell_type == "code"] for one in (shown, notebook))
    for there, here in zip(old, new):
        here.outputs, here.execution_count = there.outputs, there.execution_count


def _drop_errors(script: Path, notebook: NotebookNode) -> None:
    """What went to stderr names files of this machine: it is for whoever executes."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                print(f"{script.stem}: {output['text']}", file=sys.stderr)
        if "outputs" in cell:
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]


def _shrink_pictures(notebook: NotebookNode) -> None:
    """256 colours are enough for a diagram, and take a third of the bytes."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
                small = io.BytesIO()
                few = picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
                few.save(small, format="PNG", optimize=True)
                data["image/png"] = base64.b64encode(small.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="of scripts; none: all that are out of date")
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    given = parser.parse_args()
    unknown = set(given.names) - {script.stem for script in SCRIPTS}
    if unknown:
        parser.error(f"no notebook {sorted(unknown)}; there are {[s.stem for s in SCRIPTS]}")
    chosen = [s for s in SCRIPTS if s.stem in given.names or (not given.names and stale(s))]
    for script in [] if given.check else chosen:
        print(f"{script.stem}: {renew(script, anyway=bool(given.names))}", flush=True)
    left = [f"{script.stem}: {why}" for script in chosen if (why := stale(script))]
    sys.exit("\n".join(left) or None)


if __name__ == "__main__":
    main()
