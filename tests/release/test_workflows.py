"""The workflows on GitHub ask for what `.ci/run` asks for, on all Pythons and systems."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
OURS = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
CLAIMED = re.findall(r"Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text(encoding="utf-8"))


def workflow(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def commands(job):
    """:return: what a job runs, once for each target of its matrix."""
    targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
    runs = [step["run"] for step in job["steps"] if "run" in step]
    return [run.replace("${{ matrix.target }}", target) for run in runs for target in targets]


def targets(lines):
    return {target for line in lines for target in re.findall(r"make ([a-z-]+)", line)}


def test_both_make_the_same_targets():
    here = targets(re.findall(r"^ *make .*", OURS, flags=re.M)) | set(
        re.findall(r"target=([a-z-]+)", OURS)
    )
    there = [run for job in workflow("ci.yml")["jobs"].values() for run in commands(job)]
    assert here == targets(there) > {"lint", "types", "test", "slow", "site", "lowest"}


def test_they_make_nothing_that_the_makefile_has_not():
    known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = workflow(path.name)["jobs"].values()
        assert targets(run for job in jobs for run in commands(job)) <= set(known)


def test_the_sample_for_other_pythons_names_tests_that_exist():
    (sample,) = re.findall(r'^SAMPLE="(.+)"', OURS, flags=re.M)
    assert [name for name in sample.split() if not (ROOT / name).is_file()] == []


def test_tests_run_on_each_python_and_system():
    matrix = workflow("ci.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == CLAIMED
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_what_is_published_has_been_built_and_tried_by_the_same_workflow():
    jobs = workflow("release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert "make dist PYTHON=python" in commands(jobs["build"])
    assert not commands(jobs["publish"])  # no code of ours runs where PyPI trusts
