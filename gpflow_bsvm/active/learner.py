"""Learning by asking: which rows of a pool to label next, and what their labels say at once."""

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
from .kernels import best_kernel, candidates, fit_from_prior
from .policies import Policy, Request, as_policy, chosen


class ActiveLearner:
    """
    A model, a pool of rows without labels, and a policy that chooses which to ask about.

    New labels are new sites: `Streaming` adds their statistics to q, and nothing is trained from
    zero; sites of earlier rows stay as they were then. At the moments `relearn` kernels are
    compared by the leave-one-out density of the labelled rows (`gpflow_bsvm.active.kernels`), and q
    is then that of a fit to all of them. The evidence does not serve here: that of a hinge, which
    is not normalised, prefers a variance of 0 where labels are few.

    `ask` and `tell` are a step, `run` is a loop of them. Inducing points are not moved: choose them
    in the pool, `inducing_points.kmeans(X, M)`, of which nothing but the labels is unknown.

    :ivar model: which is changed.
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
            rows are all there are. (Rows that have labels already: put them into the pool, and
            `tell` it. A q that earlier rows have left is kept by `Streaming` alone.)
        :param X: [N, D], the pool.
        :param policy: a name in `gpflow_bsvm.active.POLICIES`, or a function, see there.
        :param batch_size: B, rows that are asked about together.
        :param relearn: numbers of labelled rows at which the kernel is chosen among multiples of
            the variances and lengthscales that it has now, such as (10, 20, 40); None: never.
        :param update: of new rows; None: `Streaming()`. Any other algorithm, such as `CAVI()`, sees
            all labelled rows.
        :param seed: of ties, and of what a policy draws.
        :raise ValueError: for bad inputs, a pool smaller than a batch, an unknown policy, or a q
            that would be lost.
        :raise TypeError: for a model that is none of this package's.
        """
        check_model(model)
        self.model, self.X, self.policy = model, check_inputs(X), as_policy(policy)
        check_width(model, self.X)
        self._moments = tuple(np.ravel(() if relearn is None else relearn).tolist())
        for moment in self._moments:
            check_whole(1, relearn=moment)
        self.batch_size, self._seed = batch_size, seed
        self._update, self._candidates = update or Streaming(), candidates(model)
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
        """:return: rows of the pool that have no label, rising."""
        return np.setdiff1d(np.arange(len(self.X)), self.labelled, assume_unique=True)

    def _check_room(self, **wanted: int) -> None:
        check_whole(1, **wanted)
        ((what, number),) = wanted.items()
        left = len(self.X) - len(self.labelled)
        if number > left:
            raise ValueError(f"{what} is {number}, and the pool has {left} rows without a label")

    def ask(self, batch_size: int | None = None) -> AnyNDArray:
        """
        :param batch_size: None: that of the learner.
        :return: [B], rows of the pool to be labelled next.
        :raise ValueError: if the pool has fewer left, or for a policy's answer that is none.
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
        Learn labels. They are kept before the model is moved: after an interrupt `refit` takes them
        in.

        :param index: [B], rows of the pool, of which no label is known yet.
        :param Y: [B] or [B, P], their labels, as in a fit.
        :return: whether the kernel was chosen anew.
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
        """:return: labelled rows, in which a class may be absent yet."""
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
        """q of all labelled rows by `CAVI`, from the prior, at the present kernel."""
        fit_from_prior(self.model, self._all() if len(self.labelled) else None)

    def run(self, oracle: Callable[[AnyNDArray], Any], budget: int) -> AnyNDArray:
        """
        Ask and tell until `budget` more rows are labelled; the last batch may be smaller.

        :param oracle: rows of the pool [B] to their labels.
        :return: rows of the pool [budget], in the order in which they were labelled.
        :raise ValueError: if the pool has fewer rows left than the budget, and as `tell`; what was
            told before is kept.
        """
        self._check_room(budget=budget)
        begin = len(self.labelled)
        while (left := begin + budget - len(self.labelled)) > 0:
            index = self.ask(min(self.batch_size, left))
            self.tell(index, oracle(index))
        return self.labelled[begin:]
