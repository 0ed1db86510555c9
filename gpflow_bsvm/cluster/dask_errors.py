"""Errors of data that Dask reads: which are no errors of the cluster, and where they are."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from ..optional import require


def failure(client: Any, futures: Sequence[Any]) -> Exception | None:
    """
    :param client: of the cluster.
    :return: the error that a task has raised; None where none has failed, or because its workers
        died.
    """
    killed = require("distributed", extra="dask").KilledWorker
    for future in futures:
        if future.status == "error":
            error: Exception = future.exception()
            return None if isinstance(error, killed) else _of_task(client, future, error)
    return None


def named(error: Exception, where: str) -> Exception:
    """
    :param where: a name for what failed.
    :return: the error, if it says itself where it is; else one that does.
    """
    if not isinstance(error, (OSError, ValueError)) or str(error).startswith("partition "):
        return error
    if getattr(error, "filename", None) is not None:
        return error
    message = f"{where} cannot be read: {error}"
    try:
        found: Exception = type(error)(message)
    except TypeError:  # of a kind that is made of something else
        found = OSError(message) if isinstance(error, OSError) else ValueError(message)
    found.__cause__ = error
    return found


def _of_task(client: Any, future: Any, error: Exception) -> Exception:
    key = future.key
    with contextlib.suppress(Exception):  # the scheduler need not know: then the error says less
        key = client.sync(client.scheduler.get_error_cause, keys=[future.key])
    where = f"partition {key[-1]} of {key[0]}" if isinstance(key, tuple) else f"task {key}"
    return named(error, where)
