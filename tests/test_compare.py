"""The protocol is fair, a failing model does no harm, and the report says what happened."""

import json
import os
import struct
import time
from dataclasses import replace
from typing import ClassVar

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import confusion_matrix

import gpflow_bsvm
from gpflow_bsvm import BSVMClassifier, plotting
from gpflow_bsvm.compare import (
    BASELINES,
    Comparison,
    Entry,
    FoldScore,
    KernelSettings,
    Settings,
    Skipped,
    baselines,
    class_labels,
    default_baselines,
    folds,
    gp_baselines,
    make_baseline,
    provenance,
    report,
    training,
)
from gpflow_bsvm.datasets import DataError, Dataset
from gpflow_bsvm.metrics import METRICS

KERNEL = KernelSettings(lengthscale=1.0, variance=4.0)
#: Those for a fixed kernel.
ALL = [name for name in BASELINES if name != "classifier"]
DEFAULT = default_baselines(2, fixed_kernel=True)
TWO_ONLY = {"probit-engine", "svgp-probit"}
MORE_ONLY = {"bsvm-published", "one-vs-rest", "svgp-robustmax"}
#: One of every kind of model: the others take their graphs' time, and go through the same code.
SOME = ["bsvm", "probit-engine", "svgp-probit", "svc"]


def moons(num_rows=70, seed=0):
    X, y = make_moons(num_rows, noise=0.2, random_state=seed)
    return Dataset("moons", 3 + 5 * X, np.where(y == 1, "yes", "no"), ("x1", "x2"))


def iris():
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(0, 0.2, X.shape)  # less well apart
    return Dataset("iris", X, np.array(["setosa", "versicolor", "virginica"])[y], tuple("abcd"))


class Crash:
    has_trace, note = False, ""

    def fit(self, X, y, Z, kernel, seed, watch=None):
        raise RuntimeError("out of luck\nand more lines")


class Spy:
    """Remembers what it is given, predicts the base rate."""

    has_trace, note = False, ""
    made: ClassVar[list] = []

    def __init__(self):
        self.fits, self.tests = [], []
        Spy.made.append(self)

    def fit(self, X, y, Z, kernel, seed, watch=None):
        self.fits.append((X, y, Z, kernel, seed))

    def predict_proba(self, X):
        self.tests.append(X)
        y = self.fits[-1][1]
        return np.tile(np.bincount(y) / len(y), (len(X), 1))


@pytest.fixture
def extra_models(monkeypatch):
    for name, model in {"crash": Crash, "spy": Spy, "spy2": Spy}.items():
        monkeypatch.setitem(BASELINES, name, Entry("", lambda C, model=model: model()))
    monkeypatch.setattr(Spy, "made", [])


def some_or(names):
    """A fixture's parameters: some models, and those of these names where there is time."""
    return [
        pytest.param([name for name in names if name in SOME or name == "gpc"], id="some"),
        pytest.param(names, id="all", marks=pytest.mark.slow),
    ]


@pytest.fixture(scope="module", params=some_or([*DEFAULT, "gpc"]))
def two_names(request):
    return request.param


@pytest.fixture(scope="module", params=some_or(ALL))
def three_names(request):
    return request.param


@pytest.fixture(scope="module")
def everything(two_names):
    """The models and one that crashes, on two folds."""
    BASELINES["crash"] = Entry("", lambda C: Crash())
    comparison = Comparison(
        moons(), Settings(folds=2, num_inducing=10, lengthscale=0.7, fixed_kernel=True)
    )
    try:
        comparison.run(["crash", *two_names], progress=False)
    finally:
        del BASELINES["crash"]
    return comparison


@pytest.fixture(scope="module")
def three_classes(three_names):
    """The models on two folds of three classes."""
    comparison = Comparison(iris(), Settings(folds=2, num_inducing=10, fixed_kernel=True))
    comparison.run(three_names, progress=False)
    return comparison


# --- all models, end to end -----------------------------------------------------------------------


def test_a_row_per_fold_and_model(everything, two_names):
    assert [(row.fold, row.model) for row in everything.fold_scores] == [
        (fold, model) for fold in (0, 1) for model in ["crash", *two_names]
    ]


def test_a_crash_is_a_row_and_the_run_goes_on(everything):
    crashed = [row for row in everything.fold_scores if row.model == "crash"]
    assert {row.status for row in crashed} == {"failed: RuntimeError: out of luck"}
    assert all(np.isnan([*row.scores.values(), row.train_seconds]).all() for row in crashed)
    assert all(row.ok for row in everything.fold_scores if row.model != "crash")


def test_every_model_learns(everything):
    for row in everything.fold_scores:
        if row.ok:
            assert row.scores["error"] < 0.25, row  # at random: 0.5
            assert row.scores["auc"] > 0.8, row
            assert row.train_seconds > 0 and row.predict_us > 0


def test_same_likelihood_same_answer_by_either_engine(everything):
    ours, gpflows = (everything.held_out[name] for name in ("probit-engine", "svgp-probit"))
    for (y, P), (y2, P2) in zip(ours, gpflows):
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_allclose(P, P2, atol=5e-3)  # both stop at a relative change of 1e-5


def test_traces_rise_and_end_at_the_scores(everything, two_names):
    assert set(everything.traces) == set(two_names) - {"svc", "gpc"}
    first = {row.model: row for row in everything.fold_scores if row.fold == 0}
    for name, trace in everything.traces.items():
        assert trace.elbo[-1] > trace.elbo[0]
        assert trace.seconds == sorted(trace.seconds)
        assert trace.error[-1] == first[name].scores["error"]
        np.testing.assert_allclose(trace.nll[-1], first[name].scores["nll"], rtol=1e-6)


# --- three classes, end to end -------------------------------------------------------------------


@pytest.mark.slow
def test_every_model_for_three_classes_learns(three_classes, three_names):
    good = [row for row in three_classes.fold_scores if row.model not in TWO_ONLY]
    assert len(good) == 2 * (len(three_names) - len(TWO_ONLY))
    for row in good:
        assert row.ok, row
        assert row.scores["error"] < 0.15, row  # at random: 2/3
        assert row.scores["nll"] < 0.5, row  # at random: 1.1
        assert row.scores["auc"] > 0.95, row


@pytest.mark.parametrize(
    "dataset, not_for, message",
    [
        (iris(), TWO_ONLY, "skipped: for two classes only"),
        (moons(), MORE_ONLY, "skipped: for more than two classes only"),
    ],
    ids=["three", "two"],
)
def test_models_that_do_not_suit_are_skipped(dataset, not_for, message, extra_models, monkeypatch):
    for name in ALL:
        monkeypatch.setitem(BASELINES, name, replace(BASELINES[name], factory=lambda C: Spy()))
    comparison = Comparison(dataset, Settings(folds=2))
    comparison.run(ALL, progress=False)
    skipped = {row.model: row.status for row in comparison.fold_scores if not row.ok}
    assert skipped == dict.fromkeys(not_for, message)


def test_predictions_are_of_all_classes(three_classes, three_names):
    for name in set(three_names) - TWO_ONLY:
        parts = three_classes.held_out[name]
        assert [P.shape for _, P in parts] == [(75, 3)] * 2
        for y, P in parts:
            np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
            np.testing.assert_array_equal(np.bincount(y), [25, 25, 25])


def test_defaults_suit():
    assert {*ALL} - {*default_baselines(2, fixed_kernel=True)} == {*MORE_ONLY, "gpc"}
    assert {*ALL} - {*default_baselines(3, fixed_kernel=True)} == {*TWO_ONLY, "gpc"}
    assert default_baselines(3, fixed_kernel=True) == default_baselines(26, fixed_kernel=True)


def test_title_and_files_of_three_classes(three_classes, three_names, tmp_path):
    lines = report.table(three_classes).splitlines()
    assert "N = 150, D = 4, C = 3, 2 folds, M = 10" in lines[0]
    assert all(len(line) <= 110 for line in lines)
    report.write([three_classes], tmp_path)
    assert len(pd.read_csv(tmp_path / "results.csv")) == 2 * len(three_names)


@pytest.mark.drill
@pytest.mark.slow
def test_picture_of_three_classes(three_classes, tmp_path, monkeypatch):
    seen, draw = [], plotting.confusion_matrix

    def spy(ax, y, P, labels):
        seen.append((y, P, list(labels)))
        return draw(ax, y, P, labels)

    monkeypatch.setattr(plotting, "confusion_matrix", spy)
    check_picture(three_classes, tmp_path / "iris.png")
    ((y, P, labels),) = seen
    assert labels == ["setosa", "versicolor", "virginica"]
    bsvm = three_classes.held_out["bsvm"]
    np.testing.assert_array_equal(y, np.concatenate([y for y, _ in bsvm]))
    np.testing.assert_array_equal(P, np.concatenate([P for _, P in bsvm]))


def test_confusion_matrix(three_classes):
    y, P = three_classes.held_out["bsvm"][0]
    _, (ax,) = plotting.figure(1, 1)
    plotting.confusion_matrix(ax, y, P, three_classes.labels)
    counts = confusion_matrix(y, P.argmax(1))
    shown = {text.get_position(): float(text.get_text()) for text in ax.texts}
    assert len(shown) == np.count_nonzero(counts)
    for (column, row), percent in shown.items():
        assert percent == pytest.approx(counts[row, column] / 25 * 100, abs=0.051)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(three_classes.labels)


def test_confusion_matrix_of_many_classes_has_colours_only():
    y = np.arange(26).repeat(2)
    _, (ax,) = plotting.figure(1, 1)
    plotting.confusion_matrix(
        ax, y, np.eye(26)[y[::-1]], np.array(list("abcdefghijklmnopqrstuvwxyz"))
    )
    assert not ax.texts
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(26)[::-1])


def test_reliability_of_three_classes_is_accuracy_against_confidence():
    P = np.tile([0.15, 0.6, 0.25], (20, 1))
    y = np.array([1] * 14 + [0, 2] * 3)
    _, (ax,) = plotting.figure(1, 1)
    plotting.reliability_diagram(ax, y, P)
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), [[0.6, 0.7]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("confidence, max p", "accuracy")


def test_reliability_of_two_columns_is_that_of_one():
    y, p = np.array([0, 1] * 50), np.linspace(0.01, 0.99, 100)
    points = []
    for prediction in (p, np.stack([1 - p, p], axis=1)):
        _, (ax,) = plotting.figure(1, 1)
        plotting.reliability_diagram(ax, y, prediction)
        points.append(ax.lines[-1].get_xydata())
    np.testing.assert_array_equal(*points)
    assert len(points[0]) == 10


# --- the protocol --------------------------------------------------------------------------------


def test_all_models_get_the_same_scaled_folds(extra_models):
    comparison = Comparison(
        moons(), Settings(folds=3, num_inducing=7, seed=5, variance=2.0, fixed_kernel=True)
    )
    comparison.run(["spy", "crash", "spy2"], progress=False)
    one, two = Spy.made
    assert len(one.fits) == 3
    for (X, y, Z, kernel, seed), (X2, y2, Z2, kernel2, seed2) in zip(one.fits, two.fits):
        np.testing.assert_array_equal(X, X2)
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_array_equal(Z, Z2)
        assert (kernel, seed) == (kernel2, seed2)
        assert kernel == KernelSettings(np.sqrt(2), 2.0, False)
        assert Z.shape == (7, 2)
        np.testing.assert_allclose(X.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(X.std(0), 1)
    for X in one.tests:  # scaled by the training part, not by itself
        assert abs(X.mean(0)).max() > 1e-3


def test_folds():
    X, y = load_iris(return_X_y=True)
    parts = list(folds(np.repeat(X[:60], 2, axis=0), np.repeat(y[:60], 2), 5, 3, 100))
    assert [part.number for part in parts] == list(range(5))
    np.testing.assert_array_equal(
        np.sort(np.concatenate([part.test for part in parts])), range(120)
    )
    for part in parts:
        np.testing.assert_array_equal(np.repeat(y[:60], 2)[part.test], part.y_test)
        assert len(part.X) == len(part.y) == 96 and len(part.X_test) == 24
        assert len(part.Z) == len(np.unique(part.X, axis=0)) < 61  # no more than distinct rows


def test_each_row_is_held_out_once_and_classes_stay_balanced(extra_models):
    comparison = Comparison(moons(), Settings(folds=7))
    comparison.run(["spy"], progress=False)
    parts = [y for y, _ in comparison.held_out["spy"]]
    assert sum(map(len, parts)) == 70
    assert all(y.sum() == 5 and len(y) == 10 for y in parts)


def test_seed_decides_the_folds(extra_models):
    def first_fold(seed):
        Comparison(moons(), Settings(folds=2, seed=seed)).run(["spy"], progress=False)
        return Spy.made[-1].fits[0][0]

    np.testing.assert_array_equal(first_fold(1), first_fold(1))
    assert not np.array_equal(first_fold(1), first_fold(2))


@pytest.mark.drill
@pytest.mark.slow
def test_seed_decides_the_draws():
    def scores(seed):
        comparison = Comparison(
            iris(), Settings(folds=2, num_inducing=5, seed=seed, fixed_kernel=True)
        )
        comparison.run(["svgp"], with_traces=False, progress=False)
        return [row.scores for row in comparison.fold_scores]

    assert scores(1) == scores(1) != scores(2)


def test_no_more_inducing_points_than_rows(extra_models):
    Comparison(moons(20), Settings(folds=2)).run(["spy"], progress=False)
    assert Spy.made[0].fits[0][2].shape == (10, 2)


def test_an_interrupt_keeps_what_is_done(extra_models, monkeypatch):
    class Interrupt(Crash):
        def fit(self, *args):
            raise KeyboardInterrupt

    monkeypatch.setitem(BASELINES, "interrupt", Entry("", lambda C: Interrupt()))
    comparison = Comparison(moons(), Settings(folds=2))
    with pytest.raises(KeyboardInterrupt):
        comparison.run(["spy", "interrupt"], progress=False)
    assert [row.model for row in comparison.fold_scores] == ["spy"]


def test_skipping_is_no_failure(extra_models, monkeypatch):
    monkeypatch.setattr(baselines, "GPC_MAX_ROWS", 10)
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.run(["gpc"], progress=False)
    assert comparison.fold_scores[0].status.startswith("skipped: 35 training rows")
    assert not comparison.fold_scores[0].ok
    with pytest.raises(Skipped):
        make_baseline("gpc", 2).fit(np.zeros((11, 1)), np.zeros(11), np.zeros((1, 1)), KERNEL, 0)


def test_predictions_that_are_no_probabilities_fail(extra_models, monkeypatch):
    monkeypatch.setattr(Spy, "predict_proba", lambda self, X: np.full((len(X), 2), np.nan))
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.run(["spy"], progress=False)
    assert comparison.fold_scores[0].status.startswith("failed: ValueError: predictions must be")


def test_labels_by_sorted_order():
    dataset = moons()
    labels, y = class_labels(dataset)
    assert list(labels) == ["no", "yes"]
    np.testing.assert_array_equal(y, dataset.y == "yes")
    labels, y = class_labels(replace(dataset, y=np.array([30, -1, 7] * 20)))
    assert list(labels) == [-1, 7, 30]
    np.testing.assert_array_equal(y, [2, 0, 1] * 20)


@pytest.mark.parametrize(
    "y, message",
    [
        (np.zeros(60), r"some has one class only \(0.0\)"),
        (np.arange(60) // 1.9, "some has 32 different labels in 60 rows, as numbers"),
    ],
)
def test_labels_that_are_no_classes(y, message):
    with pytest.raises(DataError, match=message):
        Comparison(Dataset("some", np.zeros((60, 1)), y, ("x1",)), Settings())


@pytest.mark.parametrize(
    "counts, message",
    [
        ([6, 3], r"3 row.s. of class 1 .one of 2 such classes., .* 10 folds; at most 3 folds"),
        ([20, 9, 20], r"9 row.s. of class 1, too few for 10 folds; at most 9 folds"),
        ([20, 5, 4, 20], r"4 row.s. of class 2 .one of 2 such classes., .* at most 4 folds"),
        ([20, 20, 1], r"1 row.s. of class 2, too few for 10 folds; 2 are needed"),
    ],
)
def test_too_few_rows_for_the_folds(counts, message):
    y = np.repeat(np.arange(len(counts)), counts)
    with pytest.raises(DataError, match=message):
        Comparison(Dataset("few", np.zeros((len(y), 1)), y, ("x1",)), Settings())


# --- the models ----------------------------------------------------------------------------------


def fold(seed, num_rows=60):
    X, y = make_moons(num_rows, noise=0.2, random_state=seed)
    return X, y, X[:10].copy()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("name", ["bsvm", "svgp-probit"])
def test_a_refit_forgets_the_last_one(name, learn, monkeypatch):
    monkeypatch.setattr(training, "KERNEL_ROUNDS", 5)
    kernel = KernelSettings(1.0, 4.0, learn)
    model, X = make_baseline(name, 2), fold(0)[0]
    answers = []
    for seed, num_rows in [(0, 60), (1, 50), (0, 60)]:
        model.fit(*fold(seed, num_rows), kernel, 0)
        answers.append(model.predict_proba(X))
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)
    assert abs(answers[0] - answers[1]).max() > 1e-3


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bsvm", "bsvm-augmented", "svgp"])
def test_learning_the_kernel_raises_the_elbo(name, monkeypatch):
    monkeypatch.setattr(training, "KERNEL_ROUNDS", 40)
    X, y, Z = fold(0)
    ends = []
    for learn in (False, True):
        model = make_baseline(name, 2)
        model.fit(X, y, Z, KernelSettings(1.0, 4.0, learn), 0)
        ends.append(float(model.model.elbo((X, y[:, None].astype(float)))))
        assert (float(model.model.kernel.variance.numpy()) == 4.0) == (not learn)
        assert model.model.kernel.lengthscales.shape == ((2,) if learn else ())
        np.testing.assert_array_equal(model.model.inducing_variable.Z, Z)
    assert ends[1] > ends[0] + 0.1


@pytest.mark.slow
def test_a_step_that_fails_is_followed_by_a_smaller_one(monkeypatch):
    steps, train = [], training.Trainer.train

    def fails_at_1(trainer, X, y, gamma, watch):
        steps.append(gamma)
        if gamma == 1.0:
            trainer.model.q_mu.assign(np.full((10, 1), 1e3))
            raise FloatingPointError
        return train(trainer, X, y, gamma, watch)

    monkeypatch.setattr(training.Trainer, "train", fails_at_1)
    X, y, Z = fold(0)
    model = make_baseline("svgp", 2)
    model.fit(X, y, Z, KERNEL, 0)
    assert steps == [1.0, 0.1]
    assert model.note == "step size 1.0 failed, 0.1 used"
    assert np.mean(model.predict_proba(X).argmax(1) == y) > 0.9


@pytest.mark.slow
def test_what_is_not_finite_is_one_plain_error():
    X, _, Z = fold(0)
    with pytest.raises(FloatingPointError, match="no finite q after step 1"):
        make_baseline("svgp-probit", 2).fit(X, np.full(60, np.nan), Z, KERNEL, 0)


def three_blobs():
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = random.normal(size=(60, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y]
    return X, y, X[:9].copy()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bsvm", "one-vs-rest", "svgp", "svgp-robustmax"])
def test_a_refit_on_three_classes_forgets_the_last_one(name, monkeypatch):
    monkeypatch.setattr(training, "KERNEL_ROUNDS", 20)
    (X, y, Z), model = three_blobs(), make_baseline(name, 3)
    answers = []
    for learn in (False, True, False):
        tf.random.set_seed(0)  # of the draws of Softmax
        model.fit(X, y, Z, KernelSettings(1.0, 4.0, learn), 0)
        answers.append(model.predict_proba(X))
        assert model.model.q_sqrt.shape == (3, 9, 9)
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)
    assert abs(answers[0] - answers[1]).max() > 1e-3


def test_a_noisy_elbo_settles_within_its_noise():
    noise = np.random.default_rng(0).normal(size=60)
    rise = -1000 * np.exp(-np.arange(60))
    steps = [t for t in range(1, 61) if training._settled(list(rise + noise - 500)[:t], 5)]
    assert 10 < steps[0] < 20  # the last 10 steps are flat but for noise
    assert not any(training._settled(list(np.arange(t) - 1e4), 5) for t in range(1, 60))


def test_an_exact_elbo_settles_by_its_last_change():
    assert training._settled([-900.0, -100.0, -99.9995], 1)
    assert training._settled([-100.0, -100.0005], 1)
    assert not training._settled([-100.0, -99.99], 1)
    assert not training._settled([-100.0], 1)


@pytest.mark.slow
def test_robustmax_starts_with_small_steps(monkeypatch):
    sizes = []

    class Step(training.Trainer):
        def __init__(self, *args):
            super().__init__(*args)
            self._natural_step = self._spied(self._natural_step)

        def _spied(self, step):
            return lambda *data: sizes.append(float(self._gamma)) or step(*data)

    monkeypatch.setattr(gp_baselines, "Trainer", Step)
    model = make_baseline("svgp-robustmax", 3)
    model.fit(*three_blobs(), KERNEL, 0)
    np.testing.assert_allclose(sizes[:3], [1 / 60, 1.2 / 60, 1.44 / 60])
    assert max(sizes) == 0.5
    assert "failed" not in model.note


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bsvm", "svgp-probit"])
def test_the_watch_does_not_count(name):
    X, y, Z = fold(0)
    seen, model = [], make_baseline(name, 2)
    model.fit(X, y, Z, KERNEL, 0)

    def watch(seconds, elbo):
        seen.append(seconds)
        time.sleep(0.2)

    model.fit(X, y, Z, KERNEL, 0, watch)
    assert len(seen) > 2
    assert seen[-1] < 0.1 * len(seen)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("dataset", [moons(), iris()], ids=["two", "three"])
def test_the_default_table(dataset, monkeypatch, tmp_path):
    """Kernels are learnt: the classifier as it is beside SVGP and SVC, and no curves."""
    monkeypatch.setattr(training, "KERNEL_ROUNDS", 30)
    comparison = Comparison(dataset, Settings(folds=2, num_inducing=10))
    names = default_baselines(len(comparison.labels))
    comparison.run(names, progress=False)
    assert names == ["classifier", "svgp", "svc"]
    for score in comparison.fold_scores:
        assert score.ok and score.scores["error"] < 0.25, score
    assert not comparison.traces
    assert "M = 10, kernel learnt" in report.table(comparison)
    first = next(folds(dataset.X, comparison._y, 2, 0, 10))
    expected = BSVMClassifier(num_inducing=10, random_state=0).fit(first.X, first.y)
    P = comparison.held_out["classifier"][0][1]
    np.testing.assert_allclose(P, expected.predict_proba(first.X_test), rtol=1e-8)
    check_picture(comparison, tmp_path / "learnt.png", panels=3 if len(P[0]) == 2 else 4)


def test_the_classifier_learns_its_kernel():
    with pytest.raises(Skipped, match="learns its kernel, which is fixed here"):
        make_baseline("classifier", 2).fit(*fold(0), KERNEL, 0)


# --- the report ----------------------------------------------------------------------------------


def test_files(everything, two_names, tmp_path):
    report.write([everything], tmp_path)
    rows = pd.read_csv(tmp_path / "results.csv", float_precision="round_trip")
    assert len(rows) == 2 * (len(two_names) + 1)
    assert list(rows.columns)[:4] == ["dataset", "model", "fold", "status"]
    best = rows[(rows.model == "bsvm") & (rows.fold == 1)].iloc[0]
    assert best.error == [r for r in everything.fold_scores if r.model == "bsvm"][1].scores["error"]
    text = (tmp_path / "results.json").read_text()
    record = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert record["settings"]["folds"] == 2
    assert "gpflow" in record["provenance"]
    by_model = {entry["model"]: entry for entry in record["summary"]}
    assert by_model["crash"]["mean"]["error"] is None
    assert by_model["crash"]["notes"] == {"failed: RuntimeError: out of luck": 2}
    mean = rows[rows.model == "svc"].nll.mean()
    np.testing.assert_allclose(by_model["svc"]["mean"]["nll"], mean)


def test_table(everything, two_names):
    lines = report.table(everything).splitlines()
    assert "N = 70, D = 2, 2 folds, M = 10" in lines[0]
    assert all(len(line) <= 110 for line in lines)
    shown = {line.split()[0]: line for line in lines[2:]}
    assert "failed: RuntimeError: out of luck" in shown["crash"]
    for name in two_names:
        errors = [row.scores["error"] for row in everything.fold_scores if row.model == name]
        assert f"{np.mean(errors):.3f}±{np.std(errors):.3f}" in shown[name]


def made_up(model, fold, value, status="ok"):
    return FoldScore("moons", model, fold, status, dict.fromkeys(METRICS, value), 0.5, 3.0)


def test_stars_follow_the_orientation():
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.fold_scores = [made_up("low", 0, 0.1), made_up("high", 0, 0.9)]
    low, high = report.table(comparison).splitlines()[2:]
    assert low.split()[1:6] == ["0.100±0.000*"] * 4 + ["0.100±0.000"]
    assert high.split()[1:6] == ["0.900±0.000"] * 4 + ["0.900±0.000*"]


def test_notes_and_partial_failures_are_told():
    comparison = Comparison(moons(), Settings(folds=2))
    nan = float("nan")
    comparison.fold_scores = [
        made_up("a", 0, 0.1, "ok: slow"),
        made_up("a", 1, nan, "failed: Oh: no"),
    ]
    lines = report.table(comparison).splitlines()
    assert "0.100±0.000" in lines[2]
    assert "  a, 1 of 2 folds: slow" in lines
    assert "  a, 1 of 2 folds: failed: Oh: no" in lines


def check_picture(comparison, path, panels=4):
    report.draw(comparison, path)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert width > 1000 and height > 400
    image = matplotlib.image.imread(path)[..., :3]
    halves = np.array_split(image, 2) if panels == 4 else [image]
    parts = [part for half in halves for part in np.array_split(half, 2 + panels % 2, 1)]
    for part in parts:  # curves in all panels: many colours, not only black and white
        colours = np.unique(part.reshape(-1, 3), axis=0)
        most = 30 if comparison.traces else 10  # marks have fewer than curves
        assert np.count_nonzero(np.ptp(colours, axis=1) > 0.3) > most


@pytest.mark.slow
def test_picture(everything, tmp_path):
    check_picture(everything, tmp_path / report.picture_name(everything))


@pytest.mark.slow
def test_a_fit_without_steps_has_no_curve(monkeypatch, tmp_path):
    """Some likelihoods find no first step: the trace is empty, the picture has a mark."""
    monkeypatch.setattr(Spy, "has_trace", True)
    monkeypatch.setitem(BASELINES, "spy", Entry("", lambda C: Spy()))
    comparison = Comparison(iris(), Settings(folds=2, num_inducing=10, fixed_kernel=True))
    comparison.run(["bsvm", "spy"], progress=False)
    assert list(comparison.traces) == ["bsvm"]
    check_picture(comparison, tmp_path / "picture.png")


def test_long_and_short_curves_are_shown_to_their_ends():
    _, (ax,) = plotting.figure(1, 1)
    for values in ([9.0, 0.3, 0.2], [4.0, 0.4]):
        plotting.error_against_time(ax, [0.1 * n for n in range(1, 1 + len(values))], values)
    report._show_ends(ax)
    low, high = ax.get_ylim()
    assert 0 < low < 0.2 and 0.4 < high < 0.6
    ax.figure.canvas.draw()
    ticks = {tick.get_text() for tick in ax.get_xticklabels(which="both")}
    assert {"0.1", "0.2", "0.3"} < ticks and not any("10^" in tick for tick in ticks)


def test_times_are_of_the_folds_after_the_first():
    scores = [replace(made_up("a", n, 0.1), train_seconds=s) for n, s in enumerate([9.0, 1.0, 3.0])]
    (record,) = report.summary(scores)
    assert record["median"]["train_seconds"] == record["mean"]["train_seconds"] == 2
    assert report.summary(scores[:1])[0]["median"]["train_seconds"] == 9
    assert report.frame(scores).train_seconds.tolist() == [9, 1, 3]


def test_provenance(monkeypatch):
    found = provenance()
    assert found["gpflow_bsvm"] == gpflow_bsvm.__version__
    assert found["cores"] >= 1 and found["processor"] and found["tensorflow"]
    monkeypatch.setenv("PATH", "")  # without git
    assert "commit" not in provenance()


def test_picture_names_are_safe():
    dataset = replace(moons(), name="a/b c#2")
    assert report.picture_name(Comparison(dataset, Settings())) == "a_b_c_2.png"


def test_output_directory_is_made(tmp_path):
    report.prepare_output(tmp_path / "some" / "where")
    assert os.listdir(tmp_path / "some" / "where") == []


def test_output_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write to .*file"):
        report.prepare_output(tmp_path / "file")
