"""Pictures show the numbers that they say they show."""

import numpy as np
import pytest
from gpflow.kernels import SquaredExponential
from helpers import make_data, make_model

from gpflow_bsvm import plotting
from gpflow_bsvm.inference import CAVI, VEM, History
from gpflow_bsvm.likelihoods import Hinge


@pytest.fixture
def ax():
    _, (ax,) = plotting.figure(1, 1)
    return ax


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def learned(data):
    kernel = SquaredExponential(2.0, lengthscales=[1.0, 1.5])
    model = make_model(data, kernel=kernel, likelihood=Hinge(bound="exact"))
    return VEM(max_steps=4).run(model, data)


def test_all_names_are_there():
    assert set(plotting.__all__) <= set(dir(plotting))


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


def test_many_entries_have_one_colour(ax):
    many = History(step=[1, 2], elbo=[0, 0], hyperparameters={".many": [np.arange(1.0, 8)] * 2})
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
    with pytest.raises(ValueError, match=r"some of \[\], got \[\]; .* such as .*VEM"):
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


def test_attack_curve_shows_its_three_columns(ax):
    epsilon, columns = [0, 0.1, 0.2], ([0.9, 0.5, 0.1], [0.1, 0.4, 0.3], [0.5, 0.8, 0.9])
    plotting.attack_curve(ax, epsilon, *columns, what="entropy")
    for line, values in zip(ax.lines, columns):
        np.testing.assert_array_equal(line.get_xydata(), np.transpose([epsilon, values]))
    assert [text.get_text() for text in ax.get_legend().texts][1] == "entropy"
