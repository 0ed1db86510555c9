"""Every bound of `CrammerSinger` in every model and by every algorithm."""

import gpflow
import numpy as np
import pytest
from helpers import make_data, minimise

import gpflow_bsvm as gb
from gpflow_bsvm.inference import CAVI, ECM, ML2, SVI, VEM, Streaming
from gpflow_bsvm.papers.wistuba2018 import ClassByClass

BOUNDS = ("exact", "augmented", "wistuba2018")
ALGORITHMS = {
    "CAVI": CAVI(max_steps=30),
    "VEM": VEM(max_steps=2),
    "SVI": SVI(max_steps=60, batch_size=30),
    "adaptive": SVI(max_steps=60, batch_size=30, learning_rate="adaptive"),
    "ML2": ML2(max_steps=60, batch_size=30),
    "Streaming": Streaming(max_steps=30),
}
#: As slow as the first, and of the same code.
MORE = [pytest.param(name, marks=pytest.mark.drill) for name in ("BatchBSVM", "LinearBSVM")]
OTHERS = [
    pytest.param(name, marks=pytest.mark.drill)
    for name in ("CAVI", "SVI", "adaptive", "ML2", "Streaming")
]


@pytest.fixture(scope="module")
def classes():
    X, _ = make_data(60)
    return X, np.digitize(X[:, :1], [-0.5, 0.5]).astype(float)


def make(name, bound, data):
    likelihood = gb.likelihoods.CrammerSinger(3, bound=bound)
    kernel = gpflow.kernels.SquaredExponential(2.0)
    if name == "BSVM":
        return gb.models.BSVM(kernel, likelihood, data[0][:8].copy(), num_latent_gps=3)
    if name == "BatchBSVM":
        return gb.models.BatchBSVM(data, kernel, likelihood, num_latent_gps=3)
    return gb.models.LinearBSVM(2, likelihood)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["VEM", *OTHERS])  # a round begins with CAVI
@pytest.mark.parametrize("model", ["BSVM", *MORE])
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_fit_raises_the_objective_and_knows_the_rows(classes, bound, model, algorithm):
    model = make(model, bound, classes)
    before = float(model.elbo(classes))
    ALGORITHMS[algorithm].run(model, classes)
    assert model.elbo(classes) > before + 50
    p = model.predict_y(classes[0])[0].numpy()
    assert np.mean(p.argmax(axis=1) == classes[1][:, 0]) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS)
def test_gpflows_own_model_trains_it(classes, bound):
    likelihood = gb.likelihoods.CrammerSinger(3, bound=bound)
    kernel = gpflow.kernels.SquaredExponential(2.0)
    theirs = gpflow.models.SVGP(kernel, likelihood, classes[0][:8].copy(), num_latent_gps=3)
    ours = make("BSVM", bound, classes)
    np.testing.assert_allclose(theirs.elbo(classes), ours.elbo(classes), rtol=1e-10)
    before = float(theirs.elbo(classes))
    loss = theirs.training_loss_closure(classes, compile=False)
    minimise(loss, theirs.trainable_variables, maxiter=20)
    assert theirs.elbo(classes) > before + 50


@pytest.mark.parametrize("bound", BOUNDS)
def test_who_cannot_names_who_can(classes, bound):
    model = make("BSVM", bound, classes)
    with pytest.raises(
        ValueError, match="use Hinge, OneVsRest or EpsilonInsensitive, or CAVI, SVI"
    ):
        ECM().run(model, classes)
    with pytest.raises(ValueError, match="use Hinge or OneVsRest"):
        gb.sampling.Gibbs(num_draws=2).run(model, classes)
    if bound != "wistuba2018":
        with pytest.raises(ValueError, match='CrammerSinger\\(C, bound="wistuba2018"\\), or CAVI'):
            ClassByClass().run(model, classes)
