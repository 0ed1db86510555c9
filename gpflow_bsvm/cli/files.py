"""The tables that `train` and `predict` read, which need not fit into memory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..tables import PARQUET, endings_of, find_files

_FILES = (
    "a Parquet or CSV file with a header (.parquet, .csv, .csv.gz; separated by commas, "
    "semicolons, tabs or bars), or a directory of such"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a table."""
    parser.add_argument("data", metavar="DATA", help=_FILES)
    names = "names of all columns of CSV files whose first line is a row"
    parser.add_argument("--names", type=split, metavar="A,B", help=names)
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")


def split(text: str) -> list[str]:
    """:return: names of columns."""
    return text.split(",")


def find_table(args: argparse.Namespace) -> list[str]:
    """
    :return: files, of the kind given by the ending of the path, or of the files in it.
    :raise ValueError: if columns are named for Parquet, which has names.
    """
    endings = endings_of(args.data)
    if args.names is not None and endings == PARQUET:
        raise ValueError(f"--names is for CSV files, and {args.data} is Parquet: it has names")
    return find_files(args.data, endings)


def reader(paths: list[str], args: argparse.Namespace, **how: Any) -> Any:
    """:return: a reader of these files."""
    from ..files import CSVFiles, ParquetFiles

    if paths[0].endswith(PARQUET):
        return ParquetFiles(paths, **how)
    return CSVFiles(paths, names=args.names, **how)


def check_output(output: Path, inputs: Sequence[Path | str]) -> None:
    """:raise ValueError: if the file cannot be written, or is one of those that are read."""
    if not output.absolute().parent.is_dir():
        raise ValueError(f"there is no directory {output.absolute().parent}: make it first")
    if output.is_dir():
        raise ValueError(f"{output} is a directory, and the name of a file is needed")
    if output.exists() and any(os.path.samefile(output, one) for one in inputs):
        raise ValueError(f"{output} is read, and would be overwritten: give another --output")
