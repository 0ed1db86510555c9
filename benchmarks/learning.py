"""Time to learn an ARD kernel with q: seconds until a bound is within 0.5 % of the best one found.

Squared exponential, a lengthscale per input, on 80 % of a data set, M = 200 inducing points that
stay where they are; no priors, all rows in every step, and the same start for all: lengthscales
sqrt(D), variance 4, q the prior. A bound is compared with the best that any method found for the
same likelihood. `VEM` runs without its stopping rule; "stop" is the round after which `VEM()` ends.

The peers are compiled, and charged for no bound that their step does not compute anyway: natural
gradients alternating with Adam on the kernel, in one graph; rounds of natural gradients and L-BFGS
on the kernel; and L-BFGS on everything jointly, which also gets the hinge. Of the first two every
setting gets `PILOT` seconds, and the one that is then highest goes on to `CAP`, as all others do.

Seconds are those of the process's CPU, after the graphs are traced: on one core, other work on the
machine does not count. Medians of three repeats for who arrives.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import product

import gpflow
import numpy as np
import tensorflow as tf
from common import standardised

import gpflow_bsvm as gb

SETS, NUM_INDUCING, TOLERANCE = ("waveform", "splice", "banana"), 200, 5e-3
REPEATS, PILOT, CAP = 3, 8.0, 45.0
LIKELIHOODS = {
    "Hinge, exact": lambda: gb.likelihoods.Hinge(2.0, bound="exact"),
    "Hinge, augmented": lambda: gb.likelihoods.Hinge(2.0, bound="augmented"),
    "Bernoulli": gpflow.likelihoods.Bernoulli,
    "Probit": gb.likelihoods.Probit,
}
#: gamma and natural steps in a round; gamma and Adam's rate.
SETTINGS = {
    "natural, L-BFGS": [(1.0, 3), (0.5, 3), (0.1, 8)],
    "natural, Adam": list(product((1.0, 0.5, 0.1), (0.01, 0.03, 0.1))),
}


class Enough(Exception):
    """Ends a fit: the cap or the goal is reached."""


class Trace:
    """What a fit reports its bounds to."""

    def __init__(self, cap: float, goal: float = math.inf, most: float = math.inf) -> None:
        self.seconds, self.bounds, self.failed = [], [], ""
        self._cap, self._goal, self._most = cap, goal, most
        self._start = time.process_time()

    def __call__(self, bound: float) -> None:
        self.seconds.append(time.process_time() - self._start)
        self.bounds.append(float(bound) if math.isfinite(bound) else -math.inf)
        over = self.seconds[-1] > self._cap or len(self.bounds) >= self._most
        if over or self.bounds[-1] >= self._goal:
            raise Enough


class Fit:
    """A method, ready to run from the start as often as one likes; with its latest long run."""

    def __init__(self, problem: tuple, likelihood: str, method: str, setting: tuple = ()) -> None:
        X, Y, Z = problem
        self.likelihood, self.method, self.setting = likelihood, method, setting
        lengthscales = np.full(X.shape[1], np.sqrt(X.shape[1]))
        kernel = gpflow.kernels.SquaredExponential(4.0, lengthscales=lengthscales)
        cls = gb.models.BSVM if method == "VEM" else gpflow.models.SVGP
        model = cls(kernel, LIKELIHOODS[likelihood](), Z.copy(), num_data=len(X))
        gpflow.set_trainable(model.inducing_variable, False)
        self._fit, variables = METHODS[method](model, (tf.constant(X), tf.constant(Y)), *setting)
        variables = [*model.trainable_variables, *variables]
        self._start = [(variable, variable.numpy()) for variable in variables]
        self.run(math.inf, most=2)  # traces the graphs
        self.trace = self.run(PILOT if setting else CAP)

    def run(self, *limits: float, **more: float) -> Trace:
        for variable, value in self._start:
            variable.assign(value)
        trace = Trace(*limits, **more)
        try:
            self._fit(trace)
        except Enough:
            pass
        except tf.errors.InvalidArgumentError as error:
            trace.failed = "NaN" if "NaN" in str(error) else "Cholesky factor failed"
        return trace


class Recorded(gpflow.optimizers.Scipy):
    """Reports every bound that L-BFGS computes anyway."""

    def run(self, trace: Trace, loss: Callable, variables: tuple, max_iter: int) -> None:
        self.trace = trace
        self.minimize(loss, variables, options={"maxiter": max_iter, "maxfun": 10**6})

    def eval_func(self, *args, **kwargs) -> Callable:
        evaluate = super().eval_func(*args, **kwargs)

        def recorded(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.trace(-(found := evaluate(x))[0])
            return found

        return recorded


def _vem(model, data):
    def fit(trace: Trace) -> None:
        vem = gb.inference.VEM(max_rounds=10_000, tol=0.0)
        vem.run(model, data, progress=False, callback=lambda _, seen: trace(seen.elbo[-1]))

    return fit, []


def _jointly(model, data):
    optimizer, loss = Recorded(), model.training_loss_closure(data, compile=False)
    return lambda trace: optimizer.run(trace, loss, model.trainable_variables, 10_000), []


def _in_rounds(model, data, gamma: float, num_steps: int):
    natural, optimizer = gpflow.optimizers.NaturalGradient(gamma), Recorded()
    loss = model.training_loss_closure(data, compile=False)
    step = tf.function(lambda: natural.minimize(loss, [(model.q_mu, model.q_sqrt)]))

    def fit(trace: Trace) -> None:
        before, best = -math.inf, -math.inf
        while not trace.bounds or best - before > 1e-6 * abs(best):
            for _ in range(num_steps):
                step()
            optimizer.run(trace, loss, model.kernel.trainable_variables, 8)
            before, best = best, max(trace.bounds)

    return fit, []


def _alternating(model, data, gamma: float, rate: float):
    natural = gpflow.optimizers.NaturalGradient(gamma)
    adam, variables = gpflow.keras.tf_keras.optimizers.Adam(rate), model.kernel.trainable_variables
    adam.build(variables)

    @tf.function
    def step() -> tf.Tensor:
        natural.minimize(lambda: model.training_loss(data), [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape() as tape:
            loss = model.training_loss(data)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return -loss  # before Adam's step: a bound that costs nothing

    def fit(trace: Trace) -> None:
        while True:
            trace(float(step()))

    return fit, list(adam.variables)


METHODS = {"VEM": _vem, "L-BFGS": _jointly}
METHODS |= {"natural, L-BFGS": _in_rounds, "natural, Adam": _alternating}


def run() -> list[dict]:
    return [row for name in SETS for row in _set(name)]


def _set(name: str) -> Iterator[dict]:
    X, Y = standardised(name)
    X, Y = X[: int(0.8 * len(X))], Y[: int(0.8 * len(X))]
    problem = X, Y, gb.inducing_points.kmeans(X, NUM_INDUCING)
    fits = [Fit(problem, likelihood, "VEM") for likelihood in LIKELIHOODS]
    fits += [Fit(problem, likelihood, "L-BFGS") for likelihood in ("Hinge, exact", "Bernoulli")]
    for method, settings in SETTINGS.items():
        pilots = [Fit(problem, "Bernoulli", method, setting) for setting in settings]
        winner = max(pilots, key=lambda fit: max(fit.trace.bounds, default=-math.inf))
        winner.trace = winner.run(CAP)
        fits += pilots
    best: dict[str, float] = {}
    for fit in fits:
        best[fit.likelihood] = max([best.get(fit.likelihood, -math.inf), *fit.trace.bounds])
    rows = [_row(fit, best[fit.likelihood]) for fit in fits]
    for row in rows:  # the first is VEM with the exact hinge
        yield {"data": name, **row, "ratio_to_ours": row["seconds"] / rows[0]["seconds"]}


def _row(fit: Fit, best: float) -> dict:
    trace, goal = fit.trace, best - TOLERANCE * abs(best)
    arrived, seconds = np.flatnonzero(np.asarray(trace.bounds) >= goal), math.nan
    if len(arrived):
        again = [fit.run(math.inf, goal) for _ in range(REPEATS - 1)]
        seconds = float(np.median([run.seconds[arrived[0]] for run in [trace, *again]]))
    stop = _stop(trace.bounds) if fit.method == "VEM" else len(trace.bounds)
    return {
        "method": fit.method,
        "setting": " ".join(map(str, fit.setting)),
        "likelihood": fit.likelihood,
        "bound": max(trace.bounds, default=math.nan),
        "best_bound": best,
        "seconds": seconds,
        "steps": arrived[0] + 1 if len(arrived) else math.nan,
        "stop": stop,
        "bound_at_stop": max(trace.bounds[:stop], default=math.nan),
        "failed": trace.failed,
    }


def _stop(bounds: list[float]) -> int:
    """:return: the number of rounds after which `VEM()` would have stopped."""
    default = gb.inference.VEM()
    little = np.diff(bounds) <= default.tol * np.abs(bounds[1:])
    return min([*np.flatnonzero(little) + 2, default.max_rounds, len(bounds)])
