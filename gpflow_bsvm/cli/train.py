"""`gpflow-bsvm train`: train a classifier or a regressor on a table."""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..optional import require
from ..tables.paths import ROW_NAMES, shortened
from ..tables.table import Table
from . import shared
from .shared import show

#: Number of rows used to detect columns of row numbers.
_FIRST_ROWS = 1000


def add_to(subparsers: Any) -> None:
    """Add the command to a parser."""
    parser = subparsers.add_parser(
        "train",
        help="train a BSVMClassifier or a BSVMRegressor on a table",
        description="Train an estimator on a table and save it to a file. The table need not fit "
        "into memory: beyond 20 000 rows a random sample determines the kernel and all options. "
        "After an interruption, the same command continues from the directory MODEL.partial.",
    )
    parser.set_defaults(run=_train)
    parser.add_argument("data", metavar="DATA", help=shared.FILES)
    add = parser.add_argument
    add("--output", metavar="MODEL", type=Path, required=True, help="file for the model")
    add("--weight", metavar="COL", help="column of row weights")
    add("--linear", action="store_true", help="a linear model; svmlight files stay sparse")
    shared.add_training(parser, "(default: automatic)")


def _train(args: argparse.Namespace) -> int:
    paths = shared.find_and_show(args.data)
    shared.check_output(args.output, paths)
    table = shared.read_table(paths, args)
    shared.import_quietly()
    from ..saving.files import check_can_save, save

    check_can_save(args.output, classes=table.columns.classes, columns=table.columns.features)
    with _checkpoints(args.output) as kept:
        estimator = _fitted(args, table, kept)
        estimator.reading_ = _reading(args, table)
        save(estimator, args.output)
    points = "" if args.linear else f", {estimator.num_inducing_} inducing points"
    show(
        f"{table.rows} rows, {estimator.n_features_in_} columns, {_about(estimator)}{points}; "
        f"written to {args.output}"
    )
    return 0


@contextlib.contextmanager
def _checkpoints(output: Path) -> Iterator[Path]:
    """:return: a directory for checkpoints, which is deleted unless the fit is interrupted."""
    kept = output.with_name(f"{output.name}.partial")
    begun = kept.is_dir()
    if begun and not (kept / "seed").exists() and any(kept.iterdir()):
        raise ValueError(f"{kept} holds other files than checkpoints: give another --output")
    try:
        yield kept
    except Exception:
        if not begun:  # else it is from an earlier call
            shutil.rmtree(kept, ignore_errors=True)
        raise
    shutil.rmtree(kept, ignore_errors=True)


def _reading(args: argparse.Namespace, table: Table) -> dict[str, Any]:
    """:return: the fields of `Reading` that `predict` needs."""
    kinds = table.columns.kinds
    words = [one.name for one in kinds if one.words is not None]
    marks = {one.name: one.mark for one in kinds if one.mark}
    marks |= dict.fromkeys({*table.left_out} & {ROW_NAMES}, ROW_NAMES)
    given = shared.options(args).items()
    kept = {name: one for name, one in given if name in shared.KEPT + shared.OF_FILE}
    return {"words": words, "marks": marks} | kept


def _about(estimator: Any) -> str:
    if hasattr(estimator, "epsilon_"):
        return f"penalty {estimator.penalty_:.3g}, epsilon {estimator.epsilon_:.3g}"
    names = shortened(estimator.order_.tolist())
    return f"classes {names}: {estimator.loss_} with penalty {estimator.penalty_:g}"


def _fitted(args: argparse.Namespace, table: Table, kept: Path) -> Any:
    """:param kept: the directory of an unfinished fit's checkpoints."""
    from ..estimators import BSVMClassifier, BSVMRegressor
    from ..files import Files

    rows = Files(table)
    for note in table.notes(next(rows.pieces(_FIRST_ROWS)).X):
        show(shared.in_shell(note))
    if kept.is_dir():
        show(f"continues from {kept}")
    kind = BSVMRegressor if args.task == "regression" else BSVMClassifier
    estimator = kind(
        num_inducing=args.num_inducing or "auto",
        kernel="linear" if args.linear else None,
        impute=args.impute,
        random_state=args.seed,
        verbose=not args.no_progress and sys.stderr.isatty(),
    )
    if args.impute or (args.linear and table.files[0].X is not None):
        return _fitted_in_memory(args, estimator, rows, kept)
    return estimator.fit(rows, checkpoint=kept)


def _fitted_in_memory(args: argparse.Namespace, estimator: Any, rows: Any, kept: Path) -> Any:
    from ..estimators.labels import label_names

    X, y, weight = _arrays(args, rows)
    if rows.classes is not None:  # `fit` alone would sort them
        estimator._told = label_names(rows, np.arange(len(rows.classes)))
    estimator.fit(X, y, weight, checkpoint=kept)
    estimator.feature_names_in_ = np.array(rows.features, dtype=object)  # also for sparse X
    return estimator


def _arrays(args: argparse.Namespace, rows: Any) -> tuple[Any, Any, Any]:
    """:return: X, labels and weights of all rows in memory."""
    from ..estimators.labels import label_names
    from ..files import ROWS

    pieces = list(rows.pieces(ROWS))
    Y = np.concatenate([piece.Y[:, 0] for piece in pieces])
    y = Y if rows.classes is None else label_names(rows, Y)
    weight = np.concatenate([piece.weight[:, 0] for piece in pieces]) if args.weight else None
    if args.linear and not args.impute and (X := _sparse(rows)) is not None:
        return X, y, weight
    X = np.concatenate([piece.X for piece in pieces])
    for line in rows.columns.about_gaps(rows.columns.gaps(X), np.isnan(X).any(axis=0)):
        show(line)
    return require("pandas").DataFrame(X, columns=list(rows.features)), y, weight


def _sparse(rows: Any) -> Any:
    """:return: X of svmlight files; None for other files, or if a column holds strings."""
    from scipy import sparse

    files = rows.table.files
    places = [int(name[1:]) for name in rows.features if re.fullmatch(r"x\d+", name)]
    if any(file.X is None for file in files) or len(places) < len(rows.features):
        return None
    return sparse.vstack([file.X[:, places] for file in files], "csr")
