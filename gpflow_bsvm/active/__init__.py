"""Active learning: which rows of a pool are worth labelling."""

from .learner import ActiveLearner
from .policies import POLICIES, Policy, Request

__all__ = ["POLICIES", "ActiveLearner", "Policy", "Request"]
