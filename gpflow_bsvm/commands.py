"""`gpflow-bsvm train` and `gpflow-bsvm predict`: tables in files, also larger than memory."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .tables import (
    PARQUET,
    TARGETS,
    DataError,
    about_counted,
    columns,
    counts_rows,
    endings_of,
    find,
    is_number,
    listed,
    target_among,
    word_of,
)
from .terminal import fail, integer, quiet_import

if TYPE_CHECKING:
    from .estimators import BSVMClassifier

_FILES = (
    "a Parquet or CSV file with a header (.parquet, .csv, .csv.gz; separated by commas, "
    "semicolons, tabs or bars), or a directory of such"
)

#: Rows that tell whether a column counts them.
_FIRST_ROWS = 1000

#: What an error of Python's says, and how it is done here.
_IN_SHELL = {
    "leave it out by features=[...]": "leave it out by --features",
    "by features, target and weight": "by --features, --target and --weight",
    "; is target the right column?": "; is --target the right column?",
    "Give another directory, or delete this one to start anew": "Give another --output, or delete "
    "that directory to start anew",
}

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
    target = f"column of labels, of any type (default: {', '.join(TARGETS)}: what is there)"
    add("--target", metavar="COL", help=target)
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
        description="Write a CSV with a column for the probability of each class, and the label.",
    )
    add = predict.add_argument
    add("model", metavar="MODEL", type=Path, help="file that train has written")
    add("data", metavar="DATA", help=_FILES)
    add("--names", metavar="A,B", help=_NAMES)
    out = "CSV file (default: %(default)s)"
    add("--output", metavar="FILE", type=Path, default=Path("predictions.csv"), help=out)
    add("--id", metavar="COL", help="column of DATA that the table of predictions begins with")
    add("--no-progress", action="store_true", help="no progress bar")
    predict.set_defaults(run=_predict)


def _train(args: argparse.Namespace) -> int:
    try:
        found = _find(args)
        target = target_among(found.paths[0], found.names, args.target)
        features = _listed(args.features)
        _check_columns(found, [*(features or []), *([args.weight] if args.weight else [])])
        check_output(args.output, found.paths)
    except (ValueError, ImportError, OSError) as error:
        return fail(2, error)
    with quiet_import():
        from . import save
    kept = args.output.with_name(f"{args.output.name}.partial")
    begun = kept.is_dir()
    how = {"target": target, "weight": args.weight, "features": features, "classes": "auto"}
    try:
        rows = _reader(found, args, **how)
        classifier = _fitted(args, rows, kept)
        save(classifier, args.output)
    except (ValueError, ImportError, OSError) as error:
        return _refuse(error, kept, begun)
    shutil.rmtree(kept, ignore_errors=True)
    print(
        f"{classifier.model_.num_data:.0f} rows, {classifier.n_features_in_} columns, classes "
        f"{', '.join(map(str, classifier.classes_))}: {classifier.loss_} with penalty "
        f"{classifier.penalty_:g}, {classifier.model_.num_features[1]} inducing points; written "
        f"to {args.output}"
    )
    return 0


def _fitted(args: argparse.Namespace, rows: Any, kept: Path) -> BSVMClassifier:
    """:param kept: the directory of what a fit that did not come to its end has left."""
    from .estimators import BSVMClassifier

    for name in rows.left_out:
        print(f"column {name!r} left out: it looks like the index that pandas writes")
    first = next(rows.pieces(_FIRST_ROWS)).X
    for name in [n for n, column in zip(rows.features, first.T) if counts_rows(column)]:
        print(f"{about_counted(name)} (--features)")
    if kept.is_dir():
        print(f"goes on from {kept}")
    verbose = not args.no_progress and sys.stderr.isatty()
    num_inducing = args.num_inducing or "auto"
    classifier = BSVMClassifier(num_inducing=num_inducing, random_state=args.seed, verbose=verbose)
    return classifier.fit(rows, checkpoint=kept)


def _predict(args: argparse.Namespace) -> int:
    try:
        found = _find(args)
        if not args.model.is_file():
            raise ValueError(f"there is no file {args.model}, which train would have written")
        check_output(args.output, [*found.paths, args.model])
        if not args.output.name.endswith(".csv"):
            raise ValueError(f"predictions are CSV: --output must end in .csv, got {args.output}")
        _check_columns(found, [] if args.id is None else [args.id])
    except (ValueError, ImportError, OSError) as error:
        return fail(2, error)
    with quiet_import():
        from . import BSVMClassifier, load
        from .prediction_table import predict_table
    try:
        classifier = load(args.model)
        if not isinstance(classifier, BSVMClassifier):
            raise ValueError(
                f"{args.model} holds a {type(classifier).__name__}, no classifier: a file that "
                "train has written is needed"
            )
        names = getattr(classifier, "feature_names_in_", None)
        _check_columns(found, [] if names is None else list(names))
        rows = _reader(found, args, features=None if names is None else list(names))
        progress = False if args.no_progress else None
        number = predict_table(classifier, rows, args.output, progress, args.id)
    except (ValueError, ImportError, OSError) as error:
        return fail(2, _in_shell(error))
    print(f"{number} rows written to {args.output}")
    return 0


def _refuse(error: Exception, kept: Path, begun: bool) -> int:
    """:param begun: whether an earlier call has left something there, which stays."""
    if isinstance(error, ValueError) and not begun:
        shutil.rmtree(kept, ignore_errors=True)
    return fail(2, _in_shell(error))


def _in_shell(error: Exception) -> str:
    """:return: what it says, with options of the commands for arguments in Python."""
    text = str(error)
    for python, shell in _IN_SHELL.items():
        text = text.replace(python, shell)
    return text


def check_output(output: Path, inputs: Sequence[Path | str]) -> None:
    """:raise DataError: if there can be no such file, or it is one of those that are read."""
    if not output.absolute().parent.is_dir():
        raise DataError(f"there is no directory {output.absolute().parent}: make it first")
    if output.is_dir():
        raise DataError(f"{output} is a directory, and the name of a file is needed")
    if output.exists() and any(os.path.samefile(output, one) for one in inputs):
        raise DataError(f"{output} is read, and would be overwritten: give another --output")


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else names.split(",")


class _Found(NamedTuple):
    """A table that is there."""

    paths: list[str]
    endings: tuple[str, ...]
    names: list[str]  #: of the columns


def _find(args: argparse.Namespace) -> _Found:
    """
    :return: files, of the kind that the path's ending, or that of the files in it, says.
    :raise ValueError: for names of the columns of Parquet; and as `columns`.
    """
    endings, names = endings_of(args.data), _listed(args.names)
    if names is not None and endings == PARQUET:
        raise ValueError(f"--names is for CSV files, and {args.data} is Parquet: it has names")
    paths = find(args.data, endings)
    return _Found(paths, endings, columns(paths[0]) if names is None else names)


def _check_columns(found: _Found, wanted: Sequence[str]) -> None:
    """:raise ValueError: if some are not there."""
    names = found.names
    missing = [one for one in wanted if one not in names and not word_of(one, names)]
    if not missing:
        return
    lower = {name.lower() for name in found.names}
    case = all(name.lower() in lower for name in missing)
    has = "these names differ only in case" if case else f"it has {_quoted(found.names)}"
    if sum(map(is_number, names)) > len(names) / 2:
        has += ": is the first line a row? Then give the names of all columns by --names"
    raise ValueError(f"file {found.paths[0]} lacks {_quoted(missing)}; {has}")


def _quoted(names: Sequence[str]) -> str:
    return listed([repr(name) for name in names])


def _reader(found: _Found, args: argparse.Namespace, **how: Any) -> Any:
    """:return: a reader of these files."""
    from .files import CSVFiles, ParquetFiles

    if found.endings == PARQUET:
        return ParquetFiles(found.paths, **how)
    return CSVFiles(found.paths, names=_listed(args.names), **how)
