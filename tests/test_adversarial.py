"""Models in the Adversarial Robustness Toolbox: probabilities, gradients against differences."""

import gpflow
import numpy as np
import pytest
from gpflow.keras import tf_keras
from helpers import make_data, make_model, randomise
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb
from gpflow_bsvm.adversarial import art_classifier
from gpflow_bsvm.deep import DeepKernel
from gpflow_bsvm.deep.kernel import FeaturePoints
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest

pandas = pytest.importorskip("pandas")
evasion = pytest.importorskip("art.attacks.evasion", reason="needs the extra `adversarial`")

X, Y = make_data(20)
#: ART predicts in single precision.
SINGLE = {"rtol": 0, "atol": 1e-6}


@pytest.fixture(scope="module")
def binary():
    model = make_model((X, Y), likelihood=Hinge())
    randomise(model)
    return model


def of_three(likelihood):
    model = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(2.0), likelihood(3), X[:8].copy(), num_latent_gps=3
    )
    randomise(model)
    return model


def classifier(**options):
    return gb.BSVMClassifier(
        num_inducing=5, learn_kernel=False, loss="hinge", penalty=2.0, **options
    )


def three(seed=1):
    return np.random.default_rng(seed).integers(0, 3, len(X))


def gradient(target, X, y):
    return art_classifier(target, (2,)).loss_gradient(X, np.eye(max(y) + 1)[y])


def by_differences(log_density, X, h=1e-5):
    """Of -log p by every column, one after the other."""
    columns = []
    for move in h * np.eye(X.shape[1]):
        columns.append((log_density(X - move) - log_density(X + move)) / (2 * h))
    return np.stack(columns, axis=-1)


# --- gradients -----------------------------------------------------------------------------------


def test_gradient_of_two_classes_is_that_of_differences(binary):
    log_density = lambda X: binary.predict_log_density((X, Y)).numpy()  # noqa: E731
    # Central differences: h^2 of truncation, and rounding over h.
    found = gradient(binary, X, Y[:, 0].astype(int))
    np.testing.assert_allclose(found, by_differences(log_density, X), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [CrammerSinger, OneVsRest])
def test_gradient_of_several_classes_is_that_of_differences(likelihood):
    several, y = of_three(likelihood), three()
    data = y[:, None].astype(float)
    log_density = lambda X: several.predict_log_density((X, data)).numpy()  # noqa: E731
    # The nodes of the quadrature move with x, and no gradient flows through them.
    np.testing.assert_allclose(gradient(several, X, y), by_differences(log_density, X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("impute", [False, True])
def test_gradient_of_the_classifier_is_in_its_users_units(impute):
    wide = 50 * X + 7
    labels = np.where(Y[:, 0] > 0, "yes", "no")
    rows = wide.copy()
    rows[3, 1] = np.nan if impute else rows[3, 1]
    fitted = classifier(impute=impute).fit(rows, labels)
    own = np.searchsorted(fitted.classes_, labels)
    log_density = lambda X: fitted.predict_log_proba(X)[np.arange(len(X)), own]  # noqa: E731
    expected = by_differences(log_density, wide, h=1e-3)
    np.testing.assert_allclose(gradient(fitted, wide, own), expected, atol=1e-8)
    p = art_classifier(fitted, (2,)).predict(wide)
    np.testing.assert_allclose(p, fitted.predict_proba(wide), **SINGLE)


@pytest.mark.slow
def test_labels_of_ordered_words_are_places_in_classes():
    words = pandas.Categorical.from_codes(np.arange(len(X)) % 3, ["low", "mid", "high"], True)
    options = {"multi_class": "ordinal", "penalty": 2.0, "num_inducing": 5}
    fitted = gb.BSVMClassifier(**options, learn_kernel=False).fit(X, words)
    wrapped = art_classifier(fitted, (2,))
    np.testing.assert_allclose(wrapped.predict(X), fitted.predict_proba(X), **SINGLE)


@pytest.mark.slow
def test_gradient_through_a_network_in_the_kernel():
    tf_keras.utils.set_random_seed(0)
    # In double precision, for the differences.
    layer = tf_keras.layers.Dense(3, "tanh", dtype="float64")
    kernel = DeepKernel(layer, gpflow.kernels.SquaredExponential(2.0), input_shape=(2,))
    points = FeaturePoints(kernel.features_of(X[:6]))
    model = gb.models.BSVM(kernel, CrammerSinger(3), points, num_latent_gps=3)
    randomise(model)
    y = three()
    data = y[:, None].astype(float)
    log_density = lambda X: model.predict_log_density((X, data)).numpy()  # noqa: E731
    found = gradient(model, X, y)
    np.testing.assert_allclose(found, by_differences(log_density, X), atol=1e-6)
    assert np.abs(found).min() > 1e-6


@pytest.mark.slow
def test_gpflows_models_too():
    for likelihood in (gpflow.likelihoods.Bernoulli(), Hinge()):
        model = gpflow.models.SVGP(gpflow.kernels.SquaredExponential(2.0), likelihood, X[:8].copy())
        randomise(model)
        log_density = lambda X, m=model: m.predict_log_density((X, Y)).numpy()  # noqa: E731
        found = gradient(model, X, Y[:, 0].astype(int))
        np.testing.assert_allclose(found, by_differences(log_density, X), atol=1e-8)


@pytest.mark.slow
def test_probabilities_and_their_gradients(binary):
    p = binary.predict_y(X)[0].numpy()
    found = art_classifier(binary, (2,)).predict(X)
    np.testing.assert_allclose(found, np.hstack([1 - p, p]), **SINGLE)
    several, y, rows = of_three(CrammerSinger), three(), np.arange(len(X))
    wrapped = art_classifier(several, (2,))
    p = wrapped.predict(X)
    np.testing.assert_allclose(p, several.predict_y(X)[0].numpy(), **SINGLE)
    by_class = wrapped.class_gradient(X)[rows, y] / -p[rows, y, None]
    # ART keeps them in single precision.
    np.testing.assert_allclose(by_class, gradient(several, X, y), rtol=1e-5, atol=1e-6)


# --- attacks -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_attacks_mislead_within_their_limits():
    several, clip = of_three(CrammerSinger), (X.min(axis=0), X.max(axis=0))
    wrapped = art_classifier(several, (2,), clip=clip)
    y, rows = wrapped.predict(X).argmax(axis=1), np.arange(len(X))
    loss = lambda X: -np.log(wrapped.predict(X)[rows, y])  # noqa: E731
    fast = evasion.FastGradientMethod(wrapped, eps=0.1).generate(X, y)
    steps = {"eps": 0.1, "eps_step": 0.03, "max_iter": 5, "verbose": False}
    slow = evasion.ProjectedGradientDescent(wrapped, **steps).generate(X, y)
    for moved in (fast, slow):
        assert (loss(moved) > loss(X)).all()
        # Rounding of ART's single precision.
        assert np.abs(moved - X).max() <= 0.1 + 1e-6
        assert ((clip[0] - 1e-6 <= moved) & (moved <= clip[1] + 1e-6)).all()


# --- errors --------------------------------------------------------------------------------------


def test_bad_targets(binary):
    for target in ("model", lambda X: X, gb.BSVMRegressor()):
        with pytest.raises(TypeError, match="the target must be a model or a fitted BSVMClassifie"):
            art_classifier(target, (2,))
    with pytest.raises(NotFittedError):
        art_classifier(classifier(), (2,))
    for target in (binary, classifier().fit(X, Y[:, 0])):
        with pytest.raises(ValueError, match="X has 1 columns"):
            art_classifier(target, (1,))
        with pytest.raises(ValueError, match=r"rows must be of shape \(2,\), got X of shape"):
            art_classifier(target, (2,)).loss_gradient(X[:, :1], np.eye(2)[:1].repeat(len(X), 0))
    two = gb.models.BSVM(
        gpflow.kernels.SquaredExponential(), Hinge(), X[:8].copy(), num_latent_gps=2
    )
    with pytest.raises(ValueError, match="each row has 2 binary labels"):
        art_classifier(two, (2,))
