"""Fits that are killed and started again, for `test_checkpoint_drill.py` and for the curious.

`python tests/fault_drill.py DIRECTORY` fits one model after the other with checkpoints in
DIRECTORY, and writes what they end with to DIRECTORY/ends.npz. `drill` starts such processes, kills
each with SIGKILL at a random moment, and starts the next, until one comes to the end.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

#: Seconds from the first fit's beginning to the kill, at most: of the order of what one fit takes.
LONGEST = 8.0


def run(directory: Path) -> None:
    """Fit everything, and store what comes out."""
    from conftest import make_data, make_model
    from test_checkpoint import ALGORITHMS, SAMPLERS, everything

    from gpflow_bsvm.inference import samples

    samples.Sampler.block = 5
    data, ends = make_data(), {}
    print("begins", flush=True)
    for name, algorithm in (SAMPLERS | ALGORITHMS).items():
        model = make_model(data)
        result = algorithm.run(model, data, checkpoint=directory / name)
        parts = [result.s] if name in SAMPLERS else everything(model, result)
        ends |= {f"{name} {number}": part for number, part in enumerate(parts)}
    np.savez(directory / "ends.npz", **ends)


def drill(directory: Path, kills: int, seed: int) -> tuple[int, int]:
    """
    :param kills: at most so many; the process after them is left to come to its end.
    :return: processes that were killed, and checkpoints that were there at the kills, summed up.
    """
    random, killed, seen = np.random.default_rng(seed), 0, 0
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    while not (directory / "ends.npz").exists():
        command = [sys.executable, __file__, str(directory)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        if killed == kills:
            assert process.wait() == 0
            break
        try:
            assert process.wait(random.uniform(0, LONGEST)) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            seen += len(list(directory.glob("*/checkpoint-*.npz")))
        process.stdout.close()
    return killed, seen


if __name__ == "__main__":
    run(Path(sys.argv[1]))
