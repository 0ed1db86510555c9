"""Active learning: the rows of a pool that are worth a label."""

from .learner import ActiveLearner
from .policies import POLICIES, Policy, Request

__all__ = ["POLICIES", "ActiveLearner", "Policy", "Request"]
