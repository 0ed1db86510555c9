"""What a classifier gains where it may decline to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpflow.base import AnyNDArray

from .. import metrics
from .figures import LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def accuracy_against_coverage(
    ax: Axes, y: AnyNDArray, p: AnyNDArray, doubt: Any = None, **style: Any
) -> Axes:
    """
    Accuracy on the rows that are answered against their share: what is worth knowing of doubt falls
    from left to right. The right end is the accuracy on all rows.

    Arguments and errors as in `gpflow_bsvm.metrics.accuracy_against_coverage`.

    :param style: of the line, such as `label`.
    """
    found = metrics.accuracy_against_coverage(y, p, doubt)
    ax.plot(found.coverage, found.accuracy, **LINE | {"marker": None} | style)
    ax.set(xlim=(0, 1.02), xlabel="coverage, share of rows that are answered")
    ax.set(ylabel="accuracy on these", title="Reject option")
    return ax
