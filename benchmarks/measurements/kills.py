"""Fits that are killed and started again: where do they end?

Each is first left alone, which says how long it takes and where it ends. Then it is killed with
SIGKILL at random moments from its beginning to that duration, each time started again by the same
call, until it comes to its end, and begins anew until there were `KILLS` of them. "difference" is
the greatest between the numbers with which a run ended and those of the undisturbed one;
"checkpoints" is how many were there at the kill, "halves" how many files were half written.

`python benchmarks/measurements/kills.py NAME DIRECTORY` is one such process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

KILLS, SEED = 5, 0
ROWS, COLUMNS, NUM_INDUCING = 200, 2, 8
MINIBATCHES = {"batch_size": 20, "max_steps": 3000, "record_every": 10}
PLAIN = {"learn_kernel": False, "loss": "levels", "penalty": 2.0, "random_state": 0}


def algorithms() -> dict:
    """:return: with so many records that a fit takes seconds."""
    from gpflow_bsvm import inference as i

    i.samples.Sampler.block = 5
    slowly = {"max_steps": 200, "tol": 0.0, "learning_rate": 0.05}
    return {
        "CAVI": i.CAVI(**slowly),
        "Streaming": i.Streaming(**slowly),
        "ECM": i.ECM(max_steps=200, tol=0.0),
        "SVI": i.SVI(average=True, learning_rate=i.Adaptive(), **MINIBATCHES),
        "ML2": i.ML2(**MINIBATCHES),
        "VEM": i.VEM(max_steps=60, tol=0.0),
        "Gibbs": i.Gibbs(300, 100, 2),
        "HMC": i.HMC(200, 50, 2),
    }


NAMES = ("CAVI", "Streaming", "ECM", "SVI", "ML2", "VEM", "Gibbs", "HMC", "classifier")


def rows(number: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(number, COLUMNS))
    score = X[:, :1] + 0.5 * X[:, 1:] ** 2 - 0.5 + 0.4 * random.normal(size=(number, 1))
    return X, (score > 0).astype(float)


def fit(name: str, directory: Path) -> list[np.ndarray]:
    """:return: what is there at the end."""
    import gpflow

    import gpflow_bsvm as gb

    if name == "classifier":
        return _classifier(directory)
    X, Y = rows()
    kernel = gpflow.kernels.SquaredExponential(2.0)
    model = gb.models.BSVM(kernel, gb.likelihoods.Hinge(bound="augmented"), X[:NUM_INDUCING].copy())
    gpflow.set_trainable(model.inducing_variable, False)
    _begins()
    found = algorithms()[name].run(model, (X, Y), checkpoint=directory / "kept")
    parts = [found.s] if hasattr(found, "s") else [np.array(found.step), np.array(found.elbo)]
    return [*parts, *(parameter.numpy() for parameter in model.parameters)]


def _classifier(directory: Path) -> list[np.ndarray]:
    """Of rows that are read piece by piece, so that all its stages are passed."""
    import gpflow_bsvm as gb
    from gpflow_bsvm.estimators import survey

    survey.SAMPLE_ROWS = 500
    X, Y = rows(2000)
    blocks = gb.data.Blocks([(X[n : n + 300], Y[n : n + 300]) for n in range(0, len(X), 300)])
    classifier = gb.BSVMClassifier(num_inducing=20, random_state=0)
    _begins()
    model = classifier.fit(blocks, checkpoint=directory / "kept").model_
    about = [np.array(classifier.penalty_), classifier.scaler_.mean_]
    return [*about, *(parameter.numpy() for parameter in model.parameters)]


def _begins() -> None:
    print("begins", flush=True)


def run() -> Iterator[dict]:
    for number, name in enumerate(NAMES):
        yield from drill(name, KILLS, np.random.default_rng([SEED, number]))


def drill(name: str, kills: int, random: np.random.Generator) -> Iterator[dict]:
    """Yield a row for every kill."""
    with TemporaryDirectory() as place:
        seconds = _process(name, Path(place), None)
        expected, killed = _ends(Path(place)), 0
    while killed < kills:
        with TemporaryDirectory() as place:
            found: list[dict] = []
            while killed < kills:
                after = float(random.uniform(0, seconds))
                if _process(name, Path(place), after) is not None:
                    break
                killed += 1
                found.append({"fit": name, "kill": killed, "seconds": after, **_left(Path(place))})
            if not (Path(place) / "ends.npz").exists():
                _process(name, Path(place), None)
            difference = _difference(_ends(Path(place)), expected)
            yield from ({**row, "of": seconds, "difference": difference} for row in found)


def _process(name: str, directory: Path, kill_after: float | None) -> float | None:
    """:return: seconds that it took from where it said that it begins; None if it was killed."""
    here = Path(__file__)
    environment = os.environ | {"PYTHONPATH": str(here.parents[2])}
    command = [sys.executable, str(here), name, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"begins\n":
            raise RuntimeError(f"{name} did not begin")
        start = time.perf_counter()
        try:
            if process.wait(kill_after) != 0:
                raise RuntimeError(f"{name} failed")
        except subprocess.TimeoutExpired:
            process.kill()
            return None
    return time.perf_counter() - start


def _left(directory: Path) -> dict[str, int]:
    number: Callable[[str], int] = lambda pattern: len(list(directory.rglob(pattern)))  # noqa: E731
    return {"checkpoints": number("checkpoint-*.npz"), "halves": number(".checkpoint-*.part")}


def _ends(directory: Path) -> list[np.ndarray]:
    with np.load(directory / "ends.npz") as stored:
        return [stored[name] for name in stored.files]


def _difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """:return: infinity where not even kinds and shapes are alike."""
    greatest = 0.0
    for one, two in zip(found, expected, strict=True):
        if one.shape != two.shape or one.dtype != two.dtype:
            return np.inf
        if not np.array_equal(one, two):
            greatest = max(greatest, float(np.max(np.abs(one - two))))
    return greatest


if __name__ == "__main__":
    from gpflow_bsvm.atomic import whole_file

    place = Path(sys.argv[2])
    ends = fit(sys.argv[1], place)
    with whole_file(place / "ends.npz") as file:
        np.savez(file, *ends)
