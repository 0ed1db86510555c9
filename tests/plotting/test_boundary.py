"""A classifier of two features, seen from above: pictures show the numbers that they say."""

import gpflow
import numpy as np
import pandas as pd
import pytest
from gpflow.kernels import SquaredExponential
from helpers import make_data, make_model
from matplotlib.contour import QuadContourSet
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb
from gpflow_bsvm import plotting
from gpflow_bsvm.inference import CAVI
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest


def two_classes(data):
    model = make_model(data, likelihood=Hinge(bound="exact"), num_inducing=15)
    CAVI().run(model, data)
    return model


def three_classes(data, likelihood=None):
    X, _ = data
    Y = np.digitize(X[:, :1] + 0.5 * np.sin(4 * X[:, 1:]), [-0.5, 0.5]).astype(float)
    likelihood = CrammerSinger(3) if likelihood is None else likelihood
    model = make_model(data, likelihood=likelihood, num_inducing=15, num_latent_gps=3)
    CAVI().run(model, (X, Y))
    return model, (X, Y)


@pytest.fixture
def ax():
    _, (ax,) = plotting.figure(1, 1)
    return ax


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def fitted(data):
    return two_classes(data)


@pytest.fixture(scope="module")
def fitted_three(data):
    return three_classes(data)


def contours(ax, dashed):
    """The sets of lines that are dashed, or that are not."""
    found = [c for c in ax.collections if isinstance(c, QuadContourSet) and not c.filled]
    return [c for c in found if (c.linestyles == "dashed") == dashed]


def vertices(contour_set, level=0):
    return contour_set.get_paths()[level].vertices


def crosses(ax):
    return [line.get_xydata() for line in ax.lines if line.get_marker() == "x"]


def test_the_boundary_is_where_p_is_a_half(ax, data, fitted):
    assert plotting.decision_boundary(ax, fitted, *data, resolution=60) is ax
    (boundary,) = contours(ax, dashed=False)
    at = vertices(boundary)
    assert len(at) > 50
    p = fitted.predict_y(at)[0].numpy()
    np.testing.assert_allclose(p, 0.5, atol=5e-3)  # the contour is linear between grid points
    (X_low, Y_low), (X_high, Y_high) = data[0].min(axis=0), data[0].max(axis=0)
    assert ax.get_xlim() == pytest.approx((1.1 * X_low - 0.1 * X_high, 1.1 * X_high - 0.1 * X_low))
    assert ax.get_ylim() == pytest.approx((1.1 * Y_low - 0.1 * Y_high, 1.1 * Y_high - 0.1 * Y_low))


@pytest.mark.slow
def test_colours_are_probabilities(ax, data, fitted):
    plotting.decision_boundary(ax, fitted, *data, resolution=20)
    low, high = (dots.get_facecolor()[0] for dots in ax.collections[-2:])
    assert low[2] > low[0] and high[0] > high[2]  # y = 0 is blue, y = 1 is red
    check_colours(ax, lambda x: two_columns(fitted.predict_y(x)[0].numpy()), [low[:3], high[:3]])


def two_columns(p):
    return np.hstack([1 - p, p])


def check_colours(ax, predict, colours):
    """Pixels have the colour of the most probable class, as much as it is probable."""
    (image,) = ax.images
    assert image.origin == "lower"
    left, right, bottom, top = image.get_extent()
    x1, x2 = (
        low + (np.arange(20) + 0.5) * (high - low) / 20
        for low, high in [(left, right), (bottom, top)]
    )
    C = len(colours)
    for row, column in np.random.default_rng(0).integers(20, size=(15, 2)):
        P = predict(np.array([[x1[column], x2[row]]]))[0]
        much = 0.7 * (C * P.max() - 1) / (C - 1)
        expected = (1 - much) + much * colours[P.argmax()]
        np.testing.assert_allclose(image.get_array()[row, column], expected, atol=1e-8)


def test_dashed_lines_are_deviations_of_f(ax, data, fitted):
    plotting.decision_boundary(ax, fitted, data[0], resolution=60)
    (lines,) = contours(ax, dashed=True)
    shown = [n for n, path in enumerate(lines.get_paths()) if len(path.vertices)]
    assert len(shown) >= 3
    for n in shown:
        _, variance = fitted.predict_f(vertices(lines, n))
        # Linear between grid points; least so near an inducing point.
        np.testing.assert_allclose(np.sqrt(variance), lines.levels[n], atol=2e-2)


def test_uncertainty_is_optional(ax, fitted):
    plotting.decision_boundary(ax, fitted, resolution=10, uncertainty=False)
    assert contours(ax, dashed=True) == []


@pytest.mark.parametrize("negative", [0, -1])
def test_dots_and_crosses(ax, data, fitted, negative):
    X, Y = data
    Y = np.where(Y == 1, 1, negative)
    plotting.decision_boundary(ax, fitted, X, Y, resolution=10)
    zero, one = ax.collections[-2:]
    for dots, label in [(zero, negative), (one, 1)]:
        np.testing.assert_array_equal(dots.get_offsets(), X[Y[:, 0] == label])
        assert dots.get_label() == f"y = {label}"
    assert zero.get_facecolor()[0, 2] > zero.get_facecolor()[0, 0]  # blue, as the surface
    np.testing.assert_array_equal(*crosses(ax), fitted.inducing_variable.Z)


def test_names_of_the_axes(ax, data, fitted):
    frame = pd.DataFrame(data[0], columns=["age", "weight"])
    for given, expected in [
        ({"X": frame}, "age"),
        ({}, "x1"),
    ]:
        plotting.decision_boundary(ax, fitted, resolution=5, **given)
        assert ax.get_xlabel() == expected


def test_without_labels_or_data(ax, data, fitted):
    plotting.decision_boundary(ax, fitted, resolution=10)
    Z = fitted.inducing_variable.Z.numpy()
    low, high = Z[:, 0].min(), Z[:, 0].max()
    assert ax.get_xlim() == pytest.approx((1.1 * low - 0.1 * high, 1.1 * high - 0.1 * low))
    plotting.decision_boundary(ax, fitted, data[0], resolution=10)
    np.testing.assert_array_equal(ax.collections[-1].get_offsets(), data[0])


def test_one_sided_and_flat(ax, data):
    """No boundary, no lines of equal deviation, one column constant: nothing to warn of."""
    X = np.c_[data[0][:, 0], np.ones(60)]
    sure = gpflow.functions.Constant(5.0)
    kernel = gpflow.kernels.Constant(1e-3)
    model = gb.models.BSVM(kernel, Hinge(), X[:1].copy(), mean_function=sure)
    plotting.decision_boundary(ax, model, X, resolution=10)
    assert contours(ax, dashed=False) == contours(ax, dashed=True) == []
    assert ax.get_ylim() == (0, 2)


def test_boundaries_of_three_classes(ax, fitted_three):
    """On them the two most probable classes are equally so."""
    model, data = fitted_three
    plotting.decision_boundary(ax, model, *data, resolution=80)
    P = np.concatenate([vertices(lines) for lines in contours(ax, dashed=False)])
    P = model.predict_y(P)[0].numpy()
    pairs = {tuple(sorted(pair)) for pair in np.argsort(P, axis=1)[:, 1:]}
    assert {(0, 1), (1, 2)} <= pairs
    P = np.sort(P, axis=1)
    assert len(P) > 100
    gap = P[:, 2] - P[:, 1]
    assert np.quantile(gap, 0.95) < 5e-3 and gap.max() < 0.05  # greater where three meet


@pytest.mark.slow
def test_colours_of_three_classes(ax, fitted_three):
    model, (X, Y) = fitted_three
    plotting.decision_boundary(ax, model, X, Y, resolution=20)
    colours = np.array([dots.get_facecolor()[0, :3] for dots in ax.collections[-3:]])
    assert [dots.get_label() for dots in ax.collections[-3:]] == ["y = 0", "y = 1", "y = 2"]
    check_colours(ax, lambda x: model.predict_y(x)[0].numpy(), colours)


def test_dashed_lines_of_three_classes_are_entropies(ax, fitted_three):
    model, (X, _) = fitted_three
    plotting.decision_boundary(ax, model, X, resolution=80)
    (lines,) = contours(ax, dashed=True)
    for n, path in enumerate(lines.get_paths()):
        if len(path.vertices):
            entropy = gb.prediction.predictive_entropy(model, path.vertices)
            np.testing.assert_allclose(np.median(entropy), lines.levels[n], atol=5e-3)


@pytest.mark.parametrize("num_classes", [2, 12])
def test_any_number_of_classes(ax, num_classes):
    X = np.random.default_rng(0).normal(size=(40, 2))
    Y = np.arange(40)[:, None] % num_classes
    kernel, likelihood = SquaredExponential(), OneVsRest(num_classes)
    model = gb.models.BSVM(kernel, likelihood, X[:5].copy(), num_latent_gps=num_classes)
    plotting.decision_boundary(ax, model, X, Y, resolution=8)
    colours = {tuple(dots.get_facecolor()[0]) for dots in ax.collections[-num_classes:]}
    assert len(colours) == num_classes


@pytest.mark.slow
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("frame", [True, False])
def test_a_classifier_in_its_own_units(ax, data, standardize, frame, recwarn):
    X = 50 + [20, 0.3] * data[0] if standardize else data[0]
    X = pd.DataFrame(X, columns=["size", "price"]) if frame else X
    y = np.where(data[1][:, 0] == 1, "yes", "no")
    classifier = gb.BSVMClassifier(num_inducing=10, standardize=standardize).fit(X, y)
    plotting.decision_boundary(ax, classifier, X, y, resolution=60)
    assert not [w for w in recwarn if "feature names" in str(w.message)]
    (boundary,) = contours(ax, dashed=False)
    at = pd.DataFrame(vertices(boundary), columns=["size", "price"])
    p = classifier.predict_proba(at if frame else at.to_numpy())[:, 1]
    np.testing.assert_allclose(p, 0.5, atol=5e-3)  # as above
    Z = classifier.model_.inducing_variable.Z.numpy()
    scaler = classifier.scaler_
    (shown,) = crosses(ax)
    np.testing.assert_allclose(shown, Z * scaler.scale_ + scaler.mean_ if standardize else Z)
    assert [dots.get_label() for dots in ax.collections[-2:]] == ["y = no", "y = yes"]
    np.testing.assert_array_equal(ax.collections[-1].get_offsets(), np.asarray(X)[y == "yes"])
    assert ax.get_title() == "p(y = yes)"
    assert ax.get_xlabel() == ("size" if frame else "x1")


@pytest.mark.drill
@pytest.mark.slow
def test_a_classifier_of_three_classes(ax, data):
    X = 5 + 100 * data[0]
    y = np.array(["a", "b", "c"])[np.digitize(data[0][:, 0], [-0.5, 0.5])]
    classifier = gb.BSVMClassifier(num_inducing=10).fit(X, y)
    plotting.decision_boundary(ax, classifier, X, y, resolution=200)
    lines = np.concatenate([vertices(lines) for lines in contours(ax, dashed=False)])
    P = np.sort(classifier.predict_proba(lines), axis=1)
    np.testing.assert_allclose(np.median(P[:, 2] - P[:, 1]), 0, atol=5e-3)  # as above


@pytest.mark.slow
def test_pictures_of_anything_else(ax, data, fitted):
    X, Y = data
    wide = make_model(make_data(num_columns=5))
    with pytest.raises(ValueError, match="inputs of 2 columns, got 5"):
        plotting.decision_boundary(ax, wide)
    with pytest.raises(ValueError, match="inputs of 2 columns, got 5"):
        plotting.decision_boundary(ax, wide, X)
    with pytest.raises(ValueError, match="inputs of 2 columns, got 3"):
        plotting.decision_boundary(ax, fitted, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="y needs the X"):
        plotting.decision_boundary(ax, fitted, y=Y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        plotting.decision_boundary(ax, fitted, X, Y[1:])
    with pytest.raises(ValueError, match="binary labels must be in"):
        plotting.decision_boundary(ax, fitted, X, 3 * Y)
    with pytest.raises(ValueError, match="resolution must be at least 2, got 1"):
        plotting.decision_boundary(ax, fitted, resolution=1)
    with pytest.raises(ValueError, match="2 binary labels here"):
        plotting.decision_boundary(ax, make_model(data, num_latent_gps=2))
    with pytest.raises(TypeError, match="SVGP has no closed-form steps"):
        svgp = gpflow.models.SVGP(SquaredExponential(), Hinge(), X[:5])
        plotting.decision_boundary(ax, svgp)
    with pytest.raises(NotFittedError):
        plotting.decision_boundary(ax, gb.BSVMClassifier())
    classifier = gb.BSVMClassifier(num_inducing=5).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"unseen labels: \[2.0\]; the classes are \[0.0, 1.0\]"):
        plotting.decision_boundary(ax, classifier, X, 2 * Y)
