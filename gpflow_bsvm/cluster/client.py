"""The workers of a Dask cluster: what is asked of them, and what it means when they are gone."""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gpflow

from ..optional import require
from . import workers
from .dask_errors import failure
from .workers import Sent

#: Sums of so many partitions become one.
_FAN_IN = 8
#: What is kept on the workers takes at most this part of their memory; of one without a limit.
_KEPT_PART, _NO_LIMIT = 0.4, 2**31
#: Seconds without any worker after which a cluster is given up, and between two looks.
PATIENCE, _LOOK = 60.0, 5.0


def present_client() -> Any:
    """:return: the `dask.distributed.Client` in use, if there is one."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None


class Cluster:
    """The workers of a `dask.distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._cloudpickle = require("cloudpickle", extra="dask")

    def send(self, content: Any) -> Any:
        """
        :return: a future of what every task of a pass is told.
        :raise TypeError: for a model that holds what cannot be sent.
        """
        try:
            packed = self._cloudpickle.dumps(content)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise TypeError(
                f"the model cannot be sent to workers ({error}): kernels, mean functions and "
                "likelihoods of GPflow and of this package can, and your own if pickle can"
            ) from error
        return self.submit(Sent, packed, gpflow.config.config())

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """:return: a future of `function(*arguments)`, where futures are what they will be."""
        return self.map(function, *([argument] for argument in arguments))[0]

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """:return: as `submit`, for each of equally long lists of arguments, in one message."""
        with self._named_errors():
            futures: list[Any] = self._client.map(function, *arguments, pure=False)
            return futures

    def compute(self, delayed: list[Any]) -> list[Any]:
        """:return: futures of what Dask is to compute."""
        with self._named_errors():
            futures: list[Any] = self._client.compute(delayed)
            return futures

    def results(self, futures: list[Any]) -> list[Any]:
        """
        :return: what futures will be.
        :raise ConnectionError: where the cluster is gone.
        :raise Exception: of the data, or whatever else a task has raised.
        """
        distributed, waited = require("distributed", extra="dask"), 0.0
        with self._named_errors(futures):
            while True:
                try:
                    distributed.wait(futures, timeout=_LOOK)
                    found: list[Any] = self._client.gather(futures)
                    return found
                except distributed.TimeoutError:
                    if any(future.status == "error" for future in futures):
                        raise  # it is that of a task
                    waited = 0.0 if self._client.nthreads() else waited + _LOOK
                    if waited >= PATIENCE:
                        raise TimeoutError(f"no worker for {waited:.0f} seconds") from None

    def tree(self, how: Any, futures: list[Any]) -> Any:
        """
        :param how: a `Job` that was sent.
        :return: the sum of all, in an order that depends on their number only.
        """
        while len(futures) > 1:
            groups = [futures[i : i + _FAN_IN] for i in range(0, len(futures), _FAN_IN)]
            futures = self.map(workers.added, [how] * len(groups), groups)
        return self.results(futures)[0]

    @property
    def memory(self) -> float:
        """:return: bytes that may be kept on all workers together."""
        info = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return _KEPT_PART * sum(worker["memory_limit"] or _NO_LIMIT for worker in info)

    @contextlib.contextmanager
    def _named_errors(self, futures: Sequence[Any] = ()) -> Iterator[None]:
        """:param futures: tasks whose own errors are no errors of the cluster."""
        distributed = require("distributed", extra="dask")
        closed = getattr(distributed.client, "ClosedClientError", OSError)  # not in old versions
        lost = (OSError, TimeoutError, distributed.CancelledError, distributed.KilledWorker, closed)
        try:
            yield
        except (*lost, ValueError) as error:
            if (own := failure(self._client, futures)) is not None:
                raise own from own.__cause__
            if isinstance(error, (FileNotFoundError, ValueError)):  # of the data, read here
                raise
            raise ConnectionError(
                f"the Dask cluster of {self._client} is gone, or its workers die of a partition "
                f"({type(error).__name__}: {error}). The model holds the latest step; with another "
                "client the same call begins there, or exactly where this one ended if it was "
                "given checkpoint=..."
            ) from error
