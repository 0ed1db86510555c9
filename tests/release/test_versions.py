"""What setup.cfg claims of versions is what is tested."""

import configparser
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import gpflow_bsvm as gb
from gpflow_bsvm.optional import check_versions
from gpflow_bsvm.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT = configparser.ConfigParser()
PROJECT.read(ROOT / "setup.cfg", encoding="utf-8")
EXTRAS = PROJECT["options.extras_require"]
REQUIRED = [
    Requirement(text)
    for group in (PROJECT["options"]["install_requires"], *EXTRAS.values())
    for text in group.split("\n")
    if text and not text.startswith("gpflow_bsvm")
]


def lowest():
    lines = (ROOT / "constraints" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {pin.name: Version(str(pin.specifier).removeprefix("==")) for pin in pins}


@pytest.mark.parametrize("required", REQUIRED, ids=str)
def test_the_lowest_version_that_is_claimed_is_the_one_that_is_tested(required):
    bound = next(Version(one.version) for one in required.specifier if one.operator == ">=")
    pinned = lowest()[required.name]
    # The first release of a series need not end in zeros.
    assert pinned.release[: len(bound.release)] == bound.release
    assert pinned in required.specifier


def test_a_requirement_that_stands_in_several_extras_is_one():
    found = {}
    for required in REQUIRED:
        assert found.setdefault(required.name, required.specifier) == required.specifier


def test_the_pythons_that_are_claimed_are_those_that_can_install_it():
    claimed = re.findall(r"Python :: (3\.\d+)", PROJECT["metadata"]["classifiers"])
    minor = [int(version.split(".")[1]) for version in claimed]
    assert minor == list(range(minor[0], minor[-1] + 1))
    assert PROJECT["options"]["python_requires"] == f">=3.{minor[0]},<3.{minor[-1] + 1}"


def test_what_gpflow_asks_of_numpy_is_what_the_guide_says():
    """From 2.10 on a version below 2, before none."""
    found = [Requirement(text) for text in metadata.requires("gpflow")]
    (numpy,) = (required for required in found if required.name == "numpy")
    assert ("2.0" in numpy.specifier) == (Version(metadata.version("gpflow")) < Version("2.10"))
    guide = (ROOT / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
    assert "GPflow 2.10 and later requires NumPy below 2" in guide


def test_the_version_is_the_same_wherever_it_stands():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changes, flags=re.M)
    assert headings[0] == "Unreleased" or headings[0] == __version__
    assert __version__ in headings
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation


@pytest.mark.parametrize("found", ["2.8.1", "2.9.2", None])
def test_a_package_that_is_too_old_is_told_before_it_fails(monkeypatch, found):
    def version(name):
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "requires", lambda name: ["gpflow>=2.9.2", 'x>1; extra == "y"'])
    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(gb, "check_versions", check_versions.__wrapped__)
    if found != "2.8.1":
        assert gb.BSVMClassifier
        return
    with pytest.raises(
        ImportError, match=r"^gpflow 2.8.1 is installed.*pip install \"gpflow>=2.9.2"
    ):
        gb.__getattr__("BSVMClassifier")
