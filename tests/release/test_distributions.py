"""The sdist and the wheel: built, checked, and installed beside nothing else of this repository."""

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np
import pytest

from gpflow_bsvm.version import __version__

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpflow_bsvm"
ABOUT = f"gpflow_bsvm-{__version__}"

pytestmark = pytest.mark.slow

#: A stranger's first minute: the papers need no import of their own, a file is fitted, and a page
#: made of a template.
TRIED = """
import gpflow_bsvm as gb, numpy as np, sys
assert gb.papers.wistuba2018.ClassByClass().max_steps == 200
from gpflow_bsvm.cli import main
assert gb.__file__.startswith(sys.prefix), gb.__file__
rows = np.random.default_rng(0).normal(size=(60, 2))
lines = [f"{a},{b},{'yes' if a > b else 'no'}" for a, b in rows]
open("rows.csv", "w").write("\\n".join(["a,b,label", *lines]))
compare = ["compare", "rows.csv", "--models", "svc", "--folds", "2", "--report", "page.html"]
assert main(compare) == 0 and "rows" in open("page.html", encoding="utf-8").read()
classifier = gb.BSVMClassifier(loss="levels", penalty=2, learn_kernel=False, num_inducing=20)
assert classifier.fit(rows, rows[:, 0] > rows[:, 1]).score(rows, rows[:, 0] > rows[:, 1]) > 0.9
"""


def done(*words, cwd=None):
    found = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel is made from the sdist, as an index would make it; without a network."""
    folder = tmp_path_factory.mktemp("built")
    clean = ignore_patterns(
        "__pycache__", "*.egg-info", ".*", "build", "dist", "benchmarks", "docs"
    )
    source = copytree(ROOT, folder / "source", ignore=clean)
    done(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source)
    return folder / "dist"


def test_they_are_what_an_index_takes(built):
    assert {path.name for path in built.iterdir()} == {
        f"{ABOUT}.tar.gz",
        f"{ABOUT}-py3-none-any.whl",
    }
    done(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())


def test_the_wheel_holds_the_package_and_nothing_else(built):
    wheel = zipfile.ZipFile(built / f"{ABOUT}-py3-none-any.whl")
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html"), PACKAGE / "py.typed"]
    assert files == {path.relative_to(ROOT).as_posix() for path in wanted}
    about = message_from_bytes(wheel.read(f"{ABOUT}.dist-info/METADATA"))
    assert about["License-Expression"] == "Apache-2.0" and about["Requires-Python"]
    assert f"{ABOUT}.dist-info/licenses/LICENSE" in wheel.namelist()
    assert sum(one.compress_size for one in wheel.infolist()) < 500_000


def test_the_sdist_holds_what_builds_the_wheel(built):
    with tarfile.open(built / f"{ABOUT}.tar.gz") as archive:
        files = {Path(name).relative_to(ABOUT) for name in archive.getnames()}
    folders = {path.parts[0] for path in files if len(path.parts) > 1}
    assert folders == {"gpflow_bsvm", "gpflow_bsvm.egg-info"}
    wanted = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "setup.cfg")
    assert set(map(Path, wanted)) <= files


def test_the_wheel_works_where_there_is_nothing_else_of_this_repository(built, tmp_path):
    """Its requirements are those of this environment: to install TensorFlow anew takes minutes."""
    done(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    scripts = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    python = next(scripts.glob("python*"))
    done(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"),
        "--ignore-installed",  # here it is, for these tests
        built / f"{ABOUT}-py3-none-any.whl",
    )
    (own,) = (tmp_path / "venv").rglob("site-packages")
    (own / "requirements.pth").write_text(str(Path(np.__file__).parents[1]))
    done(python, "-I", "-c", TRIED, cwd=tmp_path)
    assert __version__ in done(python, "-I", "-m", "gpflow_bsvm", "--version", cwd=tmp_path)
