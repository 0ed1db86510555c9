"""What the commands share: tables and their options, one-line errors, a quiet TensorFlow."""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import io
import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..notices import LEVEL
from ..tables.labels import look_like_numbers
from ..tables.paths import about_folder, find_files
from ..tables.reading import Options, Reading
from ..tables.table import TARGETS, Table

PROGRAM = "gpflow-bsvm"
#: The start of a warning's advice on Python parameters.
_ADVICE = r"[:;] (?:use|try|give|leave|scale)\b"
FILES = (
    "CSV (any separator, also compressed), Parquet, ARFF or svmlight file, or a directory of these"
)
TASKS = ("classification", "regression")
#: Options that a model file stores and `predict` uses.
KEPT = ("dates", "na_values", "decimal", "thousands")
#: Further stored options, which `predict` mentions only if it cannot read a file.
OF_FILE = ("names", "encoding", "separator")
#: Largest number of columns in an error about missing values.
_MOST_HOLES = 5
#: A string as `repr` writes it, and a list of strings, which may hold any brackets and quotes.
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_LIST = rf"\[(?:[^\]'\"]|{_STRING})*\]"
#: Options of a table, with their help: lists of names or strings, then single strings.
_LISTS = {
    "drop": ("A,B", "columns to leave out"),
    "words": ("A,B", "columns of categories that look like numbers or have many values"),
    "dates": ("A,B", "columns of dates (2020-01-31) or times (15:30), as days since 1970"),
    "na-values": ("A,B", "values that mean missing (default: NA, ?, - and others among numbers)"),
    "names": ("A,B", "names of all columns, if the file has no header"),
}
_TEXTS = {
    "sep": ("CHAR", "field separator; 'tab' and 'space' as words (default: detected)"),
    "decimal": ("CHAR", "decimal sign (default: detected per column)"),
    "thousands": ("CHAR", "sign between groups of three digits (default: detected per column)"),
    "encoding": ("NAME", "text encoding, such as latin-1 (default: as declared, else UTF-8)"),
}
_HOW = (
    "Put names with commas, and values such as --, in double quotes: --drop '\"Q1, age\",id'. "
    "Options can be repeated: --drop id --drop name. Messages count rows from 0, after the header."
)
#: Python terms in errors, and their replacements for the shell.
_IN_SHELL = {
    "; is target the right column?": "; is --target the right column?",
    'give classes="auto" for classes': "for classes leave out --task regression",
    "Use BSVMRegressor for": "Use --task regression for",
    'give strings, or classes="any" with files': "use --task classification",
    "drop or impute such rows first": "a model trained with --impute fills such values",
    "Give another directory, or delete this one to start": "Give another --output, or delete that "
    "directory to start",
}


def find_and_show(data: str) -> list[str]:
    """:return: the files of DATA, after describing them if DATA is a directory."""
    paths = find_files(data)
    if os.path.isdir(data):
        show(about_folder(data, paths))
    return paths


def add_training(parser: argparse.ArgumentParser, inducing: str, tasks: str = "") -> None:
    """Add the options of commands that train; `inducing` and `tasks` are parts of their help."""
    add = parser.add_argument
    task = "kind of labels: classes (the default) or numbers; required if labels may be either"
    add("--task", choices=TASKS, help=task + tasks)
    target = f"column of labels, of any type (default: whichever exists of {', '.join(TARGETS)})"
    add("--target", metavar="COL", help=target)
    add("--num-inducing", type=integer(1), metavar="M", help=f"inducing points {inducing}")
    add("--seed", type=integer(0), default=0, metavar="S", help="default: %(default)s")
    missing = "replace missing values by medians of the training rows, and add indicator columns; "
    missing += "needs all rows in memory"
    add("--impute", action="store_true", help=missing)
    add_arguments(parser)


def add_arguments(parser: argparse.ArgumentParser, features: bool = True) -> None:
    """Add the option for a log, and those that describe a table; `options` reads them."""
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    group = parser.add_argument_group("how DATA is read", _HOW)
    lists = {"features": ("A,B", "columns to learn from (default: all others)")} if features else {}
    for name, (metavar, about) in (lists | _LISTS).items():
        repeated = not features and name in ("drop", "words")
        about += ", besides those of training" * (not features and name == "na-values")
        about = argparse.SUPPRESS if repeated else about  # training decides these
        group.add_argument(f"--{name}", type=split, action="extend", metavar=metavar, help=about)
    for name, (metavar, about) in _TEXTS.items():
        group.add_argument(f"--{name}", metavar=metavar, help=about)


def options(args: argparse.Namespace) -> dict[str, Any]:
    """:return: the fields of `Reading` that are given."""
    given = {name: getattr(args, name, None) for name in Options.__annotations__}
    given["separator"] = args.sep
    if getattr(args, "sure", False):
        given["classes"] = "any"
    return {name: value for name, value in given.items() if value is not None}


def read_table(paths: list[str], args: argparse.Namespace) -> Table:
    """
    :return: the training table, for the task in `args` or a detected task.
    :raise ValueError: for a table unsuited to training.
    """
    args.sure = getattr(args, "sure", args.task == TASKS[0])
    kind = None if args.task == "regression" else "auto"
    how: Any = {"words": True, "classes": kind} | options(args)
    table = Table(paths, Reading(args.target, **how), labelled=True)
    classes = table.columns.classes or ()
    if not args.sure and look_like_numbers(classes, table.rows):
        raise ValueError(
            f"column {table.columns.target!r} of {paths[0]} holds {len(classes)} different numbers "
            f"in {table.rows} rows: give --task regression, or --task classification"
        )
    args.task = args.task or TASKS[0]
    if table.holes and not args.impute:
        holes = [f"{name!r} has no value in {place}" for name, place in table.holes.items()]
        raise ValueError(
            f"{table.where}: column {', '.join(holes[:_MOST_HOLES])}: --impute fills such values, "
            f"drop={[*table.holes]!r} leaves the columns out"
        )
    return table


def split(text: str) -> list[str]:
    """:return: the names in a line of CSV; an empty list for an empty line."""
    return next(csv.reader(io.StringIO(text)), [])


def in_shell(message: str) -> str:
    """:return: an error, reworded for the shell: names=['a', 'b'] becomes --names a,b."""
    for python, shell in _IN_SHELL.items():
        message = message.replace(python, shell)
    message = re.sub(r"\bseparator=", "sep=", message)
    known = "|".join(name.replace("-", "_") for name in ("features", *_LISTS, *_TEXTS, "sep"))
    return re.sub(rf"\b({known})=({_LIST}|{_STRING})", _option, message)


def _option(found: re.Match[str]) -> str:
    option = "--" + found[1].replace("_", "-")
    try:
        value = ast.literal_eval(found[2])
    except (SyntaxError, ValueError):
        return option
    if value == [...]:
        return option
    if found[1] in _TEXTS:  # the shell's quotes alone: the option is no list
        return f"{option} {shlex.quote(value)}"
    values = value if isinstance(value, list) else [value]
    like_option = re.match(r"-\D", "".join(values[:1]))
    quoting: Any = csv.QUOTE_ALL if like_option else csv.QUOTE_MINIMAL
    words = io.StringIO()
    csv.writer(words, lineterminator="", quoting=quoting).writerow(values)
    return f"{option} {shlex.quote(words.getvalue())}"


def check_output(output: Path, inputs: Sequence[Path | str]) -> None:
    """:raise ValueError: if the file cannot be written, or is an input file."""
    folder = output.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"there is no directory {folder}: make it first")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"directory {folder} cannot be written to: give another --output")
    if output.is_dir():
        raise ValueError(f"{output} is a directory, but a file name is needed")
    if output.exists() and any(os.path.samefile(output, one) for one in inputs):
        raise ValueError(f"{output} is an input and would be overwritten: give another --output")


class Parser(argparse.ArgumentParser):
    """A parser that shows errors in one line, and reads -99,NA as a value, not an option."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self._negative_number_matcher = re.compile(r"-\d")

    def error(self, message: str) -> NoReturn:
        """End the process after printing the message."""
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def integer(least: int) -> Callable[[str], int]:
    """:return: a function that parses integers from `least` on, of at most nine digits."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"no integer from {least} to 999999999: {text!r}")
        return int(text)

    return parse


def import_quietly() -> None:
    """Import TensorFlow without its messages, and restrict its logging to errors."""
    os.environ.setdefault(LEVEL, "3")
    import gpflow_bsvm.quiet  # isort: skip  # noqa: F401 - imports TensorFlow without messages
    import check_shapes

    check_shapes.set_rewrite_docstrings(None)  # takes .5 s for the docstrings of this package
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def told_in_lines() -> Iterator[None]:
    """Show each warning once, in one line as for errors, without advice on Python parameters."""
    told = set[str]()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = re.split(_ADVICE, " ".join(str(message).split()))[0]
        if text not in told:
            print(f"{PROGRAM}: warning: {text}", file=sys.stderr)
        told.add(text)

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def open_streams() -> None:
    """Discard what is written to closed streams: a later file must not take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # TensorFlow writes to number 2 whatever is open there
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def fail(code: int, message: object) -> int:
    """:return: the exit code, after printing the error in a line."""
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    return code


def show(text: str) -> None:
    """Print a string, replacing characters that the terminal lacks."""
    encoding = sys.stdout.encoding or "ascii"
    if text != text.encode(encoding, "replace").decode(encoding):
        plain = text.replace("±", "+-").replace("µ", "u")
        text = plain.encode(encoding, "replace").decode(encoding)
    try:
        print(text, flush=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error
