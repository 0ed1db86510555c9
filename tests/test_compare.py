"""The protocol is fair, a failing peer does no harm, and the report says what happened."""

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
from sklearn.datasets import make_moons

from gpflow_bsvm.compare import (
    DEFAULT_PEERS,
    PEERS,
    Comparison,
    KernelSettings,
    Row,
    Settings,
    Skipped,
    binary_labels,
    peers,
    report,
    training,
)
from gpflow_bsvm.datasets import DataError, Dataset
from gpflow_bsvm.metrics import METRICS

KERNEL = KernelSettings(lengthscale=1.0, variance=4.0)


def moons(num_rows=70, seed=0):
    X, y = make_moons(num_rows, noise=0.2, random_state=seed)
    return Dataset("moons", 3 + 5 * X, np.where(y == 1, "yes", "no"), ("x1", "x2"))


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
        return np.full(len(X), self.fits[-1][1].mean())


@pytest.fixture
def extra_peers(monkeypatch):
    for name, peer in {"crash": Crash, "spy": Spy, "spy2": Spy}.items():
        monkeypatch.setitem(PEERS, name, peer)
    monkeypatch.setattr(Spy, "made", [])


@pytest.fixture(scope="module")
def everything():
    """All peers and one that crashes, on two folds."""
    PEERS["crash"] = Crash
    comparison = Comparison(moons(), Settings(folds=2, num_inducing=10, lengthscale=0.7))
    names = ["crash", *DEFAULT_PEERS, "gpc"]
    try:
        comparison.run(names, progress=False)
    finally:
        del PEERS["crash"]
    return comparison


# --- all peers, end to end -----------------------------------------------------------------------


def test_a_row_per_fold_and_peer(everything):
    assert [(row.fold, row.peer) for row in everything.rows] == [
        (fold, peer) for fold in (0, 1) for peer in ["crash", *DEFAULT_PEERS, "gpc"]
    ]


def test_a_crash_is_a_row_and_the_run_goes_on(everything):
    crashed = [row for row in everything.rows if row.peer == "crash"]
    assert {row.status for row in crashed} == {"failed: RuntimeError: out of luck"}
    assert all(np.isnan([*row.scores.values(), row.train_seconds]).all() for row in crashed)
    assert all(row.ok for row in everything.rows if row.peer != "crash")


def test_every_peer_learns(everything):
    for row in everything.rows:
        if row.ok:
            assert row.scores["error"] < 0.25, row  # at random: 0.5
            assert row.scores["auc"] > 0.8, row
            assert row.train_seconds > 0 and row.predict_us > 0


def test_same_likelihood_same_answer_by_either_engine(everything):
    ours, gpflows = (everything.held_out[name] for name in ("probit-engine", "svgp-probit"))
    for (y, p), (y2, p2) in zip(ours, gpflows):
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_allclose(p, p2, atol=5e-3)  # both stop at a relative change of 1e-5


def test_traces_rise_and_end_at_the_scores(everything):
    assert set(everything.traces) == set(DEFAULT_PEERS) - {"svc"}
    first = {row.peer: row for row in everything.rows if row.fold == 0}
    for name, trace in everything.traces.items():
        assert trace.elbo[-1] > trace.elbo[0]
        assert trace.seconds == sorted(trace.seconds)
        assert trace.error[-1] == first[name].scores["error"]
        np.testing.assert_allclose(trace.nll[-1], first[name].scores["nll"], rtol=1e-6)


# --- the protocol --------------------------------------------------------------------------------


def test_all_peers_get_the_same_scaled_folds(extra_peers):
    comparison = Comparison(moons(), Settings(folds=3, num_inducing=7, seed=5, variance=2.0))
    comparison.run(["spy", "crash", "spy2"], progress=False)
    one, two = Spy.made
    assert len(one.fits) == 3 + 1  # a warm-up on the first fold
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


def test_each_row_is_held_out_once_and_classes_stay_balanced(extra_peers):
    comparison = Comparison(moons(), Settings(folds=7))
    comparison.run(["spy"], progress=False)
    parts = [y for y, _ in comparison.held_out["spy"]]
    assert sum(map(len, parts)) == 70
    assert all(y.sum() == 5 and len(y) == 10 for y in parts)


def test_seed_decides_the_folds(extra_peers):
    def first_fold(seed):
        Comparison(moons(), Settings(folds=2, seed=seed)).run(["spy"], progress=False)
        return Spy.made[-1].fits[0][0]

    np.testing.assert_array_equal(first_fold(1), first_fold(1))
    assert not np.array_equal(first_fold(1), first_fold(2))


def test_no_more_inducing_points_than_rows(extra_peers):
    Comparison(moons(20), Settings(folds=2)).run(["spy"], progress=False)
    assert Spy.made[0].fits[0][2].shape == (10, 2)


def test_an_interrupt_keeps_what_is_done(extra_peers, monkeypatch):
    class Interrupt(Crash):
        def fit(self, *args):
            raise KeyboardInterrupt

    monkeypatch.setitem(PEERS, "interrupt", Interrupt)
    comparison = Comparison(moons(), Settings(folds=2))
    with pytest.raises(KeyboardInterrupt):
        comparison.run(["spy", "interrupt"], progress=False)
    assert [row.peer for row in comparison.rows] == ["spy"]


def test_skipping_is_no_failure(extra_peers, monkeypatch):
    monkeypatch.setattr(peers, "GPC_MAX_ROWS", 10)
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.run(["gpc"], progress=False)
    assert comparison.rows[0].status.startswith("skipped: 35 training rows")
    assert not comparison.rows[0].ok
    with pytest.raises(Skipped):
        peers.GPCPeer().fit(np.zeros((11, 1)), np.zeros(11), np.zeros((1, 1)), KERNEL, 0)


def test_predictions_that_are_no_probabilities_fail(extra_peers, monkeypatch):
    monkeypatch.setattr(Spy, "predict_proba", lambda self, X: np.full(len(X), np.nan))
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.run(["spy"], progress=False)
    assert comparison.rows[0].status.startswith("failed: ValueError: predictions must be")


def test_labels_by_sorted_order():
    dataset = moons()
    np.testing.assert_array_equal(binary_labels(dataset), dataset.y == "yes")


def test_more_classes_are_named():
    dataset = Dataset("iris", np.zeros((6, 1)), np.array([2, 0, 1, 2, 1, 0]), ("x1",))
    with pytest.raises(DataError, match=r"iris has 3 classes \(0, 1, 2\).*future work"):
        Comparison(dataset, Settings())


def test_too_few_rows_for_the_folds():
    dataset = Dataset("few", np.zeros((9, 1)), np.array([0] * 6 + [1] * 3), ("x1",))
    with pytest.raises(DataError, match=r"3 row.s. of class 1.*10 folds; at most 3"):
        Comparison(dataset, Settings())


# --- the peers -----------------------------------------------------------------------------------


def fold(seed, num_rows=60):
    X, y = make_moons(num_rows, noise=0.2, random_state=seed)
    return X, y, X[:10].copy()


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("name", ["bsvm", "svgp-probit"])
def test_a_refit_forgets_the_last_one(name, learn, monkeypatch):
    monkeypatch.setattr(training, "KERNEL_ROUNDS", 5)
    kernel = KernelSettings(1.0, 4.0, learn)
    peer, X = PEERS[name](), fold(0)[0]
    answers = []
    for seed, num_rows in [(0, 60), (1, 50), (0, 60)]:
        peer.fit(*fold(seed, num_rows), kernel, 0)
        answers.append(peer.predict_proba(X))
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-9)
    assert abs(answers[0] - answers[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["bsvm", "bsvm-augmented", "svgp"])
def test_learning_the_kernel_raises_the_elbo(name, monkeypatch):
    monkeypatch.setattr(training, "KERNEL_ROUNDS", 40)
    X, y, Z = fold(0)
    ends = []
    for learn in (False, True):
        peer = PEERS[name]()
        peer.fit(X, y, Z, KernelSettings(1.0, 4.0, learn), 0)
        ends.append(float(peer._trainer.elbo(X, y[:, None].astype(float))))
        assert (float(peer._trainer.model.kernel.variance.numpy()) == 4.0) == (not learn)
        np.testing.assert_array_equal(peer._trainer.model.inducing_variable.Z, Z)
    assert ends[1] > ends[0] + 0.1


def test_a_step_that_fails_is_followed_by_a_smaller_one(monkeypatch):
    steps, ascend = [], training.ascend

    def fails_at_1(trainer, data, gamma, clock, watch):
        steps.append(gamma)
        if gamma == 1.0:
            trainer.model.q_mu.assign(np.full((10, 1), 1e3))
            raise FloatingPointError
        return ascend(trainer, data, gamma, clock, watch)

    monkeypatch.setattr(peers, "ascend", fails_at_1)
    X, y, Z = fold(0)
    peer = PEERS["svgp"]()
    peer.fit(X, y, Z, KERNEL, 0)
    assert steps == [1.0, 0.1]
    assert peer.note == "step size 1.0 failed, 0.1 used"
    assert np.mean((peer.predict_proba(X) > 0.5) == y) > 0.9


def test_what_is_not_finite_is_one_plain_error():
    X, _, Z = fold(0)
    with pytest.raises(FloatingPointError, match="no finite q after step 1"):
        PEERS["svgp-probit"]().fit(X, np.full(60, np.nan), Z, KERNEL, 0)


@pytest.mark.parametrize("name", ["bsvm", "svgp-probit"])
def test_the_watch_does_not_count(name):
    X, y, Z = fold(0)
    seen, peer = [], PEERS[name]()
    peer.fit(X, y, Z, KERNEL, 0)

    def watch(seconds, elbo):
        seen.append(seconds)
        time.sleep(0.2)

    peer.fit(X, y, Z, KERNEL, 0, watch)
    assert len(seen) > 2
    assert seen[-1] < 0.1 * len(seen)


# --- the report ----------------------------------------------------------------------------------


def test_files(everything, tmp_path):
    report.write([everything], tmp_path)
    rows = pd.read_csv(tmp_path / "results.csv", float_precision="round_trip")
    assert len(rows) == 2 * (len(DEFAULT_PEERS) + 2)
    assert list(rows.columns)[:4] == ["dataset", "peer", "fold", "status"]
    best = rows[(rows.peer == "bsvm") & (rows.fold == 1)].iloc[0]
    assert best.error == [r for r in everything.rows if r.peer == "bsvm"][1].scores["error"]
    text = (tmp_path / "results.json").read_text()
    record = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert record["settings"]["folds"] == 2
    assert "gpflow" in record["versions"]
    by_peer = {entry["peer"]: entry for entry in record["summary"]}
    assert by_peer["crash"]["mean"]["error"] is None
    assert by_peer["crash"]["notes"] == {"failed: RuntimeError: out of luck": 2}
    mean = rows[rows.peer == "svc"].nll.mean()
    np.testing.assert_allclose(by_peer["svc"]["mean"]["nll"], mean)


def test_table(everything):
    lines = report.table(everything).splitlines()
    assert "N = 70, D = 2, 2 folds, M = 10" in lines[0]
    assert all(len(line) <= 110 for line in lines)
    shown = {line.split()[0]: line for line in lines[2:]}
    assert "failed: RuntimeError: out of luck" in shown["crash"]
    for name in [*DEFAULT_PEERS, "gpc"]:
        errors = [row.scores["error"] for row in everything.rows if row.peer == name]
        assert f"{np.mean(errors):.3f}±{np.std(errors):.3f}" in shown[name]


def made_up(peer, fold, value, status="ok"):
    return Row("moons", peer, fold, status, dict.fromkeys(METRICS, value), 0.5, 3.0)


def test_stars_follow_the_orientation():
    comparison = Comparison(moons(), Settings(folds=2))
    comparison.rows = [made_up("low", 0, 0.1), made_up("high", 0, 0.9)]
    low, high = report.table(comparison).splitlines()[2:]
    assert low.split()[1:6] == ["0.100±0.000*"] * 4 + ["0.100±0.000"]
    assert high.split()[1:6] == ["0.900±0.000"] * 4 + ["0.900±0.000*"]


def test_notes_and_partial_failures_are_told():
    comparison = Comparison(moons(), Settings(folds=2))
    nan = float("nan")
    comparison.rows = [made_up("a", 0, 0.1, "ok: slow"), made_up("a", 1, nan, "failed: Oh: no")]
    lines = report.table(comparison).splitlines()
    assert "0.100±0.000" in lines[2]
    assert "  a, 1 of 2 folds: slow" in lines
    assert "  a, 1 of 2 folds: failed: Oh: no" in lines


def test_picture(everything, tmp_path):
    path = tmp_path / report.picture_name(everything)
    report.draw(everything, path)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert width > 1000 and height > 700
    image = matplotlib.image.imread(path)[..., :3]
    quarters = [half for part in np.array_split(image, 2) for half in np.array_split(part, 2, 1)]
    for quarter in quarters:  # curves in all four panels: many colours, not only black and white
        colours = np.unique(quarter.reshape(-1, 3), axis=0)
        assert np.count_nonzero(np.ptp(colours, axis=1) > 0.3) > 50


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
