"""The command line: `gpflow-bsvm compare`.

TensorFlow is imported only after the arguments were read, so that help and errors are instant.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .version import __version__

if TYPE_CHECKING:
    from .compare import Comparison

PROGRAM = "gpflow-bsvm"
DEFAULT_DATA = ("breast-cancer", "banana-like", "digits")

#: The peers, as `gpflow_bsvm.compare.PEERS` has them, for a help that needs no TensorFlow.
MODELS = {
    "bsvm": "Bayesian SVM, exact bound; Crammer and Singer's loss for C > 2",
    "bsvm-augmented": "the same with the binary papers' bound and coordinate ascent",
    "bsvm-published": "the multi-class paper's objective, which is no bound (C > 2)",
    "one-vs-rest": "a binary Bayesian SVM per class, normalised (C > 2)",
    "probit-engine": "probit likelihood in the same engine as bsvm (C = 2)",
    "svgp": "GPflow's SVGP, natural gradients; Bernoulli, Softmax for C > 2",
    "svgp-probit": "the same without Bernoulli's floor on p (C = 2)",
    "svgp-robustmax": "the same with RobustMax, GPflow's MultiClass (C > 2)",
    "svc": "scikit-learn's SVC, C by grid search, Platt-scaled",
    "gpc": "scikit-learn's GaussianProcessClassifier, at most 2000 rows; off by default",
}

_EPILOG = """models (C: number of classes; those that suit the data take part):
""" + "\n".join(f"  {name:<16}{what}" for name, what in MODELS.items())


class _Parser(argparse.ArgumentParser):
    """Errors as one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """
    :param argv: arguments, without the name of the program; None: those of the process.
    :return: 0; 1 if every model failed; 2 for bad input; 130 after an interrupt.
    """
    args = _parser().parse_args(argv)
    try:
        return _compare(args)
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Bayesian support vector machines for GPflow.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    compare = commands.add_parser(
        "compare",
        help="cross-validate Bayesian SVMs, SVGP and SVC on the same folds",
        description="Cross-validate classifiers: same folds, same scaling, same kernel, same "
        "inducing points. Prints a table per data set and writes results.csv, "
        "results.json and pictures.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(compare.add_argument)
    return parser


def _add_arguments(add: Callable[..., Any]) -> None:
    add(
        "data",
        nargs="*",
        metavar="DATA",
        default=list(DEFAULT_DATA),
        help=f"bundled set ({', '.join(DEFAULT_DATA)}: the default), CSV file, or name of a set "
        "in the directory GPFLOW_BSVM_DATA or on OpenML (heart, german, sonar, ...)",
    )
    add("--target", metavar="COL", help="label column of CSV files (default: y, target or class)")
    add("--folds", type=_integer(2), default=10, metavar="K", help="default: %(default)s")
    inducing = "inducing points, by k-means on each training part (default: %(default)s)"
    add("--num-inducing", type=_integer(1), default=100, metavar="M", help=inducing)
    add("--models", type=_models, metavar="A,B", help="some of the models below")
    add("--with-gpc", action="store_true", help="add gpc")
    lengthscale = "of the kernel, on standardised features (default: the square root of D)"
    add("--lengthscale", type=_positive, metavar="L", help=lengthscale)
    variance = "of the kernel (default: %(default)s)"
    add("--variance", type=_positive, default=4.0, metavar="V", help=variance)
    add(
        "--learn-kernel",
        action="store_true",
        help="let every model learn its kernel from there: natural gradients and Adam in turn, for "
        "svc a grid. By default the kernel is fixed, and there is nothing for Adam to learn",
    )
    add("--seed", type=_integer(0), default=0, metavar="S", help="default: %(default)s")
    output = Path("compare-results")
    add("--output", type=Path, default=output, metavar="DIR", help="default: ./%(default)s")
    add("--no-progress", action="store_true", help="no progress bar (a log never has one)")
    add("--no-plots", action="store_true", help="no pictures, and no traced fits for them")


def _integer(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.removeprefix("-").isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected an integer from {least}, got {text!r}")
        return int(text)

    return parse


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")


def _models(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MODELS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{text!r}: choose from {','.join(MODELS)}")
    return list(dict.fromkeys(names))


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """Keep TensorFlow's start-up messages, which it writes past Python, unless it fails."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(stderr, kept.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _compare(args: argparse.Namespace) -> int:
    with _quiet_import():
        import gpflow_bsvm.compare.report

        from .datasets import DataError
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    report = gpflow_bsvm.compare.report
    try:
        report.prepare_output(args.output)
        comparisons = _prepare(args)
    except (DataError, ImportError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    try:
        return _run(args, comparisons)
    except OSError as error:
        print(f"{PROGRAM}: error: cannot write results: {error}", file=sys.stderr)
        return 1


def _prepare(args: argparse.Namespace) -> list[Comparison]:
    """Everything that can be wrong with the input comes to light here, before any training."""
    from .compare import Comparison, Settings
    from .datasets import load
    from .optional import require

    for module in ["pandas"] if args.no_plots else ["pandas", "matplotlib"]:
        require(module)
    settings = Settings(
        folds=args.folds,
        num_inducing=args.num_inducing,
        lengthscale=args.lengthscale,
        variance=args.variance,
        learn_kernel=args.learn_kernel,
        seed=args.seed,
    )
    comparisons: list[Comparison] = []
    for name in args.data:
        dataset = load(name, args.target)
        again = sum(other.dataset.name.split("#")[0] == dataset.name for other in comparisons)
        if again:  # two files of one name: keep their results apart
            dataset = dataclasses.replace(dataset, name=f"{dataset.name}#{again + 1}")
        comparisons.append(Comparison(dataset, settings))
    return comparisons


def _run(args: argparse.Namespace, comparisons: list[Comparison]) -> int:
    from .compare import default_peers

    _print(
        "Scores: mean±standard deviation over the held-out parts, * best. Times: median, to set "
        "up and fit, after a\nwarm-up fit of each model (TensorFlow traces there) that is not "
        "counted; scaling and inducing points are shared."
    )
    for number, comparison in enumerate(comparisons):
        done = comparisons[: number + 1]
        peers = args.models or default_peers(len(comparison.labels))
        peers = list(dict.fromkeys([*peers, "gpc"] if args.with_gpc else peers))
        try:
            comparison.run(
                peers,
                with_traces=not args.no_plots,
                progress=False if args.no_progress else None,
            )
        finally:  # also after an interrupt: what is done is kept
            _report(args, done)
    print(f"\nwritten to {args.output}")
    return 0 if any(row.ok for done in comparisons for row in done.rows) else 1


def _report(args: argparse.Namespace, done: list[Comparison]) -> None:
    """Print the latest table and write all results so far."""
    from .compare import report

    if done[-1].rows:
        _print("\n" + report.table(done[-1]))
    report.write(done, args.output)
    if done[-1].held_out and not args.no_plots:
        report.draw(done[-1], args.output / report.picture_name(done[-1]))


def _print(text: str) -> None:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = text.replace("±", "+-")
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
