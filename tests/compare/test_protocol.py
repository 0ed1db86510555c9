"""The protocol is fair: same folds, same scaling, and a failing model does no harm."""

from dataclasses import replace

import numpy as np
import pytest
from comparisons import ALL, MORE_ONLY, TWO_ONLY, Spy, iris, moons
from helpers import Crash
from sklearn.datasets import load_iris

from gpflow_bsvm.compare.baselines import KernelSettings, Skipped
from gpflow_bsvm.compare.gp_baselines import make_baseline
from gpflow_bsvm.compare.protocol import Comparison, Settings, class_labels, folds
from gpflow_bsvm.compare.registry import BASELINES, Entry
from gpflow_bsvm.datasets import Dataset, load
from gpflow_bsvm.inference.run import progress_bar

KERNEL = KernelSettings(lengthscale=1.0, variance=4.0)


@pytest.fixture
def extra_models(monkeypatch):
    for name, model in {"crash": Crash, "spy": Spy, "spy2": Spy}.items():
        monkeypatch.setitem(BASELINES, name, Entry("", lambda C, model=model: model()))
    monkeypatch.setattr(Spy, "made", [])


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
    comparison = Comparison(dataset, Settings(folds=2), ALL)
    comparison.run(progress=False)
    skipped = {row.model: row.status for row in comparison.fold_scores if not row.ok}
    assert skipped == dict.fromkeys(not_for, message)


def test_all_models_get_the_same_scaled_folds(extra_models):
    comparison = Comparison(
        moons(),
        Settings(folds=3, num_inducing=7, seed=5, fixed_kernel=True),
        ["spy", "crash", "spy2"],
    )
    comparison.run(progress=False)
    one, two = Spy.made
    assert len(one.fits) == 3
    for (X, y, Z, kernel, seed), (X2, y2, Z2, kernel2, seed2) in zip(one.fits, two.fits):
        np.testing.assert_array_equal(X, X2)
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_array_equal(Z, Z2)
        assert (kernel, seed) == (kernel2, seed2)
        assert kernel == KernelSettings(np.sqrt(2), 4.0, False)
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


def test_folds_of_numbers_are_standardized_by_their_training_rows():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = 5 + 3 * X[:, 0]
    for part in folds(X, y, 4, 0, 5):
        np.testing.assert_allclose([part.y.mean(), part.y.std()], [0, 1], atol=1e-12)
        train = np.setdiff1d(np.arange(20), part.test)
        expected = (y[part.test] - y[train].mean()) / y[train].std()
        np.testing.assert_allclose(part.y_test, expected)


def test_each_row_is_held_out_once_and_classes_stay_balanced(extra_models):
    comparison = Comparison(moons(), Settings(folds=7), ["spy"])
    comparison.run(progress=False)
    parts = [y for y, _ in comparison.held_out["spy"].values()]
    assert sum(map(len, parts)) == 70
    assert all(y.sum() == 5 and len(y) == 10 for y in parts)


def test_a_bar_of_several_comparisons_counts_all_fits(extra_models):
    both = [Comparison(moons(), Settings(folds=k), ["spy", "spy2"]) for k in (2, 3)]
    with progress_bar(10, "compare", True, "fit") as bar:
        for done in both:
            done.run(bar)
        assert bar.n == bar.total == 10 and not bar.disable


def test_seed_decides_the_folds(extra_models):
    def first_fold(seed):
        Comparison(moons(), Settings(folds=2, seed=seed), ["spy"]).run(progress=False)
        return Spy.made[-1].fits[0][0]

    np.testing.assert_array_equal(first_fold(1), first_fold(1))
    assert not np.array_equal(first_fold(1), first_fold(2))


@pytest.mark.drill
@pytest.mark.slow
def test_seed_decides_the_draws():
    def scores(seed):
        settings = Settings(folds=2, num_inducing=5, seed=seed, fixed_kernel=True)
        comparison = Comparison(iris(), settings, ["svgp"])
        comparison.run(progress=False)
        return [row.scores for row in comparison.fold_scores]

    assert scores(1) == scores(1) != scores(2)


def test_no_more_inducing_points_than_rows(extra_models):
    Comparison(moons(20), Settings(folds=2), ["spy"]).run(progress=False)
    assert Spy.made[0].fits[0][2].shape == (10, 2)


def test_an_interrupt_keeps_what_is_done(extra_models, monkeypatch):
    class Interrupt(Crash):
        def fit(self, *args):
            raise KeyboardInterrupt

    monkeypatch.setitem(BASELINES, "interrupt", Entry("", lambda C: Interrupt()))
    comparison = Comparison(moons(), Settings(folds=2), ["spy", "interrupt"])
    with pytest.raises(KeyboardInterrupt):
        comparison.run(progress=False)
    assert [row.model for row in comparison.fold_scores] == ["spy"]


def test_skipping_is_no_failure():
    comparison = Comparison(moons(), Settings(folds=2, fixed_kernel=True), ["BSVMClassifier"])
    comparison.run(progress=False)
    assert comparison.fold_scores[0].status == "skipped: it learns its kernel, which is fixed here"
    assert not comparison.fold_scores[0].ok
    with pytest.raises(Skipped):
        model = make_baseline("BSVMClassifier", 2)
        model.fit(np.zeros((11, 1)), np.zeros(11), np.zeros((1, 1)), KERNEL, 0)


def test_predictions_that_are_no_probabilities_fail(extra_models, monkeypatch):
    monkeypatch.setattr(Spy, "predict_proba", lambda self, X: np.full((len(X), 2), np.nan))
    comparison = Comparison(moons(), Settings(folds=2), ["spy"])
    comparison.run(progress=False)
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
        (np.zeros(60), r"some holds one class only \(0.0\)"),
        (
            np.arange(60) // 1.9,
            "some holds 32 different labels in 60 rows, too many",
        ),
    ],
)
def test_labels_that_are_no_classes(y, message):
    with pytest.raises(ValueError, match=message):
        Comparison(Dataset("some", np.zeros((60, 1)), y, ("x1",)), Settings())


@pytest.mark.parametrize(
    "counts, message",
    [
        ([6, 3], r"3 row.s. of class 1 .one of 2 such classes., .* 10 folds: at most 3 folds"),
        ([20, 9, 20], r"9 row.s. of class 1, too few for 10 folds: at most 9 folds"),
        ([20, 5, 4, 20], r"4 row.s. of class 2 .one of 2 such classes., .* at most 4 folds"),
        ([20, 20, 1], r"1 row.s. of class 2, too few for 10 folds: at least 2"),
    ],
)
def test_too_few_rows_for_the_folds(counts, message):
    y = np.repeat(np.arange(len(counts)), counts)
    with pytest.raises(ValueError, match=message):
        Comparison(Dataset("few", np.zeros((len(y), 1)), y, ("x1",)), Settings())


def test_labels_are_in_the_order_that_their_type_states(tmp_path):
    """They were sorted: high, low, medium."""
    pandas, names = pytest.importorskip("pandas"), ["low", "medium", "high"]
    pytest.importorskip("pyarrow")
    level = pandas.Categorical(names * 6, names, ordered=True)
    table = pandas.DataFrame({"a": np.arange(18.0) % 5, "y": level})
    table.to_parquet(tmp_path / "t.parquet")
    done = Comparison(load(str(tmp_path / "t.parquet")), Settings(folds=2))
    assert done.labels.tolist() == names and done._y.tolist() == [0, 1, 2] * 6
    table.astype({"y": str}).to_parquet(tmp_path / "t.parquet")
    assert Comparison(load(str(tmp_path / "t.parquet")), Settings(folds=2)).labels[0] == "high"
