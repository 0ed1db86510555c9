"""Predictions from factors that wait for the next call: never those of other parameters."""

import gc
import threading
import weakref

import gpflow
import numpy as np
import pytest
from helpers import make_data, make_model, minimise, randomise

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Hinge
from gpflow_bsvm.models import sparse

X = make_data(20)[0]


def count(monkeypatch):
    """:return: a list that grows with every computation of factors."""
    calls, remember = [], sparse.remembered

    def counted(model, name, parts, compute):
        def counting():
            calls.append(name)
            return compute()

        return remember(model, name, parts, counting if name == "predictor" else compute)

    monkeypatch.setattr(sparse, "remembered", counted)
    return calls


def anew(model):
    """:return: marginals without any memory: those of GPflow."""
    return [part.numpy() for part in gpflow.models.SVGP.predict_f(model, X)]


def predicts_what_gpflow_does(model):
    for mine, theirs in zip(gb.prediction.predict_marginals(model, X), anew(model)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)


def by_optimiser(model):
    loss = model.training_loss_closure(make_data(20), compile=False)
    minimise(loss, model.trainable_variables, maxiter=2)


MOVES = {
    "q_mu": lambda model: model.q_mu.assign(model.q_mu + 1),
    "q_sqrt": lambda model: model.q_sqrt.assign(model.q_sqrt * 0.5),
    "in place": lambda model: model.q_mu.unconstrained_variable.assign_add(
        np.ones(model.q_mu.shape)
    ),
    "variance": lambda model: model.kernel.variance.assign(3.0),
    "lengthscale": lambda model: model.kernel.lengthscales.assign(1.5 * model.kernel.lengthscales),
    "Z": lambda model: model.inducing_variable.Z.assign(model.inducing_variable.Z + 0.1),
    "another kernel": lambda model: setattr(model, "kernel", gpflow.kernels.Matern32(2.0)),
    "mean": lambda model: setattr(model, "mean_function", gpflow.functions.Constant([0.7])),
    "step": lambda model: model.natgrad_step(make_data(20)),
    "optimiser": by_optimiser,
}


#: What the factors of a model that is not whitened depend on besides.
PLAIN = ("q_mu", "q_sqrt", "lengthscale", "Z")


@pytest.mark.parametrize(
    ("move", "whiten"),
    [(name, True) for name in MOVES] + [(name, False) for name in PLAIN],
)
def test_a_parameter_that_moves_is_seen(move, whiten, monkeypatch):
    calls = count(monkeypatch)
    model = make_model(make_data(20), whiten=whiten)
    randomise(model)
    predicts_what_gpflow_does(model)
    predicts_what_gpflow_does(model)
    assert len(calls) == 1
    MOVES[move](model)
    predicts_what_gpflow_does(model)
    assert len(calls) == 2


def test_another_jitter_is_seen(monkeypatch):
    calls, model = count(monkeypatch), make_model(make_data(20))
    randomise(model)
    predicts_what_gpflow_does(model)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-2)):
        predicts_what_gpflow_does(model)
    assert len(calls) == 2


def test_a_kernel_of_a_user_is_asked_anew():
    """It may read what no parameter tells of."""

    class Own(gpflow.kernels.SquaredExponential):
        factor = 1.0

        def K_r2(self, r2):
            return self.factor * super().K_r2(r2)

        def K_diag(self, X):
            return self.factor * super().K_diag(X)

    model = gb.models.BSVM(Own(), Hinge(), X[:5].copy())
    randomise(model)
    before, _ = gb.prediction.predict_marginals(model, X)
    Own.factor = 2.0
    predicts_what_gpflow_does(model)
    assert not np.allclose(before, anew(model)[0])


def test_a_copy_has_its_own_and_no_model_is_kept_alive():
    model = make_model(make_data(20))
    randomise(model)
    predicts_what_gpflow_does(model)
    copy = gpflow.utilities.deepcopy(model)
    copy.q_mu.assign(copy.q_mu + 1)
    predicts_what_gpflow_does(copy)
    predicts_what_gpflow_does(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_threads_share_it():
    model, found = make_model(make_data(20)), []
    randomise(model)
    expected = gb.prediction.predict_probabilities(model, X)
    model.q_mu.assign(model.q_mu + 0)  # the same numbers in other memory

    def predict():
        found.extend(gb.prediction.predict_probabilities(model, X) for _ in range(5))

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("whiten", [True, False])
def test_natural_parameters_are_computed_once(whiten):
    model = make_model(make_data(20), whiten=whiten)
    before = model.natural()
    assert model.natural() is before
    model.q_mu.assign(model.q_mu + 1)
    assert (model.natural().h != before.h).numpy().all()
