"""Errors of data that Dask reads: which are no errors of the cluster, and where they are."""

from __future__ import annotations

import contextlib
import os
import pickletools
from collections.abc import Iterator, Sequence
from typing import Any

from ..optional import require
from .files import listed


def failure(client: Any, futures: Sequence[Any]) -> Exception | None:
    """
    :param client: of the cluster.
    :return: what a task has raised, with the name of its file; None where none has failed, or
        because its workers died.
    """
    killed = require("distributed", extra="dask").KilledWorker
    for future in futures:
        if future.status == "error":
            error: Exception = future.exception()
            return None if isinstance(error, killed) else _of_task(client, future, error)
    return None


def named(error: Exception, where: str, task: Any) -> Exception:
    """
    :param where: a name for what failed.
    :param task: that was to read, or several.
    :return: the error, if it says itself where it is; else one that does.
    """
    if not isinstance(error, (OSError, ValueError)) or str(error).startswith("partition "):
        return error
    if getattr(error, "filename", None) is not None:
        return error
    files = sorted(set(_files(task)))
    place = f"{where} (file {listed(files)})" if files else where
    message = f"{place} cannot be read: {error}"
    try:
        found: Exception = type(error)(message)
    except TypeError:  # of a kind that is made of something else
        found = OSError(message) if isinstance(error, OSError) else ValueError(message)
    found.__cause__ = error
    return found


def _of_task(client: Any, future: Any, error: Exception) -> Exception:
    key, task = future.key, None
    with contextlib.suppress(Exception):  # the scheduler need not know: then the error says less
        key = client.sync(client.scheduler.get_error_cause, keys=[future.key])
        task = client.sync(client.scheduler.get_runspec, key=key)
    where = f"partition {key[-1]} of {key[0]}" if isinstance(key, tuple) else f"task {key}"
    return named(error, where, task)


def _files(task: Any) -> Iterator[str]:
    """:return: strings in a task that are names of files, however Dask keeps them there."""
    packed = require("cloudpickle", extra="dask").dumps(task)
    for _, found, _ in pickletools.genops(packed):
        if isinstance(found, str) and ("://" in found or os.path.isfile(found)):
            yield found
