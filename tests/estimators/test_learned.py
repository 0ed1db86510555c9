"""What a classifier learns: kernel, penalty, link; by default all of them."""

import gpflow
import numpy as np
import pytest
from helpers import fixed_classifier as fixed
from sklearn.model_selection import GridSearchCV

import gpflow_bsvm as gb
from gpflow_bsvm.estimators.candidates import candidates


@pytest.fixture(scope="module")
def learned(moons):
    return gb.BSVMClassifier(num_inducing=15, random_state=0).fit(*moons)


@pytest.mark.slow
def test_by_default_everything_is_learned(moons, learned):
    X, y = moons
    model, Y = learned.model_, y[:, None].astype(float)
    lengthscales = learned.history_.hyperparameters[".kernel.kernels[0].lengthscales"]
    assert lengthscales[0].shape == (2,) and len(lengthscales) == len(learned.history_)
    factors = model.kernel.kernels[0].lengthscales / lengthscales[-1]  # held-out rows chose one
    np.testing.assert_allclose(factors, factors[0], rtol=1e-12)
    among = candidates("auto", "auto", linear=False)
    assert learned.loss_ in {candidate.loss for candidate in among}
    assert among[0].penalty <= learned.penalty_ <= among[-2].penalty
    assert float(model.likelihood.penalty.numpy()) == learned.penalty_
    hinge = gb.BSVMClassifier(loss="hinge", penalty=4.0, num_inducing=15).fit(X, y)
    scale = float(hinge.model_.likelihood.scale.numpy())
    assert scale != 1.0
    data = (hinge.scaler_.transform(X), Y)
    again = gb.prediction.calibrate(hinge.model_, data)  # it is the link's maximum already
    assert again["scale"] == pytest.approx(scale, rel=1e-3)
    levels = gb.BSVMClassifier(loss="levels", penalty=4.0, num_inducing=15).fit(X, y)
    assert float(levels.model_.likelihood.scale.numpy()) == 1.0  # they need none


@pytest.mark.slow
def test_the_seed_decides_nothing_where_all_rows_are_looked_at(moons):
    X, y = moons
    first, second = (gb.BSVMClassifier(num_inducing=20, random_state=seed) for seed in (1, 2))
    p = first.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(second.fit(X, y).predict_proba(X), p)
    turned = gb.BSVMClassifier(num_inducing=20).fit(X[:, ::-1], y)
    assert turned.penalty_ == pytest.approx(first.penalty_, rel=0.05)


@pytest.mark.slow
def test_learned_fits_depend_on_no_order_and_on_no_repetition(moons):
    """Exactly: L-BFGS would enlarge rounding."""
    X, y = moons
    weight = np.where(np.arange(len(y)) < 10, 2, 1)
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weight))
    make = lambda: gb.BSVMClassifier(num_inducing=15, random_state=0)  # noqa: E731
    weighted = make().fit(X, y, sample_weight=weight)
    repeated = make().fit(X[again], y[again])
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


@pytest.mark.slow
def test_a_kernel_of_ones_own_is_learned_too(moons):
    kernel = gpflow.kernels.Matern32(2.0, lengthscales=[1.0, 2.0])
    gpflow.set_trainable(kernel.variance, False)
    model = gb.BSVMClassifier(kernel, num_inducing=15, penalty=2.0).fit(*moons).model_
    assert isinstance(model.kernel, gpflow.kernels.Matern32) and model.kernel is not kernel
    assert float(model.kernel.variance.numpy()) == 2.0
    assert not np.allclose(model.kernel.lengthscales, [1.0, 2.0])
    np.testing.assert_array_equal(kernel.lengthscales, [1.0, 2.0])  # it was copied


@pytest.mark.slow
def test_a_kernel_without_trainable_parameters_is_used_as_it_is(moons):
    kernel = gpflow.kernels.SquaredExponential(2.0)
    gpflow.set_trainable(kernel, False)
    options = {"loss": "hinge", "penalty": 2.0, "num_inducing": 15, "random_state": 0}
    one = gb.BSVMClassifier(kernel, **options).fit(*moons)
    two = gb.BSVMClassifier(kernel, learn_kernel=False, **options).fit(*moons)
    np.testing.assert_allclose(
        one.decision_function(moons[0]), two.decision_function(moons[0]), atol=2e-2
    )  # CAVI runs once more from where it had stopped, at a gain of 1e-5 of the ELBO


@pytest.mark.slow
def test_progress_is_one_line_of_stages(moons, capsys):
    shown = gb.BSVMClassifier(num_inducing=15, verbose=True).fit(*moons)
    out, line = capsys.readouterr()
    assert out == "" and line.count("\n") == 1 and "%" not in line
    stages = ["learning the kernel from 120", "choosing: levels with penalty 2", "choosing length"]
    places = [line.index(stage) for stage in [*stages, "fitting 15 inducing points to 120 rows"]]
    assert places == sorted(places) and "ELBO" in line
    silent = gb.BSVMClassifier(num_inducing=15).fit(*moons)
    np.testing.assert_array_equal(shown.predict_proba(moons[0]), silent.predict_proba(moons[0]))


@pytest.mark.slow
def test_a_grid_of_kernels(moons):
    kernels = [gpflow.kernels.Matern32(2.0, lengthscales=s) for s in (0.01, 1.0)]
    search = GridSearchCV(fixed(num_inducing=15), {"kernel": kernels}, cv=2).fit(*moons)
    assert float(search.best_params_["kernel"].lengthscales.numpy()) == 1.0
    np.testing.assert_array_equal(search.best_estimator_.model_.kernel.lengthscales, 1.0)
