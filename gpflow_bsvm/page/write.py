"""A comparison as one HTML file that needs nothing else: no network, no scripts."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..atomic import whole_file
from ..compare.protocol import Comparison
from ..compare.report import TIMES, summary
from ..metrics import METRICS
from . import methods, words
from .contests import LEVEL, ROW_LOSSES, contest
from .markup import Markup, element, join, table
from .pictures import Gallery
from .style import STYLE

#: Nothing may be fetched or run.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_page(
    comparisons: Sequence[Comparison], path: Path, *, command: str = "", pictures: bool = True
) -> None:
    """
    Write the page; until it is whole there is the old file, or none.

    :param comparisons: in the order of the page, also such as did not begin after an interrupt.
    :param command: that has made them, to be shown.
    :param pictures: without them Matplotlib is not needed.
    :raise ValueError: if none of them has a score.
    :raise ImportError: without Matplotlib, where there are to be pictures.
    :raise OSError: if the file cannot be written.
    """
    text = page(comparisons, command=command, pictures=pictures)
    with whole_file(path) as file:
        file.write(text.encode())


def page(comparisons: Sequence[Comparison], *, command: str = "", pictures: bool = True) -> str:
    """:return: what `write_page` writes; arguments and errors as there."""
    shown = [one for one in comparisons if one.fold_scores]
    if not shown:
        raise ValueError("there is nothing to report: no model was fitted to any fold")
    models = list(dict.fromkeys(row.model for one in shown for row in one.fold_scores))
    gallery = Gallery(models) if pictures else None
    names = [one.dataset.name for one in shown]
    title = f"Classifiers compared on {words.listed(names)}"
    body = [
        element("h1", title),
        element("p", f"gpflow-bsvm compare, {_today()}", class_="soft"),
        element("p", words.overview(comparisons), class_="lead"),
        *([_wins(shown)] if len(shown) > 1 else []),
        element("p", words.method(shown[0].settings), class_="soft"),
        _contents(names),
    ]
    if len(shown) > 1:
        body += _all_sets(shown, gallery)
    for number, comparison in enumerate(shown, 1):
        body += _one_set(comparison, f"set-{number}", gallery)
    body += [_how_to_read(shown[0]), methods.settings(shown, command)]
    return _document(title, body)


def _document(title: str, body: Sequence[Markup]) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    main = element("main", join(body, "\n"))
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"


def _today() -> str:
    return datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def _contents(names: Sequence[str]) -> Markup:
    links = [("#all", "All data sets")] if len(names) > 1 else []
    links += [(f"#set-{number}", name) for number, name in enumerate(names, 1)]
    links += [("#reading", "How to read this"), ("#settings", "Settings")]
    return element("nav", join((element("a", text, href=to) for to, text in links), " "))


def _wins(shown: Sequence[Comparison]) -> Markup:
    text = "Data sets on which each is best, or cannot be told apart from the best."
    head = ["model", *(METRICS[score].label for score in words.TOLD)]
    return table(text, head, words.wins(shown))


def _all_sets(shown: Sequence[Comparison], gallery: Gallery | None) -> list[Markup]:
    """A table of every set and model, and mean ranks."""
    rows = []
    for comparison in shown:
        records = summary(comparison.fold_scores)
        leaders = _leaders(comparison, records)
        for record in records:
            cells = (_score(record, name, leaders) for name in METRICS)
            rows.append([comparison.dataset.name, record["model"], *cells])
    labels = [metric.label for metric in METRICS.values()]
    text = "Mean scores; bold: the best of its data set, or not to be told apart from the best."
    parts = [
        element("h2", "All data sets", id="all"),
        table(text, ["data", "model", *labels], rows, "sets"),
    ]
    ranks = [
        one for score in words.TOLD for one in (gallery.ranks(shown, score) if gallery else [])
    ]
    return parts + ([element("div", *ranks, class_="pictures")] if ranks else [])


def _one_set(comparison: Comparison, anchor: str, gallery: Gallery | None) -> list[Markup]:
    dataset, N = comparison.dataset, len(comparison.dataset.y)
    counts = [f"{label} ({(dataset.y == label).sum()})" for label in comparison.labels[:12]]
    more = f" and {len(comparison.labels) - 12} more" if len(comparison.labels) > 12 else ""
    about = f"{N} rows, {dataset.X.shape[1]} features; classes {', '.join(counts)}{more}."
    notes = [f"{note[:1].upper()}{note[1:]}." for note in dataset.notes]
    parts = [
        element("h2", dataset.name, id=anchor),
        element("p", " ".join([about, *notes]), class_="soft"),
        element("p", " ".join(words.outcome(comparison))),
        _scores(comparison),
    ]
    found = gallery.of(comparison) if gallery else []
    small = [one for one in found if 'class="small"' in one[:40]]
    large = [one for one in found if one not in small]
    return parts + [
        element("div", *some, class_=f"pictures{kind}")
        for some, kind in ((large, ""), (small, " small"))
        if some
    ]


def _scores(comparison: Comparison) -> Markup:
    rows, odd, records = [], [], summary(comparison.fold_scores)
    leaders = _leaders(comparison, records)
    for record in records:
        if record["folds_ok"]:
            cells = [_score(record, name, leaders, spread=True) for name in METRICS]
            times = [f"{record['median'][name]:.{digits}f}" for name, (_, digits) in TIMES.items()]
            rows.append([record["model"], *cells, *times])
        odd += [
            element("li", f"{record['model']}, {count} of {record['folds']} folds: {note}")
            for note, count in record["notes"].items()
        ]
    head = [metric.label for metric in METRICS.values()]
    text = f"Scores over {comparison.settings.folds} held-out folds: mean ± standard deviation."
    scores = table(text, ["model", *head, *(label for label, _ in TIMES.values())], rows)
    return join(
        [*([scores] if rows else []), *([element("ul", *odd, class_="note")] if odd else [])]
    )


def _score(
    record: dict[str, Any], name: str, leaders: dict[str, list[str]], spread: bool = False
) -> Markup:
    """:return: a mean, bold where it is the best or may as well be."""
    mean, std = record["mean"][name], record["std"][name]
    if mean is None:
        return Markup("–")
    shown = element("b", f"{mean:.3f}") if record["model"] in leaders[name] else f"{mean:.3f}"
    also = [element("span", f" ± {std:.3f}", class_="spread")] if spread and std is not None else []
    return join([shown, *also])


def _leaders(comparison: Comparison, records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """:return: by score, the best models: by `contest` where the score is a mean over rows."""
    found = {}
    for name, metric in METRICS.items():
        means = {
            one["model"]: one["mean"][name] for one in records if one["mean"][name] is not None
        }
        pick = max if metric.greater_is_better else min
        best = round(pick(means.values(), default=0.0), 3)
        held = contest(comparison, name) if name in ROW_LOSSES else None
        found[name] = held.level if held else [m for m in means if round(means[m], 3) == best]
    return found


def _how_to_read(first: Comparison) -> Markup:
    def orientation(name: str) -> str:
        return "greater is better" if METRICS[name].greater_is_better else "less is better"

    scores = [f"{one.label}: {one.unit}, {orientation(name)}" for name, one in METRICS.items()]
    percent = f"{100 * LEVEL:g} %"
    texts = [
        "; ".join(scores) + ".",
        f"Intervals ({percent}) and ties are of the rows that were held out, for the models as "
        "they were trained without these; what other training rows would change is not in them. "
        "All models saw the same rows, so that differences are known better than bars that overlap "
        "suggest: ties are told by Student's paired t on the rows' differences from the best, at "
        f"a level that holds for all of them together with {percent} (Bonferroni). That is for "
        "error, Brier and NLL; ECE and AUC are no means over rows, and bold is their best mean.",
        "Standard deviations are between folds, whose training rows overlap. Times are medians of "
        "the folds after the first, in which TensorFlow traces its graphs; they include what a "
        "model does to choose its settings, and neither scaling nor k-means.",
        "Reliability: observed frequency (for more than two classes: accuracy) against predicted "
        "probability, in ten bins; on the diagonal a probability can be taken at its word. Larger "
        "dots hold more rows.",
    ]
    if first.settings.fixed_kernel:
        texts.append(
            "All models used one kernel, which was not learnt: bounds and likelihoods are compared."
        )
    heading = element("h2", "How to read this", id="reading")
    return join([heading, *(element("p", text) for text in texts)])
