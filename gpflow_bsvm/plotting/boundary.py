"""A classifier of two features, seen from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import AnyNDArray
from gpflow.config import default_float
from scipy.stats import entropy
from sklearn.utils.validation import check_is_fitted

from ..checks import check_whole
from ..data import checks
from ..engine.contracts import Model, check_model, plain_points
from ..estimators.classifier import BSVMClassifier
from ..likelihoods.labels import check_one_label, is_binary, with_both_classes
from ..prediction.marginals import predict_marginals, predict_probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What is shown beyond the points on either side, of their range.
_MARGIN = 0.1
#: Where a class is certain it has this much of its colour: its own dots stand out.
_SATURATION = 0.7
#: Of p(y = 1), with a colour between each and the next.
_LEVELS = np.linspace(0, 1, 21)

#: Label, number of the class, and rows.
_Dots = tuple[str | None, int | None, AnyNDArray]


def decision_boundary(
    ax: Axes,
    model: Model | BSVMClassifier,
    X: Any = None,
    y: Any = None,
    *,
    resolution: int = 100,
    uncertainty: bool = True,
    feature_names: Sequence[str] | None = None,
) -> Axes:
    """
    The probabilities over a plane of two features: p(y = 1) as colour and a line where it is 1/2;
    of several classes the most probable one as colour, its probability as saturation, and lines
    between them. Inducing points are crosses.

    :param model: a `BSVM` of two features, or a `BSVMClassifier`, in the units of its own inputs.
    :param X: [N, 2], drawn as dots; None: the surroundings of the inducing points are shown.
    :param y: [N] or [N, 1], labels as in the fit: colour and `label` of the dots.
    :param resolution: points along each side of the grid.
    :param uncertainty: dashed lines of equal standard deviation of f, or, of several latent
        functions, of equal predictive entropy.
    :param feature_names: of the axes; None: those of the data frame X, or of the classifier's fit.
    :raise ValueError: for another number of features, several binary labels in a row, or bad data.
    """
    seen = _Seen.of(model)
    x1, x2 = getattr(X, "columns", seen.names) if feature_names is None else feature_names
    Z = seen.inducing_points()
    X = None if X is None else checks.as_matrix(np.asarray(X, default_float()), "X")
    _check_points(Z if X is None else [*Z, X], resolution)
    dots = seen.dots(X, y)
    sides = _sides(np.concatenate(Z) if X is None else X, resolution)
    P, doubt = seen.predict(np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2))
    _draw_classes(ax, sides, P.reshape(resolution, resolution, -1))
    if uncertainty:
        _draw_doubt(ax, sides, doubt.reshape(resolution, resolution))
    _draw_points(ax, Z, dots, _colours(max(2, P.shape[1])))
    ax.set(xlim=sides[0][[0, -1]], ylim=sides[1][[0, -1]], title=seen.title)
    ax.set(xlabel=str(x1), ylabel=str(x2))
    return ax


@dataclass(frozen=True)
class _Seen:
    """
    A model, and the way to it from the user's inputs and labels.

    :ivar classes: of a `BSVMClassifier`; None: labels are as the likelihood has them.
    """

    model: Any
    scaler: Any = None
    classes: AnyNDArray | None = None
    chunk_rows: int | None = None
    names: Sequence[Any] = ("x1", "x2")

    @classmethod
    def of(cls, model: Any) -> _Seen:
        if isinstance(model, BSVMClassifier):
            check_is_fitted(model)
            names = getattr(model, "feature_names_in_", cls.names)
            return cls(model.model_, model.scaler_, model.classes_, model.chunk_rows, names)
        check_model(model)
        check_one_label(model.likelihood, model.num_latent_gps)
        return cls(model)

    @property
    def binary(self) -> bool:
        return is_binary(self.model.likelihood, self.model.num_features[0])

    @property
    def title(self) -> str:
        one = "1" if self.classes is None else self.classes[1]
        return f"p(y = {one})" if self.binary else "Most probable class"

    def inducing_points(self) -> list[AnyNDArray]:
        Z = plain_points(self.model.inducing_variable)
        return Z if self.scaler is None else [self.scaler.inverse_transform(part) for part in Z]

    def predict(self, X: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
        """:return: p(y = 1) [N, 1] or P [N, C], and what is unsure [N]."""
        X = np.asarray(X if self.scaler is None else self.scaler.transform(X), default_float())
        P = predict_probabilities(self.model, X, chunk_rows=self.chunk_rows)
        if self.model.num_features[0] > 1:
            return P, np.asarray(entropy(with_both_classes(P), axis=1))
        _, variance = predict_marginals(self.model, X, chunk_rows=self.chunk_rows)
        return P, np.sqrt(variance[:, 0])

    def dots(self, X: AnyNDArray | None, y: Any) -> list[_Dots]:
        """:return: of every class in y; all in one without y."""
        if X is None:
            if y is not None:
                raise ValueError("y needs the X that it belongs to")
            return []
        if y is None:
            return [(None, None, X)]
        y = np.asarray(y).reshape(-1)
        number = self._numbers(X, y)
        names = y.astype(int) if self.classes is None else y
        rows = [(n, number == n) for n in np.unique(number)]
        return [(f"y = {names[of_class][0]}", int(n), X[of_class]) for n, of_class in rows]

    def _numbers(self, X: AnyNDArray, y: AnyNDArray) -> AnyNDArray:
        """:return: the labels as 0..C-1."""
        if self.classes is None:
            checks.check_data(self.model.likelihood, X, y[:, None], minibatch=True)
            return np.asarray((y > 0) if self.binary else y, int)
        if len(X) != len(y) or not np.isin(y, self.classes).all():
            raise ValueError(f"y must be {len(X)} labels of {self.classes}, got {len(y)}")
        return np.searchsorted(self.classes, y)


def _check_points(points: list[AnyNDArray], resolution: int) -> None:
    if not points:
        raise ValueError("the model has no inducing points that could be shown: X is needed")
    for part in points:
        if part.shape[1] != 2:
            raise ValueError(f"a picture needs inputs of 2 columns, got {part.shape[1]}")
    check_whole(2, resolution=resolution)


def _sides(points: AnyNDArray, resolution: int) -> AnyNDArray:
    """:return: [2, resolution], x1 and x2 of a grid around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
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
    """Colours and the lines between them, of P [R, R, 1 or C]."""
    if P.shape[-1] == 1:
        p = P[..., 0]
        ax.contourf(*sides, p, levels=_LEVELS, colors=_between(_colours(2), len(_LEVELS) - 1))
        _draw_line(ax, sides, p, 0.5)
        return
    C = P.shape[-1]
    sure = (C * P.max(axis=-1, keepdims=True) - 1) / (C - 1)
    picture = 1 - _SATURATION * sure * (1 - _colours(C)[P.argmax(axis=-1)])
    half = np.array([-0.5, 0.5]) * (sides[:, 1:2] - sides[:, :1])
    extent = (sides[:, [0, -1]] + half).reshape(-1)
    ax.imshow(np.clip(picture, 0, 1), origin="lower", aspect="auto", extent=extent)
    for c in range(C - 1):  # between two classes one line: that of the first
        _draw_line(ax, sides, P[..., c] - np.delete(P, c, axis=-1).max(axis=-1), 0)


def _between(two: AnyNDArray, number: int) -> AnyNDArray:
    """:return: [number, 3], from the first colour by white to the second."""
    t = np.linspace(-1, 1, number)[:, None]
    return 1 - _SATURATION * abs(t) * (1 - np.where(t < 0, two[0], two[1]))


def _draw_line(ax: Axes, sides: AnyNDArray, values: AnyNDArray, level: float) -> None:
    if values.min() < level < values.max():
        ax.contour(*sides, values, levels=[level], colors="black", linewidths=1.4)


def _draw_doubt(ax: Axes, sides: AnyNDArray, doubt: AnyNDArray) -> None:
    if np.ptp(doubt) > 1e-6 * np.max(doubt):
        style: dict[str, Any] = {"colors": "0.25", "linestyles": "dashed", "linewidths": 0.7}
        ax.clabel(ax.contour(*sides, doubt, levels=5, **style), fontsize=6, fmt="%.2g")


def _draw_points(ax: Axes, Z: list[AnyNDArray], dots: list[_Dots], colours: AnyNDArray) -> None:
    for label, number, rows in dots:
        color = "0.2" if number is None else colours[number]
        x1, x2 = rows.T
        ax.scatter(x1, x2, s=14, color=color, edgecolors="white", linewidths=0.4, label=label)
    for part in Z:
        label = "inducing points" if part is Z[0] else None
        ax.plot(*part.T, "kx", markersize=4, markeredgewidth=0.9, label=label)
