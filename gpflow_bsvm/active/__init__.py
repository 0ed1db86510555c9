"""Active learning: the rows of a pool that are worth a label."""

from .distance import Distance, distance_from_refit
from .learner import ActiveLearner, Query, geometric
from .policies import POLICIES, Policy, Request, softmax_entropy

__all__ = [
    "POLICIES",
    "ActiveLearner",
    "Distance",
    "Policy",
    "Query",
    "Request",
    "distance_from_refit",
    "geometric",
    "softmax_entropy",
]
