"""How often TensorFlow has traced."""

from gpflow_bsvm.engine import natural, projection, statistics
from gpflow_bsvm.engine.shared_graph import Compiled
from gpflow_bsvm.inference import cavi, svi
from gpflow_bsvm.models import sparse


def all_traces() -> int:
    modules = (sparse, natural, projection, statistics, cavi, svi)
    found = {id(v): v for m in modules for v in vars(m).values() if isinstance(v, Compiled)}
    assert len(found) >= 6
    return sum(function.num_traces for function in found.values())
