"""What a fit did, and what its kernel looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.kernels import Kernel, SharedIndependent, Static

from ..inference.history import History
from .figures import LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A vector of at most this many entries has a colour for each.
_MOST_COLOURS = 6


# --- the way of a fit ----------------------------------------------------------------------------


def bound_trace(ax: Axes, history: History, **style: Any) -> Axes:
    """
    The bound that the fit maximises after each recorded step, `history.elbo` against
    `history.step`: of `VEM` with the log prior of the hyperparameters, of `SVI` an estimate.

    :param style: of the line, such as `label`.
    """
    ax.plot(history.step, history.elbo, **LINE | style)
    ax.set(xlabel="step", ylabel="bound [nats]", title="Bound")
    return ax


def hyperparameter_trace(
    ax: Axes,
    history: History,
    names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    **style: Any,
) -> Axes:
    """
    The hyperparameters after each recorded step: a line for each entry, with its own colour and
    legend entry, those of more than 6 entries with one for all. The axis is logarithmic where all
    values are positive.

    :param names: as in `history.hyperparameters`; None: all but matrices such as inducing points.
    :param feature_names: of D features, for the D entries of lengthscales; None: their numbers.
    :param style: of the lines, such as `linestyle`.
    :raise ValueError: for a fit that learned none, or names that are not among them.
    """
    for name in _learned(history, names):
        values = np.reshape(history.hyperparameters[name], (len(history), -1))
        look = LINE | ({"linewidth": 0.7, "markersize": 1.5} if values.shape[1] > 1 else {})
        for label, column in zip(_entries(name, values.shape[1], feature_names), values.T):
            look["label"] = label
            if label is None:
                look["color"] = ax.lines[-1].get_color()
            ax.plot(history.step, column, **look | style)
    positive = all(np.min(line.get_ydata()) > 0 for line in ax.lines)
    ax.set(xlabel="step", ylabel="value", yscale="log" if positive else "linear")
    ax.set(title="Hyperparameters")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _entries(name: str, count: int, feature_names: Sequence[str] | None) -> list[str | None]:
    """:return: the label of each entry, None for those that have that of the first."""
    name = name.removeprefix(".")
    if count == 1 or count > _MOST_COLOURS:
        return [name] + [None] * (count - 1)
    if feature_names is None or len(feature_names) != count:
        feature_names = [str(entry) for entry in range(count)]
    return [f"{name}[{entry}]" for entry in feature_names]


def _learned(history: History, names: Sequence[str] | None) -> list[str]:
    """:return: `names`, or all of scalars and vectors."""
    learned = history.hyperparameters
    if not learned:
        raise ValueError(
            "the history has no hyperparameters: CAVI and SVI leave them where they are, "
            "gpflow_bsvm.inference.VEM learns them"
        )
    small = [name for name, values in learned.items() if np.ndim(values[0]) < 2]
    chosen = small if names is None else list(names)
    if not chosen or not set(chosen) <= set(learned):
        raise ValueError(f"names must be some of {list(learned)}, got {chosen}")
    return chosen


# --- what a kernel looks at ----------------------------------------------------------------------


def relevance(kernel: Kernel, num_features: int | None = None) -> AnyNDArray:
    """
    How strongly f depends on each feature: 1 / lengthscale, relative to the largest. That is,
    up to a factor, the prior's typical slope along the feature, and compares features of equal
    scale: standardise them.

    :param kernel: with a lengthscale for each feature (ARD); constants and white noise may be
        added to it or multiply it.
    :param num_features: D, for a kernel with `active_dims`; None: up to the last one it looks at.
    :return: [D] from 0 (not looked at) to 1.
    :raise ValueError: for any other kernel, or if it does not suit `num_features`.
    """
    parts = [part for part in _parts(kernel) if not isinstance(part, Static)]
    if len(parts) != 1 or np.ndim(getattr(parts[0], "lengthscales", 0)) != 1:
        shown = ", ".join(type(part).__name__ for part in parts)
        raise ValueError(
            f"relevance needs one kernel with a lengthscale for each feature (ARD), got [{shown}]; "
            "use gpflow_bsvm.priors.ard_kernel, or one part of a sum or product"
        )
    sensitivity = 1 / np.asarray(parts[0].lengthscales)
    columns = _columns(parts[0].active_dims, len(sensitivity), num_features)
    values = np.zeros(num_features or 1 + columns.max())
    values[columns] = sensitivity / sensitivity.max()
    return values


def _parts(kernel: Any) -> list[Any]:
    """:return: the kernels that sums, products and several latent functions are made of."""
    if isinstance(kernel, SharedIndependent):
        return _parts(kernel.kernel)
    return [leaf for part in getattr(kernel, "kernels", ()) for leaf in _parts(part)] or [kernel]


def _columns(active_dims: Any, count: int, num_features: int | None) -> AnyNDArray:
    """:return: [count], the columns of X that a kernel looks at."""
    columns: AnyNDArray = np.asarray(active_dims)
    if isinstance(active_dims, slice):
        start, step = active_dims.start or 0, active_dims.step or 1
        columns = np.arange(num_features or start + step * count)[active_dims]
    if len(columns) != count or columns.max() >= (num_features or np.inf):
        raise ValueError(
            f"{count} lengthscales of active_dims={active_dims} do not fit {num_features} features"
        )
    return columns
