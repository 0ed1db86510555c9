"""Data sources, their checks, and the two loops over data.

The data of a fit are arrays X [N, D] and Y [N, P] in memory (X may be a SciPy sparse matrix),
memory-mapped (`np.memmap`) or from Dask; a `Reader`, such as `ParquetFiles` or `DaskFrame` (whose
rows stay on the cluster of the current `dask.distributed.Client`, if any); a batched
`tf.data.Dataset`; or an object that can be iterated over repeatedly and yields blocks (X, Y) or
(X, Y, sample_weight).
"""

from .. import quiet  # noqa: F401 - imports GPflow before others do
from .readers import Blocks, Part, Reader

__all__ = ["Blocks", "Part", "Reader"]
