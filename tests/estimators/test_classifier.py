"""scikit-learn's own checks, and what they do not check."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import SkipTest

import gpflow
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from helpers import fixed_classifier as fixed
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import gpflow_bsvm as gb
from gpflow_bsvm.estimators.choice import candidates


@pytest.mark.slow
@parametrize_with_checks([fixed(num_inducing=10)])
def test_sklearn_checks(estimator, check):
    """None is skipped, but for that which needs an environment variable."""
    try:
        check(estimator)
    except SkipTest as reason:
        assert "SCIPY_ARRAY_API" in str(reason)
        raise


#: What a learned kernel and a chosen penalty may break: the rest sees the same lines of code.
AT_THE_DEFAULTS = (
    "check_classifiers_one_label",
    "check_dict_unchanged",
    "check_estimators_overwrite_params",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_sample_weight_equivalence_on_dense_data",
)


@pytest.mark.slow
@pytest.mark.drill
@pytest.mark.parametrize("name", AT_THE_DEFAULTS)
def test_sklearn_checks_at_the_defaults(name):
    checks = {check.func.__name__: (estimator, check) for estimator, check in all_checks()}
    estimator, check = checks[name]
    check(estimator)


def all_checks():
    return list(estimator_checks_generator(gb.BSVMClassifier(num_inducing=10)))


def test_number_of_sklearn_checks():
    """A tag can silently turn dozens of checks into one."""
    assert len(all_checks()) >= 50


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    return fixed(num_inducing=15, random_state=0).fit(*moons)


def test_string_labels_and_data_frames(moons, fitted):
    X, y = moons
    frame = pd.DataFrame(X, columns=["north", "east"])
    labels = np.where(y == 1, "a yes", "the no")  # sorted: "a yes" comes first
    named = fixed(num_inducing=15, random_state=0).fit(frame, labels)
    assert list(named.classes_) == ["a yes", "the no"]
    assert list(named.feature_names_in_) == ["north", "east"]
    expected = fitted.predict_proba(X)
    # The hinge is symmetric, so exchanging the labels exchanges the columns.
    np.testing.assert_allclose(named.predict_proba(frame), expected[:, ::-1], atol=1e-8)
    assert set(named.predict(frame)) <= set(labels)


def test_predict_is_the_argmax_of_predict_proba(fitted):
    X = np.random.default_rng(0).uniform(-3, 4, size=(500, 2))
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[p.argmax(axis=1)])
    order = np.argsort(fitted.decision_function(X))
    assert (np.diff(p[order, 1]) >= 0).all()
    np.testing.assert_array_equal(fitted.decision_function(X) > 0, p[:, 1] > 0.5)


def test_probabilities_are_those_of_the_model(moons, fitted):
    X = fitted.scaler_.transform(moons[0])
    p, _ = fitted.model_.predict_y(X)
    np.testing.assert_allclose(fitted.predict_proba(moons[0])[:, 1], p[:, 0], atol=1e-10)


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_chunks_do_not_change_predictions(moons, fitted, chunk_rows):
    other = pickle.loads(pickle.dumps(fitted)).set_params(chunk_rows=chunk_rows)
    np.testing.assert_allclose(
        other.decision_function(moons[0]), fitted.decision_function(moons[0]), atol=1e-12
    )


def test_pickle_and_clone(moons, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(moons[0]), fitted.predict_proba(moons[0]))
    twin = clone(fitted).fit(*moons)
    np.testing.assert_array_equal(twin.predict_proba(moons[0]), fitted.predict_proba(moons[0]))


def test_integer_weights_are_repeated_rows(moons):
    X, y = moons
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    make = lambda: fixed(  # noqa: E731
        num_inducing=15, random_state=0, inference=gb.inference.CAVI(tol=1e-12)
    )
    weighted = make().fit(X, y, sample_weight=weight)
    repeated = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # The scaler's means and the sums over rows come in another order: rounding, amplified by Kuu.
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-7
    )


def test_class_weight_is_sample_weight(moons):
    X, y = moons
    classes = fixed(num_inducing=15, random_state=0, class_weight={0: 1, 1: 3})
    samples = fixed(num_inducing=15, random_state=0)
    samples.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(
        classes.fit(X, y).decision_function(X), samples.decision_function(X), atol=1e-12
    )
    balanced = fixed(num_inducing=15, random_state=0, class_weight="balanced")
    few = np.flatnonzero((y == 0) | (np.arange(len(y)) < 30))
    plain = clone(samples).fit(X[few], y[few])
    assert balanced.fit(X[few], y[few]).predict(X).mean() > plain.predict(X).mean()


def test_order_of_rows_does_not_matter(moons, fitted):
    X, y = moons
    order = np.random.default_rng(2).permutation(len(y))
    other = fixed(num_inducing=15, random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(
        other.decision_function(X), fitted.decision_function(X), atol=1e-7
    )  # summation order


@pytest.mark.slow
def test_in_a_pipeline_and_a_grid_search(moons):
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), fixed(num_inducing=15)),
        {"bsvmclassifier__penalty": [1.0, 2.0]},
        scoring="neg_log_loss",
        cv=2,
    ).fit(*moons)
    assert search.best_score_ > -0.6


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
def test_real_data_beats_the_base_rate():
    X, y = load_breast_cancer(return_X_y=True)
    assert (
        gb.BSVMClassifier(num_inducing=30, random_state=0, penalty=1.0)
        .fit(X[::3], y[::3])
        .score(X[1::3], y[1::3])
        > 0.95
    )


def test_constant_columns_do_no_harm_and_are_not_worth_a_warning(moons):
    X, y = moons
    frame = pd.DataFrame(X, columns=["north", "east"]).assign(height=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = fixed(num_inducing=15).fit(frame, y)
    assert np.isfinite(classifier.predict_proba(frame)).all()


def test_weights_that_sum_to_little_are_said(moons):
    with pytest.warns(UserWarning, match=r"weights of 120 rows sum to 2: .* of mean 1") as warned:
        fixed(num_inducing=15).fit(*moons, sample_weight=np.full(120, 1 / 60))
    assert warned[0].filename == __file__


def test_sparse_rows_are_refused_with_what_works(moons):
    with pytest.raises(TypeError, match=r'dense data is required: .*kernel="linear"'):
        fixed().fit(scipy.sparse.csr_matrix(moons[0]), moons[1])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("rbf", r'None or "linear", got \'rbf\'; for scikit-learn\'s "rbf" use None'),
        ("poly", r'"poly" use gpflow.kernels.Polynomial\(degree=3'),
        ("other", r"got 'other'$"),
    ],
)
def test_names_of_scikit_learns_kernels_are_refused_with_what_works(moons, kernel, message):
    with pytest.raises(ValueError, match=message):
        gb.BSVMClassifier(kernel=kernel).fit(*moons)


def test_progress_only_when_verbose(moons, capsys):
    fixed(num_inducing=15).fit(*moons)
    assert capsys.readouterr() == ("", "")


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.where(X > 1.5, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(X > 1.5, np.inf, X), y), "infinity"),
        (lambda X, y: (X, np.zeros_like(y)), "one class"),
        (lambda X, y: (X, y + 0.5 * X[:, 0]), "Unknown label type"),
        (lambda X, y: (X, np.where(y == 1, None, "no")), r"no label .* in rows 1, 2,"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X[:, 0], y), "Expected 2D array"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), r"1d array|should be a 1d"),
    ],
)
def test_bad_training_data(moons, change, message):
    with pytest.raises(ValueError, match=message):
        fixed(num_inducing=15).fit(*change(*moons))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1.0}, r"'penalty' .* must be a float in the range \(0.0, inf\)"),
        ({"bound": "tight"}, "bound must be one of"),
        ({"num_inducing": 0}, "'num_inducing' .* in the range \\[1, inf\\)"),
        ({"chunk_rows": 0}, "'chunk_rows' parameter .* must be"),
    ],
)
def test_bad_parameters(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        fixed(**parameters).fit(*moons).predict(moons[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": gpflow.kernels.Matern32}, r"Got <class .*Matern32'> instead"),
        ({"kernel": 3}, r"an instance of .*Kernel', a str among \{'linear'\} or None. Got 3"),
        ({"kernel": np.ones(1)}, r"or None. Got array"),
        ({"penalty": None}, r"a float .* or a str among \{'auto'\}. Got None"),
        ({"multi_class": ["ovr"]}, "a str among .* Got"),
        ({"learn_kernel": "no"}, "'learn_kernel' .* an instance of 'bool' .* Got 'no'"),
        ({"calibrate": 1}, "'bool'.* or a str among .* Got 1"),
        ({"standardize": None}, "'standardize' .* Got None"),
        ({"verbose": "yes"}, "'verbose' .* Got 'yes'"),
        ({"num_inducing": 2.5}, "an int in the range .* Got 2.5"),
        ({"chunk_rows": 2.5}, "an int in the range .* or None. Got 2.5"),
        ({"inference": "CAVI"}, "'inference' .* Got 'CAVI'"),
        ({"inference": gb.inference.CAVI}, "Got <class .*CAVI'> instead"),
    ],
)
def test_parameters_of_another_type(moons, parameters, message):
    with pytest.raises(TypeError, match=message):
        gb.BSVMClassifier(**parameters).fit(*moons)


def test_numpys_numbers_are_numbers(moons, fitted):
    other = fixed(
        num_inducing=np.int64(15),
        penalty=np.float32(2.0),
        calibrate=np.False_,
        chunk_rows=np.int32(200),
        random_state=0,
    )
    np.testing.assert_array_equal(
        other.fit(*moons).predict_proba(moons[0]), fitted.predict_proba(moons[0])
    )


class Interrupted(gb.inference.CAVI):
    """An algorithm in the midst of which somebody presses Ctrl-C."""

    def run(self, *_, **__):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_fit_that_fails_leaves_the_one_before(moons, error):
    """Not its scaler, labels or names with another's model."""
    X, y = moons
    frame = pd.DataFrame(X, columns=["north", "east"])
    classifier = fixed(num_inducing=15).fit(frame, y)
    expected, before = classifier.predict_proba(frame), dict(vars(classifier))
    wrong = {"inference": Interrupted()} if error is KeyboardInterrupt else {"bound": "tight"}
    other = pd.DataFrame(100 * X[:, [0, 0, 1]] + 7, columns=list("abc"))
    with pytest.raises(error):
        classifier.set_params(**wrong).fit(other, np.where(y == 1, "yes", "no"))
    assert vars(classifier) == before | wrong
    np.testing.assert_array_equal(classifier.predict_proba(frame), expected)
    again = classifier.set_params(inference=None, bound="exact").fit(100 * X, y)
    assert not hasattr(again, "feature_names_in_")  # it had none
    first = fixed(num_inducing=15, **wrong)
    with pytest.raises(error):
        first.fit(X, y)
    with pytest.raises(NotFittedError):
        first.predict(X)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.filterwarnings("error")  # none of NumPy's comes first
def test_overflow_is_named(moons, fitted, standardize):
    X, y = moons
    for much in (1e200, 1e308):
        with pytest.raises(ValueError, match="column 1 of X is so large that its variance over"):
            fixed(standardize=standardize).fit(X * [1.0, much], y)
    with pytest.raises(ValueError, match="row 2 of X is so large that f overflows"):
        fitted.predict(np.concatenate([X[:2], [[1.7e308, 0.0]]]))


def test_logarithms_of_probabilities(moons, fitted):
    p = fitted.predict_proba(moons[0])
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(moons[0])), p, atol=1e-12)
    far = clone(fitted).set_params(penalty=100.0).fit(*moons)
    far.model_.q_mu.assign(1e3 * far.model_.q_mu)
    assert far.predict_proba(moons[0]).min() == 0
    assert np.isfinite(far.predict_log_proba(moons[0])).all()


@pytest.mark.slow
def test_a_grid_of_kernels(moons):
    kernels = [gpflow.kernels.Matern32(2.0, lengthscales=s) for s in (0.01, 1.0)]
    search = GridSearchCV(fixed(num_inducing=15), {"kernel": kernels}, cv=2).fit(*moons)
    assert float(search.best_params_["kernel"].lengthscales.numpy()) == 1.0
    np.testing.assert_array_equal(search.best_estimator_.model_.kernel.lengthscales, 1.0)


def test_bad_weights(moons):
    X, y = moons
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        gb.BSVMClassifier().fit(X, y, sample_weight=-np.ones(len(y)))


def test_wrong_number_of_columns_at_prediction(fitted):
    with pytest.raises(ValueError, match="X has 3 features, but BSVMClassifier is expecting 2"):
        fitted.predict(np.zeros((4, 3)))


@pytest.mark.slow
def test_fits_in_threads(moons):
    X, y = moons
    make = lambda: fixed(num_inducing=7, random_state=0)  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        fits = list(pool.map(lambda _: make().fit(X, y).decision_function(X), range(8)))
    for scores in fits[1:]:
        np.testing.assert_allclose(scores, fits[0], atol=1e-12)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_multi_class_of_unknown_name(num_classes):
    with pytest.raises(ValueError, match=r"'multi_class' .* must be a str among"):
        gb.BSVMClassifier(multi_class="ovo").fit(np.eye(6), np.arange(6) % num_classes)


# --- the functions of `prediction` ---------------------------------------------------------------


def of_rows():
    """Functions of a model and X, and of a model and (X, Y)."""
    plain = ("variation_ratio", "predictive_entropy", "mutual_information", "margin")
    plain += ("latent_variance", "predict_probabilities", "draw_probabilities", "expected_error")
    labelled = (
        "predict_log_density",
        "leave_one_out_density",
        "augmented_elbo",
        "soft_support_vectors",
    )
    return [*((name, False) for name in plain), *((name, True) for name in labelled)]


@pytest.mark.parametrize(("name", "labelled"), of_rows())
def test_doubt_of_an_estimator_is_that_of_its_model_on_scaled_rows(moons, fitted, name, labelled):
    X, y = moons
    function, seen = getattr(gb.prediction, name), fitted.scaler_.transform(X)
    theirs, ours = ((X, y), (seen, y[:, None].astype(float))) if labelled else (X, seen)
    found, expected = function(fitted, theirs), function(fitted.model_, ours)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_labels_of_an_estimators_rows_are_its_users(moons):
    X, y = moons
    named = fixed(num_inducing=15, random_state=0).fit(X, np.where(y == 1, "yes", "no"))
    before = gb.prediction.leave_one_out_density(named, data=(X, np.where(y == 1, "yes", "no")))
    gb.prediction.calibrate(named, (X, np.where(y == 1, "yes", "no")))
    after = gb.prediction.leave_one_out_density(named, (X, np.where(y == 1, "yes", "no")))
    assert after >= before - 1e-9
    with pytest.raises(ValueError, match="previously unseen labels: \\['maybe'\\]"):
        gb.prediction.predict_log_density(named, (X, np.full(len(X), "maybe")))


def test_what_is_neither_model_nor_estimator_is_refused(moons):
    with pytest.raises(TypeError, match=r"margin needs a model .* or an estimator, got dict"):
        gb.prediction.margin({}, moons[0])
    with pytest.raises(NotFittedError):
        gb.prediction.margin(gb.BSVMClassifier(), moons[0])
