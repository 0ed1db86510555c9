"""Encodings of a user's labels for a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from sklearn.utils.multiclass import check_classification_targets

from ..data.checks import has_masked
from ..notices import warn
from ..tables.labels import class_list
from ..tables.paths import listed

#: A function that maps labels [n, 1] to encoded labels and factors of the rows' weights.
Encoding = Callable[[AnyNDArray], tuple[AnyNDArray, Any]]
#: Numbers are probably not classes if there are more distinct numbers than MANY_CLASSES, and than
#: MANY_PER_ROW times the rows.
MANY_CLASSES = 20
MANY_PER_ROW = 0.1


def missing(values: Any) -> AnyNDArray:
    """:return: True for None, NaN, NaT, pandas.NA or a masked value, in the shape of the values."""
    # NumPy would convert other objects in a list of strings to strings.
    array = np.asarray(values, object if isinstance(values, list | tuple) else None)
    of_objects = array.dtype.kind == "O"
    found = np.frompyfunc(_is_missing, 1, 1)(array) if of_objects else array != array
    return np.asarray(found, bool) | (values.mask if has_masked(values) else False)


def _is_missing(value: Any) -> bool:
    lacks = value is None or type(value).__name__ in ("NAType", "NaTType")
    return lacks or bool(isinstance(value, float | np.floating) and value != value)


def check_known(y: Any) -> None:
    """:raise ValueError: for rows without a label."""
    holes = np.atleast_1d(missing([] if y is None else y))
    if rows := np.unique(np.nonzero(holes)[0]).tolist():
        which = f"row{'s' * (len(rows) > 1)} {listed(rows)}"
        raise ValueError(f"y has no label (None, NaN, NaT or NA) in {which}: leave out such rows")


def known_labels(y: Any) -> AnyNDArray:
    """:return: [N], labels as a fit uses them; raises ValueError for None, and as `check_known`."""
    if y is None:
        raise ValueError("labels are needed: give a pair (X, y)")
    check_known(y)
    return np.ravel(with_numpy_type(y))


def with_numpy_type(y: Any) -> Any:
    """
    :return: y in memory, where NumPy's integers or truth values replace pandas' nullable types and
        categories. (scikit-learn would convert these to floats: True to 1.0, large integers to
        their neighbors.) A list that NumPy would change becomes an array of objects: strings beside
        other labels, members of a string enumeration, or integers too large for floats.
    """
    if hasattr(y, "__dask_graph__"):
        y = y.compute()
    names: Any = y.column_names if hasattr(type(y), "column_names") else getattr(y, "columns", ())
    if len(names) == 1:
        return np.asarray(with_numpy_type(y[names[0]]))[:, None]
    if isinstance(y, list | tuple):
        array = np.asarray(y)
        may_differ = array.dtype.kind in "fSU" and array.ndim == 1
        return np.asarray(y, object) if may_differ and array.tolist() != [*y] else y
    dtype = getattr(y, "dtype", None)
    if str(getattr(getattr(dtype, "categories", None), "dtype", "")).startswith("bool"):
        return np.asarray(y, bool)
    numpy_type = getattr(dtype, "numpy_dtype", None)
    known = getattr(numpy_type, "kind", None) in {"i", "u", "b"}
    return y.to_numpy(numpy_type) if known else y


def told_classes(classes: Any, in_order: bool, y: Any = None) -> AnyNDArray:
    """
    :param in_order: True: in the order of the categories of `classes` or y, else of the list;
        False: sorted.
    :return: [C], the labels in a user's list of classes.
    :raise ValueError: for missing labels; and as in `class_list`.
    """
    names = class_list(classes, distinct=in_order)
    if missing(names).any():
        raise ValueError(f"classes must be labels, without None, NaN or NA, got {classes!r}")
    told = np.asarray(with_numpy_type(classes if hasattr(classes, "dtype") else names))
    stated = [order for order in map(stated_order, (classes, y)) if order is not None]
    order = next((order for order in stated if np.isin(told, order).all()), told)
    return np.asarray(order[np.isin(order, told)]) if in_order else np.unique(told)


def check_targets(y: AnyNDArray) -> None:
    """
    Warn of numbers that are probably not classes.

    :raise ValueError: for fractions and objects of unknown types.
    """
    if y.dtype.kind not in "iuf":
        if y.dtype.kind == "O" and not all(isinstance(label, str) for label in y):
            kinds = sorted({type(label).__name__ for label in y})
            raise ValueError(
                f"Unknown label type: y holds objects of type {' and '.join(kinds)}; convert it to "
                "numbers or to strings, for instance by numpy.array(y, str)"
            )
        check_classification_targets(y)
        return
    classes = np.unique(y)
    if len(broken := classes[classes % 1 > 0]):
        example = f"continuous, such as {broken[0]:g}"
        raise ValueError(f"Unknown label type: {example}; use BSVMRegressor for regression")
    warn_of_numbers(len(classes), len(y))


def warn_of_numbers(num_classes: int, num_rows: int) -> None:
    """Warn if there are so many numeric classes that they are probably regression targets."""
    if num_classes > max(MANY_CLASSES, MANY_PER_ROW * num_rows):
        warn(
            f"y holds {num_classes} different numbers in {num_rows} rows, and each becomes a "
            "class: use BSVMRegressor for regression"
        )


def check_order(classes: AnyNDArray, advice: str) -> None:
    """:raise ValueError: if ordered classes are words, whose order is not given."""
    if len(classes) > 2 and isinstance(classes[0], str):
        words = classes.tolist()[:8]
        raise ValueError(
            f'multi_class="ordinal" needs an order, but the classes {words} are words: {advice}'
        )


def stated_order(y: Any) -> AnyNDArray | None:
    """:return: the categories of an ordered pandas Categorical or a Polars Enum, else None."""
    y = y.iloc[:, 0] if getattr(y, "ndim", 1) == 2 and hasattr(y, "iloc") else y
    dtype: Any = getattr(y, "dtype", None)
    ordered = getattr(dtype, "ordered", type(dtype).__name__ == "Enum")
    return np.asarray(dtype.categories) if ordered else None


def classes_of(y: AnyNDArray, order: AnyNDArray | None, ordinal: bool) -> AnyNDArray:
    """:return: [C], the classes in the user's order, or sorted; raises as `check_order`."""
    found = np.unique(y)
    if order is not None:
        return np.asarray(order[np.isin(order, found)])
    if ordinal:
        typed = f"pandas.Categorical(y, {found.tolist()[:8]}, ordered=True)"
        check_order(found, f"give y as numbers, or as {typed} with the words in order")
    return found


def number(y: AnyNDArray, classes: AnyNDArray) -> AnyNDArray:
    """
    :param classes: [C], in any order.
    :return: [N], the index of each label in `classes`.
    :raise ValueError: for any other label.
    """
    order = np.argsort(classes)
    try:
        places = order[np.minimum(np.searchsorted(classes, y, sorter=order), len(classes) - 1)]
        unseen = np.asarray(classes[places] != y)
    except TypeError:  # types that cannot be compared, such as dates and words
        unseen = np.full(len(y), True)
    if unseen.any():
        raise ValueError(
            f"y contains previously unseen labels: {np.unique(y[unseen]).tolist()}; the classes "
            f"are {classes.tolist()}"
        )
    return places


def numbered(Y: AnyNDArray, values: AnyNDArray, weights: AnyNDArray) -> tuple[AnyNDArray, Any]:
    """:return: the index of each label in `values` [C], and its entry in `weights` [C]."""
    index = number(Y, values)
    return index, weights[index]


def check_are_numbers(y: Any) -> Any:
    """
    :return: y, with objects converted to floats.
    :raise ValueError: for strings (classes), dates, periods and missing labels.
    """
    given = np.ravel(np.asarray(y))
    if given.dtype.kind in "mM":
        raise ValueError(f"y must be numbers, got {given.dtype}: give y in seconds or days")
    if y is None or given.dtype.kind not in "OU":
        return y
    if words := [one for one in given if isinstance(one, str)]:
        raise ValueError(f"y must be numbers, got {words[0]!r}: classes need BSVMClassifier")
    check_known(y)
    if others := [one for one in given if not hasattr(one, "__float__")]:
        kind = type(others[0]).__name__
        raise ValueError(f"y must be numbers, got a {kind}: give an array (times in days)")
    return np.asarray(y, np.float64)


def standardised(Y: AnyNDArray, center: float = 0.0, scale: float = 1.0) -> tuple[AnyNDArray, Any]:
    """:return: labels minus `center`, divided by `scale`; raises as `check_are_numbers`."""
    return (check_are_numbers(Y) - center) / scale, 1.0


def ones(Y: AnyNDArray) -> tuple[AnyNDArray, Any]:
    """:return: ones: all rows belong to one class, whatever their labels."""
    return np.ones((len(Y), 1)), 1.0


def label_names(rows: Any, values: AnyNDArray) -> AnyNDArray:
    """:return: [C], the source's names of these class numbers; without names, the numbers."""
    names = getattr(rows, "classes", None)
    whole = values.astype(np.int64)
    if names is None:
        if len(values) and np.abs(values).max() >= 2 / np.finfo(values.dtype).eps:
            raise ValueError(
                f"label {values[-1]:.0f} has too many digits for {values.dtype}, in which close "
                "labels are equal: number the classes 0, 1, ..."
            )
        return whole
    given = np.asarray(names)  # integers beyond 2^63 become floats, which may be equal
    return (given if given.tolist() == [*names] else np.array([*names], object))[whole]


def label_values(rows: Any, classes: AnyNDArray) -> AnyNDArray:
    """:return: [C], the number of each class in the source; -1 if the source lacks the class."""
    names = getattr(rows, "classes", None)
    if names is None and classes.dtype.kind not in "fiub":
        raise ValueError(
            f"the classes are {classes.tolist()}, but these labels are numbers: give the source "
            "classes=..., the names in the order of the numbers"
        )
    if names is None:
        return classes
    if unknown := [name for name in names if name not in classes.tolist()]:
        raise ValueError(
            f"classes {unknown} of the source are not among {classes.tolist()}: refit with rows "
            "of all classes"
        )
    return np.array([names.index(one) if one in names else -1 for one in classes.tolist()])


def told_weights(class_weight: Any, classes: AnyNDArray) -> AnyNDArray:
    """
    :return: [C], the weights of classes; 1 for a class without a given weight. (scikit-learn would
        look for the number 1 if a label is "1" or "01".)
    :raise ValueError: if some classes have no weight although some weights belong to no class, or
        if a weight is not a number.
    """
    if classes.dtype.kind in "mM":  # the keys may be dates of Python or pandas
        class_weight = dict(zip(np.array([*class_weight], classes.dtype), class_weight.values()))
    lost = [name for name in classes if name not in class_weight]
    if lost and len(classes) - len(lost) != len(class_weight):
        raise ValueError(
            f"class_weight has {[*class_weight]}, but the classes are {classes.tolist()}: write "
            "its keys as the labels are in y"
        )
    try:
        weights = np.array([class_weight.get(name, 1.0) for name in classes], float)
    except (TypeError, ValueError):
        weights = np.empty((0, 0))
    if weights.ndim != 1:
        raise ValueError(f"class_weight must give a number for each class, got {class_weight}")
    return weights
