"""The core's warnings in terms of the estimators' parameters."""

from __future__ import annotations

#: Beginnings of the core's messages, and their replacements.
SAID = {
    "the fit has learned next to nothing": (
        "the fit has learned next to nothing, and predicts nearly the same for all rows: its "
        "kernel has collapsed, or does not suit X; try learn_kernel=False, a larger penalty, a "
        "kernel=... whose variance is near 4, or more rows"
    ),
    "float64 does not hold this q": (
        "labels without noise, or a kernel of very large variance, determine f to more digits than "
        "float64 has: predictions and their uncertainty are rounded"
    ),
    "all inducing points are many lengthscales apart": (
        "the rows are many lengthscales of the kernel apart, so that nothing can be predicted "
        "between them: give a kernel=... of larger lengthscales, and leave standardize=True"
    ),
    "all inducing points are perfectly correlated": (
        "the kernel hardly distinguishes rows, so that predictions are the same for all: give a "
        "kernel=... of smaller lengthscales, and leave standardize=True, unless this is intended"
    ),
    "the fit has not converged": (
        "the fit has not converged: give more max_steps, or a larger tol, by inference="
    ),
    "y has almost no noise": (
        "y has almost no noise, so that error bars are rounded: predictions are not affected"
    ),
    "no step was found": (
        "no step was found that raises the bound, and the fit has not converged: leave bound and "
        "inference at their defaults, or give inference= a smaller learning_rate"
    ),
    "Kuu needed a jitter": (
        "the kernel's matrix is singular up to rounding, because the kernel hardly distinguishes "
        "some rows; a small noise was added: use a smaller num_inducing, or shorter lengthscales"
    ),
}


def in_words_of_estimators(text: str) -> str:
    """:return: the message in terms of the estimator's parameters."""
    return next((said for begins, said in SAID.items() if text.startswith(begins)), text)
