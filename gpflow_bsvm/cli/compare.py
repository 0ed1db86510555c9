"""`gpflow-bsvm compare`: classifiers or regressors, compared on the same folds of data sets."""

from __future__ import annotations

import argparse
import dataclasses
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import whole_file
from ..compare.registry import BASELINES, Entry, default_baselines
from ..optional import require
from ..tables.paths import ENDINGS
from . import shared
from .shared import fail, show

if TYPE_CHECKING:  # needs TensorFlow
    from ..compare.protocol import Comparison

#: Default data sets. On one of them, even-digits, SVC (which uses all rows) wins.
DEFAULT_DATA = ("breast-cancer", "banana-like", "even-digits", "iris")
DEFAULT_NUMBERS = ("diabetes",)

#: Default numbers of folds and inducing points, for learned kernels (slower) and a fixed kernel.
DEFAULTS = (3, 50)
FIXED_KERNEL_DEFAULTS = (10, 100)


def _line(begin: str, entry: Entry) -> str:
    return textwrap.fill(begin + entry.description, 100, subsequent_indent=" " * len(begin))


_EPILOG = f"""models (C: number of classes). Default for classes: {", ".join(default_baselines(2))},
for numbers: {", ".join(default_baselines(0))}; with --fixed-kernel:
all models for classes that suit the data, except BSVMClassifier:
""" + "\n".join(_line(f"  {name:<16}", entry) for name, entry in BASELINES.items())

#: Notes for a reader of the tables.
_TIMES = """\
Scores: mean±standard deviation over the held-out parts; *: no model is better. Stars and sentences
come from the same paired 95 % intervals over rows, which hold for all pairs together. Times are
medians over all folds but the first, in which TensorFlow traces. The time of a fit includes
the setup, but neither scaling nor k-means; predictions are timed in a second call."""


def add_to(subparsers: Any) -> None:
    """Add the command to a parser."""
    parser = subparsers.add_parser(
        "compare",
        help="cross-validate Bayesian SVMs, SVGP and SVC on the same folds",
        description="Cross-validate classifiers or regressors on the same folds, with the same "
        "scaling. Each\nlearns its kernel, or all share a fixed kernel (--fixed-kernel). Print a "
        "table and verdicts for\neach data set, and write results.csv, results.json and pictures.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_compare)
    add = parser.add_argument
    add(
        "data",
        nargs="*",
        metavar="DATA",
        default=list(DEFAULT_DATA),
        help=f"bundled set (default: {', '.join(DEFAULT_DATA)}; also digits), CSV, Parquet, ARFF "
        "or svmlight file, a directory of these, or name of a file in the directory "
        "GPFLOW_BSVM_DATA",
    )
    folds = f"default: {DEFAULTS[0]}, with --fixed-kernel {FIXED_KERNEL_DEFAULTS[0]}"
    add("--folds", type=shared.integer(2), metavar="K", help=folds)
    add("--models", type=_models, metavar="A,B", help="models to compare, see below")
    fixed = "one kernel for all models, of variance 4 and lengthscale sqrt(D), to compare their "
    fixed += "bounds and likelihoods"
    add("--fixed-kernel", action="store_true", help=fixed)
    out = "default: ./%(default)s; replaces the results of an earlier comparison there"
    add("--output", type=Path, default=Path("compare-results"), metavar="DIR", help=out)
    page = "write one HTML file with tables, pictures and settings, for sharing"
    add("--report", type=_page_file, metavar="FILE", help=page)
    jobs = "processes, which share the cores (default: one per data set, at most one per core)"
    add("--jobs", type=shared.integer(1), metavar="J", help=jobs)
    add("--no-plots", action="store_true", help="no pictures")
    most = f"{DEFAULTS[1]}, with --fixed-kernel {FIXED_KERNEL_DEFAULTS[1]}"
    inducing = "of all models except BSVMClassifier and BSVMRegressor, by k-means on each training "
    inducing += f"part (default: {most})"
    shared.add_training(parser, inducing, f" (bundled set of numbers: {DEFAULT_NUMBERS[0]})")


def _page_file(text: str) -> Path:
    if Path(text).suffix.lower() not in (".html", ".htm"):
        raise argparse.ArgumentTypeError(f"expected a name that ends in .html, got {text!r}")
    return Path(text)


def _models(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in BASELINES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{text!r}: choose from {','.join(BASELINES)}")
    return names


def _compare(args: argparse.Namespace) -> int:
    args.begun = time.perf_counter()
    if args.task == "regression" and args.data == list(DEFAULT_DATA):
        args.data = list(DEFAULT_NUMBERS)
    show(f"comparing on {', '.join(args.data)}; TensorFlow takes a few seconds to start")
    require("pandas")  # names the right extra; later errors would not
    _look_at_files(args)
    C = 0 if args.task == "regression" else 2
    names = args.models or default_baselines(C, args.fixed_kernel)
    show("\n".join(_line(f"{name}: ", BASELINES[name]) for name in names))
    if {"bsvm", "svgp"} <= {*names} and not args.fixed_kernel:
        show("bsvm and svgp have the same kernel, priors and M inducing points.")
    show(_TIMES)
    shared.import_quietly()
    return _run(args, _prepare(args))


def _look_at_files(args: argparse.Namespace) -> None:
    """Check inputs and outputs before the slow import of TensorFlow."""
    files = [name for name in args.data if name.lower().endswith(ENDINGS) or Path(name).exists()]
    for name in files:
        shared.read_table(shared.find_and_show(name), args)
    of_numbers = {*args.data} <= {*DEFAULT_NUMBERS}
    classes, numbers = shared.TASKS
    args.task = args.task or (numbers if of_numbers else classes)
    if args.task == "regression" and args.fixed_kernel:
        raise ValueError("--task regression has no --fixed-kernel: leave it out")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot write to {args.output}: {error.strerror}") from error
    outputs = [args.output / name for name in ("results.csv", "results.json")]
    for path in [*outputs, args.report] if args.report else outputs:
        shared.check_output(path, files)
    if (args.output / "results.json").is_file():
        lost = f"results of an earlier comparison in {args.output} will be replaced"
        show(f"{lost}; --output DIR keeps them")


def _prepare(args: argparse.Namespace) -> list[Comparison]:
    """Find all errors in the input before any training."""
    from ..compare import report
    from ..compare.protocol import Comparison, Settings
    from ..datasets import load

    if not args.no_plots:
        require("matplotlib")
    folds, num_inducing = FIXED_KERNEL_DEFAULTS if args.fixed_kernel else DEFAULTS
    args.folds = args.folds or folds
    args.num_inducing = args.num_inducing or num_inducing
    settings = Settings(args.folds, args.num_inducing, args.fixed_kernel, args.seed, args.task)
    numbers = args.task == "regression"
    given = shared.options(args)
    datasets = [load(name, args.target, numbers, args.impute, **given) for name in args.data]
    names = [report.picture_name(dataset).lower() for dataset in datasets]
    for number, dataset in enumerate(datasets):
        if again := names[:number].count(names[number]):  # distinguish files of the same name
            name = f"{dataset.name}#{again + 1}"
            datasets[number] = dataclasses.replace(dataset, name=name)
    return [Comparison(dataset, settings, args.models) for dataset in datasets]


def _run(args: argparse.Namespace, comparisons: list[Comparison]) -> int:
    try:
        _fit(args, comparisons)
    except ChildProcessError as error:
        return fail(1, error)
    except OSError as error:
        return fail(1, f"cannot write results: {error}")
    finally:  # finished results are kept
        code = _write_page(args, comparisons)
    if any(score.ok for done in comparisons for score in done.fold_scores):
        also = f" and {args.report}" if args.report and not code else ""
        show(f"\n{_time(args, comparisons)}\nwritten to {args.output}{also}")
        return code
    return fail(1, f"no model could be fitted, see {args.output}")


def _time(args: argparse.Namespace, comparisons: list[Comparison]) -> str:
    """:return: a line with the total time, compared with the fits of the slowest `PEERS`."""
    from ..compare import report

    took = f"took {time.perf_counter() - args.begun:.0f} s"
    peers = sum(report.seconds_of_peers(one) for one in comparisons)
    return f"{took}; fits of the slowest other package: {peers:.0f} s" if peers else took


def _fit(args: argparse.Namespace, comparisons: list[Comparison]) -> None:
    from joblib import cpu_count

    from ..compare.protocol import run_all
    from ..inference.run import progress_bar

    for one in comparisons:
        for note in one.dataset.notes:
            show(shared.in_shell(f"{one.dataset.name}: {note}"))
    jobs = args.jobs or min(len(comparisons), cpu_count())
    fits = sum(one.num_fits for one in comparisons)
    with progress_bar(fits, "compare", False if args.no_progress else None, "fit") as bar:
        try:
            for done in run_all(comparisons, jobs, bar):
                with bar.external_write_mode():
                    _report(args, done, comparisons)
        finally:
            for one in (each for each in comparisons if each.ended_early):
                with bar.external_write_mode():
                    _report(args, one, comparisons)


def _write_page(args: argparse.Namespace, comparisons: list[Comparison]) -> int:
    """:return: 0, or 1 if writing the page failed, which does not affect the results."""
    if not args.report or not any(comparison.fold_scores for comparison in comparisons):
        return 0
    try:
        from ..compare.page import page

        text = page(comparisons, command=args.typed, pictures=not args.no_plots)
        with whole_file(args.report) as file:
            file.write(text.encode())
    except Exception as error:  # any error: the results are already written
        reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        return fail(1, f"cannot write {args.report}: {reason}")
    return 0


def _report(args: argparse.Namespace, done: Comparison, comparisons: list[Comparison]) -> None:
    """Print the table of `done`, and write all results so far."""
    from ..compare import pictures, report

    show("\n".join(["", report.table(done), *report.verdicts(done)]))
    begun = [one for one in comparisons if one.fold_scores]
    drawn = [one for one in begun if one.held_out and not args.no_plots]
    report.write(begun, args.output, [report.picture_name(one.dataset) for one in drawn])
    if done in drawn:
        with whole_file(args.output / report.picture_name(done.dataset)) as file:
            pictures.draw(done, file)
