r"""Fit the link to labels of held-out rows, or of training rows by leave-one-out.

A site summarizes its datum's effect on the posterior: q without site n is the leave-one-out
posterior. If Phi_n s has the marginal N(mu, v), and its site is (w, r), leave-one-out moments are

    v_-n = v / (1 - w v),    mu_-n = v_-n (mu / v - r),

to which residual variance and prior mean are added. They are exact for Gaussian sites that do not
depend on datum n. The link is then fitted to the labels by maximum likelihood: for two classes, p(y
= 1 | f) = Phi(g f + d), for more classes, the class probabilities of g f.

The hyperparameters still depend on the datum that is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray

from ..data.batch import Batch
from ..data.passes import map_over, sum_over
from ..data.sampling import sample
from ..data.sources import ArraySource, Source
from ..engine.contracts import Model, chunk_rows, open_all, open_data, weighted
from ..engine.natural import compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.projection import Projected
from ..engine.quasi_newton import maximise
from ..engine.statistics import Marginals, compiled_cavities, compiled_marginals
from ..likelihoods.base import check_hook
from ..notices import warn
from .estimators import in_units_of_y, of_log_density, of_moments, takes_estimators
from .marginals import compiled_log_density

#: Largest number of optimizer steps; two parameters need about ten.
_ITERATIONS = 100
#: Largest number of rows; a random sample of this size determines two parameters to about a
#: hundredth. Marginals, labels and a gradient of all rows might not fit into memory.
MOST_ROWS = 50_000
#: Smallest scale. If no row can be predicted from the others, the best scale is 0, which gives all
#: f the same probabilities.
LEAST_SCALE = 0.05


@in_units_of_y(of_moments)
@check_shapes("return[all]: [N, L]")
def leave_one_out(
    model: Model, data: Any = None, *, sample_weight: Any = None
) -> tuple[AnyNDArray, AnyNDArray]:
    """
    :param model: fitted to `data`.
    :param data: X [N, D] and Y [N, P], as in the fit.
    :param sample_weight: [N], as in the fit.
    :return: mean and variance of f(x_n) without datum n, both [N, L]. A row of weight 2 is left out
        as a whole. If a row occurs twice, its copy stays in.
    :raise ValueError: for bad data.
    """
    f, _, _ = _leave_out(model, open_all(model, data, sample_weight))
    return f.mean.numpy(), f.variance.numpy()


def _leave_out(
    model: Model, source: Source, held_out: bool = False
) -> tuple[Marginals, tf.Tensor, tf.Tensor]:
    """:return: each row's leave-one-out marginals of f, label and weight."""
    rows = ProjectedData(model, source)
    q = compiled_solve(model.natural())
    cavities = compiled_cavities.bind(model.likelihood)

    def look(part: Projected) -> Any:
        f = compiled_marginals(q, part.features) if held_out else cavities(q, part)[1]
        return f, part.batch.Y, part.batch.weight

    found: tuple[Marginals, tf.Tensor, tf.Tensor] = map_over(rows, look)
    return found


@in_units_of_y(of_log_density)
def leave_one_out_density(model: Model, data: Any = None, *, sample_weight: Any = None) -> float:
    """
    The mean of log p(y_n | all other data), with the likelihood's current link: a general criterion
    for model selection.

    Arguments and errors are as in `leave_one_out`.

    :return: nats per row (of weight 1); greater is better. It is at most 0 for classes.
    """
    log_p, weight = left_out_log_densities(model, open_all(model, data, sample_weight))
    return float(np.average(log_p, weights=weight))


def left_out_log_densities(model: Model, source: Source) -> tuple[AnyNDArray, AnyNDArray]:
    """:return: log p(y_n | all other data) of each row, and its weight, both [N]."""
    q = compiled_solve(model.natural())
    cavities = compiled_cavities.bind(model.likelihood)
    density = compiled_log_density.bind(model.likelihood)

    def look(part: Projected) -> Any:
        X, Y, weight = part.batch
        return density(X, *cavities(q, part)[1], Y), weight[:, 0]

    log_p, weight = map_over(ProjectedData(model, source), look)
    return log_p.numpy(), weight.numpy()


@takes_estimators
def calibrate(
    model: Model, data: Any = None, *, sample_weight: Any = None, held_out: bool = False
) -> dict[str, float]:
    """
    Set the link's parameters of `model.likelihood` to those that maximize `leave_one_out_density`,
    on at most 50 000 random rows: scale and offset for two classes, scale for more. The only row of
    a class is ignored. The scale is at least 0.05: predicted labels still follow f. If the best
    scale is smaller, because other rows do not predict a row, a warning is issued.

    Arguments and errors are as in `leave_one_out`.

    :param held_out: whether `data` are new rows, of which none is left out. Must be True after a
        network was learned, because leaving a row out does not undo its effect on the network.
    :return: the link's parameters by name.
    :raise ValueError: for a likelihood without `link_parameters`, a q equal to the prior, or
        `held_out` without data.
    """
    check_hook(model.likelihood, "link_parameters")
    if held_out and data is None:
        raise ValueError(
            "held_out=True needs rows that the fit has not seen, but data=None uses the model's "
            "training data: give (X, Y)"
        )
    link: Any = model.likelihood
    if not np.any(model.natural().h):
        raise ValueError("the model's q is the prior: fit the model before calibrating its link")
    source = weighted(model, open_data(model, data, sample_weight, part=held_out))
    if source.num_rows > MOST_ROWS:
        source = sample(source, MOST_ROWS, seed=0)
    f, Y, weight = _leave_out(model, source, held_out)
    if not held_out:
        weight = tf.where(has_company(Y, weight)[:, None], weight, tf.zeros_like(weight))
    if len(np.unique(Y.numpy()[weight.numpy()[:, 0] > 0])) < 2:
        warn(
            "leaving rows out requires two classes with more than one row each: the link and the "
            "probabilities are not calibrated"
        )
        return {name: float(p.numpy()) for name, p in link.link_parameters.items()}
    found = fit_link(link, f, Y, weight, chunk_rows(model))
    if found.get("scale", 1.0) < 1.001 * LEAST_SCALE:  # allow for the transform's rounding
        warn(
            "left-out rows are predicted no better than by chance: probabilities are near the "
            f"frequencies of the classes (the link's scale is {LEAST_SCALE:g})"
        )
    return found


def has_company(Y: Any, weight: Any) -> AnyNDArray:
    """:return: [N], False for a class's only row (of weight > 0): other rows cannot predict it."""
    _, place = np.unique(Y, return_inverse=True, axis=0)
    place = place.reshape(-1)
    return np.asarray(np.bincount(place, np.ravel(weight) > 0)[place] > 1)


def fit_link(
    link: Any, f: Marginals, Y: tf.Tensor, weight: tf.Tensor, chunk_rows: int, *names: str
) -> dict[str, float]:
    """
    As in `calibrate`, for rows with known marginals.

    :param f: [N, L], marginals, each without use of the row's own label; Y: [N, P]; weight: [N, 1].
    :param names: the parameters to fit; all if empty.
    """
    nothing: AnyNDArray = np.zeros((len(Y), 0), Y.dtype.as_numpy_dtype)  # a link does not use X
    table = ArraySource(nothing, Y, weight, chunk_rows)
    density = compiled_log_density.bind(link)
    moved = names or tuple(link.link_parameters)
    variables = [link.link_parameters[name].unconstrained_variable for name in moved]

    def look(batch: Batch, f: Marginals) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:  # holds one chunk
            tape.watch(variables)
            log_p = tf.tensordot(batch.weight[:, 0], density(batch.X, *f, batch.Y), 1)
        return log_p, tf.reduce_sum(batch.weight), tape.gradient(log_p, variables)

    def value_and_gradient() -> tuple[tf.Tensor, list[tf.Tensor]]:
        log_p, total, slopes = sum_over(table, look, f)
        return log_p / total, [slope / total for slope in slopes]

    value_and_gradient()  # raises an error that `maximise` would take for a large loss
    maximise(value_and_gradient, variables, _ITERATIONS)
    scale = link.link_parameters.get("scale")
    if scale is not None and scale < LEAST_SCALE:
        scale.assign(LEAST_SCALE)
    return {name: float(p.numpy()) for name, p in link.link_parameters.items()}
