"""A comparison in sentences: what was compared, on what, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..compare.protocol import Comparison, Settings
from .contests import LEVEL, Contest, Interval, contest, mean_ranks

#: The scores that are told, and how a sentence on each begins.
TOLD = {
    "nll": "In negative log-likelihood (nats per row, of the probabilities)",
    "error": "In error (fraction of rows, of the labels)",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def overview(comparisons: Sequence[Comparison]) -> str:
    """:return: the first paragraph of a report on these."""
    shown = [one for one in comparisons if one.fold_scores]
    sets = listed([_size(one) for one in shown])
    models = list(dict.fromkeys(row.model for one in shown for row in one.fold_scores))
    were = "was" if len(models) == 1 else "were"
    parts = [f"{listed(models)} {were} cross-validated on {sets}."]
    if len(shown) == 1:
        parts += outcome(shown[0])
    else:
        parts += [ranked for score in TOLD if (ranked := _by_ranks(shown, score))]
        if not wins(shown):
            parts += ["No model could be fitted."]
    return " ".join([*parts, *_unfinished(comparisons)])


def method(settings: Settings) -> str:
    """:return: how it was compared."""
    kernel = (
        "one kernel, fixed beforehand" if settings.fixed_kernel else "kernels learned from them"
    )
    return (
        f"{settings.folds} stratified folds, the same for all, with features scaled by the "
        f"training rows, {kernel}, and at most {settings.num_inducing} inducing points."
    )


def wins(shown: Sequence[Comparison]) -> list[list[str]]:
    """
    :return: a row for each model: its name and, for each of `TOLD`, on how many data sets it is
        best, or cannot be told apart from the best.
    """
    held = {score: [h for one in shown if (h := contest(one, score))] for score in TOLD}
    models = dict.fromkeys(name for all_ in held.values() for one in all_ for name in one.losses)
    level = {
        score: Counter(name for one in all_ for name in one.level) for score, all_ in held.items()
    }
    order = sorted(models, key=lambda name: -level["nll"][name])
    return [[name, *(f"{level[s][name]} of {len(held[s])}" for s in TOLD)] for name in order]


def outcome(comparison: Comparison) -> list[str]:
    """:return: sentences on what came out on one data set."""
    held = [contest(comparison, score) for score in TOLD]
    told = [_verdict(one) for one in held if one is not None]
    if not told:
        told = [f"No model could be fitted to {comparison.dataset.name}, so there is no result."]
    return [*told, *_absent(comparison, held[0])]


def _verdict(held: Contest) -> str:
    """Ties are called ties."""
    begin, best = TOLD[held.score], held.losses[held.best]
    if not held.behind:
        return f"{begin} {held.best}, which nothing is compared with, has {_spread(best)}."
    worse = [
        f"{name} is worse by {_spread(lost)}"
        for name, lost in held.behind.items()
        if not lost.has_zero
    ]
    if not worse:
        last = list(held.losses.values())[-1]
        both = len(held.losses) == 2
        return (
            f"{begin} it is a tie: {'the two' if both else 'they'} cannot be told apart, "
            f"from {number(best.mean)} ({held.best}) to {number(last.mean)}."
        )
    ties = held.level[1:]
    verb = "cannot be told apart from it"
    level = f", {listed(ties)} {verb}," if ties else ","
    return f"{begin} {held.best} is best with {_spread(best)}{level} and {listed(worse)}."


def _absent(comparison: Comparison, held: Contest | None) -> list[str]:
    """:return: who is not ranked, and why."""
    told = []
    for name in dict.fromkeys(row.model for row in comparison.fold_scores):
        bad = [row for row in comparison.fold_scores if row.model == name and not row.ok]
        if bad and (held is None or name not in held.losses or len(held.losses) == 1):
            folds = f"{len(bad)} of {comparison.settings.folds} folds"
            told.append(f"{name} has no result on {folds} ({bad[0].status}).")
    return told


def _by_ranks(shown: Sequence[Comparison], score: str) -> str | None:
    """:return: who has the best mean rank, and whether a test of ranks finds a difference."""
    ranks = mean_ranks(shown, score)
    if ranks is None:
        return None
    best, mean = next(iter(ranks.means.items()))
    sure = "finds no difference" if ranks.p_value > 1 - LEVEL else "finds a difference"
    return (
        f"{TOLD[score]} {best} has the best mean rank, {mean:.2g}; Friedman's test of the ranks "
        f"{sure} (p = {ranks.p_value:.2g})."
    )


def _unfinished(comparisons: Sequence[Comparison]) -> list[str]:
    """:return: what is missing after an interrupt."""
    told = []
    for one in comparisons:
        done = Counter(row.model for row in one.fold_scores)
        if any(number < one.settings.folds for number in done.values()):
            told.append(
                f"The comparison ended early on {one.dataset.name}; what was done is shown."
            )
        elif not done:
            told.append(f"It did not come to {one.dataset.name}.")
    return told


def _size(comparison: Comparison) -> str:
    N, D = comparison.dataset.X.shape
    return f"{comparison.dataset.name} ({N} rows, {D} features, {len(comparison.labels)} classes)"


def counted(number: int, what: str) -> str:
    """:return: such as "two sets"."""
    word = _NUMBERS[number] if number < len(_NUMBERS) else str(number)
    return f"{word} {what}{'' if number == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """:return: such as "a, b and c"."""
    return " and ".join([", ".join(items[:-1])] * (len(items) > 1) + [*items[-1:]])


def number(value: float) -> str:
    """:return: three places, or two digits of what is smaller than these show."""
    return f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"


def _spread(found: Interval) -> str:
    ends = f"{number(found.low)} to {number(found.high)}"
    return f"{number(found.mean)} ({100 * LEVEL:g} % interval {ends})"
