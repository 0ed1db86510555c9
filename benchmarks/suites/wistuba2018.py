"""Wistuba and Rawat (2018), section 4.1: multi-class sets, M = 64, who is more accurate and when.

Two arms. By natural gradients, on all sets: q alone is learned, at one kernel for all (variance 4,
lengthscale sqrt(D)): Crammer and Singer's machine, binary ones one against the rest, GPflow's SVGP
with Softmax and with RobustMax, scikit-learn's SVC with Platt scaling. By Adam as the paper says
(rate 5e-4, 1000 epochs), on small sets: everything is learned. The paper's sets are those of PMLB;
so are these, but for usps and covtype_15k.
"""

from __future__ import annotations

from ._contract import Stage, Suite

#: By what a fit of them takes, least first.
SETS = (
    *("iris", "flags", "glass", "auto", "cars", "balance-scale", "schizo", "cleveland"),
    *("solar-flare_1", "movement_libras", "collins", "analcatdata_authorship"),
    *("analcatdata_dmft", "soybean", "car", "solar-flare_2", "vowel", "yeast", "allhypo", "allbp"),
    *("allrep", "allhyper", "splice", "waveform-21", "waveform-40", "ann-thyroid", "page-blocks"),
    *("wine-quality-white", "satimage", "mfeat-morphological", "mfeat-zernike", "mfeat-karhunen"),
    *("mfeat-fourier", "mfeat-factors", "mfeat-pixel", "led7", "led24", "nursery", "optdigits"),
    *("pendigits", "covtype_15k", "usps", "letter", "krkopt", "connect-4", "shuttle", "sleep"),
    *("fars", "poker", "kddcup"),
)
#: Sets of the directory that are one of these once more, see `docs/lab/suites.md`.
SAME_AS = {
    "car-evaluation": "car",
    "cars1": "cars",
    "cleveland-nominal": "cleveland",
    "dna": "splice",
    "prnn_fglass": "glass",
}
#: Sets of which two classes are left where rare ones are left out.
TWO_CLASSES = ("lymphography",)
#: Other columns, or other labels, of the same rows: sets of their own here, one source each.
SOURCES = {
    **dict.fromkeys(("allbp", "allhyper", "allhypo", "allrep"), "thyroid"),
    **dict.fromkeys([name for name in SETS if name.startswith("mfeat-")], "mfeat"),
}
SMALL = (
    *("iris", "flags", "glass", "auto", "cars", "balance-scale", "schizo", "cleveland"),
    *("solar-flare_1", "movement_libras"),
)
#: Half of the time of a set is that of RobustMax: it has a stage of its own.
QUICK, SLOW = ("bsvm", "one-vs-rest", "svgp", "svc"), ("svgp-robustmax",)
NATURAL = (*QUICK[:3], *SLOW, *QUICK[3:])
ADAM = ("adam-bsvm-published", "adam-bsvm", "adam-one-vs-rest", "adam-svgp")

SUITE = Suite(
    fits="suites._wistuba2018",
    stages=(
        Stage(SETS, (0,), QUICK),
        Stage(SETS, (1,), QUICK),
        Stage(SETS, (0, 1), SLOW),
        Stage(SMALL, (0,), ADAM),
    ),
    smoke=(Stage(("iris",), (0,), (*NATURAL, *ADAM)),),
    limit=120.0,
    short={"suites._adam.EPOCHS": 20},
)
