"""`gpflow-bsvm predict`: predictions for a table's rows, in a file that appears when complete."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..atomic import read_archive, whole_file
from ..optional import require
from ..tables.formats import Format
from ..tables.paths import ROW_NAMES, listed, shortened, with_nearest
from ..tables.reading import Reading
from ..tables.table import Table
from . import shared
from .shared import show

#: Number of rows to read, predict and write at a time.
PART_ROWS = 100_000
#: Largest number of entries of X in memory; limits the number of wide rows.
_PART_VALUES = 2**25
#: Columns of a regressor's predictions.
_NUMBERS = ("mean", "std", "5%", "95%")
#: The begin of a string that a spreadsheet reads as a formula.
_FORMULA = r"^(?=[=+\-@\t\r])"


def add_to(subparsers: Any) -> None:
    """Add the command to a parser."""
    parser = subparsers.add_parser(
        "predict",
        help="predict probabilities and labels, or numbers and error bars, for a table",
        description="Write a CSV with the probability of each class and the predicted label, "
        "or for a regressor mean, standard deviation and a 90 % prediction interval.",
    )
    parser.set_defaults(run=_predict)
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="file written by train")
    add("data", metavar="DATA", help=shared.FILES)
    out = "CSV file (default: %(default)s)"
    add("--output", metavar="FILE", type=Path, default=Path("predictions.csv"), help=out)
    add("--id", metavar="COL", help="column of DATA to copy to the first column of predictions")
    formulas = "prefix labels and --id with ' if a spreadsheet would read them as formulas"
    add("--spreadsheet", action="store_true", help=formulas)
    shared.add_arguments(parser, features=False)


def _predict(args: argparse.Namespace) -> int:
    paths = shared.find_and_show(args.data)
    _check_arguments(args, paths)
    features, known = _of_training(args.model)
    table = _read_table(paths, features, known, shared.options(args))
    _look_at_files(table.files, args.id)
    _show_differences(table, known, args.id)
    shared.import_quietly()
    from .. import load
    from ..files import Files

    number = _write(load(args.model), Files(table), args)
    show(f"{number} rows written to {args.output}")
    return 0


def _check_arguments(args: argparse.Namespace, paths: list[str]) -> None:
    if not args.model.is_file():
        raise ValueError(f"there is no file {args.model}: give the MODEL written by train")
    shared.check_output(args.output, [*paths, args.model])
    if not args.output.name.endswith(".csv"):
        raise ValueError(f"predictions are CSV: --output must end in .csv, got {args.output}")
    if args.id in ("label", *_NUMBERS) or str(args.id).startswith("p("):
        raise ValueError(
            f"--id {args.id} is also the name of a column of predictions: rename it in the table"
        )


def _read_table(
    paths: list[str], features: list[str], known: dict[str, Any], given: dict[str, Any]
) -> Table:
    """:return: the table, read as in training except for the options that are given again."""
    if "na_values" in given:
        given["na_values"] = [*known.get("na_values", ()), *given["na_values"]]
    if wrong := sorted({*given.get("words", ())} & {*features}):
        raise ValueError(f"words={wrong!r}: in training, these columns held numbers")
    signs = {"decimal", "thousands"}  # each is meaningful only with the other
    said = {*given} | (signs if signs & {*given} else set())
    kept = {name: one for name, one in known.items() if name not in said}
    of_file = {name: kept.pop(name) for name in shared.OF_FILE if name in kept}
    if told := _in_words({name: one for name, one in kept.items() if name in shared.KEPT}):
        show(shared.in_shell(f"read as in training: {told}"))
    try:
        return Table(paths, Reading(features=features, **kept | given))
    except ValueError as error:
        hint = f"; training had {_in_words(of_file)}: repeat options that also apply here"
        raise ValueError(f"{error}{hint if of_file else ''}") from error


def _in_words(options: dict[str, Any]) -> str:
    return " ".join(f"{name}={one!r}" for name, one in options.items())


def _look_at_files(files: list[Format], key: Any) -> None:
    """:raise ValueError: unless each file has one column of the name `key`, if given."""
    for file in files:
        if key is not None and key not in file.columns:
            raise ValueError(f"file {file.path} lacks {with_nearest([key], file.columns)}")
        if file.names.count(key) > 1:
            raise ValueError(f"{file.path} has several columns {key!r}: rename all but one")
        for about in file.left_out:
            show(f"{file.path}: left out: {about}")


def _show_differences(table: Table, known: dict[str, Any], key: str | None) -> None:
    if unused := [name for name in table.names if name not in {*table.columns.read, key, ""}]:
        show(f"not used: {shortened(unused)}")
    if (ROW_NAMES in table.left_out) != (ROW_NAMES in known.get("marks", {})):
        show("only one of this table and the training table has row names")
    if doubtful := table.in_doubt:
        show(
            f"numbers with three digits after each point, unlike in training: {listed(doubtful)}; "
            "if 1.234 means 1234, give --thousands ."
        )


def _of_training(path: Path) -> tuple[list[str], dict[str, Any]]:
    """
    :return: the training columns (numbered for a sparse file) and the fields of `Reading` that a
        model file stores, read before the slow import of TensorFlow.
    """
    try:
        content = read_archive(path)[0]["content"]
        state = content["state"]
        kind = content["class"].removeprefix("gpflow_bsvm.estimators.")
        numbered = [f"x{number}" for number in range(state["n_features_in_"])]
        if kind in ("BSVMClassifier", "BSVMRegressor"):
            names = _plain(state.get("feature_names_in_", numbered))
            return names, _plain(state.get("reading_", {"pairs": []}))
    except (KeyError, TypeError, ValueError, AttributeError):
        shared.import_quietly()
        from .. import load

        kind = type(load(path)).__name__  # explains most such errors
    raise ValueError(
        f"{path} holds a {kind}, but predict needs a fitted classifier or regressor from train"
    )


def _plain(node: Any) -> Any:
    """:return: the strings, lists and dictionaries in a part of a model file."""
    if isinstance(node, dict) and "pairs" in node:
        return {name: _plain(value) for name, value in node["pairs"]}
    return [_plain(item) for item in node["items"]] if isinstance(node, dict) else node


def _write(estimator: Any, rows: Any, args: argparse.Namespace) -> int:
    """:return: number of rows, after writing their predictions."""
    from ..data.sources import closed_at_end
    from ..inference.run import progress_bar

    written = 0
    gaps = 0
    progress = False if args.no_progress else None
    with (
        whole_file(args.output) as file,
        progress_bar(rows.known_rows, "predict", progress, "row") as bar,
        closed_at_end(_tables(estimator, rows, args)) as tables,
    ):
        for table, missing in tables:
            text = table.to_csv(index=False, float_format="%.10g", header=written == 0)
            file.write(text.encode())
            written += len(table)
            gaps += missing
            bar.update(len(table))
    marked = () if estimator.fill_ is None else estimator.fill_[1]
    for line in rows.columns.about_gaps(gaps, marked):
        show(line)
    return written


def _tables(estimator: Any, rows: Any, args: argparse.Namespace) -> Iterator[tuple[Any, int]]:
    """:return: tables of predictions, each with the number of missing values in its rows."""
    from ..data.readers import checked
    from ..estimators.large import Rows

    keys = iter(()) if args.id is None else rows.texts(args.id)
    size = max(1, min(PART_ROWS, _PART_VALUES // len(rows.features)))
    for piece in rows.pieces(size):
        X = checked(piece, Rows(labelled=False)).X if estimator.fill_ is None else piece.X
        table = _table(estimator, list(rows.features), X)
        if args.id is not None:
            table.insert(0, args.id, list(itertools.islice(keys, len(table))))
        if args.spreadsheet:
            table.columns = table.columns.str.replace(_FORMULA, "'", regex=True)
            table = table.replace(_FORMULA, "'", regex=True)
        yield table, rows.columns.gaps(X)


def _table(estimator: Any, features: list[str], X: Any) -> Any:
    pandas = require("pandas")
    X = pandas.DataFrame(X, columns=features)
    if not hasattr(estimator, "classes_"):
        ends = estimator.predict_quantiles(X, (0.05, 0.95)).T
        return pandas.DataFrame(dict(zip(_NUMBERS, (*estimator.predict(X, True), *ends))))
    P = pandas.DataFrame(estimator.predict_proba(X), columns=[*map(str, estimator.classes_)])
    table = P[[*map(str, estimator.order_)]].add_prefix("p(").add_suffix(")")
    return table.assign(label=P.idxmax(axis=1))
