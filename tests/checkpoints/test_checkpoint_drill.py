"""SIGKILL at random moments: whatever was going on, a fit ends where it would have.

As a script, `python test_checkpoint_drill.py DIRECTORY`, it is one such fit.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

KILLS = 2


def fit(directory):
    """Of rows that are read piece by piece, so that all stages are passed."""
    import gpflow_bsvm as gb
    from gpflow_bsvm.estimators import large

    large.SAMPLE_ROWS = 500
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 2))
    score = X[:, :1] + 0.5 * X[:, 1:] ** 2 - 0.5 + 0.4 * random.normal(size=(2000, 1))
    Y = (score > 0).astype(float)
    blocks = gb.data.Blocks([(X[n : n + 300], Y[n : n + 300]) for n in range(0, len(X), 300)])
    classifier = gb.BSVMClassifier(num_inducing=20, random_state=0)
    print("begins", flush=True)
    model = classifier.fit(blocks, checkpoint=directory / "kept").model_
    ends = [np.array(classifier.penalty_), classifier.scaler_.mean_]
    np.savez(directory / "ends.npz", *ends, *(p.numpy() for p in model.parameters))


def process(directory, seconds=None):
    """:return: how long it took from where it begins; None if it was killed after `seconds`."""
    command = [sys.executable, __file__, str(directory)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout.readline() == b"begins\n"
        start = time.perf_counter()
        try:
            assert child.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            child.kill()
            return None
    return time.perf_counter() - start


@pytest.mark.slow
@pytest.mark.drill
def test_what_is_killed_ends_where_it_would_have(tmp_path):
    left_alone, killed = tmp_path / "alone", tmp_path / "killed"
    left_alone.mkdir(), killed.mkdir()
    seconds = process(left_alone)
    for after in np.random.default_rng(1).uniform(0, 0.8 * seconds, KILLS):
        if process(killed, after) is not None:  # what was kept before had brought it to its end
            break
    process(killed)
    with np.load(left_alone / "ends.npz") as expected, np.load(killed / "ends.npz") as found:
        assert found.files == expected.files
        for name in expected.files:
            np.testing.assert_array_equal(found[name], expected[name])


if __name__ == "__main__":
    fit(Path(sys.argv[1]))
