"""Comparisons in several processes; a task runs one model on all folds of one data set."""

from __future__ import annotations

from .. import quiet  # isort: skip  # noqa: F401 - imports GPflow in a new process

import atexit
import gc
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from threading import RLock

import joblib
import tensorflow as tf
from tqdm.auto import tqdm

from ..datasets import Dataset
from .protocol import Comparison, FoldScore, Held, Settings

#: The number of a comparison, a model, and its `fold_scores` and `held_out`.
Result = tuple[int, str, list[FoldScore], dict[str, dict[int, Held]]]


def run_all(comparisons: Sequence[Comparison], jobs: int, bar: tqdm) -> Iterator[Comparison]:
    """
    Run comparisons, and yield each comparison when all its models are done.

    :param jobs: number of processes, which share the cores; 1: this process.
    :param bar: the comparisons' `progress_bar`.
    :raise ChildProcessError: if a process was killed; finished models are kept.
    """
    if jobs == 1:
        for comparison in comparisons:
            comparison.run(bar)
            yield comparison
        return
    left = [len(comparison.models) for comparison in comparisons]
    try:
        for number, model, scores, held_out in _results(comparisons, jobs):
            comparison = comparisons[number]
            comparison.add(scores, held_out)
            bar.set_postfix_str(f"{comparison.dataset.name}: {model}")
            bar.update(comparison.settings.folds)
            left[number] -= 1
            if not left[number]:
                yield comparison
    except BrokenProcessPool as error:
        reason = "a process was killed, perhaps for lack of memory: --jobs 1 needs less"
        raise ChildProcessError(reason) from error


def _results(comparisons: Sequence[Comparison], jobs: int) -> Iterator[Result]:
    """Yield results of single models as they arrive."""
    threads = max(1, joblib.cpu_count() // jobs)
    tasks = [
        joblib.delayed(_one_model)(number, one.dataset, one.settings, model, threads)
        for number, one in enumerate(comparisons)
        for model in one.models
    ]
    # Without max_nbytes, joblib would write large arrays to files.
    pool = joblib.Parallel(
        min(jobs, len(tasks)), return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    yield from pool(tasks)


def _one_model(
    number: int, dataset: Dataset, settings: Settings, model: str, threads: int
) -> Result:
    """:return: the arguments `number` and `model`, and the results of the model on all folds."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    atexit.register(gc.freeze)  # collecting graphs at the end would take seconds
    tqdm.set_lock(RLock())  # its default lock would be leaked when an interrupt ends this process
    comparison = Comparison(dataset, settings, [model])
    comparison.run(progress=False)
    return number, model, comparison.fold_scores, comparison.held_out
