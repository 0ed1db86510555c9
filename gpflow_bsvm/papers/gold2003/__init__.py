"""Gold and Sollich (2003): criteria for kernel and penalty of a support vector machine."""

from .criterion import Criterion, Gradient, ModeCriterion
from .error_estimates import (
    GACV,
    Ball,
    HingeSpan,
    JaakkolaHaussler,
    LeaveOneOut,
    RadiusMargin,
    SmoothedSpan,
    Span,
    SupportVectorCount,
    enclosing_ball,
    left_out_margins,
)
from .evidence import LaplaceEvidence, QuadraticLaplaceEvidence, VariationalBound
from .mode import Mode, mode_of_gram, svm_mode
from .optimise import Optimum, Selection, optimise, random_starts
from .sampled import Estimate, Posterior, SampledEvidence
from .squared_hinge import SquaredHinge

__all__ = [
    "Ball",
    "Criterion",
    "Estimate",
    "GACV",
    "Gradient",
    "HingeSpan",
    "JaakkolaHaussler",
    "LaplaceEvidence",
    "LeaveOneOut",
    "Mode",
    "ModeCriterion",
    "Optimum",
    "Posterior",
    "QuadraticLaplaceEvidence",
    "RadiusMargin",
    "SampledEvidence",
    "Selection",
    "SmoothedSpan",
    "Span",
    "SquaredHinge",
    "SupportVectorCount",
    "VariationalBound",
    "enclosing_ball",
    "left_out_margins",
    "mode_of_gram",
    "optimise",
    "random_starts",
    "svm_mode",
]
