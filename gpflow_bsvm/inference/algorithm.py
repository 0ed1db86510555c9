"""The base of all algorithms: checks, records, progress bar, interrupts, restoring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import tensorflow as tf
from gpflow.base import RegressionData

from ..checkpoints.directory import Directory
from ..checkpoints.identity import of_fit
from ..checks import NotFinite
from ..data.sources import Source
from ..engine.contracts import Model, check_q, open_data, warn_of_fewer_rows, weighted
from ..engine.shared_graph import one_fit
from ..likelihoods.base import check_hook
from .outcome import NUMERICAL, cause_of, judge
from .run import Callback, History, Recorder, Reports, Run


class Algorithm(ABC):
    """
    A way to fit a model. A subclass has options, lists in `needs` the hooks that a likelihood must
    have, and defines a `Run`.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    #: Advice in errors about missing hooks: algorithms that accept any likelihood.
    instead: ClassVar[str] = "CAVI, SVI, VEM or ML2, which accept any likelihood"
    #: Whether the algorithm learns trainable parameters besides q.
    learns: ClassVar[bool] = False
    #: Whether the result depends on the initial q.
    takes_q: ClassVar[bool] = False
    #: Whether weights are scaled so that the data count as the model's `num_data` rows.
    weighs: ClassVar[bool] = True
    #: The option that extends a fit without changing its steps.
    grows: ClassVar[str] = "max_steps"

    @abstractmethod
    def _begin(self, model: Model, source: Source) -> Run[Any, Any]:
        """:return: a run before its first step; bad input raises an error."""

    def _open(self, model: Model, data: Any, sample_weight: Any) -> Source:
        return open_data(model, data, sample_weight)

    @property
    def _what(self) -> str:
        """:return: the name of the progress bar."""
        return f"{'kernel and q' if self.learns else 'q'} ({type(self).__name__})"

    def run(
        self,
        model: Model,
        data: RegressionData | tf.data.Dataset | None = None,
        *,
        sample_weight: Any = None,
        callback: Callback | None = None,
        monitor: Callable[[int], Any] | None = None,
        progress: bool | None = None,
        checkpoint: Directory | None = None,
        every: int = 1,
    ) -> History:
        """
        Fit the model. At the end, the model is in the state of the latest accepted step, even after
        an interrupt or an error (which is raised again). q changes even if `q_mu` and `q_sqrt` are
        not trainable: as with GPflow's `NaturalGradient`, the flag `trainable` only affects other
        optimizers. If `max_steps` end a fit before its stopping rule, scikit-learn's
        `ConvergenceWarning` is issued.

        :param data: X [N, D] and Y [N, P], in memory or np.memmap; or files, a batched
            `tf.data.Dataset` or blocks of (X, Y) or (X, Y, sample_weight), which are read again in
            each pass (see `gpflow_bsvm.data`); if None, the data stored in the model.
            If the model's `num_data` differs from N, the data count as a sample out of `num_data`
            rows, as in `model.elbo`.
        :param sample_weight: [N], powers of the likelihood, only with arrays; if None, all are 1.
        :param callback: a function of step and history, called at every record. It must not change
            the model; if it returns True, the fit ends (see `gpflow_bsvm.deep.KeepBest`).
        :param monitor: a `gpflow.monitor.Monitor`, called at every record.
        :param progress: whether to show a progress bar; if None, only on a terminal.
        :param checkpoint: a directory for this fit alone. If this process dies, the same call in
            another process continues and ends with the same result; with a larger `max_steps`, the
            fit runs longer. If None, nothing is stored.
        :param every: number of records between checkpoints. The last checkpoint is written at the
            end, even after an interrupt or an error.
        :raise ValueError: for bad data, see `gpflow_bsvm.data.checks`, a likelihood that lacks a
            required hook, or a checkpoint of another fit.
        :raise TypeError: for a model without closed-form steps, such as GPflow's.
        """
        source = self._open(model, data, sample_weight)
        history = History()
        reports = Reports(callback, monitor, progress, checkpoint, every)
        self.run_on(model, source, history, reports)
        return history

    @one_fit()
    def run_on(self, model: Model, source: Source, record: Any, reports: Reports) -> None:
        """
        As in `run`, for data opened by `open_data` for this model.

        :param record: the record to fill: an empty `History`, or `Draws`.
        """
        if isinstance(record, History):
            check_q(model)
        for hook in self.needs:
            check_hook(model.likelihood, hook, self.instead)
        if self.weighs and model.num_data is not None:
            warn_of_fewer_rows(model, source.num_rows)
            source = weighted(model, source)
        identify = partial(of_fit, self, model, source)
        try:
            run = self._begin(model, source)
            Recorder(run, record, reports, identify, self._what).drive()
        except NUMERICAL as error:
            if cause := cause_of(model, source):
                what = getattr(error, "what", "the ELBO or its gradient is not finite")
                raise NotFinite(what, cause) from error
            raise
        if isinstance(record, History):
            judge(self, run, model, source, record)


def settled(elbos: Sequence[float], tol: float) -> bool:
    """:return: True if the last two steps together raised the bound by less than tol * |bound|."""
    return len(elbos) > 2 and elbos[-1] - elbos[-3] <= tol * abs(elbos[-1])
