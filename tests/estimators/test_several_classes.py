"""`BSVMClassifier` of more than two classes."""

import pickle

import numpy as np
import pytest
from helpers import fixed_classifier as fixed
from sklearn.datasets import load_digits

import gpflow_bsvm as gb
from gpflow_bsvm.estimators.specification import Specification, levels_for, make_model


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:300], y[:300]


@pytest.fixture(scope="module")
def five(digits):
    return fixed(num_inducing=30, random_state=0).fit(*digits)


def test_logarithms_of_probabilities_of_several_classes(digits, five):
    p = five.predict_proba(digits[0])
    np.testing.assert_allclose(np.exp(five.predict_log_proba(digits[0])), p, atol=1e-12)


def test_several_classes(digits, five):
    X, y = load_digits(n_class=5, return_X_y=True)
    assert five.score(X[300:], y[300:]) > 0.95
    p = five.predict_proba(X[300:])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(five.predict(X[300:]), p.argmax(axis=1))
    np.testing.assert_allclose(np.exp(five.decision_function(X[300:])), p, atol=1e-12)
    expected, _ = five.model_.predict_y(five.scaler_.transform(X[300:]))
    np.testing.assert_allclose(p, expected, atol=1e-8)


def test_renaming_classes_permutes_the_columns(digits, five):
    X, y = digits
    names = np.array(["four", "zero", "two", "three", "one"])[y]
    renamed = fixed(num_inducing=30, random_state=0).fit(X, names)
    order = [int(np.flatnonzero(names == name)[0]) for name in renamed.classes_]
    # The same sums in another order, through some 20 sweeps.
    np.testing.assert_allclose(
        renamed.predict_proba(X), five.predict_proba(X)[:, y[order]], atol=1e-7
    )


def test_chunks_of_several_classes(digits, five):
    X, _ = digits
    other = pickle.loads(pickle.dumps(five)).set_params(chunk_rows=7)
    np.testing.assert_allclose(other.predict_proba(X), five.predict_proba(X), atol=1e-12)


@pytest.mark.slow
def test_integer_weights_are_repeated_rows_of_several_classes(digits):
    X, y = digits[0][:120], digits[1][:120]
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    make = lambda: fixed(  # noqa: E731
        num_inducing=20, random_state=0, inference=gb.inference.CAVI(tol=1e-10)
    )
    weighted = make().fit(X, y, sample_weight=weight)
    repeated = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # Summation order, and a stopping rule that may differ by a sweep.
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


@pytest.mark.slow
def test_one_vs_rest_is_an_option(digits):
    X, y = digits
    cavi = gb.inference.CAVI(tol=1e-12)
    ours = fixed(num_inducing=30, random_state=0, multi_class="ovr", inference=cavi).fit(X, y)
    p = ours.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    one_hot = (y[:, None] == ours.classes_).astype(float)
    for c in range(5):  # each is the binary model of its class, on the same inducing points
        alone = gb.models.BSVM(
            ours.model_.kernel, gb.likelihoods.Hinge(bound="exact"), ours.model_.inducing_variable
        )
        cavi.run(alone, (ours.scaler_.transform(X), one_hot[:, c : c + 1]))
        mean = alone.predict_f(ours.scaler_.transform(X))[0].numpy()
        mine = ours.model_.predict_f(ours.scaler_.transform(X))[0].numpy()[:, c : c + 1]
        # Both stop at a relative gain of 1e-12, of the sum over classes or of one.
        np.testing.assert_allclose(mine, mean, atol=1e-4)
    assert ours.score(X, y) > 0.99


def test_weights_and_classes_of_one_vs_rest(digits):
    X, y = digits[0][:120], digits[1][:120]
    weight = np.where(y == 2, 3.0, 1.0)
    make = lambda **options: fixed(  # noqa: E731
        num_inducing=20, random_state=0, multi_class="ovr", **options
    )
    np.testing.assert_allclose(
        make(class_weight={2: 3.0}).fit(X, y).predict_proba(X),
        make().fit(X, y, sample_weight=weight).predict_proba(X),
        atol=1e-10,
    )


@pytest.mark.slow
def test_many_small_classes_do_not_collapse():
    random = np.random.default_rng(0)
    centres = random.normal(size=(50, 20))
    X = np.repeat(centres, 4, axis=0) + 0.1 * random.normal(size=(200, 20))
    y = np.repeat(np.arange(50), 4)
    classifier = fixed(num_inducing=100, random_state=0).fit(X, y)
    assert classifier.score(X, y) > 0.95


def test_the_augmented_bound_of_several_classes_is_that_of_one_vs_rest(digits):
    X, y = digits[0][:60, :5], np.arange(60) % 3
    with pytest.raises(ValueError, match=r"needs bound=\"exact\", got 'augmented': use this bound"):
        gb.BSVMClassifier(bound="augmented").fit(X, y)
    options = {"loss": "hinge", "penalty": 2.0, "num_inducing": 5, "learn_kernel": False}
    fitted = gb.BSVMClassifier(bound="augmented", multi_class="ovr", **options).fit(X, y)
    assert fitted.model_.likelihood.bound == "augmented"


@pytest.mark.slow
def test_probabilities_of_a_table_of_few_cells_are_near_the_true_ones():
    """All copies of a row were held out together: 90 % were right, and probabilities near 1/3."""
    rng = np.random.default_rng(0)
    cells = np.array([[a, b] for a in range(4) for b in range(3)], float)
    label = rng.integers(0, 3, len(cells))
    X = np.tile(cells, (12, 1))
    y = np.tile(label, 12)
    y = np.where(rng.random(len(y)) < 0.15, rng.integers(0, 3, len(y)), y)
    fitted = gb.BSVMClassifier(loss="levels", penalty=2.0).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(cells), label)
    p = fitted.predict_proba(cells)[np.arange(len(cells)), label]
    assert abs(p.mean() - 0.9) < 0.05  # 0.43 before; 144 rows have a standard error of 0.025


def test_rare_classes_have_their_frequencies_where_x_says_nothing(rng):
    """They had a fifth of it: hardly a level was below them, so f was -1 at all levels."""
    y = np.repeat(np.arange(6), [540, *[12] * 5])
    X = rng.permutation(np.linspace(-2, 2, len(y)))[:, None]
    found = fixed(loss="levels", num_inducing=10, random_state=0).fit(X, y)
    # Less than .02, because f and its spread also have a prior.
    np.testing.assert_allclose(found.predict_proba(X).mean(axis=0)[1:], 0.02, rtol=0.3)


def test_ordered_rare_classes_have_their_frequencies_where_x_says_nothing(rng):
    """All but the second had less than a thousandth of the probability."""
    y = np.repeat(np.arange(4), [10, 450, 25, 15])
    X = rng.permutation(np.linspace(-2, 2, len(y)))[:, None]
    found = fixed(multi_class="ordinal", loss="levels", penalty=2.0, num_inducing=10).fit(X, y)
    expected = np.bincount(y) / len(y)
    # Not exactly, because f also has a prior.
    np.testing.assert_allclose(found.predict_proba(X).mean(axis=0), expected, rtol=0.1)


def test_ordered_classes_have_as_many_levels_as_others(rng):
    spec = Specification(3, "levels", levels=levels_for(800), num_inducing=3)
    X = rng.normal(size=(5, 1))
    for given in (spec, spec._replace(multi_class="ordinal")):
        assert make_model(given, X).likelihood.levels.t.size == 21


def test_without_rows_of_a_class_its_frequency_is_unknown(rng):
    """Batches of a stream may be sorted by class."""
    X = rng.normal(size=(20, 2))
    found = fixed(loss="levels", num_inducing=5)
    found.partial_fit(X, np.repeat([0, 1], 10), classes=[0, 1, 2])
    assert found.model_.likelihood.link == "integral"
