"""To scikit-learn's SVC and back."""

import gpflow
import numpy as np
import pytest
import scipy.sparse
from helpers import make_data
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gpflow_bsvm as gb
from gpflow_bsvm.likelihoods import Hinge, Logistic
from gpflow_bsvm.model_selection import plug_in, start_from
from gpflow_bsvm.models import BSVM
from gpflow_bsvm.papers.gold2003 import (
    GACV,
    SmoothedSpan,
    SquaredHinge,
    optimise,
    svm_mode,
)


@pytest.fixture(scope="module")
def data():
    return make_data(40)


def by_gram(kernel, data, penalty):
    """f of scikit-learn's SVC of the Gram matrix, a function of X."""
    svc = SVC(kernel="precomputed", C=penalty, tol=1e-9)
    svc.fit(kernel(data[0]).numpy(), data[1][:, 0])
    return lambda X: svc.decision_function(kernel(X, data[0]).numpy())


def test_plugged_in_svc_is_that_of_the_gram_matrix(data):
    kernel = gpflow.kernels.Matern32(2.0, lengthscales=[0.7, 1.2])
    model = BSVM(kernel, Hinge(1.5), data[0][:8].copy())
    svc = plug_in(model, tol=1e-9).fit(data[0], data[1][:, 0])
    X_new = data[0][:5] + 0.1
    expected = by_gram(kernel, data, 1.5)(X_new)
    np.testing.assert_allclose(
        svc.decision_function(X_new), expected, atol=1e-5
    )  # single precision
    kernel.variance.assign(7.0)  # the SVC has a copy
    np.testing.assert_allclose(svc.decision_function(X_new), expected, atol=1e-5)
    assert clone(svc).fit(data[0], data[1][:, 0]).score(*data) == svc.score(*data) > 0.8


def test_plugging_in_goes_there_and_back(data):
    X, y = data[0], data[1][:, 0]
    svc = SVC(C=3.0, gamma=0.8)
    start = start_from(svc)
    model = BSVM(start.kernel, Hinge(start.penalty), X[:8].copy())
    again = plug_in(model, rbf=True)
    np.testing.assert_allclose([again.C, again.gamma], [3.0, 0.8], rtol=1e-12)
    same = plug_in(model).fit(X, y).decision_function(X)
    np.testing.assert_allclose(same, svc.fit(X, y).decision_function(X), atol=1e-4)  # SVC's tol
    split = start_from(svc, penalty=1.5)
    assert split.penalty == 1.5
    np.testing.assert_allclose(split.kernel.variance.numpy(), 2.0)
    scaled = start_from(SVC().fit(3 * X, y))
    np.testing.assert_allclose(scaled.kernel.lengthscales.numpy(), 3 * X.std())
    linear = start_from(SVC(kernel="linear", C=2.0)).kernel(X).numpy()
    np.testing.assert_allclose(linear, X @ X.T)


@pytest.mark.slow
def test_a_classifier_plugs_in_with_its_scaling(data):
    X, y = 100 * data[0] + 7, np.where(data[1][:, 0] == 1, "yes", "no")
    classifier = gb.BSVMClassifier(loss="hinge", penalty=1.0, learn_kernel=False, num_inducing=8)
    classifier.fit(X, y)
    svc = plug_in(classifier, tol=1e-8).fit(X, y)
    assert set(svc.predict(X)) == {"yes", "no"}
    rbf = plug_in(classifier, rbf=True, tol=1e-8)
    assert isinstance(rbf, Pipeline)
    np.testing.assert_allclose(
        rbf.fit(X, y).decision_function(X), svc.decision_function(X), atol=1e-5
    )
    scaled = classifier.scaler_.transform(X)
    expected = by_gram(classifier.model_.kernel, (scaled, data[1]), 1.0)(scaled)
    np.testing.assert_allclose(svc.decision_function(X), expected, atol=1e-5)


def test_plugged_in_svc_has_the_weights_of_the_classes(data):
    X, y = data[0], data[1][:, 0]
    options = {"loss": "hinge", "penalty": 1.0, "learn_kernel": False, "num_inducing": 10}
    weight = {y.min(): 1.0, y.max(): 5.0}
    classifier = gb.BSVMClassifier(class_weight=weight, **options).fit(X, y)
    assert plug_in(classifier)[-1].class_weight == weight
    assert plug_in(classifier, class_weight="balanced")[-1].class_weight == "balanced"
    words = np.where(y == y.max(), "01", "0")
    named = gb.BSVMClassifier(class_weight={"0": 1.0, "01": 5.0}, **options).fit(X, words)
    expected = plug_in(classifier).fit(X, y).predict(X) == y.max()
    np.testing.assert_array_equal(plug_in(named).fit(X, words).predict(X) == "01", expected)
    same = gb.BSVMClassifier(class_weight={"1": 1.0, "01": 5.0}, **options)
    days = np.array(["2020-01-01", "2021-01-01"], "M8[D]")
    dated = gb.BSVMClassifier(class_weight={days[0]: 1.0, days[1]: 5.0}, **options)
    for labels, other in ((np.array(["1", "01"]), same), (days, dated)):
        kinds = labels[(y == y.max()).astype(int)]
        other.fit(X, kinds)
        with pytest.raises(ValueError, match=r"SVC reads labels .* numbers, .*give class_w"):
            plug_in(other)
        svc = plug_in(other, class_weight=None)
        fit = svc.fit(X, kinds, svc__sample_weight=other.weights_in_fit((X, kinds)))
        np.testing.assert_array_equal(fit.predict(X) == labels[1], expected)
    filled = gb.BSVMClassifier(impute=True, **options).fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="SVC cannot fill missing values"):
        plug_in(filled)


def test_sparse_rows_plug_in_like_dense_rows(data):
    X, y = data[0], data[1][:, 0]
    sparse = scipy.sparse.csr_array(X)
    options = {"loss": "hinge", "penalty": 1.0, "learn_kernel": False}
    svc = plug_in(gb.BSVMClassifier("linear", **options).fit(sparse, y))
    expected = clone(svc).fit(X, y).decision_function(X)
    found = svc.fit(sparse, y).decision_function(sparse)
    np.testing.assert_allclose(found, expected, rtol=1e-12)  # scaled by other code


def test_what_cannot_be_plugged_in(data):
    X = data[0][:8].copy()
    kernel = gpflow.kernels.SquaredExponential(lengthscales=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"not OneClass\); got BSVM with likelihood Logistic"):
        plug_in(BSVM(kernel, Logistic(), X))
    with pytest.raises(ValueError, match="SVC has linear slack"):
        plug_in(BSVM(kernel, SquaredHinge(), X))
    with pytest.raises(ValueError, match="no mean function, but the model has Constant"):
        plug_in(BSVM(kernel, Hinge(), X, mean_function=gpflow.functions.Constant(1.0)))
    with pytest.raises(ValueError, match="with one lengthscale for all columns, got"):
        plug_in(BSVM(kernel, Hinge(), X), rbf=True)
    with pytest.raises(NotFittedError):
        plug_in(gb.BSVMClassifier())
    with pytest.raises(TypeError, match="expected a scikit-learn SVC"):
        start_from("rbf")
    with pytest.raises(ValueError, match='"rbf" or "linear", got'):
        start_from(SVC(kernel="sigmoid"))
    with pytest.raises(ValueError, match="depends on X"):
        start_from(SVC())
    with pytest.raises(ValueError, match=r"the SVC's C must be a positive, finite number, got 0.0"):
        start_from(SVC(C=0.0, gamma=1.0))


def test_what_a_criterion_found_plugs_in(data):
    """GACV is of linear slack; the kernel of what was found is a copy."""
    kernel = gpflow.kernels.SquaredExponential(1.0, lengthscales=0.5)
    found = optimise(GACV(), kernel, data, 2.0, max_evaluations=4)
    expected = found.machine(data)
    kernel.variance.assign(50.0)
    svc = plug_in(found, rbf=True, tol=1e-9)
    learned = found.best.parameters
    np.testing.assert_allclose(svc.C, 2.0 * learned[".variance"])
    np.testing.assert_allclose(svc.gamma, 0.5 / learned[".lengthscales"] ** 2)
    again = by_gram(found.kernel, data, 2.0)(data[0])
    latent = plug_in(found, tol=1e-9).fit(data[0], data[1][:, 0]).decision_function(data[0])
    np.testing.assert_allclose(latent, again, atol=1e-5)  # single precision
    assert (expected.slack, expected.penalty) == ("linear", 2.0)


def test_quadratic_slack_has_a_machine_and_no_svc(data):
    kernel = gpflow.kernels.SquaredExponential(1.0, lengthscales=0.5)
    found = optimise(SmoothedSpan(), kernel, data, 3.0, max_evaluations=3)
    with pytest.raises(ValueError, match="SVC has linear slack"):
        plug_in(found)
    mode = found.machine(data)
    np.testing.assert_array_equal(mode.alpha, svm_mode(kernel, data, 3.0, slack="quadratic").alpha)
    assert (
        repr(mode)
        == f"Mode(40 rows, {len(mode.support)} support vectors, penalty=3, slack='quadratic')"
    )


def test_a_start_from_a_search_and_from_what_is_fitted(data):
    X, y = data[0], data[1][:, 0]
    svc = SVC(C=3.0).fit(X, y)
    lengthscale = X.std()  # gamma="scale"
    np.testing.assert_allclose(start_from(svc).kernel.lengthscales.numpy(), lengthscale, rtol=1e-12)
    search = GridSearchCV(SVC(), {"C": [1.0, 4.0]}, cv=2).fit(X, y)
    start = start_from(search)
    assert start.penalty == search.best_params_["C"]
    np.testing.assert_allclose(start.kernel.lengthscales.numpy(), lengthscale, rtol=1e-12)
    pipeline = make_pipeline(StandardScaler(), SVC())
    with pytest.raises(TypeError, match=r"got Pipeline; give the SVC of a pipeline"):
        start_from(GridSearchCV(pipeline, {"svc__C": [1.0]}, cv=2).fit(X, y))
    with pytest.raises(ValueError, match=r"with gamma = 0.0, the kernel is the same"):
        start_from(SVC(gamma=0.0))
