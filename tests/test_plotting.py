"""Pictures show the numbers that they say they show."""

import gpflow
import numpy as np
import pandas as pd
import pytest
from conftest import make_data, make_model
from gpflow.kernels import Constant, Matern32, SharedIndependent, SquaredExponential, White
from matplotlib.contour import QuadContourSet
from sklearn.exceptions import NotFittedError

import gpflow_bsvm as gb
from gpflow_bsvm import plotting
from gpflow_bsvm.inference import CAVI, VEM, History
from gpflow_bsvm.likelihoods import CrammerSinger, Hinge, OneVsRest
from gpflow_bsvm.prediction import calibrate, leave_one_out, leave_one_out_density


@pytest.fixture
def ax():
    _, (ax,) = plotting.figure(1, 1)
    return ax


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def fitted(data):
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


@pytest.fixture(scope="module")
def fitted_three(data):
    return three_classes(data)


@pytest.fixture(scope="module")
def learned(data):
    kernel = SquaredExponential(2.0, lengthscales=[1.0, 1.5])
    model = make_model(data, kernel=kernel, likelihood=Hinge(bound="exact"))
    return VEM(max_steps=4).run(model, data)


def test_all_names_are_there():
    assert set(plotting.__all__) <= set(dir(plotting))
    assert plotting.RELIABILITY_BINS == 10 and plotting.MOST_NUMBERS == 12


# --- the way of a fit ----------------------------------------------------------------------------


@pytest.mark.slow
def test_bound_trace(ax, learned):
    assert plotting.bound_trace(ax, learned, label="VEM") is ax
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xydata(), np.c_[learned.step, learned.elbo])
    assert line.get_label() == "VEM"


@pytest.mark.slow
def test_hyperparameter_trace(ax, learned):
    """A line, a colour and a label for each entry, and no inducing points."""
    assert plotting.hyperparameter_trace(ax, learned, linestyle=":") is ax
    values = learned.hyperparameters
    assert values[".inducing_variable.Z"][0].shape == (8, 2)
    expected = np.c_[values[".kernel.variance"], np.array(values[".kernel.lengthscales"])]
    assert list(values)[:2] == [".kernel.variance", ".kernel.lengthscales"]
    assert len(ax.lines) == 3
    for line, column in zip(ax.lines, expected.T):
        np.testing.assert_array_equal(line.get_xydata(), np.c_[learned.step, column])
        assert line.get_linestyle() == ":"
    assert len({line.get_color() for line in ax.lines}) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["kernel.variance", "kernel.lengthscales[0]", "kernel.lengthscales[1]"]
    assert ax.get_yscale() == "log"


def test_entries_have_names_or_one_colour(ax, learned):
    lengthscales = [".kernel.lengthscales"]
    plotting.hyperparameter_trace(ax, learned, lengthscales, ["age", "weight"])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["kernel.lengthscales[age]", "kernel.lengthscales[weight]"]
    many = History(step=[1, 2], elbo=[0, 0], hyperparameters={".many": [np.arange(1.0, 8)] * 2})
    _, (ax,) = plotting.figure(1, 1)
    plotting.hyperparameter_trace(ax, many)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["many"]
    assert len(ax.lines) == 7 and len({line.get_color() for line in ax.lines}) == 1


def test_named_hyperparameters_only(ax, learned):
    plotting.hyperparameter_trace(ax, learned, names=[".inducing_variable.Z"])
    Z = np.array(learned.hyperparameters[".inducing_variable.Z"])
    np.testing.assert_array_equal([line.get_ydata() for line in ax.lines], Z.reshape(4, 16).T)
    assert ax.get_yscale() == "linear"  # some are negative


def test_hyperparameters_that_are_not_there(ax, data, learned):
    history = CAVI(tol=1e-2).run(make_model(data), data)
    with pytest.raises(ValueError, match=r"no hyperparameters: CAVI and SVI .*VEM learns them"):
        plotting.hyperparameter_trace(ax, history)
    with pytest.raises(ValueError, match=r"some of \['.kernel.variance'.*got \['variance'\]"):
        plotting.hyperparameter_trace(ax, learned, names=["variance"])
    only_Z = History(step=[1], hyperparameters={".Z": [np.zeros((3, 2))]})
    with pytest.raises(ValueError, match=r"names must be some of \['.Z'\], got \[\]"):
        plotting.hyperparameter_trace(ax, only_Z)


# --- held-out predictions ------------------------------------------------------------------------


def test_what_are_no_probabilities_of_these_classes(ax):
    y, P = np.array([0, 1, 2] * 5), np.full((15, 3), 1 / 3)
    with pytest.raises(ValueError, match="must be probabilities"):
        plotting.reliability_diagram(ax, y > 1, np.full(15, 3.0))
    with pytest.raises(ValueError, match=r"integers in 0\.\.2, got 3"):
        plotting.confusion_matrix(ax, y + 1, P, list("abc"))
    with pytest.raises(ValueError, match="expected 3 labels, one for each column of P, got 2"):
        plotting.confusion_matrix(ax, y, P, ["a", "b"])
    assert not ax.lines and not ax.images


def test_long_names_of_classes_are_cut(ax):
    plotting.confusion_matrix(ax, np.array([0, 1]), np.eye(2), ["a" * 60, "b"])
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert len(names[0]) == 12 and names[0].startswith("aaa") and names[1] == "b"


# --- what a kernel looks at ----------------------------------------------------------------------


def bars(ax):
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    return dict(zip(names, [patch.get_width() for patch in ax.patches]))


def ard(*lengthscales, **kwargs):
    return SquaredExponential(3.0, lengthscales=list(lengthscales), **kwargs)


def test_relevance_is_the_inverse_lengthscale(ax):
    np.testing.assert_allclose(plotting.relevance(ard(4.0, 1.0, 2.0)), [0.25, 1, 0.5])
    assert plotting.relevance_bars(ax, ard(4.0, 1.0, 2.0), ["a", "b", "c"]) is ax
    assert list(bars(ax)) == ["b", "c", "a"]
    np.testing.assert_allclose(list(bars(ax).values()), [1, 0.5, 0.25])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the largest on top
    assert ax.get_title() == "Relevance"


def test_it_is_the_typical_slope_of_the_prior():
    """E (df/dx_d)^2 = d^2 k(x, x') / dx_d dx'_d at x' = x, by differences."""
    kernel, h = ard(0.7, 1.3, 2.9), 1e-3
    plus, minus = h * np.eye(3), -h * np.eye(3)
    k = [np.diag(kernel(a, b)) for a, b in [(plus, plus), (plus, minus), (minus, minus)]]
    slope = np.sqrt((k[0] - 2 * k[1] + k[2]) / (2 * h) ** 2)
    np.testing.assert_allclose(plotting.relevance(kernel), slope / slope.max(), rtol=1e-5)


@pytest.mark.parametrize("dims", [[3, 1], slice(1, 4, 2)])
def test_relevance_of_some_columns(ax, dims):
    kernel = ard(1.0, 2.0, active_dims=dims)
    first, second = np.arange(5)[dims]
    expected = np.zeros(5)
    expected[[first, second]] = [1, 0.5]
    np.testing.assert_allclose(plotting.relevance(kernel, 5), expected)
    np.testing.assert_allclose(plotting.relevance(kernel), expected[:4])
    plotting.relevance_bars(ax, kernel, list("abcde"))
    assert list(bars(ax))[:2] == ["abcde"[first], "abcde"[second]]
    assert list(bars(ax).values()) == [1, 0.5, 0, 0, 0]


@pytest.mark.parametrize(
    "kernel",
    [
        ard(4.0, 1.0) + White(0.1),
        Constant(2.0) * ard(4.0, 1.0),
        SharedIndependent(ard(4.0, 1.0), output_dim=3),
        SharedIndependent(ard(4.0, 1.0) + Constant(), output_dim=3),
    ],
)
def test_constants_and_noise_look_at_nothing(kernel):
    np.testing.assert_allclose(plotting.relevance(kernel), [0.25, 1])


def test_most_bars(ax):
    plotting.relevance_bars(ax, ard(*range(1, 41)), most=7)
    np.testing.assert_allclose(list(bars(ax).values()), 1 / np.arange(1, 8))
    assert list(bars(ax)) == [f"x{n}" for n in range(1, 8)]
    assert ax.get_title() == "Relevance (33 smaller ones left out)"


@pytest.mark.parametrize("shared", [False, True])
def test_weights_of_several_kernels(ax, shared):
    wide = Matern32(5.0, active_dims=[0, 1, 2, 4], name="wide")
    kernel = SquaredExponential(2.0, active_dims=[1]) + wide + White(0.5)
    plotting.relevance_bars(ax, SharedIndependent(kernel, output_dim=2) if shared else kernel)
    names = ["wide(x1, x2, x3, ...)", "squared_exponential(x2)", "white"]
    assert bars(ax) == pytest.approx(dict(zip(names, [5, 2, 0.5])))
    assert ax.get_xlabel() == "variance"


def test_weights_of_named_kernels(ax):
    kernel = SquaredExponential(2.0) + SquaredExponential(3.0) + SquaredExponential(1.0)
    plotting.relevance_bars(ax, kernel, ["words", "pixels", "clicks"], most=2)
    assert bars(ax) == pytest.approx({"pixels": 3, "words": 2})


@pytest.mark.parametrize(
    "kernel, parts",
    [
        (SquaredExponential(), "SquaredExponential"),
        (gpflow.kernels.Linear(variance=[1.0, 2.0]), "Linear"),
        (ard(1.0, 2.0) + ard(2.0, 1.0), "SquaredExponential, SquaredExponential"),
        (ard(1.0, 2.0) + Matern32(), "SquaredExponential, Matern32"),
        (SquaredExponential() * Matern32(), "SquaredExponential, Matern32"),
        (SquaredExponential() + gpflow.kernels.Linear([1.0, 2.0]), "SquaredExponential, Linear"),
        (White() + Constant() * Constant(), ""),
    ],
)
def test_kernels_without_relevance(ax, kernel, parts):
    with pytest.raises(ValueError, match=rf"a lengthscale for each feature .*got \[{parts}\]"):
        plotting.relevance_bars(ax, kernel)


def test_bad_numbers_of_features(ax):
    with pytest.raises(ValueError, match=r"2 lengthscales .* do not fit 3 features"):
        plotting.relevance_bars(ax, ard(1.0, 2.0), ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"active_dims=\[0 3\] do not fit 3 features"):
        plotting.relevance(ard(1.0, 2.0, active_dims=[0, 3]), 3)
    with pytest.raises(ValueError, match="expected 2 feature_names, got 1"):
        plotting.relevance_bars(ax, SquaredExponential() + White(), ["a"])
    with pytest.raises(ValueError, match="most must be at least 1, got 0"):
        plotting.relevance_bars(ax, ard(1.0, 2.0), most=0)


# --- from above ----------------------------------------------------------------------------------


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
def test_colours_are_probabilities(ax, fitted):
    plotting.decision_boundary(ax, fitted, resolution=40)
    (filled,) = (c for c in ax.collections if isinstance(c, QuadContourSet) and c.filled)
    for low, high, path in zip(filled.levels, filled.levels[1:], filled.get_paths()):
        if len(path.vertices):
            p = fitted.predict_y(path.vertices)[0].numpy()
            assert low - 0.02 < p.min() and p.max() < high + 0.02  # linear, as above
    low, high = filled.get_facecolors()[[0, -1]]
    assert low[2] > low[0] and high[0] > high[2]  # y = 0 is blue, y = 1 is red


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
        ({"feature_names": ("a", "b")}, "a"),
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
    (image,) = ax.images
    colours = np.array([dots.get_facecolor()[0, :3] for dots in ax.collections[-3:]])
    assert [dots.get_label() for dots in ax.collections[-3:]] == ["y = 0", "y = 1", "y = 2"]
    assert image.origin == "lower"
    left, right, bottom, top = image.get_extent()
    x1, x2 = (
        low + (np.arange(20) + 0.5) * (high - low) / 20
        for low, high in [(left, right), (bottom, top)]
    )
    for row, column in np.random.default_rng(0).integers(20, size=(15, 2)):
        P = model.predict_y(np.array([[x1[column], x2[row]]]))[0].numpy()[0]
        much = 0.7 * (3 * P.max() - 1) / 2
        expected = (1 - much) + much * colours[P.argmax()]
        np.testing.assert_allclose(image.get_array()[row, column], expected, atol=1e-8)


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
    with pytest.raises(ValueError, match="X has 60 rows and Y has 59"):
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
    with pytest.raises(ValueError, match=r"60 labels of \[0. 1.\]"):
        plotting.decision_boundary(ax, classifier, X, 2 * Y)


# --- what calibration does -----------------------------------------------------------------------


def everything(model):
    """All parameters, to the last bit."""
    return {
        name: parameter.unconstrained_variable.numpy().tobytes()
        for name, parameter in gpflow.utilities.parameter_dict(model).items()
    }


def neutralise(likelihood):
    for name, parameter in likelihood.link_parameters.items():
        parameter.assign({"scale": 1.0, "offset": 0.0}[name])


def drawn_alone(y, P):
    _, (ax,) = plotting.figure(1, 1)
    return plotting.reliability_diagram(ax, y, P).lines[-1].get_xydata()


@pytest.fixture(scope="module", params=["binary", "Crammer-Singer", "one-vs-rest"])
def calibrated(request, data):
    if request.param == "binary":
        model = make_model(data, likelihood=Hinge(bound="exact"), num_inducing=15)
        CAVI().run(model, data)
    else:
        likelihood = {"Crammer-Singer": CrammerSinger, "one-vs-rest": OneVsRest}[request.param]
        model, data = three_classes(data, likelihood(3))
    calibrate(model, data)
    return model, data


@pytest.mark.slow
def test_calibration_before_and_after(ax, calibrated):
    model, (X, Y) = calibrated
    before, link = everything(model), gpflow.utilities.read_values(model.likelihood)
    assert plotting.calibration_before_after(ax, model, (X, Y)) is ax
    assert everything(model) == before
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    after_line, before_line = ax.lines[-1], ax.lines[-2]
    assert not np.array_equal(after_line.get_xydata(), before_line.get_xydata())
    for label, line in [("after", after_line), ("before", before_line)]:
        mean, variance = leave_one_out(model, (X, Y))
        P = model.likelihood.predict_mean_and_var(X, mean, variance)[0].numpy()
        expected = drawn_alone(Y[:, 0].astype(int), P[:, 0] if P.shape[1] == 1 else P)
        np.testing.assert_allclose(line.get_xydata(), expected, atol=1e-12)
        score = -leave_one_out_density(model, (X, Y))
        assert line.get_label() == f"{label}, NLL {score:.3f}"
        assert line.get_label() == labels.pop()
        neutralise(model.likelihood)
    assert labels == []
    gpflow.utilities.multiple_assign(model.likelihood, link)  # the next test wants no neutral one


def test_signs_are_labels_too(ax, data, fitted):
    X, Y = data
    plotting.calibration_before_after(ax, fitted, (X, Y))
    plotting.calibration_before_after(ax, fitted, (X, 2 * Y - 1))
    zero_one, minus_plus = ax.lines[-4], ax.lines[-2]
    np.testing.assert_array_equal(zero_one.get_xydata(), minus_plus.get_xydata())
    assert zero_one.get_label() == minus_plus.get_label()


def test_the_model_is_unchanged_after_an_error(ax, calibrated, monkeypatch):
    model, data = calibrated
    before = everything(model)

    def fail(*args, **kwargs):
        raise RuntimeError("no ink")

    monkeypatch.setattr(plotting.models, "reliability_diagram", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        plotting.calibration_before_after(ax, model, data)
    monkeypatch.setattr(plotting.models, "leave_one_out", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        plotting.calibration_before_after(ax, model, data)
    assert everything(model) == before


def test_nothing_to_calibrate(ax, data, fitted):
    bernoulli = make_model(data, likelihood=gpflow.likelihoods.Bernoulli())
    with pytest.raises(ValueError, match="Bernoulli as it is has no link to calibrate"):
        plotting.calibration_before_after(ax, bernoulli, data)
    with pytest.raises(ValueError, match="2 binary labels here"):
        two = make_model(data, num_latent_gps=2)
        plotting.calibration_before_after(ax, two, (data[0], data[1].repeat(2, axis=1)))
    with pytest.raises(ValueError, match="X has 3 columns"):
        plotting.calibration_before_after(ax, fitted, (np.zeros((60, 3)), data[1]))
    with pytest.raises(TypeError, match="SVGP has no closed-form steps"):
        svgp = gpflow.models.SVGP(SquaredExponential(), Hinge(), data[0][:5])
        plotting.calibration_before_after(ax, svgp, data)


def test_attack_curve_shows_its_three_columns(ax):
    epsilon, columns = [0, 0.1, 0.2], ([0.9, 0.5, 0.1], [0.1, 0.4, 0.3], [0.5, 0.8, 0.9])
    plotting.attack_curve(ax, epsilon, *columns, what="entropy")
    for line, values in zip(ax.lines, columns):
        np.testing.assert_array_equal(line.get_xydata(), np.transpose([epsilon, values]))
    assert [text.get_text() for text in ax.get_legend().texts][1] == "entropy"
    with pytest.raises(ValueError, match="entropy has 2 values for 3 strengths"):
        plotting.attack_curve(ax, epsilon, columns[0], [1, 2], columns[2], what="entropy")
