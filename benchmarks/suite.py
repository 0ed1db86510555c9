"""Run a suite: data sets x splits x methods, each data set in a process of its own.

    GPFLOW_BSVM_DATA=... python benchmarks/suite.py NAME [--budget SECONDS] [--limit SECONDS]
    python benchmarks/suite.py --smoke      all suites in small, bundled data; fails if a fit does

NAME is a module of `suites`. Each row is on disk (`results/NAME/DATA.csv`) as soon as it is known,
and what has a row is not measured again: a suite that was stopped, killed or ran out of `--budget`
goes on where it was. A fit beyond `--limit` processor seconds is killed and has a row that says
"failed", as one has that raises; delete the row to try again. Data that cannot be had and an extra
that is not installed are said in a line each, and tried again by the next run.
"""

from __future__ import annotations

import argparse
import collections
import fcntl
import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import rows_on_disk
import store
from suites._contract import FAILED, Fit, Suite

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("suites/[a-z]*.py"))
#: Processor seconds of a fit of a smoke suite.
SMOKE_LIMIT = 60.0
#: Seconds; what waits for processes takes no infinity.
NO_END = 1e6


class OutOfTime(Exception):
    """The budget is spent."""


class Runner:
    """A suite under way, in a folder."""

    def __init__(self, suite: Suite, folder: Path, deadline: float, limit: float) -> None:
        """
        :param folder: of its rows.
        :param deadline: of `time.monotonic`.
        :param limit: processor seconds of a fit.
        """
        # The server has imported TensorFlow but run nothing in it: its children may be forked.
        # Before Python 3.13 it does not hear of this process's path.
        paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parent)]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["suites._worker", suite.fits])
        self._suite, self._folder = suite, folder
        self._deadline, self._limit = deadline, limit

    def run(self, smoke: bool) -> None:
        """:raise OutOfTime: with what was done on disk."""
        short = self._suite.short if smoke else {}
        for data, fits in self._suite.work(smoke):
            path = rows_on_disk.path_of(self._folder, data)
            while missing := rows_on_disk.missing(path, fits):
                code = self._child(path, data, missing, short)
                # What has no row though its process came to its end cannot be had.
                if code >= 0 or not self._buried(path, data, code):
                    break

    def _child(self, path: Path, data: str, missing: list[Fit], short: Mapping[str, object]) -> int:
        """:return: how it ended: below 0 by that signal."""
        if time.monotonic() >= self._deadline:
            raise OutOfTime
        rows_on_disk.under_way(path)  # of a run that was killed
        arguments = (self._suite.fits, path, data, missing, self._limit, short)
        child = self._context.Process(target=_work, args=arguments, daemon=True)
        child.start()
        try:
            child.join(self._deadline - time.monotonic())
            if child.exitcode is None:
                raise OutOfTime
        finally:
            child.kill()
            child.join()
        return int(child.exitcode)

    def _buried(self, path: Path, data: str, code: int) -> bool:
        """:return: whether the process died in a fit, which has a row then."""
        reason = {
            -signal.SIGXCPU: f"over {self._limit:g} processor seconds",
            -signal.SIGALRM: "hangs: the clock ran far beyond the processor's limit",
        }.get(code, f"its process ended by {signal.Signals(-code).name}")
        fit = rows_on_disk.under_way(path)
        if fit is None:
            print(f"{data}: no data: {reason}", flush=True)
            return False
        row = {"data": data, "split": fit[0], "method": fit[1], "status": FAILED + reason}
        rows_on_disk.append(path, row)
        print(rows_on_disk.line(row), flush=True)
        return True


def _work(*arguments: object) -> None:
    """In the child."""
    importlib.import_module("suites._worker").work(*arguments)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two runs of a suite at once would write each other's rows away."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"another process runs this suite in {folder}; wait for it, or give --results")
        yield


def summary(rows: list[dict]) -> Iterator[str]:
    """Yield a line for each method: fits that went well, and how often others ended in what."""
    for method in dict.fromkeys(row["method"] for row in rows):
        ends = [row["status"] for row in rows if row["method"] == method]
        others = collections.Counter(end for end in ends if end != "ok")
        said = "".join(f"; {count} {end}" for end, count in others.items())
        yield f"{method}: {ends.count('ok')} of {len(ends)} fits ok{said}"


def run(name: str, results: Path, deadline: float, arguments: argparse.Namespace) -> None:
    """A suite, and the table of all its rows. A smoke suite ends the process if one is missing."""
    start = time.monotonic()
    suite: Suite = importlib.import_module(f"suites.{name}").SUITE
    with alone(results / name):
        try:
            limit = arguments.limit or (SMOKE_LIMIT if arguments.smoke else suite.limit)
            Runner(suite, results / name, deadline, limit).run(arguments.smoke)
            state = "done"
        except OutOfTime:
            state = "the budget is spent; the same command goes on"
        except KeyboardInterrupt:
            state = "stopped; the same command goes on"
        rows = store.gathered(results / name).to_dict("records")
        if rows:
            store.write(name, rows, store.origin(), results)
    wanted = sum(len(fits) for _, fits in suite.work(arguments.smoke))
    print("\n".join(summary(rows)))
    print(
        f"{name}: {state}; {len(rows)} rows of {wanted}, {time.monotonic() - start:.0f} s",
        flush=True,
    )
    if arguments.smoke and (len(rows) < wanted or any(row["status"] != "ok" for row in rows)):
        sys.exit(f"{name}: not all is well, see above")
    if state.startswith("stopped"):
        sys.exit(130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--budget", type=_positive, help="seconds for all; without end")
    parser.add_argument(
        "--limit", type=_positive, help="processor seconds of a fit; as the suite says"
    )
    parser.add_argument("--smoke", action="store_true", help="in small, to see that all runs")
    parser.add_argument("--results", type=Path, help="folder of rows; a passing one for --smoke")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no suite {sorted(unknown)}; there are: {' '.join(NAMES)}")
    if not arguments.names and not arguments.smoke:
        parser.error(f"name a suite of {' '.join(NAMES)}, or give --smoke")
    with TemporaryDirectory() as passing:
        folder = arguments.results or (Path(passing) if arguments.smoke else store.RESULTS)
        deadline = time.monotonic() + (arguments.budget or NO_END)
        for name in arguments.names or NAMES:
            run(name, folder, deadline, arguments)


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0 is needed, not {text}")
    return number


if __name__ == "__main__":
    main()
