"""Active learning: which rows of a pool to label next, and the model updated by their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float

from ..checks import check_whole
from ..data.checks import as_matrix, check_inputs
from ..data.sources import Source
from ..engine.contracts import Model, check_model, check_width
from ..engine.open import open_data
from ..inference import Streaming
from ..inference.algorithm import Algorithm
from ..likelihoods.hooks import check_labels
from .kernels import best_kernel, fit_from_prior, kernel_multiples
from .policies import Policy, Request, as_policy, chosen


class ActiveLearner:
    """
    A model, a pool of rows without labels, and a policy that chooses which to ask about.

    New labels are new sites: `Streaming` adds their statistics to q, and nothing is retrained from
    scratch; sites of earlier rows stay as they were. At the sizes in `relearn` kernels are compared
    by the leave-one-out density of the labelled rows (`gpflow_bsvm.active.kernels`), and q is then
    refitted to all of them. The evidence cannot serve here: for a hinge, which is not normalized,
    it prefers a variance of 0 where labels are few.

    `ask` and `tell` make one step; `run` is a loop of them. Inducing points are not moved: choose
    them in the pool, whose inputs are all known, by `inducing_points.kmeans(X, M)`.

    :ivar model: the model, which is changed.
    :ivar labelled: [n], rows of the pool, in the order of their labels, and
    :ivar Y: [n, P], their labels.
    """

    def __init__(
        self,
        model: Model,
        X: Any,
        policy: str | Policy = "variation_ratio",
        *,
        batch_size: int = 1,
        relearn: Sequence[int] | None = None,
        update: Algorithm | None = None,
        seed: int = 0,
    ) -> None:
        """
        :param model: such as a `BSVM`, with q its prior; its `num_data` must be None: the labelled
            rows are all there are. (Put rows that already have labels into the pool, and `tell`
            them. A q learned from earlier rows is kept only by `Streaming`.)
        :param X: [N, D], the pool.
        :param policy: a name in `gpflow_bsvm.active.POLICIES`, or a function, see there.
        :param batch_size: B, rows that are asked about together.
        :param relearn: numbers of labelled rows at which the kernel is chosen among multiples of
            the variances and lengthscales that it has now, such as (10, 20, 40); None: never.
        :param update: for new rows; None: `Streaming()`. Any other algorithm, such as `CAVI()`,
            sees all labelled rows.
        :param seed: for ties, and for what a policy draws.
        :raise ValueError: for bad inputs, a pool smaller than a batch, an unknown policy, or a q
            that would be lost.
        :raise TypeError: for a model that is not of this package.
        """
        check_model(model)
        self.model, self.X, self.policy = model, check_inputs(X), as_policy(policy)
        check_width(model, self.X)
        self._moments = tuple(np.ravel(() if relearn is None else relearn).tolist())
        for moment in self._moments:
            check_whole(1, relearn=moment)
        self.batch_size, self._seed = batch_size, seed
        self._update, self._candidates = update or Streaming(), kernel_multiples(model)
        self._check_nothing_is_lost()
        self.labelled: AnyNDArray = np.zeros(0, int)
        self.Y: AnyNDArray = np.zeros((0, 1), default_float())
        self._check_room(batch_size=batch_size)

    def _check_nothing_is_lost(self) -> None:
        if self.model.num_data is not None:
            raise ValueError(
                f"the model's num_data is {self.model.num_data}; it must be None, as the labelled "
                "rows are all that are known"
            )
        warm = isinstance(self._update, Streaming) and not self._moments
        if not warm and np.any(self.model.natural().h):
            raise ValueError(
                "the model's q is not its prior, and a fit to the labelled rows alone would forget "
                "what it knows: `tell` a new model the rows that it has seen, or use relearn=None "
                "with Streaming"
            )

    @property
    def unlabelled(self) -> AnyNDArray:
        """:return: rows of the pool that have no label, in increasing order."""
        return np.setdiff1d(np.arange(len(self.X)), self.labelled, assume_unique=True)

    def _check_room(self, **wanted: int) -> None:
        check_whole(1, **wanted)
        ((what, number),) = wanted.items()
        left = len(self.X) - len(self.labelled)
        if number > left:
            raise ValueError(f"{what} is {number}, and the pool has {left} rows without a label")

    def ask(self, batch_size: int | None = None) -> AnyNDArray:
        """
        :param batch_size: B; None: that of the learner.
        :return: [B], rows of the pool to be labelled next.
        :raise ValueError: if the pool has fewer left, or for an invalid answer of the policy.
        """
        size = self.batch_size if batch_size is None else batch_size
        self._check_room(batch_size=size)
        rows = self.unlabelled
        seed = int(np.random.SeedSequence([self._seed, len(self.labelled)]).generate_state(1)[0])
        request = Request(size, seed, self.X[self.labelled], self.Y)
        X = self.X[rows]
        return rows[chosen(self.policy(self.model, X, request), len(X), request)]

    def tell(self, index: Any, Y: Any) -> bool:
        """
        Learn labels. They are stored before the model is updated: after an interrupt `refit`
        includes them.

        :param index: [B], rows of the pool that have no label yet.
        :param Y: [B] or [B, P], their labels, as in a fit.
        :return: True if the kernel was chosen anew.
        :raise ValueError: for a label that the likelihood does not know, with its row, or for a row
            that has one; nothing has changed then.
        """
        index, Y = self._checked(index, Y)
        before = len(self.labelled)
        self.labelled = np.append(self.labelled, index)
        self.Y = np.concatenate([self.Y.reshape(-1, Y.shape[1]), Y])
        due = any(before < moment <= len(self.labelled) for moment in self._moments)
        if due:
            best_kernel(self.model, self.X[self.labelled], self.Y, self._candidates)
        elif isinstance(self._update, Streaming):
            self._update.run(self.model, (self.X[index], Y), progress=False)
        else:
            self._update.run(self.model, self._all(), progress=False)
        return due

    def _all(self) -> Source:
        """:return: the labelled rows, in which a class may still be absent."""
        return open_data(self.model, (self.X[self.labelled], self.Y), part=True)

    def _checked(self, index: Any, Y: Any) -> tuple[AnyNDArray, AnyNDArray]:
        index = np.atleast_1d(index)
        labels: AnyNDArray = np.asarray(Y, default_float())
        labels = as_matrix(labels.reshape(-1, 1) if labels.ndim < 2 else labels, "Y")
        if len(labels) != len(index) or index.ndim != 1 or index.dtype.kind not in "iu":
            raise ValueError(
                f"expected rows of the pool [B] and a label of each, got {index.shape} and "
                f"{np.shape(Y)}"
            )
        left = set(self.unlabelled.tolist())
        for row, label in zip(index.tolist(), labels):
            if row not in left:
                raise ValueError(f"row {row} has a label, is not in the pool, or is there twice")
            left.remove(row)
            try:
                check_labels(self.model.likelihood, label[None], minibatch=True)
            except ValueError as error:
                raise ValueError(f"the label of row {row} of the pool: {error}") from error
        return index.astype(int), labels

    def refit(self) -> None:
        """Fit q to all labelled rows by `CAVI`, from the prior, at the present kernel."""
        fit_from_prior(self.model, self._all() if len(self.labelled) else None)

    def run(self, oracle: Callable[[AnyNDArray], Any], budget: int) -> AnyNDArray:
        """
        Ask and tell until `budget` more rows are labelled; the last batch may be smaller.

        :param oracle: a function from rows of the pool [B] to their labels.
        :return: rows of the pool [budget], in the order in which they were labelled.
        :raise ValueError: if the pool has fewer rows left than the budget, and as `tell`; labels
            told before are kept.
        """
        self._check_room(budget=budget)
        begin = len(self.labelled)
        while (left := begin + budget - len(self.labelled)) > 0:
            index = self.ask(min(self.batch_size, left))
            self.tell(index, oracle(index))
        return self.labelled[begin:]
