"""Attacks: steps in closed form, gradients against differences, balls, and ART's own attacks."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from helpers import make_data, make_model, randomise
from scipy import stats
from scipy.sparse import csr_array

import gpflow_bsvm as gb
from gpflow_bsvm.adversarial import (
    NetworkTarget,
    art_classifier,
    attacks,
    class_probabilities,
    fgsm,
    loss_gradient,
)
from gpflow_bsvm.deep import DeepKernel, FeaturePoints
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest
from gpflow_bsvm.papers.wistuba2018 import detection_auc, doubts, under_attack

X, Y = make_data(20)
NO_LIMITS = {"clip": None}
WEIGHTS = np.array([[1.0, -2.0, 0.5], [0.0, 1.5, -1.0]])


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


@pytest.fixture(scope="module")
def several():
    return of_three(CrammerSinger)


def three(seed=1):
    return np.random.default_rng(seed).integers(0, 3, len(X))


def logits(X):
    return tf.matmul(X, tf.constant(WEIGHTS, X.dtype))


def softmax(X):
    return tf.nn.softmax(logits(X))


def by_differences(log_density, X, h=1e-5):
    """Of -log p by every column, one after the other."""
    columns = []
    for move in h * np.eye(X.shape[1]):
        columns.append((log_density(X - move) - log_density(X + move)) / (2 * h))
    return np.stack(columns, axis=-1)


# --- gradients -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_gradient_of_two_classes_is_that_of_differences(binary):
    log_density = lambda X: binary.predict_log_density((X, Y)).numpy()  # noqa: E731
    expected = by_differences(log_density, X)
    # Central differences: h^2 of truncation, and rounding over h.
    np.testing.assert_allclose(loss_gradient(binary, X, Y), expected, atol=1e-8)
    np.testing.assert_array_equal(
        loss_gradient(binary, X, 2 * Y - 1), loss_gradient(binary, X, Y[:, 0])
    )


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [CrammerSinger, OneVsRest])
def test_gradient_of_several_classes_is_that_of_differences(likelihood):
    several, y = of_three(likelihood), three()
    data = y[:, None].astype(float)
    log_density = lambda X: several.predict_log_density((X, data)).numpy()  # noqa: E731
    expected = by_differences(log_density, X)
    # The nodes of the quadrature move with x, and no gradient flows through them.
    np.testing.assert_allclose(loss_gradient(several, X, y), expected, atol=1e-6)


@pytest.mark.slow
def test_gradient_of_the_classifier_is_in_its_users_units():
    wide = 50 * X + 7
    labels = np.where(Y[:, 0] > 0, "yes", "no")
    classifier = gb.BSVMClassifier(num_inducing=5, learn_kernel=False, loss="hinge", penalty=2.0)
    classifier.fit(wide, labels)
    own = np.searchsorted(classifier.classes_, labels)
    log_density = lambda X: classifier.predict_log_proba(X)[np.arange(len(X)), own]  # noqa: E731
    expected = by_differences(log_density, wide, h=1e-3)
    np.testing.assert_allclose(loss_gradient(classifier, wide, labels), expected, atol=1e-8)
    np.testing.assert_allclose(
        class_probabilities(classifier, wide), classifier.predict_proba(wide), atol=1e-12
    )


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
    gradient = loss_gradient(model, X, y)
    np.testing.assert_allclose(gradient, by_differences(log_density, X), atol=1e-6)
    assert np.abs(gradient).min() > 1e-6


@pytest.mark.slow
def test_gpflows_models_too():
    for likelihood in (gpflow.likelihoods.Bernoulli(), Hinge()):
        model = gpflow.models.SVGP(gpflow.kernels.SquaredExponential(2.0), likelihood, X[:8].copy())
        randomise(model)
        log_density = lambda X, m=model: m.predict_log_density((X, Y)).numpy()  # noqa: E731
        gradient = loss_gradient(model, X, Y)
        np.testing.assert_allclose(gradient, by_differences(log_density, X), atol=1e-8)


def test_probabilities_are_those_of_the_prediction(binary, several):
    p = binary.predict_y(X)[0].numpy()
    np.testing.assert_allclose(
        class_probabilities(binary, X), np.hstack([1 - p, p]), rtol=0, atol=1e-12
    )
    p = several.predict_y(X)[0].numpy()
    np.testing.assert_allclose(class_probabilities(several, X), p, atol=1e-10)


@pytest.mark.slow
def test_an_ensemble_is_a_function(several):
    """The mean of a model's probabilities and a network's, differentiated through both."""
    both = lambda X: (several.predict_y(X)[0] + softmax(X)) / 2  # noqa: E731
    p = class_probabilities(both, X)
    mean = (class_probabilities(several, X) + class_probabilities(softmax, X)) / 2
    np.testing.assert_allclose(p, mean, atol=1e-12)
    y = three()
    log_density = lambda X: np.log(class_probabilities(both, X)[np.arange(len(X)), y])  # noqa: E731
    gradient = loss_gradient(both, X, y)
    np.testing.assert_allclose(gradient, by_differences(log_density, X), atol=1e-6)


# --- attacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [softmax, NetworkTarget(logits, logits=True)])
def test_a_step_against_a_linear_network_in_closed_form(target):
    y = three()
    p = np.exp(X @ WEIGHTS)
    gradient = (p / p.sum(axis=1, keepdims=True) - np.eye(3)[y]) @ WEIGHTS.T
    np.testing.assert_allclose(loss_gradient(target, X, y), gradient, atol=1e-12)
    moved = fgsm(target, X, y, 0.3, **NO_LIMITS)
    np.testing.assert_allclose(moved, X + 0.3 * np.sign(gradient), rtol=1e-14)
    box = (-2.5, 2.5)
    moved = fgsm(target, np.clip(X, *box), y, 0.3, clip=box)
    assert (np.abs(moved) <= 2.5).all() and (np.abs(moved) == 2.5).any()


@pytest.mark.slow
def test_nothing_leaves_the_box(several):
    low, high = X.min(axis=0), X.max(axis=0)
    moved = fgsm(several, X, three(), 0.7, clip=(low, high))
    # Rounding of a sum and a difference.
    assert 0.1 < np.abs(moved - X).max() <= 0.7 + 1e-12
    assert ((low <= moved) & (moved <= high)).all()


def test_no_radius_is_no_attack(binary):
    np.testing.assert_array_equal(fgsm(binary, X, Y, 0, clip=(-5, 5)), X)


@pytest.mark.slow
def test_attacks_mislead(several):
    y = class_probabilities(several, X).argmax(axis=1)
    loss = lambda X: -np.log(class_probabilities(several, X)[np.arange(len(X)), y])  # noqa: E731
    fast = fgsm(several, X, y, 0.3, **NO_LIMITS)
    assert (loss(fast) > loss(X)).all()


def test_chunks_change_nothing(several):
    times = 1 + 2 * attacks.CHUNK_ROWS // len(X)
    many, y = np.tile(X, (times, 1)), np.tile(three(), times)
    moved, p = fgsm(several, X, three(), 0.3, **NO_LIMITS), class_probabilities(several, X)
    found = fgsm(several, many, y, 0.3, **NO_LIMITS)
    np.testing.assert_allclose(found, np.tile(moved, (times, 1)), atol=1e-9)
    np.testing.assert_allclose(
        class_probabilities(several, many), np.tile(p, (times, 1)), atol=1e-10
    )


def test_a_keras_network_and_images():
    """Rows of any shape, in the network's own precision."""
    tf_keras.utils.set_random_seed(0)
    layers = tf_keras.layers
    network = tf_keras.Sequential(
        [layers.Conv2D(3, 3, input_shape=(5, 5, 1)), layers.Flatten(), layers.Dense(4)]
    )
    images = np.random.default_rng(0).uniform(size=(6, 5, 5, 1)).astype(np.float32)
    y = np.arange(6) % 4
    target = NetworkTarget(network, logits=True)
    moved = fgsm(target, images, y, 0.1)
    assert moved.shape == images.shape
    assert moved.dtype == np.float32
    with tf.GradientTape() as tape:
        inputs = tf.constant(images)
        tape.watch(inputs)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(y, network(inputs))
    expected = np.clip(images + np.float32(0.1) * np.sign(tape.gradient(loss, inputs)), 0, 1)
    np.testing.assert_array_equal(moved, expected)


# --- the toolbox ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_arts_attacks_on_our_models_are_ours(several):
    evasion = pytest.importorskip("art.attacks.evasion", reason="needs the extra `adversarial`")
    y, clip = three(), (-3.0, 3.0)
    classifier, hot = art_classifier(several, (2,), clip=clip), np.eye(3)[y]
    # ART rounds to single precision: so do we, beforehand.
    start = X.astype(np.float32).astype(float)
    p, gradient = class_probabilities(several, start), loss_gradient(several, start, y)
    single = {"rtol": 1e-6, "atol": 1e-7}
    np.testing.assert_allclose(classifier.predict(start), p, **single)
    np.testing.assert_allclose(classifier.loss_gradient(start, hot), gradient, **single)
    by_class, rows = classifier.class_gradient(start), np.arange(len(X))
    np.testing.assert_allclose(
        -by_class[rows, y] / p[rows, y, None], gradient, rtol=1e-5, atol=1e-6
    )
    theirs = evasion.FastGradientMethod(classifier, eps=0.25).generate(start, hot)
    ours = fgsm(several, start, y, 0.25, clip=clip)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    assert np.abs(ours - start).min() > 0.2
    attack = evasion.ProjectedGradientDescent(
        classifier, eps=0.25, eps_step=0.1, max_iter=5, verbose=False
    )
    loss = [-np.log(class_probabilities(several, x)[rows, y]).mean() for x in (ours, start)]
    stronger = attack.generate(start, hot).astype(float)
    assert -np.log(class_probabilities(several, stronger)[rows, y]).mean() >= max(loss) - 1e-6


@pytest.mark.slow
def test_art_and_the_classifier():
    evasion = pytest.importorskip("art.attacks.evasion", reason="needs the extra `adversarial`")
    labels = np.where(Y[:, 0] > 0, "yes", "no")
    classifier = gb.BSVMClassifier(num_inducing=5, learn_kernel=False, loss="hinge", penalty=2.0)
    classifier.fit(X, labels)
    wrapped = art_classifier(classifier, (2,), clip=(-4.0, 4.0))
    start = X.astype(np.float32).astype(float)
    hot = (labels[:, None] == classifier.classes_).astype(float)
    theirs = evasion.FastGradientMethod(wrapped, eps=0.25).generate(start, hot)
    ours = fgsm(classifier, start, labels, 0.25, clip=(-4, 4))
    np.testing.assert_allclose(theirs, ours, atol=1e-6)


# --- detection -----------------------------------------------------------------------------------


def test_detection_is_the_chance_of_the_greater_score():
    rng = np.random.default_rng(0)
    clean, other = rng.normal(size=40), np.round(rng.normal(0.5, size=30), 1)
    clean = np.round(clean, 1)  # ties
    pairs = np.sign(other[:, None] - clean) / 2 + 0.5
    assert abs(detection_auc(clean, other) - pairs.mean()) < 1e-12
    assert detection_auc(clean, clean) == 0.5
    assert detection_auc([0, 1], [2, 3]) == 1


def test_under_attack_is_made_of_its_parts(several):
    y = class_probabilities(several, X).argmax(axis=1)
    none, strong = under_attack(several, X, y, [0, 0.6], **NO_LIMITS)
    assert set(none.auc) == {"variation ratio", "entropy"}
    assert none.accuracy == 1
    np.testing.assert_allclose(list(none.auc.values()), 0.5, rtol=1e-12)
    moved = fgsm(several, X, y, 0.6, **NO_LIMITS)
    right = class_probabilities(several, moved).argmax(axis=1) == y
    assert strong.accuracy == right.mean()
    ratio = gb.prediction.variation_ratio
    np.testing.assert_allclose(strong.mean["variation ratio"], ratio(several, moved).mean())
    auc = detection_auc(ratio(several, X), ratio(several, moved))
    assert abs(strong.auc["variation ratio"] - auc) < 1e-12


def test_doubts_of_a_network_are_entropies():
    ((name, score),) = doubts(softmax).items()
    assert name == "entropy"
    p = class_probabilities(softmax, X)
    np.testing.assert_allclose(score(X), stats.entropy(p, axis=1), rtol=1e-12)


# --- errors --------------------------------------------------------------------------------------


def test_a_target_without_gradients():
    y = three()
    with pytest.raises(TypeError, match="returns ndarray, which has no gradient"):
        fgsm(lambda X: softmax(X).numpy(), X, y, 0.1, **NO_LIMITS)
    with pytest.raises(TypeError, match="no gradient by X: somewhere in it a tensor became"):
        fgsm(lambda X: softmax(tf.constant(X.numpy())), X, y, 0.1, **NO_LIMITS)
    with pytest.raises(TypeError, match="a target must be a model"):
        fgsm("model", X, y, 0.1)


def test_a_saturated_target_is_not_silent():
    steep = lambda X: softmax(1e5 * X)  # noqa: E731
    y = class_probabilities(steep, X).argmax(axis=1)
    with pytest.warns(UserWarning, match="20 of 20 rows have the gradient 0 .* is saturated"):
        moved = fgsm(steep, X, y, 0.1, **NO_LIMITS)
    np.testing.assert_array_equal(moved, X)
    rows = X, (y > 0)[:, None].astype(float)
    unfitted = gpflow.models.VGP(rows, gpflow.kernels.Matern32(), gpflow.likelihoods.Bernoulli())
    with pytest.warns(UserWarning, match=r"gives all classes the same probability \(was it f"):
        fgsm(unfitted, *rows, 0.1, **NO_LIMITS)


def test_bad_input(binary, several):
    y = three()
    fitted = gb.BSVMClassifier(num_inducing=5, learn_kernel=False, loss="hinge", penalty=2.0)
    fitted.fit(X, y // 2)
    cases = [
        (several, X, y, -0.1, NO_LIMITS, "epsilon must be at least 0"),
        (several, X, y, np.inf, NO_LIMITS, "epsilon must be finite"),
        (several, X, y, np.nan, NO_LIMITS, "epsilon must be at least 0"),
        (several, X, y, 0.1, {}, r"X must lie in clip, and is from -"),
        (several, X, y[:-1], 0.1, NO_LIMITS, r"y must be 20 labels, one for each row"),
        (several, X, np.eye(3)[y], 0.1, NO_LIMITS, r"y.argmax\(axis=1\)"),
        (several, X, y + 1, 0.1, NO_LIMITS, r"unseen labels: \[3\]; the classes are \[0, 1, 2\]"),
        (binary, X, np.where(y == 2, -1, 5), 0.1, NO_LIMITS, "binary labels must be in"),
        (several, X[:, :1], y, 0.1, NO_LIMITS, "X has 1 columns"),
        (fitted, X[:, :1], y // 2, 0.1, NO_LIMITS, "X has 1 columns"),
        (several, np.full_like(X, np.nan), y, 0.1, NO_LIMITS, "X holds NaN"),
        (softmax, (9 * X).astype(int), y, 0.1, NO_LIMITS, "X must be dense floats of shape"),
        (softmax, np.full_like(X, np.inf), y, 0.1, NO_LIMITS, "X holds NaN or infinity"),
        (logits, X, y, 0.1, NO_LIMITS, "are no probabilities"),
        (lambda X: softmax(X)[:, 0], X, y, 0.1, NO_LIMITS, r"must return \[N, C\]"),
        (several, csr_array(X), y, 0.1, NO_LIMITS, "X must be dense floats"),
        (lambda X: softmax(X) * tf.math.sqrt(X[:, :1] * 0) / 0, X, y, 0.1, NO_LIMITS, "no prob"),
    ]
    for target, inputs, labels, epsilon, options, match in cases:
        with pytest.raises(ValueError, match=match):
            fgsm(target, inputs, labels, epsilon, **options)
    for scores in ([[1]], [], [np.nan]):
        with pytest.raises(ValueError, match="scores of `other` must be"):
            detection_auc([1], scores)
