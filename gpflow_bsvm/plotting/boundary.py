"""A classifier of two features, seen from above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from scipy.stats import entropy
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ..checks import check_whole
from ..data.checks import as_matrix
from ..engine.contracts import Model, check_model
from ..engine.prior import plain_points
from ..estimators.classifier import BSVMClassifier
from ..estimators.inputs import number, scale
from ..likelihoods.hooks import check_labels
from ..likelihoods.labels import check_one_label, is_binary, with_both_classes
from ..prediction.marginals import predict_marginals, predict_probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Margin on either side of the points, as a part of their range.
_MARGIN = 0.1
#: Saturation where a class is certain: its dots still stand out.
_SATURATION = 0.7


def decision_boundary(
    ax: Axes,
    model: Model | BSVMClassifier,
    X: Any = None,
    y: Any = None,
    *,
    resolution: int = 100,
    uncertainty: bool = True,
) -> Axes:
    """
    The probabilities over a plane of two features: the most probable class as colour, its
    probability as saturation, and lines between the classes. Inducing points are crosses.

    :param model: a `BSVM` of two features, or a `BSVMClassifier`, in the units of its own inputs.
    :param X: [N, 2], drawn as dots; None: the surroundings of the inducing points are shown. The
        axes have the names of its columns, or of those of the classifier's fit.
    :param y: [N] or [N, 1], labels as in the fit: colour and `label` of the dots.
    :param resolution: points along each side of the grid.
    :param uncertainty: dashed lines of equal standard deviation of f, or, with several latent
        functions, of equal predictive entropy.
    :raise ValueError: for another number of features, several binary labels in a row, or bad data.
    """
    check_whole(2, resolution=resolution)
    inner, scaler, classes = _parts(model)
    names = getattr(X, "columns", getattr(model, "feature_names_in_", ("x1", "x2")))
    Z = plain_points(inner.inducing_variable)
    Z = Z if scaler is None else [scaler.inverse_transform(part) for part in Z]
    X = None if X is None else as_matrix(np.asarray(X, default_float()), "X")
    sides = _sides(Z if X is None else [*Z, X], resolution, X)
    grid = scale(scaler, np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2))
    P = with_both_classes(predict_probabilities(inner, grid)).reshape(*[resolution] * 2, -1)
    _draw_classes(ax, sides, P)
    if uncertainty:
        single = inner.num_features[0] == 1
        doubt = np.sqrt(predict_marginals(inner, grid)[1]) if single else entropy(P, axis=-1)
        _draw_doubt(ax, sides, doubt.reshape(resolution, resolution))
    _draw_dots(ax, X, y, classes, inner, _colours(P.shape[-1]))
    for part in Z:
        label = "inducing points" if part is Z[0] else None
        ax.plot(*part.T, "kx", markersize=4, markeredgewidth=0.9, label=label)
    one = 1 if classes is None else classes[1]
    ax.set(title=f"p(y = {one})" if _is_binary(inner) else "Most probable class")
    ax.set(xlim=sides[0][[0, -1]], ylim=sides[1][[0, -1]])
    ax.set(xlabel=str(names[0]), ylabel=str(names[1]))
    return ax


def _parts(model: Any) -> tuple[Any, Any, Any]:
    """:return: the model, and for a classifier the scaler and the user's labels."""
    if isinstance(model, BSVMClassifier):
        check_is_fitted(model)
        return model.model_, model.scaler_, model.classes_
    check_model(model)
    check_one_label(model.likelihood, model.num_latent_gps)
    return model, None, None


def _is_binary(model: Any) -> bool:
    return is_binary(model.likelihood, model.num_features[0])


def _sides(points: list[AnyNDArray], resolution: int, X: AnyNDArray | None) -> AnyNDArray:
    """:return: [2, resolution], x1 and x2 of a grid around X, else around inducing points."""
    if not points:
        raise ValueError("the model has no inducing points that could be shown: X is needed")
    for part in points:
        if part.shape[1] != 2:
            raise ValueError(f"a picture needs inputs of 2 columns, got {part.shape[1]}")
    shown = np.concatenate(points) if X is None else X
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 1)
    return np.linspace(low - margin, high + margin, resolution).T


def _colours(num_classes: int) -> AnyNDArray:
    """:return: [C, 3], one for every class."""
    from matplotlib import colormaps

    if num_classes == 2:
        return np.asarray(colormaps["RdBu_r"]([0.05, 0.95]))[:, :3]
    if num_classes <= 10:
        return np.asarray(colormaps["tab10"](np.arange(num_classes)))[:, :3]
    return np.asarray(colormaps["turbo"](np.linspace(0, 1, num_classes)))[:, :3]


def _draw_classes(ax: Axes, sides: AnyNDArray, P: AnyNDArray) -> None:
    """Colours and the lines between them, of P [R, R, C]."""
    C = P.shape[-1]
    sure = (C * P.max(axis=-1, keepdims=True) - 1) / (C - 1)
    picture = 1 - _SATURATION * sure * (1 - _colours(C)[P.argmax(axis=-1)])
    half = np.array([-0.5, 0.5]) * (sides[:, 1:2] - sides[:, :1])
    extent = (sides[:, [0, -1]] + half).reshape(-1)
    ax.imshow(np.clip(picture, 0, 1), origin="lower", aspect="auto", extent=extent)
    for c in range(C - 1):  # between two classes one line: that of the first
        lead = P[..., c] - np.delete(P, c, axis=-1).max(axis=-1)
        if lead.min() < 0 < lead.max():
            ax.contour(*sides, lead, levels=[0], colors="black", linewidths=1.4)


def _draw_doubt(ax: Axes, sides: AnyNDArray, doubt: AnyNDArray) -> None:
    if np.ptp(doubt) > 1e-6 * np.max(doubt):
        style: dict[str, Any] = {"colors": "0.25", "linestyles": "dashed", "linewidths": 0.7}
        ax.clabel(ax.contour(*sides, doubt, levels=5, **style), fontsize=6, fmt="%.2g")


def _draw_dots(ax: Axes, X: Any, y: Any, classes: Any, model: Any, colours: AnyNDArray) -> None:
    """Dots of every class in y; all alike without y."""
    style: dict[str, Any] = {"s": 14, "edgecolors": "white", "linewidths": 0.4}
    if y is None:
        if X is not None:
            ax.scatter(*X.T, color="0.2", **style)
        return
    if X is None:
        raise ValueError("y needs the X that it belongs to")
    y = np.asarray(y).reshape(-1)
    check_consistent_length(X, y)
    if classes is None:
        check_labels(model.likelihood, y[:, None], minibatch=True)
        numbers, y = np.asarray((y > 0) if _is_binary(model) else y, int), y.astype(int)
    else:
        numbers = number(y, classes)
    for n in np.unique(numbers):
        rows = numbers == n
        ax.scatter(*X[rows].T, color=colours[n], label=f"y = {y[rows][0]}", **style)
