"""Gold and Sollich (2003): criteria for kernel and penalty of a support vector machine."""

from .criterion import LaplaceEvidence
from .error_estimates import (
    GACV,
    HingeSpan,
    JaakkolaHaussler,
    LeaveOneOut,
    RadiusMargin,
    SmoothedSpan,
    Span,
    SupportVectorCount,
)
from .mode import mode_of_gram, svm_mode
from .optimise import optimise, random_starts
from .sampled import SampledEvidence
from .squared_hinge import SquaredHinge

__all__ = [
    "GACV",
    "HingeSpan",
    "JaakkolaHaussler",
    "LaplaceEvidence",
    "LeaveOneOut",
    "RadiusMargin",
    "SampledEvidence",
    "SmoothedSpan",
    "Span",
    "SquaredHinge",
    "SupportVectorCount",
    "mode_of_gram",
    "optimise",
    "random_starts",
    "svm_mode",
]
