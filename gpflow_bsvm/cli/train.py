"""`gpflow-bsvm train`: a classifier, or a regressor, of a table."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from ..tables import TARGETS, about_counted, columns, counts_rows, target_among
from .files import add_arguments, check_output, find_table, reader, split
from .terminal import integer, quiet_import

#: Number of rows that show whether a column counts them.
_FIRST_ROWS = 1000


def add_to(subparsers: Any) -> None:
    """Add the command to a parser."""
    parser = subparsers.add_parser(
        "train",
        help="train a BSVMClassifier or a BSVMRegressor on a table",
        description="Train an estimator on a table, which need not fit into memory: all but q "
        "is learned from 20 000 rows at random. The model goes into a file. Until then the "
        "directory MODEL.partial keeps what is done: the same command goes on from there.",
    )
    parser.set_defaults(run=_train)
    add_arguments(parser)
    add = parser.add_argument
    task = "what the labels are (default: %(default)s)"
    add("--task", choices=("classification", "regression"), default="classification", help=task)
    target = f"column of labels, of any type (default: {', '.join(TARGETS)}: what is there)"
    add("--target", metavar="COL", help=target)
    add("--output", metavar="MODEL", type=Path, required=True, help="file for the model")
    features = "columns to learn from (default: all others)"
    add("--features", type=split, metavar="A,B", help=features)
    add("--weight", metavar="COL", help="column of the rows' weights")
    add("--num-inducing", type=integer(1), metavar="M", help="default: as many as pay")
    add("--seed", type=integer(0), default=0, metavar="S", help="default: %(default)s")


def _train(args: argparse.Namespace) -> int:
    paths = find_table(args)
    target = target_among(paths[0], args.names or columns(paths[0]), args.target)
    check_output(args.output, paths)
    with quiet_import():
        from .. import save
    kept = args.output.with_name(f"{args.output.name}.partial")
    begun = kept.is_dir()  # made by an earlier call, so it stays
    how = {"target": target, "weight": args.weight, "features": args.features}
    how |= {"words": True} if args.task == "regression" else {"classes": "auto"}
    try:
        estimator = _fitted(args, reader(paths, args, **how), kept)
        save(estimator, args.output)
    except ValueError:
        if not begun:
            shutil.rmtree(kept, ignore_errors=True)
        raise
    shutil.rmtree(kept, ignore_errors=True)
    print(
        f"{estimator.model_.num_data:.0f} rows, {estimator.n_features_in_} columns, "
        f"{_about(estimator)}, {estimator.model_.num_features[1]} inducing points; written "
        f"to {args.output}"
    )
    return 0


def _about(estimator: Any) -> str:
    if hasattr(estimator, "epsilon_"):
        return f"penalty {estimator.penalty_:.3g}, epsilon {estimator.epsilon_:.3g}"
    names = ", ".join(map(str, estimator.classes_))
    return f"classes {names}: {estimator.loss_} with penalty {estimator.penalty_:g}"


def _fitted(args: argparse.Namespace, rows: Any, kept: Path) -> Any:
    """:param kept: the directory of an unfinished fit's checkpoints."""
    from ..estimators import BSVMClassifier, BSVMRegressor

    for name in rows.left_out:
        print(f"column {name!r} left out: it looks like the index that pandas writes")
    first = next(rows.pieces(_FIRST_ROWS)).X
    for name in [n for n, column in zip(rows.features, first.T) if counts_rows(column)]:
        print(f"{about_counted(name)} (--features)")
    if kept.is_dir():
        print(f"goes on from {kept}")
    verbose = not args.no_progress and sys.stderr.isatty()
    num_inducing = args.num_inducing or "auto"
    kind = BSVMRegressor if args.task == "regression" else BSVMClassifier
    estimator = kind(num_inducing=num_inducing, random_state=args.seed, verbose=verbose)
    return estimator.fit(rows, checkpoint=kept)
