"""`gpflow-bsvm predict`: probabilities of a table's rows, written part by part into a table that
gets its name when it is complete."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from ..atomic import whole_file
from ..optional import require
from .files import add_arguments, check_output, find_table, reader
from .terminal import quiet_import

#: Rows that are read, predicted and written at a time.
PART_ROWS = 100_000
#: Columns of the predictions of a regressor.
_NUMBERS = ("mean", "std", "5%", "95%")


def add_to(subparsers: Any) -> None:
    """Add the command to a parser."""
    parser = subparsers.add_parser(
        "predict",
        help="probabilities and labels, or numbers and error bars, of the rows of a table",
        description="Write a CSV with a column for the probability of each class, and the label; "
        "of a regressor mean, standard deviation, and an interval that holds 90 % of rows.",
    )
    parser.set_defaults(run=_predict)
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="file that train has written")
    add_arguments(parser)
    out = "CSV file (default: %(default)s)"
    add("--output", metavar="FILE", type=Path, default=Path("predictions.csv"), help=out)
    add("--id", metavar="COL", help="column of DATA that the table of predictions begins with")


def _predict(args: argparse.Namespace) -> int:
    paths = find_table(args)
    if not args.model.is_file():
        raise ValueError(f"there is no file {args.model}, which train would have written")
    check_output(args.output, [*paths, args.model])
    if not args.output.name.endswith(".csv"):
        raise ValueError(f"predictions are CSV: --output must end in .csv, got {args.output}")
    with quiet_import():
        from .. import BSVMClassifier, BSVMRegressor, load
    estimator = load(args.model)
    if not isinstance(estimator, (BSVMClassifier, BSVMRegressor)):
        raise ValueError(
            f"{args.model} holds a {type(estimator).__name__}, no estimator: a file that train "
            "has written is needed"
        )
    wanted = getattr(estimator, "feature_names_in_", None)
    features = None if wanted is None else list(wanted)
    rows, progress = reader(paths, args, features=features), False if args.no_progress else None
    number = _write(estimator, rows, args.output, progress, args.id)
    print(f"{number} rows written to {args.output}")
    return 0


def _write(estimator: Any, rows: Any, output: Path, progress: bool | None, key: str | None) -> int:
    """
    Write the table of predictions.

    :param rows: a reader of files.
    :param progress: show a progress bar; None: on a terminal only.
    :param key: name of a column of the files that becomes the first of the table.
    :return: number of rows.
    """
    from ..data.prefetch import closed_at_end
    from ..data.readers import checked
    from ..estimators.survey import Rows
    from ..inference.history import progress_bar

    if key is not None and (key in ("label", *_NUMBERS) or key.startswith("p(")):
        raise ValueError(
            f"--id {key} is the name of a column of predictions: rename it in the table"
        )
    check = Rows(labelled=False)
    keys = iter(()) if key is None else rows.texts(key)
    written = 0
    with (
        whole_file(output) as file,
        progress_bar(rows.known_rows, "predict", progress, "row") as bar,
        closed_at_end(rows.pieces(PART_ROWS)) as pieces,
    ):
        for piece in (checked(piece, check) for piece in pieces):
            table = _table(estimator, list(rows.features), piece.X)
            if key is not None:
                table.insert(0, key, list(itertools.islice(keys, len(table))))
            text = table.to_csv(index=False, float_format="%.10g", header=written == 0)
            file.write(text.encode())
            written += len(table)
            bar.update(len(table))
    return written


def _table(estimator: Any, features: list[str], X: Any) -> Any:
    """:return: a data frame of predictions."""
    pandas = require("pandas")
    X = pandas.DataFrame(X, columns=features)
    if not hasattr(estimator, "classes_"):
        ends = estimator.predict_quantiles(X, (0.05, 0.95)).T
        return pandas.DataFrame(dict(zip(_NUMBERS, (*estimator.predict(X, True), *ends))))
    P = estimator.predict_proba(X)
    names = [str(label) for label in estimator.classes_]
    table = pandas.DataFrame(P, columns=[f"p({name})" for name in names])
    return table.assign(label=[names[best] for best in P.argmax(axis=1)])
