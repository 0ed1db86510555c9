"""Pictures as they are drawn: ticks that can be read, users' names, nothing over another."""

import io
import itertools

import numpy as np
import pytest
from comparisons import NASTY, made_up, numbers, three
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gpflow_bsvm.compare import pictures
from gpflow_bsvm.compare.protocol import FoldScore


def drawn(done):
    """:return: the figure, as it stands in a file."""
    fig = pictures.draw(done, io.BytesIO())
    FigureCanvasAgg(fig).draw()
    return fig


def in_view(axis):
    low, high = sorted(axis.get_view_interval())
    shown = zip(axis.get_ticklocs(), axis.get_ticklabels())
    return [label for place, label in shown if low <= place <= high]


def with_times(done, *seconds):
    """:return: the comparison, each model with its time of a fit."""
    names = list(done.held_out)
    done.fold_scores = [
        FoldScore(
            one.dataset, one.model, one.fold, "ok", one.scores, seconds[names.index(one.model)], 5.0
        )
        for one in done.fold_scores
    ]
    return done


@pytest.mark.parametrize(
    "seconds, ticks",
    [
        ((2.1, 2.2, 2.9), ["1", "2", "5"]),  # one digit
        ((1.0, 3.0, 9.0), ["0.5", "1", "2", "5", "10"]),  # a decade
        ((0.05, 1.0, 4.0), ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"]),
        ((0.03, 1.0, 400.0), ["0.01", "0.1", "1", "10", "100", "1000"]),
        ((3.0, 3.0, 3.0), ["2", "5"]),
    ],
)
def test_times_are_at_round_numbers_from_end_to_end(seconds, ticks):
    for ax in drawn(with_times(three(), *seconds)).axes[-2:]:
        shown = [tick.get_text() for tick in ax.get_xticklabels()]
        assert shown == ticks and not ax.get_xticklabels(minor=True)
        np.testing.assert_allclose(ax.get_xlim(), (float(ticks[0]), float(ticks[-1])))
        assert ax.get_xlim()[0] < min(seconds) and max(seconds) < ax.get_xlim()[1]


def test_an_error_bar_is_the_deviation_over_folds():
    done = three()
    ax = drawn(done).axes[-1]
    for container, name in zip(ax.containers, ("bsvm", "svgp", "svc")):
        nll = [one.scores["nll"] for one in done.fold_scores if one.model == name]
        (bar,) = container.lines[2][0].get_segments()
        np.testing.assert_allclose(bar[:, 1], np.mean(nll) + np.array([-1, 1]) * np.std(nll))


@pytest.mark.slow
@pytest.mark.parametrize(
    "done",
    [
        made_up(dict.fromkeys(["bsvm", "svgp", "BSVMClassifier", "svc"], 1.0), name="x" * 300),
        *(three(num_classes=C, name=NASTY) for C in (3, 10, 13)),
        numbers({"BSVMRegressor": 0.5, "boosting": 0.7}),
    ],
    ids=["2", "3", "10", "13", "numbers"],
)
def test_no_text_lies_over_another_or_outside(done):
    fig = drawn(done)
    renderer, boxes = fig.canvas.get_renderer(), []
    texts = [fig._suptitle, *fig.legends[0].get_texts()]
    for ax in fig.axes:
        texts += [ax.title, ax.xaxis.label, ax.yaxis.label, *in_view(ax.yaxis)]
        if not ax.images:  # slanted names have boxes that overlap where the names do not
            texts += in_view(ax.xaxis)
    for text in texts:
        box = text.get_window_extent(renderer)
        if text.get_text() and text.get_visible():
            boxes.append((text.get_text(), box))
            assert fig.bbox.x0 <= box.x0 and box.x1 <= fig.bbox.x1, text
            assert fig.bbox.y0 <= box.y0 and box.y1 <= fig.bbox.y1, text
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        assert not first.shrunk(0.9, 0.9).overlaps(second.shrunk(0.9, 0.9)), (one, other)


def test_dollar_signs_of_names_begin_no_formula():
    fig = drawn(three(name="a $b$", num_classes=3))
    assert fig.get_suptitle().startswith(r"a \$b\$: ")
    assert pictures.shown("$" * 20, 12) == r"\$" * 11 + "…"


@pytest.mark.slow
def test_quantiles_of_numbers_are_counted():
    done = numbers({"svgp": 0.5})
    ax = drawn(done).axes[0]
    y, P = done.predictions("svgp")
    shares = [(y <= quantile).mean() for quantile in P[:, 2:].T]
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), shares)
    assert ax.lines[-1].get_xdata()[0] == 0.05 and ax.lines[-1].get_xdata()[-1] == 0.95
