"""Comparisons in several processes give what one process gives, and keep it if one is killed."""

import os
import signal

import numpy as np
import pytest
from comparisons import iris, made_up, moons
from tqdm.auto import tqdm

from gpflow_bsvm.compare import protocol
from gpflow_bsvm.compare.protocol import Comparison, Settings

SETTINGS = Settings(folds=2, num_inducing=5, fixed_kernel=True)
MODELS = ["bsvm", "svc"]


def run(jobs):
    comparisons = [Comparison(data, SETTINGS, MODELS) for data in (moons(), iris())]
    with tqdm(total=4, disable=True) as bar:
        assert set(protocol.run_all(comparisons, jobs, bar)) == set(comparisons)
    return comparisons


@pytest.mark.slow
def test_several_processes_give_the_results_of_one():
    for one, other in zip(run(1), run(2)):
        assert list(one.held_out) == list(other.held_out) == MODELS
        for model in MODELS:
            for (y, P), (y2, P2) in zip(*(c.held_out[model].values() for c in (one, other))):
                np.testing.assert_array_equal(y, y2)
                np.testing.assert_allclose(P, P2, rtol=1e-8, atol=1e-10)
        about = [(score.model, score.fold, score.status) for score in one.fold_scores]
        assert about == [(score.model, score.fold, score.status) for score in other.fold_scores]


def test_a_comparison_is_yielded_when_its_last_model_is_done(monkeypatch):
    """Results in another order than the models, as processes give them."""
    done = [made_up({"bsvm": 2.0, "svc": 1.0}, name) for name in ("a", "b")]
    arriving = [(1, "svc"), (0, "svc"), (0, "bsvm"), (1, "bsvm")]

    def results(comparisons, jobs):
        for number, model in arriving:
            scores = [score for score in done[number].fold_scores if score.model == model]
            yield number, scores, {model: done[number].held_out[model]}

    monkeypatch.setattr(protocol, "_results", results)
    comparisons = [Comparison(one.dataset, one.settings, MODELS) for one in done]
    with tqdm(total=4, disable=True) as bar:
        early = []
        names = []
        for one in protocol.run_all(comparisons, 2, bar):
            names.append(one.dataset.name)
            early.append(comparisons[1].ended_early)
    assert names == ["a", "b"]
    assert early == [True, False]
    for comparison, expected in zip(comparisons, done):
        assert comparison.fold_scores == expected.fold_scores
        assert list(comparison.held_out) == MODELS


@pytest.mark.slow
def test_a_killed_process_ends_the_comparison_in_one_line(monkeypatch):
    monkeypatch.setattr(protocol, "_one_model", die)
    with pytest.raises(ChildProcessError, match="--jobs 1 needs less"):
        run(2)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
