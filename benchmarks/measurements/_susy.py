"""The SUSY data of Baldi et al. (2014), for those who have the file: 5 000 000 rows on disk."""

from __future__ import annotations

import os
from pathlib import Path

from gpflow_bsvm.data import Part
from gpflow_bsvm.datasets import DATA_VARIABLE, DataError, data_directory
from gpflow_bsvm.files import CSVFiles

#: Rows at the end of the file that are held out, as its authors do.
HELD_OUT = 500_000
NUM_ROWS = 5_000_000

LABEL = "signal"
#: Eight that are measured and ten that are made of them, in the order of the file.
FEATURES = (
    *("lepton 1 pT", "lepton 1 eta", "lepton 1 phi", "lepton 2 pT", "lepton 2 eta"),
    *("lepton 2 phi", "missing energy", "missing energy phi", "MET_rel", "axial MET", "M_R"),
    *("M_TR_2", "R", "MT2", "S_R", "M_Delta_R", "dPhi_r_b", "cos(theta_r1)"),
)
_NAMES = ("SUSY.csv", "SUSY.csv.gz")
_WHERE = "the UCI machine learning repository (archive.ics.uci.edu, data set SUSY)"


def susy(
    path: str | os.PathLike[str] | None = None,
    *,
    num_rows: int = NUM_ROWS,
    held_out: int = HELD_OUT,
) -> tuple[Part, Part]:
    """
    Labels 1 (signal) and 0, 18 features, as the file has them. Wenzel et al. (2017, section 5.2)
    train with an RBF kernel of theta = 5 (a lengthscale of theta / sqrt(2) in GPflow's terms), 64
    inducing points and minibatches of 100, `SVI(batch_size=100)`, and report an AUC of .84 and a
    Brier score of .22; they speak of 17 features, and of no split. Baldi et al. hold the last
    500 000 rows out, as is done here.

    :param path: of the file as UCI has it, also compressed: no header, the label first. None:
        SUSY.csv or SUSY.csv.gz in the data directory, see `gpflow_bsvm.datasets`.
    :param num_rows: of the file.
    :param held_out: rows of its end for the second part.
    :return: rows to train on, and rows to test on, which are read piece by piece.
    :raise DataError: if there is no such file, with where to get it.
    """
    if not 0 < held_out < num_rows:
        raise ValueError(f"held_out must be from 1 to num_rows - 1, got {held_out} of {num_rows}")
    rows = CSVFiles(_find(path), target=LABEL, names=[LABEL, *FEATURES])
    split = num_rows - held_out
    return Part(rows, 0, split), Part(rows, split, num_rows)


def _find(path: str | os.PathLike[str] | None) -> Path:
    directory = data_directory()
    places = [directory / name for name in _NAMES] if path is None else [Path(path)]
    for place in places:
        if place.is_file():
            return place
    raise DataError(
        f"there is no file {' or '.join(map(str, places))}: it is not part of this package; get "
        f"SUSY.csv.gz from {_WHERE} and put it there, or set {DATA_VARIABLE} to its directory"
    )
