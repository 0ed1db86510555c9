"""A choice between models: by rows that they have not seen, or by the training data alone."""

from ..prediction import leave_one_out_density
from .bounds import Ball, JaakkolaHaussler, RadiusMargin, SupportVectorCount, enclosing_ball
from .criterion import Criterion, Gradient, ModeCriterion
from .error_estimates import GACV, HingeSpan, LeaveOneOut, SmoothedSpan, Span, left_out_margins
from .fitted import HeldOutDensity, LeaveOneOutDensity, VariationalBound
from .held_out import HeldOut, find_peak, held_out_density
from .laplace import LaplaceEvidence, QuadraticLaplaceEvidence
from .mode import Mode, mode_of_gram, mode_of_model, svm_mode
from .optimise import Optimum, Selection, optimise
from .plug_in import Start, plug_in, start_from
from .posterior import Posterior
from .sampled import Estimate, SampledEvidence
from .search import Place
from .starts import random_starts

__all__ = [
    "Ball",
    "Criterion",
    "Estimate",
    "GACV",
    "Gradient",
    "HeldOut",
    "HeldOutDensity",
    "HingeSpan",
    "JaakkolaHaussler",
    "LaplaceEvidence",
    "LeaveOneOut",
    "LeaveOneOutDensity",
    "Mode",
    "ModeCriterion",
    "Optimum",
    "Place",
    "Posterior",
    "QuadraticLaplaceEvidence",
    "RadiusMargin",
    "SampledEvidence",
    "Selection",
    "SmoothedSpan",
    "Span",
    "Start",
    "SupportVectorCount",
    "VariationalBound",
    "enclosing_ball",
    "find_peak",
    "held_out_density",
    "leave_one_out_density",
    "left_out_margins",
    "mode_of_gram",
    "mode_of_model",
    "optimise",
    "plug_in",
    "random_starts",
    "start_from",
    "svm_mode",
]
