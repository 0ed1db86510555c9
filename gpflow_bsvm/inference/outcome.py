"""Checks of a finished fit, and explanations of a fit without a finite bound."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from sklearn.exceptions import ConvergenceWarning

from ..checks import NotFinite
from ..data.batch import Batch
from ..data.passes import sum_over
from ..data.sources import Source, closed_at_end
from ..engine.contracts import Model, features_of
from ..engine.natural import Gaussian, compiled_solve
from ..engine.projected_data import ProjectedData
from ..engine.projection import Features, Projected, plain_points
from ..engine.shared_graph import Compiled
from ..engine.statistics import Marginals, compiled_marginals, marginals_of_f
from ..likelihoods.base import has_hook, slopes
from ..likelihoods.classes import Classification
from ..likelihoods.regression import is_of_numbers
from ..notices import warn
from .run import History, Run

#: Errors of a fit that non-finite numbers may cause.
NUMERICAL = (NotFinite, FloatingPointError, tf.errors.InvalidArgumentError)


def cause_of(model: Model, source: Source) -> str:
    """:return: an explanation of non-finite numbers at the model's q and the first rows, or ""."""
    with closed_at_end(source.chunks()) as chunks:
        batch = next(chunks)
    features = features_of(model, batch.X)
    q = compiled_solve(model.natural())
    return _of_features(model, batch, features) or _of_likelihood(
        model.likelihood, batch, compiled_marginals(q, features)
    )


def _of_features(model: Model, batch: Batch, features: Features) -> str:
    kernel = f"the kernel {type(model.prior.kernel).__name__}"
    mean = f"the mean function {type(model.prior.mean_function).__name__}"
    phi = tf.transpose(features.phi, [1, 0, 2])
    for what, values in ((kernel, phi), (kernel, features.residual), (mean, features.mean)):
        for row in _rows(values)[:1]:
            x = np.array2string(np.asarray(batch.X[row]), precision=3, threshold=5)
            return f"{what} overflows at row {row}, X = {x}: scale X, and check its parameters"
    return ""


def _of_likelihood(likelihood: Any, batch: Batch, f: Marginals) -> str:
    def look(mean: Any, variance: Any) -> tf.Tensor:
        return likelihood.variational_expectations(batch.X, mean, variance, batch.Y)

    derivatives = () if has_hook(likelihood, "sites") else slopes(look, f.mean, f.variance)
    names = "expected log density", "first derivative", "second derivative"
    density = look(f.mean, f.variance)[:, None]
    for what, values in zip(names, (density, *derivatives)):
        for row in _rows(values)[:1]:
            show = partial(np.array2string, precision=3)
            label, mean, deviation = (
                show(np.asarray(part[row])) for part in (batch.Y, f.mean, tf.sqrt(f.variance))
            )
            return (
                f"the {what} of {type(likelihood).__name__} is not finite at row {row}, for the "
                f"label {label} at f = {mean} with a deviation of {deviation}: compute its log "
                "density so that it does not under- or overflow, or use a likelihood of gpflow_bsvm"
            )
    return ""


def _rows(values: Any) -> AnyNDArray:
    """:return: indices of non-finite rows (first axis)."""
    finite = np.isfinite(np.asarray(values))
    return np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))


SMALLER = (
    "scale X (sklearn.preprocessing.StandardScaler), and use a kernel whose variance is nearer 1"
)

#: q counts as the prior if its divergence from the prior is at most this, in nats, ...
LEAST_NATS = 0.01
#: ... or if its means of f at the inducing points are below this fraction of the margin 1.
#: Collapsed kernels reached at most .08 (vowel, 11 classes, 100 labels), good kernels 1 and more;
#: one label at a variance of 1 gives .5.
LEAST_MEAN = 0.2
#: ... or if, at the rows, its means (in standard deviations) are below LEAST_DEVIATIONS, and the
#: prior's variance is reduced by less than the fraction LEAST_PART.
LEAST_DEVIATIONS = 1e-3
LEAST_PART = 0.5
#: Above this variance of f, in squared margins, float64 does not resolve a margin.
MOST_VARIANCE = 1e24
#: The number of rows to check, from the first chunk.
ROWS = 100
#: Inducing points of earlier rows should leave at most this part of the prior variance of f at new
#: rows unexplained. With .17, a stream predicted nearly as well as a fit to all rows; with .38 and
#: more, plainly worse.
MOST_UNKNOWN = 1 / 3
#: In regression, half of the labels should be closer to their predictions than this, in predicted
#: deviations; if the model is right, half of them are closer than .7.
MOST_DISTANCE = 3.0
#: Error of q's variance (a difference) from rounding and jitters, relative to the prior's.
LEAST_RATIO = 1e-9
#: Of FEWEST_POINTS inducing points, some should be correlated by more than LEAST_CORRELATION.
FEWEST_POINTS = 10
LEAST_CORRELATION = 1e-3
#: A precision below -_ROUNDING / variance is negative by more than rounding.
_ROUNDING = 1e-6


@Compiled
def _clipped(likelihood: Likelihood, q: Gaussian, rows: Projected) -> tuple[tf.Tensor]:
    """:return: the number of precisions that `sites` replaced by 0: negative values, and NaN."""
    X, Y, _ = rows.batch
    mean, variance = marginals_of_f(q, rows.features)
    _, d_var = slopes(partial(likelihood.variational_expectations, X, Y=Y), mean, variance)
    cut = (2 * d_var * variance > _ROUNDING) | ~tf.math.is_finite(d_var)
    return (tf.math.count_nonzero(cut, dtype=mean.dtype),)


def judge(
    algorithm: Any, run: Run[Any, Any], model: Model, source: Source, history: History
) -> None:
    """
    Warn if q equals its prior, and set `converged` to False. (With few labels, the evidence of a
    hinge can be maximal at a collapsed kernel, because a hinge is not normalized.) Otherwise issue
    scikit-learn's `ConvergenceWarning` for clipped sites or too few steps. Also warn if float64
    cannot represent the result.
    """
    q = compiled_solve(model.natural())
    # Without a stopping rule, data may be endless, and some rows may never be read.
    by_sites = run.by_sites and (run.settles or source.indexed)
    if by_sites and not has_hook(model.likelihood, "sites"):
        clipped = partial(_clipped.bind(model.likelihood), q)
        history.clipped = int(sum_over(ProjectedData(model, source), clipped)[0])
        history.converged &= history.clipped == 0  # else q is not stationary
    if not history.latest:
        return
    _warn_of_unlearned(history, run.flat)
    if not np.isfinite(q.kl):
        raise FloatingPointError(f"float64 does not hold this q, which is not finite; {SMALLER}")
    moved = not source.indexed or _has_moved(model, source, q, run.point)
    mean = _largest_mean(model, q)
    says = float(q.kl) > LEAST_NATS and mean > LEAST_MEAN
    if says and moved:
        _warn_of_distance(model)
        if source.indexed and not run.point:
            _warn_of_misfit(model, source, q)
        few = run.settles and not run.converged and history.latest >= run.max_steps
        if history.clipped or few:
            _warn_of_end(model, history, f"{type(algorithm).__name__} more {algorithm.grows}")
        return
    history.converged = False
    nats = max(float(q.kl), 0.0)
    at = "" if np.isinf(mean) else f", and no mean of f at an inducing point is above {mean:.1g}"
    at = ", and f at the rows is as under the prior" if says else at
    warn(
        f"the fit has learned next to nothing: q is {nats:.1g} nats from its prior{at}; "
        + ((_LEFT if says else _MOVED) if algorithm.learns else _FIXED)
    )


def _warn_of_unlearned(history: History, flat: bool) -> None:
    """Warn of trainable hyperparameters that have not changed, not even by rounding."""
    learned = history.hyperparameters
    still = [n for n, values in learned.items() if len(values) > 1 and not np.ptp(values, 0).any()]
    if still and (flat or len(still) < len(learned)):
        warn(
            f"the fit has not changed {', '.join(still)}: the ELBO does not depend on it, or "
            "TensorFlow has no gradient for it, as after NumPy or tf.stop_gradient; if it should "
            "stay as it is, use gpflow.set_trainable(..., False)"
        )


def _warn_of_end(model: Model, history: History, spent: str) -> None:
    """Warn of clipped sites, or of too few steps; `spent` names the option to raise."""
    if history.clipped:
        why = (
            f"the precisions of {history.clipped} sites are negative or NaN, and count as 0, "
            f"because {type(model.likelihood).__name__} is not log-concave: use a likelihood of "
            "gpflow_bsvm, or continue from this q with "
            "gpflow.optimizers.Scipy().minimize(model.training_loss_closure(data), "
            "model.trainable_variables)"
        )
    else:
        why = f"{history.latest} steps were too few: give {spent}, or a larger tol"
    warn(f"the fit has not converged: {why}", ConvergenceWarning)


_MOVED = (
    "the kernel has collapsed, as can happen with few labels: start again with its "
    "variance fixed near 4 (gpflow.set_trainable(kernel.variance, False)) or with more labels, or "
    "compare kernels by gpflow_bsvm.prediction.leave_one_out_density"
)
_LEFT = (
    "kernel or inducing points have moved away from the rows: scale X "
    "(sklearn.preprocessing.StandardScaler), fix the points "
    "(gpflow.set_trainable(model.inducing_variable, False)), or take shorter steps"
)
_FIXED = "use a kernel of larger variance, inducing points near the rows, or a larger penalty"


@check_shapes("features.phi: [G, N, M]", "return: [N, .]")
def prior_variance(features: Features) -> tf.Tensor:
    """:return: variance of f at these rows under the prior, [N, G]."""
    return features.residual + tf.transpose(tf.reduce_sum(tf.square(features.phi), axis=-1))


def check_margins(likelihood: Likelihood, features: Features) -> None:
    """:raise FloatingPointError: if float64 cannot resolve a margin of 1 under the prior."""
    most = float(tf.reduce_max(prior_variance(features)))
    if isinstance(likelihood, Classification) and not most < MOST_VARIANCE:
        raise FloatingPointError(
            f"the prior variance of f is {most:.1g} at a row: float64 cannot resolve a margin of "
            f"1; {SMALLER}"
        )


def at_rows(model: Model, source: Source, q: Gaussian) -> tuple[Marginals, tf.Tensor]:
    """:return: f - m at a few rows, and its variance under the prior."""
    features = _at_some(model, source).features
    features = features._replace(mean=tf.zeros_like(features.mean))
    return compiled_marginals(q, features), prior_variance(features)


def _at_some(model: Model, source: Source) -> Projected:
    # Rows read piece by piece would need another pass, or may be endless.
    with closed_at_end(source.chunks()) as chunks:
        X, Y, weight = next(chunks)
    some = slice(None, None, max(1, len(Y) // ROWS))
    return Projected(Batch(X[some], Y[some], weight[some]), features_of(model, X[some]))


def warn_of_new_rows(model: Model, source: Source) -> None:
    """Warn if the inducing points of earlier rows hardly determine f at new rows."""
    features = _at_some(model, source).features
    unknown = float(tf.reduce_sum(features.residual) / tf.reduce_sum(prior_variance(features)))
    if unknown > MOST_UNKNOWN:
        warn(
            f"the inducing points explain only {1 - unknown:.0%} of the prior variance of f at the "
            "new rows, because they are few or elsewhere: f hardly changes there; first place them "
            "among the new rows with gpflow_bsvm.inducing_points.exchange"
        )


def _has_moved(model: Model, source: Source, q: Gaussian, is_point: bool) -> bool:
    """:return: True if f at a few rows differs from its prior; warns as `warn_of_digits`."""
    f, before = at_rows(model, source, q)
    if not is_point:
        warn_of_digits(model.likelihood, f, before)
    said = tf.abs(f.mean) > LEAST_DEVIATIONS * tf.sqrt(f.variance)
    return bool(tf.reduce_any(said | (f.variance < LEAST_PART * before)))


def warn_of_digits(likelihood: Likelihood, f: Marginals, before: tf.Tensor) -> None:
    """Warn if q is so narrow relative to its prior that rounding errors matter."""
    if (f.variance > LEAST_RATIO * before).numpy().all():
        return
    most = float(tf.reduce_max(before))
    narrow = (
        f"the variance of f at a row is below {LEAST_RATIO:.0e} of its prior value ({most:.1g})"
    )
    if isinstance(likelihood, Classification):
        rounded = "probabilities and ELBO are rounded"
        warn(f"float64 does not hold this q, because {narrow}: {rounded}; {SMALLER}")
    else:
        warn(
            "y has almost no noise, or X is not scaled (use sklearn.preprocessing.StandardScaler), "
            f"because {narrow}: error bars and ELBO are rounded"
        )


def _warn_of_misfit(model: Model, source: Source, q: Gaussian) -> None:
    """Warn if most numbers of a regression are far outside of their predicted error bars."""
    if not is_of_numbers(model.likelihood):
        return
    (X, Y, weight), features = _at_some(model, source)
    f = compiled_marginals(q, features)
    mean, variance = model.likelihood.predict_mean_and_var(X, f.mean, f.variance)
    counted = np.asarray(weight)[:, 0] > 0
    distance = (np.abs(Y - mean) / np.sqrt(variance))[counted]
    if counted.any() and (middle := np.median(distance)) > MOST_DISTANCE:
        warn(
            f"most y are {middle:.2g} or more predicted deviations from their predictions: give "
            "the model (y - mean) / deviation, learn kernel and likelihood with VEM, or take more "
            "steps"
        )


def _warn_of_distance(model: Model) -> None:
    """Warn if f equals its prior away from inducing points, or is equal at all of them."""
    if not plain_points(model.prior.inducing_variable) or model.q_shape[1] < FEWEST_POINTS:
        return
    Lz = model.prior_factor().numpy()
    K = Lz @ np.swapaxes(Lz, -1, -2)  # without a constant kernel's part
    diagonal = np.einsum("gmm->gm", K).max(axis=-1)
    np.einsum("gmm->gm", K)[:] = K.min(axis=(-1, -2))[:, None]
    least = K.min(axis=(-1, -2))
    most = K.max(axis=(-1, -2))
    rounding = np.maximum(model.jitter, LEAST_RATIO * diagonal)
    if ((diagonal - least < 2 * rounding) & (least > rounding)).all():
        warn(
            "all inducing points are perfectly correlated, so that f is the same at all of them: "
            "scale X (sklearn.preprocessing.StandardScaler), or use smaller lengthscales, unless "
            "this is intended"
        )
    elif ((most - least) < LEAST_CORRELATION * (diagonal - least)).all():
        warn(
            "all inducing points are many lengthscales apart, so that f is unknown between them: "
            "scale X (sklearn.preprocessing.StandardScaler), or use larger lengthscales"
        )


def _largest_mean(model: Model, q: Gaussian) -> float:
    """:return: the largest mean of f - m at inducing points; infinity without points or classes."""
    points = plain_points(model.prior.inducing_variable)
    if not (points and isinstance(model.likelihood, Classification)):
        return np.inf
    return float(tf.reduce_max(tf.abs(tf.linalg.matvec(model.prior_factor(), q.mean()))))
