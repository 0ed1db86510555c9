"""Pictures show the numbers that they say they show."""

import gpflow
import numpy as np
import pytest
from conftest import make_data, make_model
from gpflow.kernels import Constant, Matern32, SharedIndependent, SquaredExponential, White
from pictured import three_classes, two_classes

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
    return two_classes(data)


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
        model = two_classes(data)
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
