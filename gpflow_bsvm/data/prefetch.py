"""Read ahead of the computation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_END: Any = object()


def prefetched(items: Iterator[T], ahead: int = 2) -> Iterator[T]:
    """
    Yield the items, reading `ahead` items in advance in a thread; `ahead` + 1 items are in memory.
    An error of `items` is raised after the items before it. When this iterator ends, is closed, or
    raises, the thread has finished its current item and ended.

    :param items: closed at the end.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="gpflow_bsvm-reader")
    coming: deque[Future[T]] = deque()
    try:
        for _ in range(ahead):
            coming.append(pool.submit(next, items, _END))
        while (item := coming.popleft().result()) is not _END:
            coming.append(pool.submit(next, items, _END))
            yield item
            del item  # a waiting thread holds no item
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        coming.clear()
        close(items)


@contextmanager
def closed_at_end(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """
    Close `items` at the end; otherwise an error's traceback would keep generator and reader alive.

    :return: a context with `items`.
    """
    try:
        yield items
    finally:
        close(items)


def close(items: Iterator[Any]) -> None:
    """Close a generator and all generators that it reads; other iterators need no closing."""
    if hasattr(items, "close"):
        items.close()
