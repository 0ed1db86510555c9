"""Names of columns, missing values and weights."""

import gpflow
import pandas
import pytest
from helpers import fixed_classifier as fixed

import gpflow_bsvm as gb
from gpflow_bsvm.data import Blocks


@pytest.mark.parametrize("form", [lambda *pair: pair, lambda *pair: [pair, pair]])
def test_pairs_and_blocks_in_place_of_x(fitted, moons, form):
    with pytest.raises(ValueError, match=r"X must be a matrix: give \(X, y\) as fit\(X, y\), and"):
        fixed().fit(form(*moons))
    with pytest.raises(ValueError, match=r"X must be a matrix: .* blocks as data\.Blocks\(X\)\.$"):
        fitted.predict([[1.0, 2.0], [3.0]])


# --- names of columns ----------------------------------------------------------------------------


def by(place):
    """:return: a way to give a data frame to a prediction."""
    return pytest.param({"frame": lambda f: f, "blocks": lambda f: Blocks([f])}[place], id=place)


PLACES = pytest.mark.parametrize("given", [by("frame"), by("blocks")])


@PLACES
@pytest.mark.parametrize("names", [[0, 1], [1, 0]])
def test_numbers_as_names_must_be_in_the_order_of_the_fit(moons, given, names):
    X, y = moons
    frame = pandas.DataFrame(X)
    model = fixed(num_inducing=15).fit(frame[names], y)
    model.predict(given(frame[names]))
    with pytest.raises(ValueError, match=r"same order|in training they were|but training had"):
        model.predict(given(frame[names[::-1]]))


@PLACES
def test_numbers_in_another_order_after_a_fit_to_an_array(fitted, moons, given):
    with pytest.raises(
        ValueError, match=r"are \['1', '0'\], but in training they were in the orde"
    ):
        fitted.predict(given(pandas.DataFrame(moons[0])[[1, 0]]))


def test_names_on_one_side_only_are_said_as_in_scikit_learn(fitted, moons):
    X, y = moons
    frame = pandas.DataFrame(X, columns=["b", "a"])
    with pytest.warns(UserWarning) as found:
        fitted.predict(Blocks([frame[:50], frame[50:]]))
    assert [str(one.message) for one in found] == [
        "X has names of columns (b, a), but training had none: columns are taken by their places"
    ]
    named = fixed(num_inducing=15).fit(frame, y)
    with pytest.warns(
        UserWarning, match=r"^training had names of columns \(b, a\), but X has none"
    ):
        named.predict(Blocks([X]))


class LazyFrame:
    """As of Polars: it has columns, but no rows."""

    columns = ("a", "b")

    def __array__(self, dtype=None, copy=None):
        pytest.fail("a query has no rows")


def test_a_query_of_polars_is_to_be_collected(fitted, moons):
    X, y = moons
    model = gb.models.BSVM(gpflow.kernels.Matern32(), gb.likelihoods.Hinge(), X[:5].copy())
    calls = [
        ("X", lambda lazy: fixed().fit(lazy, y)),
        ("y", lambda lazy: fixed().fit(X, lazy)),
        ("sample_weight", lambda lazy: fixed().fit(X, y, lazy)),
        ("X", fitted.predict),
        ("y", lambda lazy: fitted.score(X, lazy)),
        ("y", lambda lazy: fitted.partial_fit(X, lazy)),
        ("y", lambda lazy: fitted.as_model_sees((X, lazy), labelled=True)),
        ("X", lambda lazy: gb.fit(model, (lazy, y[:, None]))),
        ("Y", lambda lazy: gb.fit(model, (X, lazy))),
        ("X", lambda lazy: gb.prediction.predict_marginals(model, lazy)),
    ]
    for name, call in calls:
        text = f"^{name} is a LazyFrame, which holds no rows: give {name}.collect\\(\\)$"
        with pytest.raises(TypeError, match=text):
            call(LazyFrame())
