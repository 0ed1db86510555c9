"""`gpflow-bsvm train` and `gpflow-bsvm predict`: tables in files, also larger than memory."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .terminal import fail, integer, quiet_import

if TYPE_CHECKING:
    from .estimators import BSVMClassifier

_FILES = "a Parquet or CSV file with a header (.parquet, .csv, .csv.gz), or a directory of such"

_NAMES = "names of all columns of CSV files whose first line is a row"


def add_to(subparsers: Any) -> None:
    """Add both commands to a parser."""
    train = subparsers.add_parser(
        "train",
        help="train a BSVMClassifier on a table",
        description="Train a BSVMClassifier on a table, which need not fit into memory: all but q "
        "is learned from 20 000 rows at random. The model goes into a file. Until then the "
        "directory MODEL.partial keeps what is done: the same command goes on from there.",
    )
    add = train.add_argument
    add("data", metavar="DATA", help=_FILES)
    add("--target", metavar="COL", required=True, help="column of labels, of any type")
    add("--output", metavar="MODEL", type=Path, required=True, help="file for the model")
    add("--features", metavar="A,B", help="columns to learn from (default: all others)")
    add("--weight", metavar="COL", help="column of the rows' weights")
    add("--names", metavar="A,B", help=_NAMES)
    add("--num-inducing", type=integer(1), metavar="M", help="default: as many as pay")
    add("--seed", type=integer(0), default=0, metavar="S", help="default: %(default)s")
    add("--no-progress", action="store_true", help="no progress bar")
    train.set_defaults(run=_train)
    predict = subparsers.add_parser(
        "predict",
        help="probabilities and labels of the rows of a table",
        description="Write a CSV with a column for the probability of each class, and the label. "
        "Until it is whole it lies in FILE.partial: the same command goes on from there.",
    )
    add = predict.add_argument
    add("model", metavar="MODEL", type=Path, help="file that train has written")
    add("data", metavar="DATA", help=_FILES)
    add("--names", metavar="A,B", help=_NAMES)
    out = "CSV file (default: %(default)s)"
    add("--output", metavar="FILE", type=Path, default=Path("predictions.csv"), help=out)
    add("--no-progress", action="store_true", help="no progress bar")
    predict.set_defaults(run=_predict)


def _train(args: argparse.Namespace) -> int:
    with quiet_import():
        from . import save
        from .prediction_table import unfinished
    try:
        check_place(args.output)
        kept = unfinished(args.output)
        classifier = _fitted(args, kept)
        save(classifier, args.output)
    except (ValueError, ImportError, OSError) as error:
        return fail(2, error)
    shutil.rmtree(kept, ignore_errors=True)
    print(
        f"{classifier.model_.num_data:.0f} rows, {classifier.n_features_in_} columns, classes "
        f"{', '.join(map(str, classifier.classes_))}: {classifier.loss_} with penalty "
        f"{classifier.penalty_:g}, {classifier.model_.num_features[1]} inducing points; written "
        f"to {args.output}"
    )
    return 0


def _fitted(args: argparse.Namespace, kept: Path) -> BSVMClassifier:
    """:param kept: the directory of what a fit that did not come to its end has left."""
    from .estimators import BSVMClassifier

    how = {"target": args.target, "weight": args.weight, "features": _listed(args.features)}
    rows = _files(args.data, _listed(args.names), classes="auto", **how)
    for name in rows.left_out:
        print(f"column {name!r} left out: it looks like the index that pandas writes")
    if kept.is_dir():
        print(f"goes on from {kept}")
    verbose = not args.no_progress and sys.stderr.isatty()
    num_inducing = args.num_inducing or "auto"
    classifier = BSVMClassifier(num_inducing=num_inducing, random_state=args.seed, verbose=verbose)
    return classifier.fit(rows, checkpoint=kept)


def _predict(args: argparse.Namespace) -> int:
    with quiet_import():
        from . import BSVMClassifier, load
        from .prediction_table import digest_of, predict_table
    try:
        classifier = load(args.model)
        if not isinstance(classifier, BSVMClassifier):
            raise ValueError(
                f"{args.model} holds a {type(classifier).__name__}, no classifier: a file that "
                "train has written is needed"
            )
        names = getattr(classifier, "feature_names_in_", None)
        how = {"features": None if names is None else list(names)}
        rows = _files(args.data, _listed(args.names), **how)
        check_place(args.output)
        progress = False if args.no_progress else None
        known = digest_of(args.model)
        number, before = predict_table(classifier, rows, args.output, known, progress)
    except (ValueError, ImportError, OSError) as error:
        return fail(2, error)
    already = f", {before} of them by an earlier call" if before else ""
    print(f"{number} rows written to {args.output}{already}")
    return 0


def check_place(output: Path) -> None:
    """:raise DataError: if there can be no such file."""
    from .datasets import DataError

    if not output.absolute().parent.is_dir():
        raise DataError(f"there is no directory {output.absolute().parent}: make it first")
    if output.is_dir():
        raise DataError(f"{output} is a directory, and the name of a file is needed")


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else names.split(",")


def _files(path: str, names: list[str] | None = None, **how: Any) -> Any:
    """:return: a reader of what the path's ending, or that of the files in it, says."""
    from .data import CSVFiles, ParquetFiles

    where = Path(path)
    inside = [where] if not where.is_dir() else sorted(where.rglob("*"))
    parquet = any(one.name.endswith(ParquetFiles.endings) for one in inside)
    if parquet and names is not None:
        raise ValueError(f"--names is for CSV files, and {path} is Parquet: it has names")
    return ParquetFiles(path, **how) if parquet else CSVFiles(path, names=names, **how)
