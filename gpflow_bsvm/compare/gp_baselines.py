"""The compared Gaussian processes (SVGP by GPflow, BSVM), and factories of all models."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from gpflow.kernels import Constant, Kernel, SquaredExponential
from gpflow.likelihoods import Likelihood
from gpflow.utilities import multiple_assign, parameter_dict, read_values
from scipy import stats

from .. import inference, likelihoods, models
from ..engine.shared_graph import Compiled
from ..likelihoods.base import has_hook
from ..prediction import calibrate, predict_probabilities
from ..priors import set_default_priors
from . import baselines, regression
from .baselines import Baseline, Estimator, KernelSettings, Skipped, Task
from .registry import BASELINES, CLASSES

#: For learning the kernel: the largest number of rounds (a natural-gradient step, then an Adam
#: step), and the relative change of the ELBO that ends them, as for `VEM`. On the bundled sets,
#: Adam with rates of 0.02 and 0.05, or L-BFGS on everything, takes longer to reach the same ELBO.
KERNEL_ROUNDS = 2000
KERNEL_TOLERANCE = 1e-4
ADAM_RATE = 0.1

#: Relative change of the ELBO below which natural-gradient ascent stops.
TOLERANCE = 1e-5
MAX_STEPS = 100
#: Growth of the natural-gradient step size per step, if steps start small.
GROWTH = 1.2


@dataclass(frozen=True)
class NaturalGradientSteps:
    """Step sizes of natural gradients for a likelihood, and their stopping rule."""

    sizes: tuple[float, ...] = (1.0, 0.1)  #: in (0, 1], for a fixed kernel; the first that works
    learning: tuple[float, ...] = (0.5, 0.1)  #: sizes while learning the kernel
    ramp: bool = False  #: whether sizes start at 1 / N, the weight of one row, and grow
    window: int = 1  #: number of ELBOs that the stopping rule averages; 1 if they have no noise
    rounds: int = 20  #: number of ELBOs that it averages while learning the kernel


#: For GPflow's Softmax, whose ELBO is a mean of 100 draws, too noisy to judge convergence by single
#: values. Steps of size 1 overshoot to NaN within ten steps.
MONTE_CARLO = NaturalGradientSteps(sizes=(0.5, 0.1), window=5, rounds=100)
#: For GPflow's RobustMax, which is far from log-concave: at a start from the prior, even steps of
#: 0.01 make the covariance indefinite.
RAMP = NaturalGradientSteps(sizes=(0.5, 0.1, 0.02, 0.004), ramp=True)
#: For GPflow's Gaussian, for which a step of size 1 is exact.
CONJUGATE = NaturalGradientSteps(learning=(1.0, 0.5, 0.1))


def make_kernel(settings: KernelSettings, num_features: int) -> Kernel:
    """:return: a kernel; if it is learned, with priors and one lengthscale per feature."""
    shape = (num_features,) if settings.learn else ()
    kernel = SquaredExponential(settings.variance, np.full(shape, settings.lengthscale))
    if settings.offset:
        kernel += Constant(settings.offset)
    if settings.learn:
        set_default_priors(kernel, num_features)
    return kernel


@Compiled
def _columns(likelihood: Any, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> tf.Tensor:
    """:return: `regression.columns`, [N, 2 + T]; quantiles are Gaussian by default."""
    mean, variance = likelihood.predict_mean_and_var(X, Fmu, Fvar)
    log_p = likelihood.predict_log_density(X, Fmu, Fvar, Y)[:, None]
    if hasattr(likelihood, "predict_quantiles"):
        quantiles = likelihood.predict_quantiles(Fmu, Fvar, regression.LEVELS)[:, 0]
    else:
        quantiles = mean + tf.sqrt(variance) * stats.norm.ppf(regression.LEVELS)
    return tf.concat([mean, log_p, quantiles], axis=1)


class GaussianProcess(Baseline):
    """:ivar model: the latest model."""

    model: Any

    def __init__(self, likelihood: Callable[[], Likelihood]) -> None:
        """:param likelihood: a function that makes the likelihood of a new model."""
        self._likelihood = likelihood

    def _new(self, kind: Callable[..., Any], Z: AnyNDArray, kernel: KernelSettings) -> Any:
        likelihood = self._likelihood()
        own = make_kernel(kernel, Z.shape[1])
        return kind(own, likelihood, Z, num_latent_gps=likelihood.latent_dim or 1)

    def predict_numbers(self, X: AnyNDArray, y: AnyNDArray) -> AnyNDArray:
        columns = _columns.bind(self.model.likelihood)
        mean, variance = self.model.predict_f(X)
        return np.asarray(columns(X, mean, variance, y[:, None]))


class SVGPBaseline(GaussianProcess):
    """
    `gpflow.models.SVGP`, trained on all data: GPflow's compiled `NaturalGradient` alternates with
    Adam on kernel and likelihood until the ELBO converges. All folds of equal shapes share a model
    and its compiled steps, so that they are traced only once.
    """

    def __init__(
        self, likelihood: Callable[[], Likelihood], steps: NaturalGradientSteps | None = None
    ) -> None:
        super().__init__(likelihood)
        self._steps = steps or NaturalGradientSteps()
        self._shape: Any = None  #: of the model: M, D, and the options of the kernel

    def _fit(self, task: Task) -> str:
        """Fit the model; after a failure, try the next smaller step size, and note it."""
        kernel = task.kernel
        notes = list[str]()
        shape = (task.Z.shape, kernel.learn, bool(kernel.offset))
        if shape != self._shape:
            self._shape = shape
            self._make(task.Z, kernel)
        sizes = self._steps.learning if kernel.learn else self._steps.sizes
        for gamma, smaller in zip(sizes, (*sizes[1:], None)):
            self._reset(task.Z, kernel)
            try:
                converged = self._train(task, gamma)
                return "; ".join(notes if converged else [*notes, "not converged"])
            except (tf.errors.InvalidArgumentError, FloatingPointError):
                if smaller is None:
                    raise
                notes = [f"step size {gamma} failed, {smaller} used"]
        raise AssertionError("the last size returns or raises")

    def _predict(self, X: AnyNDArray) -> Any:
        return self._predict_y(X)

    def _make(self, Z: AnyNDArray, kernel: KernelSettings) -> None:
        """Make a model for Z [M, D] and a kernel, of any values, and its compiled steps."""
        model = self.model = self._new(gpflow.models.SVGP, Z, kernel)
        values = read_values(model).items()
        self._begun = {name: one for name, one in values if not name.startswith(".kernel")}
        self._variables = model.kernel.trainable_variables + model.likelihood.trainable_variables
        # GPflow's Bernoulli accepts only floats as labels, its Softmax only integers.
        self._label_dtype = default_float() if model.num_latent_gps == 1 else np.int64
        # Folds may differ by a row: without signatures, each new length would be traced again.
        X = tf.TensorSpec([None, Z.shape[1]], default_float())
        data = (X, tf.TensorSpec([None, 1], self._label_dtype))
        self._gamma = tf.Variable(1.0, dtype=default_float())  # may grow at each step
        self._natural_gradient = gpflow.optimizers.NaturalGradient(self._gamma)
        self._adam = gpflow.keras.tf_keras.optimizers.Adam(ADAM_RATE)
        self._adam.build(self._variables)
        # Graphs do not need AutoGraph: rewriting GPflow's sources would take most of the tracing.
        graph = partial(tf.function, autograph=False)
        self._predict_y = graph(lambda X: self.model.predict_y(X)[0], input_signature=[X])
        self._natural_step = graph(self._step_q, input_signature=data)
        self._learning_step = graph(self._step_both, input_signature=data)

    def _reset(self, Z: AnyNDArray, kernel: KernelSettings) -> None:
        """Reset q to the prior, with these inducing points and hyperparameters; restart Adam."""
        fresh = make_kernel(kernel, Z.shape[1])
        multiple_assign(self.model.kernel, parameter_dict(fresh))
        multiple_assign(self.model, self._begun | {".inducing_variable.Z": Z})
        for variable in self._adam.variables:  # moments and step number
            if variable is not self._adam.learning_rate:
                variable.assign(tf.zeros_like(variable))

    def _train(self, task: Task, gamma: float) -> bool:
        """
        If requested, learn kernel and likelihood by up to `KERNEL_ROUNDS` rounds of a
        natural-gradient step on q and an Adam step on the rest, at fixed inducing points. Then make
        natural-gradient steps. Both phases end when the ELBO converges, see `_settled`.

        :return: True if both phases have converged.
        :raise FloatingPointError: if q or ELBO is not finite, or the last ELBO is below the first.
        """
        data = tf.constant(task.X), tf.constant(task.y[:, None].astype(self._label_dtype))
        ascend = partial(self._ascend, data, gamma)
        steps = self._steps
        ends = list[tuple[bool, float]]()
        if task.kernel.learn:
            ends.append(ascend(self._learning_step, KERNEL_ROUNDS, steps.rounds, KERNEL_TOLERANCE))
        ends.append(ascend(self._natural_step, MAX_STEPS, steps.window, TOLERANCE))
        self.last_gain = ends[0][1]
        return all(settled for settled, _ in ends)

    def _ascend(
        self, data: Any, gamma: float, step: Any, most: int, window: int, tolerance: float
    ) -> tuple[bool, float]:
        """:return: True if the ELBOs of up to `most` steps converged; their last relative gain."""
        X, Y = data
        elbos = list[float]()
        while len(elbos) < most and not _settled(elbos, window, tolerance):
            ramp = GROWTH ** len(elbos) / len(X) if self._steps.ramp else 1.0
            self._gamma.assign(min(gamma, ramp))
            try:
                elbos.append(float(step(X, Y)))
            except tf.errors.InvalidArgumentError as error:  # GPflow raises it for an indefinite q
                raise FloatingPointError(f"no finite q after step {len(elbos) + 1}") from error
            if not math.isfinite(elbos[-1]):
                raise FloatingPointError(f"the ELBO is {elbos[-1]} at step {len(elbos)}")
        settled = _settled(elbos, window, tolerance)
        if not settled and elbos[-1] < elbos[0]:
            raise FloatingPointError(f"ELBO fell from {elbos[0]:.6g} to {elbos[-1]:.6g}")
        before = elbos[-2 * window : -window] or elbos[:1]
        return settled, relative_gain(float(np.mean(before)), float(np.mean(elbos[-window:])))

    def _step_q(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """:return: the ELBO before a natural-gradient step, for the stopping rule."""
        seen: list[tf.Tensor] = []

        def loss() -> tf.Tensor:
            seen.append(self.model.training_loss((X, Y)))
            return seen[-1]

        self._natural_gradient.minimize(loss, [(self.model.q_mu, self.model.q_sqrt)])
        return -seen[0]

    def _step_both(self, X: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        """:return: the ELBO between a natural-gradient step and an Adam step on all but q."""
        self._step_q(X, Y)
        variables = self._variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = self.model.training_loss((X, Y))
        self._adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return -loss


def relative_gain(before: float, last: float) -> float:
    """:return: (last - before) / |last|."""
    return float((last - before) / abs(last))


def _settled(elbos: list[float], window: int, tolerance: float) -> bool:
    """
    :return: True if the relative difference between the mean ELBOs of the last two windows is at
        most `tolerance`, or (for Monte Carlo ELBOs) at most its standard error.
    """
    if len(elbos) < 2 * window:
        return False
    before, last = np.reshape(elbos[-2 * window :], (2, window))
    noise = math.sqrt((before.var() + last.var()) / window)  # 0 for a window of 1
    change = abs(last.mean() - before.mean())
    return bool(change <= max(tolerance * abs(last.mean()), noise))


class BSVMBaseline(GaussianProcess):
    """
    `gpflow_bsvm.models.BSVM`, fitted by `gpflow_bsvm.fit`. If the kernel is learned, `VEM` fits the
    model; then its link, if any, is calibrated.
    """

    def _fit(self, task: Task) -> str:
        X, y, Z, kernel, _ = task
        data = (X, y[:, None] * 1.0)
        self.model = self._new(models.BSVM, Z, kernel)
        gpflow.set_trainable(self.model.inducing_variable, False)
        run = inference.VEM().run if kernel.learn else inference.fit
        history = run(self.model, data, progress=False)
        if kernel.learn and has_hook(self.model.likelihood, "link_parameters"):
            calibrate(self.model, data)
        elbo = history.elbo
        self.last_gain = relative_gain(elbo[-2], elbo[-1]) if len(elbo) > 1 else math.nan
        return "" if history.converged else "not converged"

    def _predict(self, X: AnyNDArray) -> Any:
        return predict_probabilities(self.model, X)


def _hinge(bound: str, C: int) -> BSVMBaseline:
    """:return: the hinge with this bound; if C > 2, Crammer-Singer (exact) or one-vs-rest."""
    if C == 0:
        return BSVMBaseline(likelihoods.EpsilonInsensitive)
    if C == 2:
        return BSVMBaseline(partial(likelihoods.Hinge, bound=bound))
    several = likelihoods.CrammerSinger if bound == "exact" else likelihoods.OneVsRest
    return BSVMBaseline(partial(several, C, bound=bound))


def _svgp(C: int) -> SVGPBaseline:
    """:return: Gaussian for numbers, Bernoulli for two classes, Softmax for more."""
    if C == 0:
        return SVGPBaseline(gpflow.likelihoods.Gaussian, CONJUGATE)
    if C == 2:
        return SVGPBaseline(gpflow.likelihoods.Bernoulli)
    return SVGPBaseline(partial(gpflow.likelihoods.Softmax, C), MONTE_CARLO)


def _factories(C: int) -> dict[str, Callable[[], Baseline]]:
    """:return: factories of the models in `registry.BASELINES` for C classes (0: numbers)."""
    return {
        "BSVMClassifier": partial(Estimator, baselines.classifier),
        "BSVMRegressor": partial(Estimator, baselines.regressor),
        "bsvm": partial(_hinge, "exact", C),
        "bsvm-augmented": partial(_hinge, "augmented", C),
        "one-vs-rest": partial(BSVMBaseline, partial(likelihoods.OneVsRest, C)),
        "probit-engine": partial(BSVMBaseline, likelihoods.Probit),
        "svgp": partial(_svgp, C),
        "svgp-probit": partial(SVGPBaseline, likelihoods.Probit),
        "svgp-robustmax": partial(SVGPBaseline, partial(gpflow.likelihoods.MultiClass, C), RAMP),
        "svc": partial(Estimator, baselines.svc),
        "svr": partial(Estimator, baselines.svr),
        "boosting": partial(Estimator, baselines.boosting),
    }


def make_baseline(name: str, num_classes: int) -> Baseline:
    """
    :return: a new model of this name in `BASELINES`, for C classes (0: numbers).
    :raise Skipped: for unsuitable labels.
    """
    entry = BASELINES[name]
    if not entry.suits(num_classes):
        raise Skipped(f"for {'classes' if entry.only == CLASSES else entry.only[0]} only")
    if entry.factory is None:
        return _factories(num_classes)[name]()
    made: Baseline = entry.factory(num_classes)
    return made
