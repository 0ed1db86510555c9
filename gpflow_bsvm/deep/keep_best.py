"""Keep the best state of a fit, judged by held-out rows."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
from gpflow.base import AnyNDArray

from ..checks import check_whole
from ..engine.contracts import networks_in, open_data
from ..prediction.marginals import predict_log_density


class KeepBest:
    r"""
    Keeps the model state with the smallest loss on held-out rows,

        -1/n sum_i log p(y_i | x_i)    over held-out rows i = 1..n,

    and ends fits that no longer improve it (early stopping, Prechelt 1998). As the `callback` of a
    fit, it checks the model at every record:

        best = KeepBest(model, (X_held, Y_held), patience=3)
        ML2(max_steps=20 * epoch, record_every=epoch).run(model, (X, Y), callback=best)
        best.restore()

    A direct call checks the current model; `restore` then undoes a deterioration:

        CAVI().run(deep.head(model), (F, Y))
        best()
        best.restore()

    It keeps all variables of the model: q, hyperparameters, network weights and moving averages. A
    fit that resumes from a checkpoint loses the kept state.

    :ivar losses: the loss at every check; the first check is at the start.
    :ivar number: index of the check whose state is kept.
    """

    def __init__(self, model: tf.Module, held_out: Any, patience: int | None = None) -> None:
        """
        :param model: the model of the fit; if `held_out` is a function, any module is allowed, such
            as a tf_keras network.
        :param held_out: rows that the fit does not use, X [n, D] and Y [n, P] or other data for a
            fit; or a function without arguments that returns the model's current loss.
        :param patience: the fit ends after this number of checks without a lower loss; None: never.
        :raise ValueError: for bad or missing rows, or a patience below 1.
        """
        if patience is not None:
            check_whole(1, patience=patience)
        self._model = model
        self._patience = patience
        if held_out is None:
            raise ValueError("expected rows that the fit does not use, got None: give (X, Y)")
        self._held_out = held_out if callable(held_out) else open_data(model, held_out, part=True)
        self._kept: list[tuple[tf.Variable, AnyNDArray]] = []
        self.losses: list[float] = []
        self.number = 0
        self()

    @property
    def loss(self) -> float:
        """:return: the loss of the kept state."""
        return self.losses[self.number]

    def __call__(self, *_: Any) -> bool:
        """
        Check the model's current state, and keep it if its loss is the smallest so far.

        :return: True if the fit should end.
        """
        if callable(self._held_out):
            loss = self._held_out()
        else:
            loss = -predict_log_density(self._model, self._held_out).mean()
        self.losses.append(float(loss))
        if not self._kept or self.losses[-1] < self.loss or math.isnan(self.loss):
            self.number = len(self.losses) - 1
            self._kept = [(variable, variable.numpy()) for variable in self._held().values()]
        without = len(self.losses) - 1 - self.number
        return self._patience is not None and without >= self._patience

    def _held(self) -> dict[int, tf.Variable]:
        """:return: all variables of the model, by id."""
        weights = [v for one in networks_in([self._model]) for v in one.all_weights()]
        return {id(v): v for v in [*self._model.variables, *weights]}

    def restore(self) -> None:
        """
        Restore the kept state.

        :raise ValueError: if parameters of the model were replaced since.
        """
        if not {id(variable) for variable, _ in self._kept} <= self._held().keys():
            raise ValueError(
                "parameters of the model were replaced since its state was kept, as by "
                "inducing_points.exchange: make a new KeepBest after that"
            )
        for variable, value in self._kept:
            variable.assign(value)
