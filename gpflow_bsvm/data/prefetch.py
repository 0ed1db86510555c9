"""Reading runs ahead of computing."""

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
    Yield the same items; a thread reads `ahead` of them in advance, so that as many and the one in
    use are in memory. An error of `items` is raised here, in its place. The thread has finished its
    present item and ended when this iterator ends, is closed, or raises.

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
            del item  # while it waits only the caller holds an item
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        coming.clear()
        close(items)


@contextmanager
def closed_at_end(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """
    Without this the traceback of an error or interrupt would keep a generator and its reader alive.

    :return: a context with `items`, closed at its end.
    """
    try:
        yield items
    finally:
        close(items)


def close(items: Iterator[Any]) -> None:
    """Close a generator, and with it all that it reads from; other iterators need no closing."""
    getattr(items, "close", lambda: None)()
