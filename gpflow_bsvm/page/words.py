"""A comparison in sentences: what was compared, on what, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..compare.protocol import Comparison
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
    settings = shown[0].settings
    kernel = "one kernel, fixed beforehand" if settings.fixed_kernel else "kernels learnt from them"
    parts = [
        f"{counted(len(models), 'classifier')}, {listed(models)}, "
        f"{'was' if len(models) == 1 else 'were'} cross-validated on {sets}: "
        f"{settings.folds} stratified folds, the same for all, with features scaled by the "
        f"training rows, {kernel}, and at most {settings.num_inducing} inducing points."
    ]
    if len(shown) == 1:
        parts += outcome(shown[0])
    else:
        parts += [_over_sets(shown, score) for score in TOLD]
    return " ".join([parts[0][:1].upper() + parts[0][1:], *parts[1:], *_unfinished(comparisons)])


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
        f"{name} by {_spread(lost)}" for name, lost in held.behind.items() if not lost.has_zero
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
    are = "is" if len(worse) == 1 else "are"
    return (
        f"{begin} {held.best} is best with {_spread(best)}{level} and worse {are} {listed(worse)}."
    )


def _absent(comparison: Comparison, held: Contest | None) -> list[str]:
    """:return: who is not ranked, and why."""
    told = []
    for name in dict.fromkeys(row.model for row in comparison.fold_scores):
        bad = [row for row in comparison.fold_scores if row.model == name and not row.ok]
        if bad and (held is None or name not in held.losses or len(held.losses) == 1):
            folds = f"{len(bad)} of {comparison.settings.folds} folds"
            told.append(f"{name} has no result on {folds} ({bad[0].status}).")
    return told


def _over_sets(shown: Sequence[Comparison], score: str) -> str:
    """:return: how often each model is best, or cannot be told apart from the best."""
    held = [one for one in (contest(each, score) for each in shown) if one is not None]
    if not held:
        return "No model could be fitted."
    level = Counter(name for one in held for name in one.level)
    models = dict.fromkeys(name for one in held for name in one.losses)
    first, *rest = sorted(models, key=lambda name: -level[name])
    often = listed(
        [
            f"{first} on {level[first]} of {len(held)} data sets",
            *(f"{name} on {level[name] or 'none'}" for name in rest),
        ]
    )
    ties = sum(len(one.losses) > 1 and len(one.level) == len(one.losses) for one in held)
    text = f"{TOLD[score]} these are the best, or cannot be told apart from the best: {often}"
    text += f"; on {ties} all tie" if ties else ""
    ranks = mean_ranks(shown, score)
    if ranks is None:
        return text + "."
    sure = "finds no difference" if ranks.p_value > 1 - LEVEL else "finds a difference"
    return f"{text}. Friedman's test of their ranks {sure} (p = {ranks.p_value:.2g})."


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
    return f"{number(found.mean)} ({number(found.low)} to {number(found.high)})"
