"""All models end to end, one that fails among them, and what the report says of it."""

import json
import struct
from dataclasses import replace

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from comparisons import ALL, MORE_ONLY, TWO_ONLY, iris, moons, three
from helpers import Crash
from sklearn.metrics import confusion_matrix

import gpflow_bsvm
from gpflow_bsvm import BSVMClassifier, plotting
from gpflow_bsvm.compare import pictures, report
from gpflow_bsvm.compare.machine import provenance
from gpflow_bsvm.compare.protocol import Comparison, FoldScore, Settings, folds
from gpflow_bsvm.compare.registry import BASELINES, Entry, default_baselines
from gpflow_bsvm.metrics import METRICS

DEFAULT = default_baselines(2, fixed_kernel=True)
#: One of every kind of model: the others take their graphs' time, and go through the same code.
SOME = ["bsvm", "probit-engine", "svgp-probit", "svc"]


def some_or(names):
    """A fixture's parameters: some models, and those of these names where there is time."""
    return [
        pytest.param([name for name in names if name in SOME], id="some"),
        pytest.param(names, id="all", marks=[pytest.mark.slow, pytest.mark.drill]),
    ]


@pytest.fixture(scope="module", params=some_or(DEFAULT))
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
        moons(), Settings(folds=2, num_inducing=10, fixed_kernel=True), ["crash", *two_names]
    )
    try:
        comparison.run(progress=False)
    finally:
        del BASELINES["crash"]
    return comparison


@pytest.fixture(scope="module")
def three_classes(three_names):
    """The models on two folds of three classes."""
    settings = Settings(folds=2, num_inducing=10, fixed_kernel=True)
    comparison = Comparison(iris(), settings, three_names)
    comparison.run(progress=False)
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
            assert row.scores["error"] < 0.3, row  # at random: 0.5
            assert row.scores["auc"] > 0.8, row
            assert row.train_seconds > 0 and row.predict_us > 0


def test_same_likelihood_same_answer_by_either_engine(everything):
    ours, gpflows = (
        everything.held_out[name].values() for name in ("probit-engine", "svgp-probit")
    )
    for (y, P), (y2, P2) in zip(ours, gpflows):
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_allclose(P, P2, atol=5e-3)  # both stop at a relative change of 1e-5


# --- three classes, end to end -------------------------------------------------------------------


@pytest.mark.drill
@pytest.mark.slow
def test_every_model_for_three_classes_learns(three_classes, three_names):
    good = [row for row in three_classes.fold_scores if row.model not in TWO_ONLY]
    assert len(good) == 2 * (len(three_names) - len(TWO_ONLY))
    for row in good:
        assert row.ok, row
        assert row.scores["error"] < 0.15, row  # at random: 2/3
        assert row.scores["nll"] < 0.5, row  # at random: 1.1
        assert row.scores["auc"] > 0.95, row


def test_predictions_are_of_all_classes(three_classes, three_names):
    for name in set(three_names) - TWO_ONLY:
        parts = three_classes.held_out[name].values()
        assert [P.shape for _, P in parts] == [(75, 3)] * 2
        for y, P in parts:
            np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
            np.testing.assert_array_equal(np.bincount(y), [25, 25, 25])


def test_defaults_suit():
    assert {*ALL} - {*default_baselines(2, fixed_kernel=True)} == MORE_ONLY
    assert {*ALL} - {*default_baselines(3, fixed_kernel=True)} == TWO_ONLY
    assert default_baselines(3, fixed_kernel=True) == default_baselines(26, fixed_kernel=True)


def test_title_and_files_of_three_classes(three_classes, three_names, tmp_path):
    lines = report.table(three_classes).splitlines()
    assert "N = 150, D = 4, C = 3, 2 folds, M = 10" in lines[0]
    assert all(len(line) <= 110 for line in lines)
    report.write([three_classes], tmp_path)
    assert len(pd.read_csv(tmp_path / "results.csv")) == 2 * len(three_names)


@pytest.mark.drill
@pytest.mark.slow
def test_picture_of_three_classes(three_classes, tmp_path):
    check_picture(three_classes, tmp_path / "iris.png", panels=4)


def confusion_of(comparison, model):
    """:return: the axes with the confusion matrix of a model."""
    _, (ax,) = plotting.figure(1, 1)
    pictures._draw_confusion(ax, comparison, model)
    return ax


def test_confusion_matrix(three_classes):
    ax = confusion_of(three_classes, "bsvm")
    y, P = three_classes.predictions("bsvm")
    rates = confusion_matrix(y, P.argmax(1), normalize="true")
    np.testing.assert_array_equal(ax.images[0].get_array(), rates)
    shown = {text.get_position()[::-1]: text.get_text() for text in ax.texts}
    assert shown == {place: f"{rate:.0%}" for place, rate in np.ndenumerate(rates)}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(three_classes.labels)
    assert ax.get_title() == "Confusion: bsvm"


def test_confusion_matrix_of_many_classes_has_colours_only():
    ax = confusion_of(three(num_classes=13), "svgp")
    assert not ax.texts and ax.images[0].get_array().shape == (13, 13)
    shown = [tick.get_text().replace("\\$", "$") for tick in ax.get_yticklabels()]
    assert {len(name) for name in shown} == {12}  # long names are cut, and say so


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


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.parametrize("dataset", [moons(), iris()], ids=["two", "three"])
def test_the_default_table(dataset, tmp_path):
    """Kernels are learnt: ours and SVGP like for like, the classifier as it is, and SVC."""
    comparison = Comparison(dataset, Settings(folds=2, num_inducing=10))
    comparison.run(progress=False)
    assert comparison.models == ["bsvm", "svgp", "BSVMClassifier", "svc"]
    for score in comparison.fold_scores:
        assert score.ok, score
    assert "M = 10, kernel learned" in report.table(comparison)
    first = next(folds(dataset.X, comparison._y, 2, 0, 10))
    expected = BSVMClassifier(random_state=0).fit(first.X, first.y)
    P = comparison.held_out["BSVMClassifier"][0][1]
    np.testing.assert_allclose(P, expected.predict_proba(first.X_test), rtol=1e-8)
    check_picture(comparison, tmp_path / "learnt.png", panels=3 if len(P[0]) == 2 else 4)


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


def test_last_gains_of_bounds_are_told():
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.fold_scores = [
        replace(made_up("svgp", fold, 0.1), last_gain=gain)
        for fold, gain in enumerate([2e-5, 4e-5])
    ]
    line = "  largest relative rise of the bound at the end of a fit: svgp 4e-05"
    assert line in report.table(comparison).splitlines()
    assert report.summary(comparison.fold_scores)[0]["last_gain"] == 4e-5


def test_seconds_of_the_slowest_peer():
    done = three()
    assert report.seconds_of_peers(done) == pytest.approx(2 * (0.1 + 2) + 1)  # of svc
    done.fold_scores = [one for one in done.fold_scores if one.model == "bsvm"]
    assert report.seconds_of_peers(done) == 0


def test_notes_and_partial_failures_are_told():
    comparison = Comparison(moons(), Settings(folds=2))
    nan = float("nan")
    comparison.fold_scores = [
        made_up("a", 0, 0.1, "ok: slow"),
        made_up("a", 1, nan, "failed: Oh: no"),
    ]
    lines = report.table(comparison).splitlines()
    assert lines[2].split()[1] == "0.100"  # one fold has no deviation
    assert "  a, 1 of 2 folds: slow" in lines
    assert "  a, 1 of 2 folds: failed: Oh: no" in lines


def check_picture(comparison, path, panels):
    pictures.draw(comparison, path)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert width > 1000 and height > 400
    image = matplotlib.image.imread(path)[..., :3]
    halves = np.array_split(image, 2) if panels == 4 else [image]
    parts = [part for half in halves for part in np.array_split(half, 2 + panels % 2, 1)]
    for part in parts:  # all panels have colours, not only black and white
        colours = np.unique(part.reshape(-1, 3), axis=0)
        assert np.count_nonzero(np.ptp(colours, axis=1) > 0.3) > 10


@pytest.mark.slow
def test_picture(everything, tmp_path):
    check_picture(everything, tmp_path / report.picture_name(everything.dataset), panels=3)


def test_times_are_of_the_folds_after_the_first():
    scores = [replace(made_up("a", n, 0.1), train_seconds=s) for n, s in enumerate([9.0, 1.0, 3.0])]
    (record,) = report.summary(scores)
    assert record["median"]["train_seconds"] == record["mean"]["train_seconds"] == 2
    assert report.summary(scores[:1])[0]["median"]["train_seconds"] == 9
    assert report.frame(scores).train_seconds.tolist() == [9, 1, 3]
    assert report.summary(scores[1:])[0]["median"]["train_seconds"] == 2  # fold 0 went wrong


def test_provenance():
    found = provenance()
    assert found["gpflow_bsvm"] == gpflow_bsvm.__version__
    assert found["cores"] >= 1 and found["processor"] and found["tensorflow"]


def test_picture_names_are_safe():
    dataset = replace(moons(), name="a/b c#2")
    assert report.picture_name(dataset) == "a_b_c_2.png"


def test_one_fold_of_several_has_no_deviation_and_no_star():
    done = three(num_classes=2)
    done.fold_scores = [score for score in done.fold_scores if score.fold == 0]
    lines = report.table(done).splitlines()
    assert not any(sign in line for line in lines[2:] for sign in "±*")
    assert lines[-1] == "  ended early, after 3 of 6 fits"
    assert report.summary(done.fold_scores)[0]["std"]["nll"] is None
    assert "*" in report.table(three(num_classes=2))
