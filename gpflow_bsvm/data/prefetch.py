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
    The same items, `ahead` of which a thread of its own gets beforehand; so many and the one in use
    are alive at a time. What `items` raises is raised here, in its place. The thread ends when this
    iterator does, is closed, or raises: by then it has finished the item that it was at.

    :param items: are closed at the end.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="gpflow_bsvm-reader")
    coming: deque[Future[T]] = deque()
    try:
        for _ in range(ahead):
            coming.append(pool.submit(next, items, _END))
        while (item := coming.popleft().result()) is not _END:
            coming.append(pool.submit(next, items, _END))
            yield item
            del item  # the caller's is the only one while the next is waited for
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        coming.clear()
        close(items)


@contextmanager
def closed_at_end(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """
    After an error or an interrupt its traceback would keep a generator, and what reads for it.

    :return: a context with `items`, closed at its end.
    """
    try:
        yield items
    finally:
        close(items)


def close(items: Iterator[Any]) -> None:
    """Close a generator, and with it all that it reads from; others have nothing to close."""
    getattr(items, "close", lambda: None)()
