"""Wenzel et al. (2017), Table 1: error, Brier score, time on seven sets, 10 folds, fixed kernel.

S-BSVM by Algorithm 1 as printed, in batches of 10, and by full-batch `CAVI`; the ECM of Henao et al
(2014), scikit-learn's Gaussian process classifier and SVC with Platt scaling, on all rows. First
three folds of what takes seconds, and one of ECM and GPC, whose time grows with the cube of the
rows, on the larger sets; then the others, last what takes a quarter of an hour a fit.
"""

from __future__ import annotations

from ._contract import Stage, Suite

SMALL = ("flare", "breast_cancer", "heart", "diabetis", "german")
LARGE = ("splice", "waveform")
SETS = (*SMALL, *LARGE)
SPARSE, DENSE = ("s-bsvm", "s-bsvm-cavi", "svm-platt"), ("ecm", "gpc")
FOLDS = tuple(range(10))

SUITE = Suite(
    fits="suites._wenzel2017",
    stages=(
        Stage(SETS, FOLDS[:3], SPARSE),
        Stage(SMALL, FOLDS[:3], DENSE),
        Stage(LARGE[:1], FOLDS[:1], DENSE),
        Stage(LARGE[1:], FOLDS[:1], ("gpc",)),
        Stage(SETS, FOLDS[3:], SPARSE),
        Stage(SMALL, FOLDS[3:], DENSE),
        Stage(LARGE[1:], FOLDS[:1], DENSE[:1]),
        Stage(LARGE, FOLDS[1:], DENSE),
    ),
    smoke=(Stage(("breast-cancer",), (0,), (*SPARSE, *DENSE)),),
    limit=1800.0,
)
