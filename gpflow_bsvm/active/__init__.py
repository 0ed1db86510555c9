"""Active learning: the rows of a pool that are worth a label."""

from .batches import batch_bald, joint_mutual_information
from .distance import distance_from_refit
from .learner import ActiveLearner, geometric
from .policies import POLICIES, Policy, Request

__all__ = [
    "POLICIES",
    "ActiveLearner",
    "Policy",
    "Request",
    "batch_bald",
    "distance_from_refit",
    "geometric",
    "joint_mutual_information",
]
