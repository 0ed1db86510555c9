r"""The ELBO as a function of the hyperparameters theta, at fixed sites.

Sites (w_n, r_n), one for each datum and latent function, make a q of every theta:

    q(s) = N(P^-1 h, P^-1),   P(theta) = I + Phi^T diag(w) Phi,   h(theta) = Phi^T r,
    F(theta) = sum_n E_q log p(y_n | f_n) - KL(q || N(0, I)) + log prior(theta),

a lower bound at every theta (the dual view of Adam et al. 2021, t-SVGP, with a site for every
datum). Nothing is to be refitted inside F, so that a quasi-Newton method sees one smooth function.
Gradients go through the features chunk by chunk: memory does not grow with N.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gpflow
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from .hyperparameters import Hyperparameters
from .natural import Gaussian, Natural, centre, solve
from .projected_data import chunk_rows, shares_shifts
from .shared_graph import Compiled
from .statistics import Rows, localise, marginals, prior_factor, project, sum_sites


class Sites(NamedTuple):
    """Gaussian sites of f."""

    w: tf.Tensor  #: [N, L], precisions
    r: tf.Tensor  #: [N, L], precision-means


def gaussian(h: tf.Tensor, P: tf.Tensor, share: tf.Tensor) -> tuple[Natural, Gaussian]:
    """
    :param h: [L, M], and P: [L, M, M], without the prior's I: sums over the sites of all data.
    :return: their q(s), centred with `share`, see `centre`.
    """
    natural = Natural(h, P + tf.eye(tf.shape(P)[-1], dtype=P.dtype))
    return centre(natural, solve(natural), share)


def rows_of(
    kernel: Kernel,
    inducing_variable: InducingVariables,
    mean_function: MeanFunction,
    jitter: tf.Tensor,
    X: tf.Tensor,
    Y: tf.Tensor,
    weight: tf.Tensor,
) -> Rows:
    """:return: the rows projected at the present hyperparameters, inside of a graph."""
    Lz = prior_factor(kernel, inducing_variable, jitter)
    return Rows(X, Y, weight, *project(kernel, inducing_variable, mean_function, X, Lz))


def site_bound(
    likelihood: Likelihood,
    kernel: Kernel,
    inducing_variable: InducingVariables,
    mean_function: MeanFunction,
    jitter: tf.Tensor,
    share: tf.Tensor,
    X: tf.Tensor,
    Y: tf.Tensor,
    weight: tf.Tensor,
    *sites: tf.Tensor,
) -> tf.Tensor:
    """
    F without the prior, of data that fit into memory at once.

    :param jitter: [], of Kuu.
    :param share: [], see `centre`.
    :param X: [N, D], Y: [N, P], weight: [N, 1].
    :param sites: `Sites`, w and r.
    """
    rows = rows_of(kernel, inducing_variable, mean_function, jitter, X, Y, weight)
    _, q = gaussian(*sum_sites(rows, *sites), share)
    return localise(likelihood, rows, marginals(rows.features, q.R, q.c))[-1] - q.kl


_compiled_bound = Compiled(site_bound)


def _value_and_gradient(
    rebuild: Callable[..., Any], values: list[tf.Tensor], *constants: tf.Tensor
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """F of data that fit into memory at once, and its gradient, in one graph."""
    *_, plan = rebuild(values)
    mine = plan.mine(values)
    with _watching(mine) as tape:
        *modules, _ = rebuild(list(plan.merge(values, mine)))
        value = site_bound(*modules, *constants) + plan.log_prior(mine)
    return value, _gradient(tape, value, mine)


_compiled_value_and_gradient = Compiled(_value_and_gradient, rebuilds=True)


@Compiled
def _chunk_sums(
    kernel: Kernel,
    inducing_variable: InducingVariables,
    mean_function: MeanFunction,
    jitter: tf.Tensor,
    X: tf.Tensor,
    Y: tf.Tensor,
    weight: tf.Tensor,
    *sites: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    rows = rows_of(kernel, inducing_variable, mean_function, jitter, X, Y, weight)
    return sum_sites(rows, *sites)


@Compiled
def compiled_expectation(
    likelihood: Likelihood,
    kernel: Kernel,
    inducing_variable: InducingVariables,
    mean_function: MeanFunction,
    jitter: tf.Tensor,
    X: tf.Tensor,
    Y: tf.Tensor,
    weight: tf.Tensor,
    R: tf.Tensor,
    c: tf.Tensor,
) -> tf.Tensor:
    """:return: sum of E_q log p(y_n | f_n) at q(s) = N(R^T c, R^T R)."""
    rows = rows_of(kernel, inducing_variable, mean_function, jitter, X, Y, weight)
    return localise(likelihood, rows, marginals(rows.features, R, c))[-1]


compiled_gaussian = Compiled(gaussian)


class SiteBound:
    """
    F of a model, with the data inside, at the parameters' present values. An InvalidArgumentError
    of TensorFlow means that a matrix had no Cholesky factor.
    """

    def __init__(self, model: Any, X: AnyNDArray, Y: AnyNDArray, weight: AnyNDArray) -> None:
        """
        :param model: an `EngineModel` with kernel, inducing variable and mean function.
        :param X: [N, D], Y: [N, P], weight: [N, 1].
        """
        self.hyperparameters = Hyperparameters(model)
        self.variables = self.hyperparameters.variables
        modules = (model.kernel, model.inducing_variable, model.mean_function)
        everything = (model.likelihood, *modules)
        self._plan, learned = self.hyperparameters.plan(everything)
        places = {id(p.unconstrained_variable): n for n, p in enumerate(learned)}
        # Bare variables are in no plan: then the tape is outside of the graph.
        self._places = [places.get(id(variable)) for variable in self.variables]
        dtype = gpflow.config.default_float()
        self._share = tf.constant(float(shares_shifts(model)), dtype)
        size = chunk_rows(model)
        starts = range(0, len(X), size)
        self._bound = _compiled_bound.bind(*everything)
        self._in_graph = _compiled_value_and_gradient.bind(*everything, self._plan)
        self._sums = _chunk_sums.bind(*modules)
        self._expectation = compiled_expectation.bind(*everything)
        self._chunks = [
            tuple(tf.convert_to_tensor(part[start : start + size]) for part in (X, Y, weight))
            for start in starts
        ]

    def value_and_gradient(
        self, sites: Sites, jitter: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """
        :param sites: of all rows.
        :param jitter: [], of Kuu.
        :return: F, and its gradient with respect to each of `variables`.
        """
        at_once = len(self._chunks) == 1
        if at_once and None not in self._places:
            value, gradient = self._in_graph(jitter, self._share, *self._chunks[0], *sites)
            return value, [gradient[place] for place in self._places]
        with self._tape() as tape:
            value = self.hyperparameters.log_prior()
            if at_once:
                value += self._bound(jitter, self._share, *self._chunks[0], *sites)
        gradient = _gradient(tape, value, self.variables)
        if at_once:
            return value, gradient
        rest, parts = self._by_chunks(sites, jitter)
        return value + rest, list(map(tf.add, gradient, parts))

    def _tape(self, *tensors: tf.Tensor) -> Any:
        """:return: a tape to be entered, that watches the hyperparameters and `tensors`."""
        return _watching([*self.variables, *tensors])

    def gaussian(self, sites: Sites, jitter: tf.Tensor) -> tuple[Natural, Gaussian]:
        """:return: q of these sites at the present hyperparameters."""
        parts = (self._sums(*part) for part in self.parts(sites, jitter))
        h, P = (tf.add_n(column) for column in zip(*parts))
        natural, q = compiled_gaussian(h, P, self._share)
        return natural, q

    def parts(self, sites: Sites, jitter: tf.Tensor) -> Iterator[tuple[Any, ...]]:
        """Yield jitter, X, Y, weight and sites of chunk after chunk."""
        start = 0
        for chunk in self._chunks:
            end = start + len(chunk[0])
            yield (jitter, *chunk, *(part[start:end] for part in sites))
            start = end

    def _by_chunks(self, sites: Sites, jitter: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """By the chain rule through R and c, h and P, in three passes."""
        parts = list(self.parts(sites, jitter))
        h, P = (tf.add_n(column) for column in zip(*(self._sums(*part) for part in parts)))
        with _watching([h, P]) as outer:
            _, q = compiled_gaussian(h, P, self._share)
        value, gradient = -q.kl, [tf.zeros_like(v) for v in [*self.variables, q.R, q.c]]
        for chunk in self._chunks:
            with self._tape(q.R, q.c) as tape:
                term = self._expectation(jitter, *chunk, q.R, q.c)
            value += term
            terms = _gradient(tape, term, [*self.variables, q.R, q.c])
            gradient = list(map(tf.add, gradient, terms))
        *gradient, d_R, d_c = gradient
        d_sums = outer.gradient(
            [q.R, q.c, q.kl], [h, P], output_gradients=[d_R, d_c, -tf.ones_like(q.kl)]
        )
        for part in parts:
            with self._tape() as tape:
                sums = self._sums(*part)
            terms = _gradient(tape, list(sums), self.variables, d_sums)
            gradient = list(map(tf.add, gradient, terms))
        return value, gradient


@contextlib.contextmanager
def _watching(tensors: list[Any]) -> Iterator[tf.GradientTape]:
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(tensors)
        yield tape


def _gradient(
    tape: tf.GradientTape, of: Any, to: list[Any], weights: list[tf.Tensor] | None = None
) -> list[tf.Tensor]:
    """:return: gradients, zeros where there is no connection."""
    zero = tf.UnconnectedGradients.ZERO
    return list(tape.gradient(of, to, output_gradients=weights, unconnected_gradients=zero))
