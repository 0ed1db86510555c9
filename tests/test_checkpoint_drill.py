"""SIGKILL at random moments: whatever was going on, the fits end where they would have."""

import numpy as np
import pytest
from fault_drill import drill


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("undisturbed")
    drill(directory, 0, 0)
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_fits_that_are_killed_end_where_they_would_have(undisturbed, tmp_path, seed):
    killed, seen = drill(tmp_path, 4, seed)
    print(f"{killed} kills, {seen} checkpoints there at the kills")
    assert killed > 1
    assert seen > 0
    with np.load(undisturbed / "ends.npz") as expected, np.load(tmp_path / "ends.npz") as found:
        assert found.files == expected.files
        for name in found.files:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
